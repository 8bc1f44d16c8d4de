package lint

import (
	"fmt"
	"go/ast"
	"go/token"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode"
)

// avoided is a word that we replace by a plainer one, in comments, messages and documents.
type avoided struct {
	pattern string // of whole words, in any case
	instead string
}

var avoidedWords = []avoided{
	{`tells?|telling|told|tellers?`, "report, log, notify, text"},
	{`nobody|somebody`, "no one, or the actor by name"},
	{`affairs? of`, "handled by"},
	{`whose own`, "its"},
	{`lend|lends|lent|lending`, "offer"},
	{`wish|wishes|wished|wishing`, "request"},
	{`set aside|sets aside|setting aside`, "quarantine"},
	{`anew`, "again, rebuild"},
	{`hand in|hands in|handed in|handing in`, "submit"},
	{`heed|heeds|heeded|heeding`, "use, follow"},
	{`beside`, "next to, in addition to"},
	{`begin|begins|began|begun|beginnings?`, "start; snapshot"},
	{`fates?`, "deletion, or what becomes of it"},
	{`sights?`, "pod status"},
	{`crews?`, "writers"},
}

// avoidedNames are parts of names in code that are avoided. Names of the log stay: begin is not among them.
var avoidedNames = map[string]string{
	"tell": "report", "tells": "reports", "told": "reported", "teller": "text", "nobody": "none", "somebody": "one",
	"lend": "offer", "lends": "offers", "lent": "offered", "lender": "offer", "wish": "request", "wishes": "requests",
	"wished": "requested",
	"anew":   "again", "heed": "follow", "heeds": "follows", "beside": "next", "fate": "deletion", "fates": "deletions",
	"sight": "pod status", "sights": "pod status", "crew": "writers", "aside": "quarantined",
}

// avoidedFiles are names of files besides those: not the noun that a searcher types.
var avoidedFiles = map[string]string{"given": "released", "telling": "report"}

// contract are words that stay, as they are, because they are written in logs, records and documents of the API, or
// name what is.
var contract = map[string]string{
	"Beginning":          "the log's word for a snapshot of the state: its name is in the log",
	"shares-with-nobody": "a fact that systems report: its name is in documents of explain",
	"best-beside":        "a fact that systems report: its name is in documents of explain",
	"utility-wished":     "a fact that systems report: its name is in documents of explain",
	"trainyard.dev/fate": "an annotation of TrainingJobs: its name is in the API",
}

var anyAvoided = func() *regexp.Regexp {
	var all []string
	for _, w := range avoidedWords {
		all = append(all, "("+w.pattern+")")
	}
	return regexp.MustCompile(`(?i)\b(?:` + strings.ReplaceAll(strings.Join(all, "|"), " ", `\s+`) + `)\b`)
}()

func TestWordsOfComments(t *testing.T) { judge(t, "words-comments", wordsOfComments(repository(t))) }

func TestWordsOfStrings(t *testing.T) { judge(t, "words-strings", wordsOfStrings(repository(t))) }

func TestWordsOfDocuments(t *testing.T) { judge(t, "words-documents", wordsOfDocuments(repository(t))) }

func TestWordsOfNames(t *testing.T) { judge(t, "words-names", wordsOfNames(repository(t))) }

func TestWordsOfFiles(t *testing.T) { judge(t, "words-files", wordsOfFiles(repository(t))) }

// whole returns the word with what it is joined to without a space, such as "best-beside".
func whole(text string, from, to int) string {
	joins := func(c byte) bool {
		return c == '-' || c == '.' || c == '/' || 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z'
	}
	for from > 0 && joins(text[from-1]) {
		from--
	}
	if from > 0 && text[from-1] == '\\' {
		from++ // the letter of an escape
	}
	for to < len(text) && joins(text[to]) {
		to++
	}
	return text[from:to]
}

// avoidedIn calls found for each avoided word of text: where it starts, the word, and what to write instead.
func avoidedIn(text string, found func(at int, word, instead string)) {
	for _, m := range anyAvoided.FindAllStringSubmatchIndex(text, -1) {
		word := text[m[0]:m[1]]
		if contract[word] != "" || contract[whole(text, m[0], m[1])] != "" {
			continue
		}
		for i, w := range avoidedWords {
			if m[2+2*i] >= 0 {
				found(m[0], word, w.instead)
				break
			}
		}
	}
}

func (tr *tree) wordsIn(pos token.Pos, text string) []finding {
	var found []finding
	first := tr.files.Position(pos)
	avoidedIn(text, func(at int, word, instead string) {
		line := first.Line + strings.Count(text[:at], "\n")
		found = append(found, avoid(fmt.Sprintf("%s:%d", first.Filename, line), word, instead))
	})
	return found
}

func avoid(at, word, instead string) finding {
	return finding{at: at, what: fmt.Sprintf("%q: write %s", strings.Join(strings.Fields(word), " "), instead),
		name: word}
}

func wordsOfComments(tr *tree) []finding {
	var found []finding
	for _, f := range tr.code {
		if inLint(f.name) {
			continue
		}
		declared := documented(f.ast)
		for _, g := range f.ast.Comments {
			for i, c := range g.List {
				text := c.Text
				if i == 0 {
					text = lessName(text, declared[g])
				}
				found = append(found, tr.wordsIn(c.Pos(), text)...)
			}
		}
	}
	return found
}

// documented returns the name that each doc comment is about.
func documented(f *ast.File) map[*ast.CommentGroup]string {
	names := map[*ast.CommentGroup]string{}
	ast.Inspect(f, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.FuncDecl:
			names[n.Doc] = n.Name.Name
		case *ast.GenDecl:
			for _, s := range n.Specs {
				if t, ok := s.(*ast.TypeSpec); ok {
					names[n.Doc] = t.Name.Name
				}
				if v, ok := s.(*ast.ValueSpec); ok && len(n.Specs) == 1 {
					names[n.Doc] = v.Names[0].Name
				}
			}
		case *ast.TypeSpec:
			names[n.Doc] = n.Name.Name
		case *ast.ValueSpec:
			names[n.Doc] = n.Names[0].Name
		case *ast.Field:
			if len(n.Names) > 0 {
				names[n.Doc] = n.Names[0].Name
			}
		}
		return true
	})
	return names
}

// lessName returns a doc comment without the name that it starts with: names have a lint of their own.
func lessName(comment, name string) string {
	if rest, ok := strings.CutPrefix(comment, "// "+name+" "); ok && name != "" {
		return "// " + rest
	}
	return comment
}

// inLint says whether a file is of this package, which must name the words.
func inLint(name string) bool { return strings.HasPrefix(name, "internal/lint/") }

// wordsOfStrings looks at string literals, less paths of imports and tags of fields, whose words are contracts.
func wordsOfStrings(tr *tree) []finding {
	var found []finding
	for _, f := range tr.code {
		if inLint(f.name) {
			continue
		}
		ast.Inspect(f.ast, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.ImportSpec:
				return false
			case *ast.Field:
				if n.Tag != nil {
					found = append(found, tr.wordsIn(n.Tag.Pos(), descriptions(n.Tag.Value))...)
				}
				ast.Inspect(n.Type, func(n ast.Node) bool {
					if inner, ok := n.(*ast.Field); ok && inner.Tag != nil {
						found = append(found, tr.wordsIn(inner.Tag.Pos(), descriptions(inner.Tag.Value))...)
					}
					return true
				})
				return false
			case *ast.BasicLit:
				if n.Kind == token.STRING {
					found = append(found, tr.wordsIn(n.Pos(), n.Value)...)
				}
			}
			return true
		})
	}
	return found
}

var descriptionTag = regexp.MustCompile(`\b(?:doc|summary|description):"[^"]*"`)

// descriptions returns of a field's tag what people read.
func descriptions(tag string) string { return strings.Join(descriptionTag.FindAllString(tag, -1), " ") }

var inlineCode = regexp.MustCompile("`[^`]*`")

// wordsOfDocuments looks at prose and tables of Markdown, less code, and at the comments of scripts and configuration.
func wordsOfDocuments(tr *tree) []finding {
	var found []finding
	at := func(d *document, n int, text string) {
		avoidedIn(text, func(_ int, word, instead string) {
			found = append(found, avoid(fmt.Sprintf("%s:%d", d.name, n), word, instead))
		})
	}
	for _, d := range tr.docs {
		n, fenced := 0, false
		for line := range strings.Lines(string(d.text)) {
			n++
			if strings.HasPrefix(strings.TrimSpace(line), "```") {
				fenced = !fenced
			}
			if !fenced {
				at(d, n, inlineCode.ReplaceAllString(line, "` `"))
			}
		}
	}
	for _, d := range tr.plain {
		n := 0
		for line := range strings.Lines(string(d.text)) {
			n++
			if _, comment, ok := strings.Cut(line, "#"); ok {
				at(d, n, comment)
			}
		}
	}
	return found
}

// wordsOfNames looks at names where they are declared, less those of tests, which documents and histories cite.
func wordsOfNames(tr *tree) []finding {
	var found []finding
	for _, f := range tr.code {
		declared(f.ast, func(id *ast.Ident) {
			if contract[id.Name] != "" || testName.MatchString(id.Name) {
				return
			}
			for _, w := range camel(id.Name) {
				if instead := avoidedNames[w]; instead != "" {
					found = append(found, finding{
						at:   tr.at(id.Pos()),
						what: fmt.Sprintf("name %s: write %s for %s", id.Name, instead, w),
						name: id.Name,
					})
				}
			}
		})
	}
	return found
}

var testName = regexp.MustCompile(`^(Test|Benchmark|Fuzz|Example)`)

// declared calls visit for each name where it is declared: packages' level, fields, methods, parameters, local ones.
func declared(file *ast.File, visit func(*ast.Ident)) {
	all := func(ids []*ast.Ident) {
		for _, id := range ids {
			visit(id)
		}
	}
	ast.Inspect(file, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.FuncDecl:
			visit(n.Name)
		case *ast.TypeSpec:
			visit(n.Name)
		case *ast.ValueSpec:
			all(n.Names)
		case *ast.Field:
			all(n.Names)
		case *ast.AssignStmt:
			if n.Tok == token.DEFINE {
				defined(n.Lhs, visit)
			}
		case *ast.RangeStmt:
			if n.Tok == token.DEFINE {
				defined([]ast.Expr{n.Key, n.Value}, visit)
			}
		}
		return true
	})
}

func defined(list []ast.Expr, visit func(*ast.Ident)) {
	for _, e := range list {
		if id, ok := e.(*ast.Ident); ok {
			visit(id)
		}
	}
}

// camel returns the lower-case words of a name.
func camel(name string) []string {
	var words []string
	var word []rune
	runes := []rune(name)
	for i, r := range runes {
		upper := unicode.IsUpper(r)
		split := r == '_' || upper && i > 0 &&
			(!unicode.IsUpper(runes[i-1]) || i+1 < len(runes) && unicode.IsLower(runes[i+1]))
		if split && len(word) > 0 {
			words = append(words, string(word))
			word = nil
		}
		if r != '_' {
			word = append(word, unicode.ToLower(r))
		}
	}
	if len(word) > 0 {
		words = append(words, string(word))
	}
	return words
}

// wordsOfFiles looks at the names of files and folders.
func wordsOfFiles(tr *tree) []finding {
	var found []finding
	for name := range tr.paths {
		base := name[strings.LastIndexByte(name, '/')+1:]
		stem, _, _ := strings.Cut(base, ".")
		for _, w := range strings.FieldsFunc(stem, func(r rune) bool { return r == '_' || r == '-' }) {
			instead := avoidedNames[w]
			if instead == "" {
				instead = avoidedFiles[w]
			}
			if instead != "" {
				found = append(found, finding{at: name,
					what: fmt.Sprintf("name it after its subject: %s, not %s", instead, w), name: base})
			}
		}
	}
	slices.SortFunc(found, func(a, b finding) int { return strings.Compare(a.at, b.at) })
	return found
}

func TestWordsFind(t *testing.T) {
	tests := []struct {
		name, file, text string
		want             []string
	}{
		{"a comment", "a.go", "package a\n\n// f tells it.\nfunc f() {}\n", []string{`a.go:3: "tells": write report`}},
		{"over two lines", "a.go", "package a\n\n/* a job is handed\nin at once */\n",
			[]string{`a.go:3: "handed in": write submit`}},
		{"at the start of a sentence", "a.go", "package a // Nobody does.\n", []string{`"Nobody"`}},
		{"part of a word", "a.go", "package a // besides, bewitched crewmen retell hindsight, fatefully.\n", nil},
		{"a name of the log", "a.go", "package a // a Beginning\n", nil},
		{"the same as a word", "a.go", "package a // the beginning\n", []string{`"beginning": write start`}},
		{"a string", "a.go", "package a\n\nvar x = \"the job\" + `\nwas told`\n", []string{`a.go:4: "told"`}},
		{"an import", "a.go", "package a\n\nimport \"crew\"\n", nil},
		{"a key of a document", "a.go", "package a\n\ntype t struct{ X int `json:\"wish\"` }\n", nil},
		{"a description", "a.go", "package a\n\ntype t struct{ X int `json:\"wish\" doc:\"the wish\"` }\n",
			[]string{`"wish"`}},
		{"names", "a.go", "package a\n\nfunc toldBy(xWish int) { for crewID := range 3 { _ = crewID } }\n",
			[]string{"name toldBy", "name xWish", "name crewID"}},
		{"names of the log", "a.go", "package a\n\nfunc begin(b int) {}\n", nil},
		{"names of tests", "a_test.go", "package a\n\nfunc TestToldTwice(t int) {}\n", nil},
		{"a document", "a.md", "\nA wish, `wish`.\n", []string{`a.md:2: "wish"`}},
		{"code of a document", "a.md", "```\na wish\n```\n", nil},
		{"a script", "a.sh", "echo wish # a wish\n", []string{`a.sh:1: "wish"`}},
		{"a file", "told_test.go", "package a\n", []string{"told_test.go: name it after its subject: reported"}},
		{"a file named by a participle", "given.go", "package a\n", []string{"given.go: name it"}},
	}
	all := func(tr *tree) []finding {
		return slices.Concat(wordsOfComments(tr), wordsOfStrings(tr), wordsOfDocuments(tr), wordsOfNames(tr),
			wordsOfFiles(tr))
	}
	for _, tt := range tests {
		expect(t, tt.name, foundIn(t, all, tt.file, tt.text), tt.want)
	}
	for name, want := range map[string]string{"toldBy": "told by", "HTTPServer": "http server", "x_wish": "x wish",
		"GPUIDs": "gpui ds"} {
		if got := strings.Join(camel(name), " "); got != want {
			t.Errorf("%s is %q, want %q", name, got, want)
		}
	}
}
