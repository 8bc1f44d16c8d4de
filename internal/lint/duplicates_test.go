package lint

import (
	"fmt"
	"go/ast"
	"go/scanner"
	"go/token"
	"slices"
	"strings"
	"testing"
)

// fewestDuplicated is the number of lines of code from which the same text in two places counts.
const fewestDuplicated = 12

func TestDuplicates(t *testing.T) {
	judge(t, "duplicates", duplicates(repository(t), fewestDuplicated))
}

// codeLine is one line of code, less comments and the layout. Within functions names stand apart, as two functions that
// differ in nothing but names are the same; elsewhere they are among the tokens, as lists of fields or constants would
// all be alike.
type codeLine struct {
	number int
	tokens string
	names  []string
}

// place is a line of one of the files.
type place struct{ file, line int }

// duplicates returns the runs of lines that stand in two places, each as long as it can be. Lines without code do not
// count, nor do imports. Code of tests is looked at as well.
func duplicates(tr *tree, fewest int) []finding {
	lines := make([][]codeLine, len(tr.code))
	for i, f := range tr.code {
		lines[i] = codeLines(f)
	}
	first := map[string][]place{} // by the text of fewest lines
	var found []finding
	covered := map[place]bool{} // lines of the second place of a run that was reported
	for i := range lines {
		for j := 0; j+fewest <= len(lines[i]); j++ {
			key := window(lines[i][j : j+fewest])
			earlier := first[key]
			first[key] = append(earlier, place{i, j})
			if covered[place{i, j}] {
				continue
			}
			best, length := place{}, 0
			for _, e := range earlier {
				if n := alike(lines, e, place{i, j}); n > length {
					best, length = e, n
				}
			}
			if length < fewest {
				continue
			}
			for k := range length {
				covered[place{i, j + k}] = true
			}
			found = append(found, finding{
				at: fmt.Sprintf("%s:%d", tr.code[i].name, lines[i][j].number),
				what: fmt.Sprintf("%d lines are those of %s:%d, want them once", length,
					tr.code[best.file].name, lines[best.file][best.line].number),
				name: tr.code[best.file].name,
			})
		}
	}
	return found
}

func window(lines []codeLine) string {
	var b strings.Builder
	for _, l := range lines {
		b.WriteString(l.tokens)
		b.WriteByte('\n')
	}
	return b.String()
}

// alike counts the lines that are the same from a and b on, if each name of one stands for one name of the other. A run
// does not overlap itself.
func alike(lines [][]codeLine, a, b place) int {
	n := 0
	there, back := map[string]string{}, map[string]string{}
	for a.line+n < len(lines[a.file]) && b.line+n < len(lines[b.file]) {
		if a.file == b.file && a.line+n >= b.line {
			break
		}
		one, two := lines[a.file][a.line+n], lines[b.file][b.line+n]
		if one.tokens != two.tokens || !renames(there, one.names, two.names) || !renames(back, two.names, one.names) {
			break
		}
		n++
	}
	return n
}

// renames says whether each name of from always stands for the same one of to, and notes which.
func renames(by map[string]string, from, to []string) bool {
	for i, name := range from {
		if was, ok := by[name]; ok && was != to[i] {
			return false
		}
		by[name] = to[i]
	}
	return true
}

// codeLines returns the lines of code after the imports.
func codeLines(f *goFile) []codeLine {
	fset := token.NewFileSet()
	file := fset.AddFile(f.name, -1, len(f.text))
	var s scanner.Scanner
	s.Init(file, f.text, nil, 0)
	skip := token.Pos(0)
	if n := len(f.ast.Imports); n > 0 {
		skip = f.ast.Imports[n-1].End() - f.ast.FileStart + token.Pos(file.Base())
	}
	bodies := bodiesOf(f, file.Base())
	var lines []codeLine
	for {
		pos, tok, lit := s.Scan()
		if tok == token.EOF {
			return lines
		}
		if tok == token.SEMICOLON && lit == "\n" || pos <= skip {
			continue
		}
		n := file.Line(pos)
		if len(lines) == 0 || lines[len(lines)-1].number != n {
			lines = append(lines, codeLine{number: n})
		}
		line := &lines[len(lines)-1]
		for len(bodies) > 0 && pos > bodies[0][1] {
			bodies = bodies[1:]
		}
		inside := len(bodies) > 0 && pos > bodies[0][0]
		switch {
		case tok == token.IDENT && inside:
			line.names = append(line.names, lit)
			lit = "name"
		case lit == "":
			lit = tok.String()
		}
		line.tokens += lit + " "
	}
}

// bodiesOf returns where functions start and end, as positions in a file with that base.
func bodiesOf(f *goFile, base int) [][2]token.Pos {
	var bodies [][2]token.Pos
	for _, d := range f.ast.Decls {
		if fn, ok := d.(*ast.FuncDecl); ok && fn.Body != nil {
			shift := token.Pos(base) - f.ast.FileStart
			bodies = append(bodies, [2]token.Pos{fn.Pos() + shift, fn.End() + shift})
		}
	}
	return bodies
}

func TestDuplicatesFinds(t *testing.T) {
	body := "\ta := 1\n\n\tb := a\n\t_ = b\n}\n"
	tests := []struct {
		name, one, two string
		want           []string
	}{
		{"the same", body, body, []string{"b.go:5: 5 lines are those of a.go:3"}},
		{"other layout and comments", body, "\t// why\n\ta :=    1\n\tb := a\n\n\n\t_ = b\n}\n",
			[]string{"b.go:5: 5 lines are those of a.go:3"}},
		{"other names", body, "\tx := 1\n\tb := x\n\t_ = b\n}\n", []string{"b.go:5: 5 lines are those of a.go:3"}},
		{"names that do not fit", body, "\tx := 1\n\tb := y\n\t_ = b\n}\n", nil},
		{"two names for one", body, "\tx := 1\n\tx := x\n\t_ = x\n}\n", nil},
		{"one line differs", body, strings.Replace(body, "_ = b", "_ = 2", 1), nil},
		{"too short", body, "\ta := 1\n\tb := a\n\t_ = b\n\t_ = a\n}\n", nil},
		{"three times", body, body + "\nfunc h() {\n" + body, []string{"b.go:5: 5", "b.go:12: 5"}},
	}
	for _, tt := range tests {
		tr, err := readTree(mapFS(map[string]string{
			"a.go": "package a\n\nfunc f() {\n" + tt.one,
			"b.go": "package a\n\nimport \"fmt\"\n\nfunc g() {\n" + tt.two,
		}))
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, f := range duplicates(tr, 5) {
			got = append(got, f.at+": "+f.what)
		}
		expect(t, tt.name, got, tt.want)
	}
	twice := slices.Repeat([]string{"\t_ = 1\n"}, 8)
	if got := foundIn(t, func(tr *tree) []finding { return duplicates(tr, 4) }, "a.go",
		"package a\n\nfunc f() {\n"+strings.Join(twice, "")+"}\n"); len(got) != 1 {
		t.Errorf("eight equal lines: found %q, want one run of four", got)
	}
}
