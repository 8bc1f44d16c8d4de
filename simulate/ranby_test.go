package simulate

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
)

// ranBy returns the replicas that a test runs, as far as its own lines say: it is a test of a replica, or it names a
// preset with one. Of tests of one name in several packages all must.
func ranBy(test string) (list []string) {
	for _, one := range testReplicas()[test] {
		if len(one) == 0 {
			return nil
		}
		list = append(list, one...)
	}
	return list
}

// testReplicas are the replicas of all tests, by the name of the test and where it is defined.
var testReplicas = sync.OnceValue(func() map[string][][]string {
	found := map[string][][]string{}
	_ = filepath.WalkDir("..", func(name string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && name != ".." && (strings.HasPrefix(d.Name(), ".") || d.Name() == "testdata"):
			return fs.SkipDir
		case d.IsDir() || !strings.HasSuffix(name, "_test.go"):
			return nil
		}
		text, err := os.ReadFile(name)
		if err != nil {
			return err
		}
		file, err := parser.ParseFile(token.NewFileSet(), name, text, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		for _, d := range file.Decls {
			if f, ok := d.(*ast.FuncDecl); ok && strings.HasPrefix(f.Name.Name, "Test") {
				found[f.Name.Name] = append(found[f.Name.Name], replicasOf(f, filepath.ToSlash(name)))
			}
		}
		return nil
	})
	return found
})

// replicasOf are those of one test.
func replicasOf(f *ast.FuncDecl, file string) (list []string) {
	if dir := path.Dir(file); path.Base(path.Dir(dir)) == "replica" {
		return []string{"replica:" + path.Base(dir)}
	}
	ast.Inspect(f, func(n ast.Node) bool {
		field, ok := n.(*ast.KeyValueExpr)
		if !ok {
			return true
		}
		key, isName := field.Key.(*ast.Ident)
		value, isText := field.Value.(*ast.BasicLit)
		if !isName || !isText || key.Name != "Preset" {
			return true
		}
		name, _ := strconv.Unquote(value.Value)
		if p := PresetNamed(name); p != nil && p.replica != "" {
			list = append(list, "replica:"+p.replica)
		}
		return true
	})
	return list
}
