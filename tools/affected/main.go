// Command affected prints the packages of a module whose tests a change may alter: those with a file that changed since
// a commit, and those that import one of them, in tests too. It prints one a line, as a folder
// below the module that starts with "./".
//
//	affected [-base REF] [-leave-out a,b/...] [MODULE FOLDER]
//
// What is not committed counts as changed. Without -base the commit is where the branch left main, or, on main itself,
// the one before. A change of go.mod, or of a file of the build, alters every package.
package main

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

func main() {
	base := flag.String("base", "", "commit to compare with")
	leaveOut := flag.String("leave-out", "", "comma-separated `packages` not to print; x/... is x and all below it")
	flag.Parse()
	dir := "."
	if flag.NArg() > 0 {
		dir = flag.Arg(0)
	}
	if err := run(os.Stdout, dir, *base, strings.Split(*leaveOut, ",")); err != nil {
		fmt.Fprintln(os.Stderr, "affected:", err)
		os.Exit(1)
	}
}

func run(out io.Writer, dir, base string, leaveOut []string) error {
	if base == "" {
		var err error
		if base, err = defaultBase(dir); err != nil {
			return err
		}
	}
	files, err := changed(dir, base)
	if err != nil {
		return err
	}
	packages, err := list(dir)
	if err != nil {
		return err
	}
	for _, p := range affected(packages, files) {
		if !matches(p.below(), leaveOut) {
			if _, err := fmt.Fprintln(out, "./"+p.below()); err != nil {
				return err
			}
		}
	}
	return nil
}

// defaultBase returns where the branch left main, or the commit before where it did not.
func defaultBase(dir string) (string, error) {
	head, err := output(dir, "git", "rev-parse", "HEAD")
	if err != nil {
		return "", err
	}
	for _, main := range []string{"main", "origin/main"} {
		if base, err := output(dir, "git", "merge-base", "HEAD", main); err == nil && base != head {
			return base, nil
		}
	}
	return "HEAD~1", nil
}

// changed returns the files that differ from base, as absolute paths.
func changed(dir, base string) ([]string, error) {
	top, err := output(dir, "git", "rev-parse", "--show-toplevel")
	if err != nil {
		return nil, err
	}
	diff, err := output(dir, "git", "diff", "--name-only", "--no-renames", base, "--", top)
	if err != nil {
		return nil, err
	}
	fresh, err := output(top, "git", "ls-files", "--others", "--exclude-standard", "--full-name")
	if err != nil {
		return nil, err
	}
	var files []string
	for name := range strings.Lines(diff + "\n" + fresh) {
		if name = strings.TrimSpace(name); name != "" {
			files = append(files, filepath.Join(top, name))
		}
	}
	return files, nil
}

// pack is what the go command says of a package.
type pack struct {
	ImportPath, Dir                 string
	Deps, TestImports, XTestImports []string
	Module                          *struct{ Path, Dir string }
	Standard, DepOnly               bool
}

// below is the folder of the package below the folder of its module.
func (p *pack) below() string {
	rel, err := filepath.Rel(p.Module.Dir, p.Dir)
	if err != nil {
		return p.Dir
	}
	return filepath.ToSlash(rel)
}

// list returns the packages of the module in dir, and those that they import from the repository's other modules.
func list(dir string) ([]*pack, error) {
	text, err := output(dir, "go", "list", "-e", "-deps", "-test=false",
		"-json=ImportPath,Dir,Deps,TestImports,XTestImports,Module,Standard,DepOnly", "./...")
	if err != nil {
		return nil, err
	}
	var packages []*pack
	for d := json.NewDecoder(strings.NewReader(text)); ; {
		p := &pack{}
		if err := d.Decode(p); errors.Is(err, io.EOF) {
			return packages, nil
		} else if err != nil {
			return nil, err
		}
		if !p.Standard && p.Module != nil {
			packages = append(packages, p)
		}
	}
}

// everything are the files that alter each package.
var everything = []string{"go.mod", "go.sum", "Makefile", ".golangci.yml"}

// affected returns the packages that the files alter, without those that are only imported.
func affected(packages []*pack, files []string) []*pack {
	hit, all := hits(packages, files)
	var result []*pack
	for _, p := range packages {
		if p.DepOnly {
			continue
		}
		if all || hit[p.ImportPath] || anyOf(hit, p.Deps) || anyTest(hit, packages, p) {
			result = append(result, p)
		}
	}
	return result
}

// hits returns the packages that files are of: in their folder, or below it and in no other package's, as data of tests
// is.
func hits(packages []*pack, files []string) (hit map[string]bool, all bool) {
	byDir := map[string]string{}
	for _, p := range packages {
		byDir[p.Dir] = p.ImportPath
	}
	hit = map[string]bool{}
	for _, f := range files {
		for _, name := range everything {
			all = all || filepath.Base(f) == name
		}
		for dir := filepath.Dir(f); ; dir = filepath.Dir(dir) {
			if path, ok := byDir[dir]; ok {
				hit[path] = true
				break
			}
			if dir == filepath.Dir(dir) {
				break
			}
		}
	}
	return hit, all
}

func anyOf(hit map[string]bool, paths []string) bool {
	for _, path := range paths {
		if hit[path] {
			return true
		}
	}
	return false
}

// anyTest says whether tests of p import a package that was hit, or one that imports such.
func anyTest(hit map[string]bool, packages []*pack, p *pack) bool {
	imports := append(append([]string{}, p.TestImports...), p.XTestImports...)
	if anyOf(hit, imports) {
		return true
	}
	for _, q := range packages {
		for _, path := range imports {
			if q.ImportPath == path && anyOf(hit, q.Deps) {
				return true
			}
		}
	}
	return false
}

// matches says whether the folder is one of the patterns.
func matches(folder string, patterns []string) bool {
	for _, p := range patterns {
		base, all := strings.CutSuffix(p, "/...")
		if p != "" && (folder == base || all && strings.HasPrefix(folder, base+"/")) {
			return true
		}
	}
	return false
}

func output(dir, name string, args ...string) (string, error) {
	cmd := exec.Command(name, args...)
	cmd.Dir = dir
	out, err := cmd.Output()
	if err != nil {
		var exit *exec.ExitError
		if errors.As(err, &exit) {
			return "", fmt.Errorf("%s %s: %w: %s", name, strings.Join(args, " "), err,
				strings.TrimSpace(string(exit.Stderr)))
		}
		return "", err
	}
	return strings.TrimSpace(string(out)), nil
}
