package lint

import (
	"fmt"
	"go/ast"
	"slices"
	"strings"
	"testing"
)

const (
	mostFields  = 25
	mostMethods = 40
)

func TestFields(t *testing.T) { judge(t, "fields", fields(repository(t))) }

func TestMethods(t *testing.T) { judge(t, "methods", methods(repository(t))) }

// fields returns the structs with too many fields. An embedded one is one field.
func fields(tr *tree) []finding {
	var found []finding
	for _, f := range tr.code {
		ast.Inspect(f.ast, func(n ast.Node) bool {
			spec, ok := n.(*ast.TypeSpec)
			if !ok {
				return true
			}
			if st, ok := spec.Type.(*ast.StructType); ok {
				if n := countFields(st); n > mostFields {
					found = append(found, finding{
						at:   tr.at(spec.Pos()),
						what: fmt.Sprintf("%s has %d fields, want at most %d", spec.Name.Name, n, mostFields),
						name: spec.Name.Name,
					})
				}
			}
			return true
		})
	}
	return found
}

func countFields(st *ast.StructType) int {
	n := 0
	for _, f := range st.Fields.List {
		n += max(1, len(f.Names))
	}
	return n
}

// methods returns the types with too many methods, over all files of their package that are no tests.
func methods(tr *tree) []finding {
	count := map[string]int{}
	for _, f := range tr.code {
		if f.isTest() {
			continue
		}
		for _, d := range f.ast.Decls {
			if fn, ok := d.(*ast.FuncDecl); ok && receiver(fn) != "" {
				count[f.folder()+"\x00"+receiver(fn)]++
			}
		}
	}
	var found []finding
	for key, n := range count {
		if n > mostMethods {
			folder, name, _ := strings.Cut(key, "\x00")
			found = append(found, finding{
				at:   folder,
				what: fmt.Sprintf("%s has %d methods, want at most %d", name, n, mostMethods),
				name: name,
			})
		}
	}
	slices.SortFunc(found, func(a, b finding) int { return strings.Compare(a.at+a.name, b.at+b.name) })
	return found
}

func TestSizesFind(t *testing.T) {
	structOf := func(n int) string {
		return "package a\n\ntype T struct {\n" + strings.Repeat("\tx, y int\n", n) + "\tE\n}\n"
	}
	expect(t, "25 fields", foundIn(t, fields, "a.go", structOf(12)), nil)
	expect(t, "27 fields", foundIn(t, fields, "a.go", structOf(13)), []string{"a.go:3: T has 27 fields"})
	methodsOf := func(n int) string {
		var b strings.Builder
		b.WriteString("package a\n\ntype T struct{}\n")
		for i := range n {
			fmt.Fprintf(&b, "func (t *T) f%d() {}\n", i)
		}
		return b.String()
	}
	expect(t, "40 methods", foundIn(t, methods, "m/a.go", methodsOf(40)), nil)
	expect(t, "41 methods", foundIn(t, methods, "m/a.go", methodsOf(41)), []string{"m: T has 41 methods"})
	expect(t, "methods of a test", foundIn(t, methods, "m/a_test.go", methodsOf(41)), nil)
}
