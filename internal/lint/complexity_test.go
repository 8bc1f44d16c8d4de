package lint

import (
	"fmt"
	"go/ast"
	"go/token"
	"strings"
	"testing"
)

// mostComplex bounds the cyclomatic complexity of a function: one more than the number of its branches.
const mostComplex = 15

func TestComplexity(t *testing.T) { judge(t, "complexity", complexity(repository(t))) }

// complexity returns the functions with too many branches, those of tests apart: a test is a list of checks, and each
// is a branch.
func complexity(tr *tree) []finding {
	var found []finding
	for _, f := range tr.code {
		if f.isTest() {
			continue
		}
		for _, d := range f.ast.Decls {
			fn, ok := d.(*ast.FuncDecl)
			if !ok || fn.Body == nil {
				continue
			}
			if n := branches(fn.Body) + 1; n > mostComplex {
				name := funcName(fn)
				found = append(found, finding{
					at:   tr.at(fn.Pos()),
					what: fmt.Sprintf("%s has complexity %d, want at most %d", name, n, mostComplex),
					name: name,
				})
			}
		}
	}
	return found
}

// funcName returns "Func" or "Type.Method".
func funcName(fn *ast.FuncDecl) string {
	if fn.Recv == nil {
		return fn.Name.Name
	}
	return receiver(fn) + "." + fn.Name.Name
}

// receiver returns the name of the type that a method is of.
func receiver(fn *ast.FuncDecl) string {
	if fn.Recv == nil || len(fn.Recv.List) == 0 {
		return ""
	}
	t := fn.Recv.List[0].Type
	for {
		switch x := t.(type) {
		case *ast.StarExpr:
			t = x.X
		case *ast.ParenExpr:
			t = x.X
		case *ast.IndexExpr:
			t = x.X
		case *ast.IndexListExpr:
			t = x.X
		case *ast.Ident:
			return x.Name
		default:
			return ""
		}
	}
}

// branches counts if, for, case, && and ||, those of function literals too.
func branches(body ast.Node) int {
	n := 0
	ast.Inspect(body, func(node ast.Node) bool {
		switch node := node.(type) {
		case *ast.IfStmt, *ast.ForStmt, *ast.RangeStmt:
			n++
		case *ast.CaseClause:
			if node.List != nil {
				n++
			}
		case *ast.CommClause:
			if node.Comm != nil {
				n++
			}
		case *ast.BinaryExpr:
			if node.Op == token.LAND || node.Op == token.LOR {
				n++
			}
		}
		return true
	})
	return n
}

func TestComplexityFinds(t *testing.T) {
	file := func(body string) string {
		return "package a\n\nfunc (t *T[K]) f(x int, c chan int) {\n" + body + "}\n\ntype T[K any] int\n"
	}
	tests := []struct {
		name, body string
		want       []string
	}{
		{"15", strings.Repeat("if x > 0 {}\n", 14), nil},
		{"16", strings.Repeat("if x > 0 {}\n", 15), []string{"a.go:3: T.f has complexity 16"}},
		{"every kind", strings.Repeat("if x > 0 && x < 9 || x == 20 {}\n", 3) + "for range x {}\nfor {}\n" +
			"switch { case x > 1: case x > 2: default: }\nselect { case <-c: default: }\nfunc() { if x > 1 {} }()\n",
			[]string{"complexity 16"}},
	}
	for _, tt := range tests {
		expect(t, tt.name, foundIn(t, complexity, "a.go", file(tt.body)), tt.want)
	}
}
