package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

// tree is a checkout and what was built of it.
type tree struct {
	name string
	dir  string
	out  string // folder for what is built
}

func (t *tree) binary() string { return filepath.Join(t.out, "trainyard") }

// build builds the program.
func (t *tree) build(ctx context.Context) error {
	_, err := t.do(ctx, t.dir, nil, "go", "build", "-o", t.binary(), "./cmd/trainyard")
	return err
}

// do runs a command and returns its figures.
func (t *tree) do(ctx context.Context, dir string, env []string, name string, args ...string) (figures, error) {
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), env...)
	var out, problems bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &problems
	if err := cmd.Run(); err != nil {
		return nil, fmt.Errorf("%s: %s %s: %w: %s%s", t.name, filepath.Base(name), strings.Join(args, " "), err,
			tail(out.String()), tail(problems.String()))
	}
	f := figures{"CPU s": (cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()).Seconds()}
	for unit, v := range reported(out.String()) {
		f[unit] = v
	}
	return f, nil
}

func tail(text string) string { return text[max(0, len(text)-400):] }

// find returns the folder of the package that declares the benchmark, of those that a hint fits if there are several:
// packages move between commits, names of benchmarks do not.
func (t *tree) find(benchmark string, hints []string) (string, error) {
	var folders []string
	err := filepath.WalkDir(t.dir, func(name string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && (d.Name() == ".git" || d.Name() == "testdata" || d.Name() == "bin"):
			return fs.SkipDir
		case !strings.HasSuffix(name, "_test.go"):
			return nil
		}
		text, err := os.ReadFile(name)
		if err == nil && bytes.Contains(text, []byte("\nfunc "+benchmark+"(b *testing.B)")) {
			folders = append(folders, filepath.Dir(name))
		}
		return err
	})
	if err != nil {
		return "", err
	}
	for _, hint := range hints {
		i := slices.IndexFunc(folders, func(f string) bool { return strings.HasSuffix(filepath.ToSlash(f), "/"+hint) })
		if i >= 0 {
			return folders[i], nil
		}
	}
	if len(folders) == 1 {
		return folders[0], nil
	}
	return "", fmt.Errorf("%s: %d packages have %s, want one", t.name, len(folders), benchmark)
}

// compile builds the test binary of a folder once, and returns it.
func (t *tree) compile(ctx context.Context, folder string) (string, error) {
	rel, err := filepath.Rel(t.dir, folder)
	if err != nil {
		return "", err
	}
	binary := filepath.Join(t.out, strings.ReplaceAll(filepath.ToSlash(rel), "/", "_")+".test")
	if _, err = os.Stat(binary); !errors.Is(err, fs.ErrNotExist) {
		return binary, err
	}
	_, err = t.do(ctx, folder, nil, "go", "test", "-c", "-o", binary, ".")
	return binary, err
}

// inputs are the files that workloads read. Both trees read the same.
type inputs struct {
	dir  string
	head string
	data string // shared data, or empty
	kube string // binaries of a control plane, or empty
	all  []string
}

// prepare generates a long trace, and lists the systems.
func (in *inputs) prepare(ctx context.Context, trainyard string) error {
	if err := os.MkdirAll(in.dir, 0o777); err != nil {
		return err
	}
	cmd := exec.CommandContext(ctx, trainyard, "trace", "generate", "--like", "philly", "--jobs", "100000", "--load",
		"0.9",
		"--cluster", "250x8")
	text, err := cmd.Output()
	if err != nil {
		return fmt.Errorf("trace generate: %w", err)
	}
	in.all, err = systems(ctx, trainyard)
	return errors.Join(err, os.WriteFile(in.long(), text, 0o666))
}

func (in *inputs) long() string { return filepath.Join(in.dir, "long.csv") }
