package lint

import (
	"go/ast"
	"testing"
)

func TestDocumented(t *testing.T) { judge(t, "documented", bare(repository(t))) }

// bare returns the exported names without a doc comment: functions, methods, those of types that are not exported too,
// and types, constants and variables, for which the comment of their group does. Test files are left out.
func bare(tr *tree) []finding {
	var found []finding
	for _, f := range tr.code {
		if f.isTest() {
			continue
		}
		for _, d := range f.ast.Decls {
			for _, id := range undocumented(d) {
				found = append(found, finding{tr.at(id.Pos()), id.Name + " has no doc comment", id.Name})
			}
		}
	}
	return found
}

// undocumented returns the exported names of a declaration that have no comment.
func undocumented(d ast.Decl) []*ast.Ident {
	switch d := d.(type) {
	case *ast.FuncDecl:
		if d.Doc == nil && d.Name.IsExported() {
			return []*ast.Ident{d.Name}
		}
	case *ast.GenDecl:
		var names []*ast.Ident
		for _, s := range d.Specs {
			if d.Doc == nil {
				names = append(names, undocumentedIn(s)...)
			}
		}
		return names
	}
	return nil
}

func undocumentedIn(s ast.Spec) (names []*ast.Ident) {
	switch s := s.(type) {
	case *ast.TypeSpec:
		if s.Doc == nil && s.Comment == nil && s.Name.IsExported() {
			return []*ast.Ident{s.Name}
		}
	case *ast.ValueSpec:
		for _, id := range s.Names {
			if s.Doc == nil && s.Comment == nil && id.IsExported() {
				names = append(names, id)
			}
		}
	}
	return names
}

func TestDocumentedFinds(t *testing.T) {
	got := foundIn(t, bare, "a.go", `package a

func A() {}

// B does.
func B() {}

func c() {}

type D struct{}

func (d *D) E() {}
func (d c[T]) F() {}

// Numbers.
const (
	G = 1
	H = 2
)

var (
	I = 1 // of them
	J = 2
)
`)
	expect(t, "names", got, []string{"A has no doc comment", "D has no doc comment", "E has no doc comment",
		"F has no doc comment", "J has no doc comment"})
}
