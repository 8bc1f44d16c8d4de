package driver

import (
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// part is a package below the driver.
type part struct {
	name    string
	imports []string // other parts
}

// below are the packages below the driver, and which of them each may import: those before it, of which it uses the
// types. What a part needs to know of another beyond that, the Driver passes to its steps.
var below = []part{
	{"observer", nil},
	{"devices", nil},
	{"inventory", []string{"observer", "devices"}},
	{"claims", []string{"observer", "devices"}},
	{"jobs", []string{"observer"}},
	{"writer", []string{"observer", "devices", "inventory", "claims"}},
	{"admission", []string{"observer", "writer"}},
	{"pools", []string{"observer", "writer"}},
	{"attempts", []string{"observer", "devices", "inventory", "writer"}},
}

// Ensure that imports only go down: no part knows the driver, and each no more parts than the table says.
func TestPartsImportDownwards(t *testing.T) {
	const module = "github.com/trainyard/trainyard/kube/driver"
	for _, p := range below {
		files, err := filepath.Glob(filepath.Join(p.name, "*.go"))
		if err != nil || len(files) == 0 {
			t.Fatalf("%s: %d files, %v", p.name, len(files), err)
		}
		used := map[string]bool{}
		for _, name := range files {
			if strings.HasSuffix(name, "_test.go") {
				continue
			}
			f, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.ImportsOnly)
			must(t, err)
			for _, i := range f.Imports {
				path, ours := strings.CutPrefix(strings.Trim(i.Path.Value, `"`), module)
				path = strings.TrimPrefix(path, "/")
				if used[path] = true; ours && !slices.Contains(p.imports, path) {
					t.Errorf("%s imports %q, want %q at most", name, path, p.imports)
				}
			}
		}
		for _, i := range p.imports {
			if !used[i] {
				t.Errorf("%s does not import %s any more: delete it from the table", p.name, i)
			}
		}
	}
	folders, err := os.ReadDir(".")
	must(t, err)
	for _, f := range folders {
		if !f.IsDir() || f.Name() == "internal" || f.Name() == "testdata" {
			continue
		}
		if !slices.ContainsFunc(below, func(p part) bool { return p.name == f.Name() }) {
			t.Errorf("%s has no row in the table", f.Name())
		}
	}
}
