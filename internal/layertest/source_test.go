package layertest

import (
	"bytes"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path"
	"slices"
	"strconv"
	"strings"
)

// source is what the check needs to know of one package.
type source struct {
	folder  string // below the module root, with slashes
	imports []use  // by import path
	names   []use  // "import/path.Name" for every selector on an imported package
	gos     []use  // go statements
	main    bool
}

// use is something a file uses, and where it does so first.
type use struct{ what, where string }

// load reads the packages of the module in fsys, which must be rooted at the module, ordered by folder. It returns the
// module's path as well.
func load(fsys fs.FS) (module string, packages []*source, err error) {
	module, err = modulePath(fsys)
	if err != nil {
		return "", nil, err
	}
	byFolder := map[string]*source{}
	err = fs.WalkDir(fsys, ".", func(name string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir():
			if name != "." && skipFolder(fsys, name) {
				return fs.SkipDir
			}
			return nil
		case path.Ext(name) != ".go" || strings.HasSuffix(name, "_test.go"):
			return nil
		}
		folder := path.Dir(name)
		if byFolder[folder] == nil {
			byFolder[folder] = &source{folder: folder}
			packages = append(packages, byFolder[folder])
		}
		return byFolder[folder].read(fsys, name)
	})
	if err != nil {
		return "", nil, err
	}
	slices.SortFunc(packages, func(a, b *source) int { return strings.Compare(a.folder, b.folder) })
	return module, packages, nil
}

func modulePath(fsys fs.FS) (string, error) {
	text, err := fs.ReadFile(fsys, "go.mod")
	if err != nil {
		return "", err
	}
	for line := range bytes.Lines(text) {
		if f := strings.Fields(string(line)); len(f) >= 2 && f[0] == "module" {
			return f[1], nil
		}
	}
	return "", fmt.Errorf("go.mod: no module line")
}

// skipFolder says whether a folder is no part of the module's packages.
func skipFolder(fsys fs.FS, name string) bool {
	base := path.Base(name)
	if base == "testdata" || base == "vendor" || base == "node_modules" || base[0] == '.' || base[0] == '_' {
		return true
	}
	_, err := fs.Stat(fsys, path.Join(name, "go.mod"))
	return err == nil
}

// read adds one file.
func (s *source) read(fsys fs.FS, name string) error {
	text, err := fs.ReadFile(fsys, name)
	if err != nil {
		return err
	}
	files := token.NewFileSet()
	file, err := parser.ParseFile(files, name, text, parser.SkipObjectResolution)
	if err != nil {
		return err
	}
	s.main = file.Name.Name == "main"
	local := map[string]string{} // name in this file: import path
	for _, spec := range file.Imports {
		imported, err := strconv.Unquote(spec.Path.Value)
		if err != nil {
			return err
		}
		add(&s.imports, imported, files.Position(spec.Pos()))
		local[localName(spec, imported)] = imported
		if spec.Name != nil && spec.Name.Name == "." {
			add(&s.names, imported+".*", files.Position(spec.Pos()))
		}
	}
	ast.Inspect(file, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.GoStmt:
			add(&s.gos, "go statement", files.Position(n.Pos()))
		case *ast.SelectorExpr:
			if x, ok := n.X.(*ast.Ident); ok && local[x.Name] != "" {
				add(&s.names, local[x.Name]+"."+n.Sel.Name, files.Position(n.Pos()))
			}
		}
		return true
	})
	return nil
}

// localName returns the name by which a file knows an import. Without types it is guessed from the path, which is right
// for the standard library.
func localName(spec *ast.ImportSpec, imported string) string {
	if spec.Name != nil {
		return spec.Name.Name
	}
	if base := path.Base(imported); base != "v2" {
		return base
	}
	return path.Base(path.Dir(imported))
}

func add(to *[]use, what string, at token.Position) {
	if !slices.ContainsFunc(*to, func(u use) bool { return u.what == what }) {
		*to = append(*to, use{what, fmt.Sprintf("%s:%d", at.Filename, at.Line)})
	}
}
