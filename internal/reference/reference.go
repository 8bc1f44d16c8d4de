// Package reference keeps the pages of docs/reference, which tests write from what the code declares, and compares them
// with what is there. `make reference` writes them.
package reference

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// Variable is the variable of the environment that has the pages written; it is "write" then.
const Variable = "TRAINYARD_REFERENCE"

// Compare fails the test where the page of that name is not text, and says how it is written again. root is the
// repository, from the folder of the test.
func Compare(t *testing.T, root, name, text string) {
	t.Helper()
	path := filepath.Join(root, filepath.FromSlash(name))
	if os.Getenv(Variable) == "write" {
		if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
		return
	}
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if line := Differ(string(b), text); line > 0 {
		t.Errorf("%s: line %d is not what the code declares: write the page again by `make reference`", name, line)
	}
}

// Differ returns the first line in which two texts differ, 0 if they are the same.
func Differ(a, b string) int {
	if a == b {
		return 0
	}
	x, y := strings.Split(a, "\n"), strings.Split(b, "\n")
	for i := range min(len(x), len(y)) {
		if x[i] != y[i] {
			return i + 1
		}
	}
	return min(len(x), len(y)) + 1
}

// Table returns a table of Markdown, the first row being its head. Bars within cells are escaped.
func Table(rows ...[]string) string {
	var b strings.Builder
	for i, row := range rows {
		for _, cell := range row {
			fmt.Fprintf(&b, "| %s ", strings.ReplaceAll(strings.Join(strings.Fields(cell), " "), "|", `\|`))
		}
		b.WriteString("|\n")
		if i == 0 {
			b.WriteString(strings.Repeat("|---", len(row)) + "|\n")
		}
	}
	return b.String()
}

// Code returns text in code marks; "" stays "".
func Code(text string) string {
	if text == "" {
		return ""
	}
	return "`" + text + "`"
}

// Const is a declared constant and the comment on it.
type Const struct{ Name, Value, Comment string }

// Consts returns the constants that the Go file declares, in their order, whose type is typ; "" stands for none.
func Consts(t *testing.T, file, typ string) (all []Const) {
	t.Helper()
	f, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.ParseComments)
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range f.Decls {
		g, ok := d.(*ast.GenDecl)
		if !ok || g.Tok != token.CONST {
			continue
		}
		in := ""
		for _, s := range g.Specs {
			v := s.(*ast.ValueSpec)
			if v.Type != nil {
				in = fmt.Sprint(v.Type)
			} else if v.Values != nil {
				in = ""
			}
			if in == typ {
				all = append(all, constOf(v))
			}
		}
	}
	if len(all) == 0 {
		t.Fatalf("%s: no constant of type %q", file, typ)
	}
	return all
}

func constOf(v *ast.ValueSpec) Const {
	c := Const{Name: v.Names[0].Name, Comment: v.Comment.Text()}
	if c.Comment == "" {
		c.Comment = v.Doc.Text()
	}
	if len(v.Values) == 1 {
		if lit, ok := v.Values[0].(*ast.BasicLit); ok {
			c.Value = lit.Value
		}
	}
	return c
}
