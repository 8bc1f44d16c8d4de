package main

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// blocks returns the blocks of code of a document of the repository that have no language.
func blocks(t *testing.T, name string) (all []string) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(repository, name))
	if err != nil {
		t.Fatal(err)
	}
	for i, part := range strings.Split(string(text), "```") {
		if code, ok := strings.CutPrefix(part, "\n"); i%2 == 1 && ok {
			all = append(all, code)
		}
	}
	return all
}

// visitor is someone who types the lines of a page in an empty folder with the bundled examples, and its own folders
// of settings and state are there too.
type visitor struct {
	dir string
	env []string
}

func newVisitor(t *testing.T) *visitor {
	t.Helper()
	v := &visitor{dir: t.TempDir()}
	examples, err := filepath.Abs(filepath.Join(repository, "examples"))
	if err == nil {
		err = os.Symlink(examples, filepath.Join(v.dir, "examples"))
	}
	if err != nil {
		t.Fatal(err)
	}
	v.env = []string{"PATH=" + programs + string(filepath.ListSeparator) + os.Getenv("PATH"), "HOME=" + v.dir,
		"XDG_CONFIG_HOME=" + filepath.Join(v.dir, "config"), "XDG_STATE_HOME=" + filepath.Join(v.dir, "state"),
		"CUDA_VISIBLE_DEVICES="}
	return v
}

// types runs a line in a shell, which must end well within a minute, and returns what it wrote.
func (v *visitor) types(t *testing.T, line string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, "sh", "-c", line)
	cmd.Dir, cmd.Env = v.dir, v.env
	var stderr strings.Builder
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%s: %v\n%s", line, err, stderr.String())
	}
	return string(out)
}

// Ensure that each command of docs/start/simulate.md does what it should, in its order.
func TestStartPages(t *testing.T) {
	t.Parallel()
	v, typed := newVisitor(t), 0
	for _, block := range blocks(t, "docs/start/simulate.md") {
		for line := range strings.Lines(block) {
			line = strings.TrimSpace(line)
			if strings.HasPrefix(line, "make build ") {
				continue // the programs of this test
			}
			if !strings.HasPrefix(line, "trainyard ") {
				t.Errorf("%q is no command of trainyard", line)
				continue
			}
			out := v.types(t, line)
			if typed++; out == "" && !strings.Contains(line, ">") {
				t.Errorf("%s: nothing was written", line)
			}
		}
	}
	if typed < 8 {
		t.Errorf("%d commands, want more", typed)
	}
	for _, file := range []string{"jobs-out.csv", "events.jsonl", "jobs.csv"} {
		if info, err := os.Stat(filepath.Join(v.dir, file)); err != nil || info.Size() == 0 {
			t.Errorf("%s: %v", file, err)
		}
	}
}

// mostWords bounds README.md.
const mostWords = 500

// Ensure that README.md is short, that its output is what the first command of `make run` prints, and that its other
// commands work on a machine.
func TestReadme(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile(filepath.Join(repository, "README.md"))
	if err != nil {
		t.Fatal(err)
	}
	if n := len(strings.Fields(string(text))); n > mostWords {
		t.Errorf("README.md has %d words, want at most %d", n, mostWords)
	}
	all := blocks(t, "README.md")
	if len(all) != 3 {
		t.Fatalf("README.md has %d blocks, want the two commands, their output and those of a machine", len(all))
	}
	makefile, err := os.ReadFile(filepath.Join(repository, "Makefile"))
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(all[0]) {
		if target := strings.Fields(line)[1]; !strings.Contains(string(makefile), "\n"+target+":") {
			t.Errorf("the Makefile has no target %s", target)
		}
	}
	v := newVisitor(t)
	joined := strings.ReplaceAll(string(makefile), "\\\n\t\t", "")
	_, recipe, _ := strings.Cut(joined, "\n\t$(BIN) simulate ")
	recipe, _, _ = strings.Cut(recipe, "\n")
	recipe, _, _ = strings.Cut(recipe, " --report ")
	if out := v.types(t, "trainyard simulate "+recipe); !strings.Contains(out, all[1]) {
		t.Errorf("`make run` prints\n%s\nREADME.md has\n%s", out, all[1])
	}
	v.machine(t, all[2])
}

// machine types the commands about a machine; the manager runs until the test ends.
func (v *visitor) machine(t *testing.T, block string) {
	t.Helper()
	for line := range strings.Lines(block) {
		line, _, _ = strings.Cut(line, "#")
		switch line = strings.TrimSpace(line); {
		case strings.HasPrefix(line, "make build "):
		case line == "trainyard serve":
			cmd := exec.CommandContext(t.Context(), filepath.Join(programs, "trainyard"), "serve", "--slots", "2")
			cmd.Dir, cmd.Env = v.dir, v.env
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() {
				_ = cmd.Process.Kill()
				_ = cmd.Wait()
				if err := endJobs(v.dir); err != nil {
					t.Error(err)
				}
			})
			await(t, "the manager answers", func() bool {
				nodes := exec.CommandContext(t.Context(), filepath.Join(programs, "trainyard"), "nodes")
				nodes.Dir, nodes.Env = v.dir, v.env
				return nodes.Run() == nil
			})
		default:
			if v.types(t, line) == "" && !strings.HasPrefix(line, "trainyard wait ") {
				t.Errorf("%s: nothing was written", line)
			}
		}
	}
}

// Ensure that the pictures of README.md are those that the commands of docs/guide/pictures.md draw, byte for byte.
func TestPicturesDrawn(t *testing.T) {
	t.Parallel()
	v := newVisitor(t)
	for _, block := range blocks(t, "docs/guide/pictures.md") {
		for line := range strings.Lines(block) {
			v.types(t, line)
		}
	}
	for _, name := range places {
		want, err := os.ReadFile(filepath.Join(repository, "docs", "pictures", name+".svg"))
		if err != nil {
			t.Fatal(err)
		}
		got, err := os.ReadFile(filepath.Join(v.dir, name+".svg"))
		if err != nil {
			t.Fatal(err)
		}
		if string(got) != string(want) {
			t.Errorf("docs/pictures/%s.svg is not what docs/guide/pictures.md draws; look at it, and copy it", name)
		}
	}
}

// places are the pictures that README.md has places for.
var places = []string{"yard", "time", "comparison", "losses"}

// Ensure that README.md has a place for each picture, shows it where there is one, and no link to one that is not.
func TestPictures(t *testing.T) {
	text, err := os.ReadFile(filepath.Join(repository, "README.md"))
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range places {
		file := "docs/pictures/" + name + ".svg"
		_, err := os.Stat(filepath.Join(repository, file))
		there := err == nil
		if err != nil && !os.IsNotExist(err) {
			t.Fatal(err)
		}
		if shown := strings.Contains(string(text), "]("+file+")"); shown != there {
			t.Errorf("%s: there %t, shown %t", file, there, shown)
		}
		if !strings.Contains(string(text), file) {
			t.Errorf("README.md has no place for %s", file)
		}
	}
}
