package lint

import (
	"bytes"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"
	"sync"
	"testing"
)

// tree is the source of all modules, and the documents.
type tree struct {
	files *token.FileSet
	code  []*goFile   // less generated ones; test files too
	docs  []*document // Markdown, less what `make reference` wrote: its words are those of the code
	plain []*document // scripts and configuration
	paths map[string]bool
}

// goFile is one parsed Go file. Its name is below the root of the repository, with slashes.
type goFile struct {
	name string
	text []byte
	ast  *ast.File
}

func (f *goFile) isTest() bool { return strings.HasSuffix(f.name, "_test.go") }

func (f *goFile) folder() string { return path.Dir(f.name) }

// document is a file that is no Go source.
type document struct {
	name string
	text []byte
}

// writtenMark is in each document that tests write from what the code declares.
const writtenMark = "<!-- Written by `make reference` from "

// root is the repository, from the folder of this package.
const root = "../.."

// wholeTree reads the repository once for all tests.
var wholeTree = sync.OnceValues(func() (*tree, error) { return readTree(os.DirFS(root)) })

func repository(t *testing.T) *tree {
	t.Helper()
	tr, err := wholeTree()
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"sched/", "kube/"} {
		if !slices.ContainsFunc(tr.code, func(f *goFile) bool { return strings.HasPrefix(f.name, want) }) {
			t.Fatalf("no Go file below %s was read: the lints would see nothing of it", want)
		}
	}
	return tr
}

// readTree reads every file below fsys that is source or a document: not data of tests, not what was built.
func readTree(fsys fs.FS) (*tree, error) {
	tr := &tree{files: token.NewFileSet(), paths: map[string]bool{}}
	err := fs.WalkDir(fsys, ".", func(name string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && (name == "bin" || name == "dist" || name == ".git" || path.Base(name) == "node_modules"):
			return fs.SkipDir
		}
		tr.paths[name] = true
		if !d.Type().IsRegular() || underTestdata(name) {
			return nil
		}
		return tr.read(fsys, name)
	})
	return tr, err
}

func underTestdata(name string) bool {
	return slices.Contains(strings.Split(name, "/"), "testdata")
}

func (tr *tree) read(fsys fs.FS, name string) error {
	ext, base := path.Ext(name), path.Base(name)
	plain := slices.Contains([]string{".sh", ".py", ".yaml", ".yml"}, ext) || name == ".ci/run" || base == "Makefile" ||
		base == "Dockerfile" || name == "hack/controlplane/build"
	if ext != ".go" && ext != ".md" && !plain {
		return nil
	}
	text, err := fs.ReadFile(fsys, name)
	switch {
	case err != nil:
		return err
	case ext == ".md" && bytes.Contains(text, []byte(writtenMark)):
		return nil
	case ext == ".md":
		tr.docs = append(tr.docs, &document{name, text})
		return nil
	case plain:
		tr.plain = append(tr.plain, &document{name, text})
		return nil
	}
	file, err := parser.ParseFile(tr.files, name, text, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil {
		return err
	}
	if !ast.IsGenerated(file) {
		tr.code = append(tr.code, &goFile{name, text, file})
	}
	return nil
}

// at returns "file:line".
func (tr *tree) at(pos token.Pos) string {
	p := tr.files.Position(pos)
	return fmt.Sprintf("%s:%d", p.Filename, p.Line)
}

func (tr *tree) line(pos token.Pos) int { return tr.files.Position(pos).Line }
