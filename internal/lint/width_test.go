package lint

import (
	"bytes"
	"fmt"
	"go/ast"
	"go/token"
	"regexp"
	"strings"
	"testing"
	"unicode/utf8"
)

const (
	mostColumns = 120
	tabColumns  = 4
)

func TestWidthOfCode(t *testing.T) { judge(t, "width-code", widthOfCode(repository(t))) }

func TestWidthOfDocuments(t *testing.T) { judge(t, "width-documents", widthOfDocuments(repository(t))) }

// columns counts characters, a tab as those up to the next stop.
func columns(line string) int {
	n := 0
	for _, r := range line {
		if r == '\t' {
			n += tabColumns - n%tabColumns
		} else {
			n++
		}
	}
	return n
}

// widthOfCode returns the lines of Go files that are too wide and could be broken. It leaves out what cannot be: lines
// within a raw string, fields whose tag makes them wide, directives, and comments of one long word.
func widthOfCode(tr *tree) []finding {
	var found []finding
	for _, f := range tr.code {
		fixed := tr.fixedLines(f)
		n := 0
		for line := range bytes.Lines(f.text) {
			n++
			text := strings.TrimRight(string(line), "\r\n")
			if w := columns(text); w > mostColumns && !fixed[n] && !directive(text) && !oneWord(text) {
				found = append(found, finding{at: fmt.Sprintf("%s:%d", f.name, n), what: tooWide(w)})
			}
		}
	}
	return found
}

func tooWide(w int) string { return fmt.Sprintf("%d columns, want at most %d", w, mostColumns) }

// fixedLines are the lines that end within a raw string, start within one, hold a tag, or say what an example prints.
func (tr *tree) fixedLines(f *goFile) map[int]bool {
	fixed := map[int]bool{}
	for _, g := range f.ast.Comments {
		if f.isTest() && exampleOutput.MatchString(g.Text()) {
			for l := tr.line(g.Pos()); l <= tr.line(g.End()); l++ {
				fixed[l] = true
			}
		}
	}
	ast.Inspect(f.ast, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.BasicLit:
			if first, last := tr.line(n.Pos()), tr.line(n.End()); n.Kind == token.STRING && first < last {
				for l := first; l <= last; l++ {
					fixed[l] = true
				}
			}
		case *ast.Field:
			if n.Tag != nil {
				fixed[tr.line(n.Tag.Pos())] = true
			}
		}
		return true
	})
	return fixed
}

var exampleOutput = regexp.MustCompile(`(?i)^\s*(unordered )?output:`)

// directive says whether a line is for a program, which reads it as one line.
func directive(line string) bool {
	line = strings.TrimSpace(line)
	return strings.HasPrefix(line, "//go:") || strings.HasPrefix(line, "// +")
}

// oneWord says whether a comment or a line of a document has nothing to be broken at: an address, say.
func oneWord(line string) bool {
	line = strings.TrimSpace(line)
	line = strings.TrimSpace(strings.TrimLeft(line, "/*->#0123456789."))
	return !strings.ContainsAny(line, " \t") && utf8.ValidString(line)
}

// widthOfDocuments returns the lines of Markdown that are too wide, less tables and code.
func widthOfDocuments(tr *tree) []finding {
	var found []finding
	for _, d := range tr.docs {
		for n, line := range prose(string(d.text)) {
			if w := columns(line); w > mostColumns && !oneWord(line) {
				found = append(found, finding{at: fmt.Sprintf("%s:%d", d.name, n), what: tooWide(w)})
			}
		}
	}
	return found
}

// prose yields the lines of a Markdown document that are neither table nor code, with their numbers.
func prose(text string) func(func(int, string) bool) {
	return func(yield func(int, string) bool) {
		n, fenced, indented, blank := 0, false, false, true
		for line := range strings.Lines(text) {
			n++
			line = strings.TrimRight(line, "\r\n")
			trimmed := strings.TrimSpace(line)
			// Four columns behind a blank line are code; within a list they may be a paragraph of it.
			indented = strings.HasPrefix(line, "    ") && (blank || indented)
			blank = trimmed == ""
			if indented {
				continue
			}
			if strings.HasPrefix(trimmed, "```") || strings.HasPrefix(trimmed, "~~~") {
				fenced = !fenced
				continue
			}
			if fenced || strings.HasPrefix(trimmed, "|") {
				continue
			}
			if !yield(n, line) {
				return
			}
		}
	}
}

func TestWidthFinds(t *testing.T) {
	wide := strings.Repeat("word ", 25)
	tests := []struct{ name, file, text, want string }{
		{"a comment", "a.go", "package a\n\n// " + wide + "\n", "a.go:3: 128 columns"},
		{"code", "a.go", "package a\n\nvar x = \"" + wide + "\"\n", "a.go:3: 135 columns"},
		{"tabs", "a.go", "package a\n\nfunc f() {\n\t\t// " + strings.Repeat("12 45", 22) + "\n}\n", "a.go:4: 121"},
		{"characters, not bytes", "a.go", "package a\n\n// " + strings.Repeat("é ", 58) + "\n", ""},
		{"a raw string", "a.go", "package a\n\nvar x = `\n" + wide + "`\n", ""},
		{"a raw string of one line", "a.go", "package a\n\nvar x = `" + wide + "`\n", "135 columns"},
		{"a tag", "a.go", "package a\n\ntype t struct {\n\tX int `doc:\"" + wide + "\"`\n}\n", ""},
		{"a directive", "a.go", "package a\n\n//go:generate " + wide + "\n", ""},
		{"an address", "a.go", "package a\n\n// " + strings.ReplaceAll(wide, " ", "/") + "\n", ""},
		{"a document", "a.md", "\n" + wide + "\n", "a.md:2: 125 columns"},
		{"a table", "a.md", "| " + wide + " |\n", ""},
		{"code in a document", "a.md", "```\n" + wide + "\n```\n", ""},
		{"indented code", "a.md", "text\n\n    " + wide + "\n    " + wide + "\n", ""},
		{"an indented line of a paragraph", "a.md", "- text\n    " + wide + "\n", "a.md:2: 129 columns"},
		{"output of an example", "a_test.go", "package a\n\nfunc ExampleA() {\n\t// Output:\n\t// " + wide + "\n}\n",
			""},
		{"after code", "a.md", "```\nx\n```\n" + wide + "\n", "a.md:4: 125 columns"},
	}
	for _, tt := range tests {
		got := append(foundIn(t, widthOfCode, tt.file, tt.text), foundIn(t, widthOfDocuments, tt.file, tt.text)...)
		var want []string
		if tt.want != "" {
			want = []string{tt.want}
		}
		expect(t, tt.name, got, want)
	}
}
