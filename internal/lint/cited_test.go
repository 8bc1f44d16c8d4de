package lint

import (
	"fmt"
	"go/ast"
	"path"
	"regexp"
	"slices"
	"strings"
	"testing"
)

func TestCitedNames(t *testing.T) {
	tr := repository(t)
	n := 0
	for _, d := range tr.docs {
		if citing(d.name) {
			n++
		}
	}
	if n < 6 {
		t.Fatalf("%d documents cite tests, want docs/promises.md and five papers at least: have they moved?", n)
	}
	judge(t, "cited", cited(tr))
}

// citing are the documents that map claims to files and tests.
func citing(name string) bool {
	return name == "docs/promises.md" || strings.HasPrefix(name, "docs/papers/")
}

var (
	citedCode  = regexp.MustCompile("`([^`\n]+)`")
	citedTest  = regexp.MustCompile(`^(Test|Benchmark|Fuzz|Example)[A-Z0-9]\w*`)
	citedAfter = regexp.MustCompile(`^\.\.\.([A-Z]\w*)$`)
	citedFlag  = regexp.MustCompile(`-(?:run|bench) '?\^?([A-Z]\w+)`)
	citedPath  = regexp.MustCompile(`^[\w.-]+(/[\w.{},*-]+)*$`)
	fileEnding = regexp.MustCompile(`\.(go|txt|txtar|csv|yaml|md|py)$`)
)

// cited returns the names of tests, files and folders of this repository that such a document has and that are not
// there. Names within code marks count, and the commands there. A path may be given from the root, or, after one in the
// same cell or sentence, from the folder of that one.
func cited(tr *tree) []finding {
	tests := tr.tests()
	var found []finding
	for _, d := range tr.docs {
		if !citing(d.name) {
			continue
		}
		n, folder := 0, ""
		for line := range strings.Lines(string(d.text)) {
			n++
			if strings.TrimSpace(line) == "" {
				folder = ""
			}
			for _, m := range citedCode.FindAllStringSubmatch(line, -1) {
				var missing string
				missing, folder = tr.missing(m[1], folder, tests)
				if missing != "" {
					found = append(found, finding{
						at:   fmt.Sprintf("%s:%d", d.name, n),
						what: fmt.Sprintf("%#q: there is no %s", m[1], missing),
						name: m[1],
					})
				}
			}
		}
	}
	return found
}

// tests are the names of all tests, benchmarks, fuzz targets and examples.
func (tr *tree) tests() map[string]bool {
	tests := map[string]bool{}
	for _, f := range tr.code {
		if !f.isTest() {
			continue
		}
		for _, d := range f.ast.Decls {
			if fn, ok := d.(*ast.FuncDecl); ok && fn.Recv == nil && testName.MatchString(fn.Name.Name) {
				tests[fn.Name.Name] = true
			}
		}
	}
	return tests
}

// missing returns what the code names that is not there, or "", and the folder that later paths are below.
func (tr *tree) missing(code, folder string, tests map[string]bool) (what, in string) {
	if m := citedAfter.FindStringSubmatch(code); m != nil {
		for name := range tests {
			if strings.HasSuffix(name, m[1]) {
				return "", folder
			}
		}
		return "test whose name ends so", folder
	}
	if name := citedTest.FindString(code); name != "" {
		if !tests[name] {
			return "such test", folder
		}
		return "", folder
	}
	if m := citedFlag.FindStringSubmatch(code); m != nil {
		for name := range tests {
			if strings.Contains(name, m[1]) {
				return "", folder
			}
		}
		return "test that " + m[1] + " matches", folder
	}
	if !citedPath.MatchString(code) || !fileEnding.MatchString(code) && !tr.inRepository(code) {
		return "", folder
	}
	for _, name := range alternatives(code) {
		switch {
		case tr.has(name):
			folder = name
			if fileEnding.MatchString(name) {
				folder = path.Dir(name)
			}
		case tr.has(path.Join(folder, name)), tr.has(path.Join(path.Dir(folder), name)):
		case !strings.Contains(name, "/") && tr.hasBase(name):
		default:
			return "file " + name, folder
		}
	}
	return "", folder
}

// inRepository says whether a path without an ending is one of ours: its first folder is.
func (tr *tree) inRepository(name string) bool {
	first, rest, ok := strings.Cut(name, "/")
	return ok && rest != "" && tr.paths[first]
}

// has says whether the file or folder is there; * stands for anything.
func (tr *tree) has(name string) bool {
	if !strings.Contains(name, "*") {
		return tr.paths[strings.TrimSuffix(name, "/")]
	}
	for p := range tr.paths {
		if ok, _ := path.Match(name, p); ok {
			return true
		}
	}
	return false
}

func (tr *tree) hasBase(base string) bool {
	for p := range tr.paths {
		if path.Base(p) == base {
			return true
		}
	}
	return false
}

var braces = regexp.MustCompile(`^(.*)\{([^}]*)\}(.*)$`)

// alternatives expands {a,b}.
func alternatives(name string) []string {
	m := braces.FindStringSubmatch(name)
	if m == nil {
		return []string{name}
	}
	var all []string
	for _, s := range strings.Split(m[2], ",") {
		all = append(all, alternatives(m[1]+s+m[3])...)
	}
	return all
}

func TestCitedFinds(t *testing.T) {
	tests := []struct {
		text string
		want []string
	}{
		{"`TestThere`, `FuzzThere`, `TestThere/part`, `a/b.go`, `a/{b,b_test}.go`, `a`, `a/*_test.go`", nil},
		{"`TestGone`", []string{"docs/promises.md:1: `TestGone`: there is no such test"}},
		{"`...There` and `...Gone`", []string{"`...Gone`"}},
		{"`go test -run TestThere ./a` and `go test -bench Gone ./a`", []string{"-bench Gone"}},
		{"\n\n`a/gone.go`", []string{"docs/promises.md:3: `a/gone.go`: there is no file a/gone.go"}},
		{"`a/gone`", []string{"no file a/gone"}},
		{"`a/b.go`, `b_test.go`", nil},
		{"`gone.go`", []string{"no file gone.go"}},
		{"`a/{b,c}.go`", []string{"no file a/c.go"}},
		{"`min_run`, `github.com/x`, `x/y`", nil},
	}
	for _, tt := range tests {
		tr, err := readTree(mapFS(map[string]string{
			"a/b.go":           "package a\n",
			"a/b_test.go":      "package a\n\nfunc TestThere() {}\n\nfunc FuzzThere() {}\n",
			"docs/promises.md": tt.text + "\n",
			"docs/other.md":    "`TestGone`\n",
		}))
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, f := range cited(tr) {
			got = append(got, f.at+": "+f.what)
		}
		expect(t, tt.text, got, tt.want)
	}
	if !slices.Equal(alternatives("a/{b,c}.go"), []string{"a/b.go", "a/c.go"}) {
		t.Errorf("a/{b,c}.go is %q", alternatives("a/{b,c}.go"))
	}
}

// Ensure that the page of promises has each of them, with each test that is named after one: rows were lost in merges.
func TestPromisesHaveRows(t *testing.T) {
	tr := repository(t)
	at := slices.IndexFunc(tr.docs, func(d *document) bool { return d.name == "docs/promises.md" })
	if at < 0 {
		t.Fatal("there is no docs/promises.md")
	}
	text := string(tr.docs[at].text)
	for n := 1; n <= 25; n++ {
		if !regexp.MustCompile(fmt.Sprintf(`(?m)^\| %d[ ,|]`, n)).MatchString(text) {
			t.Errorf("docs/promises.md: promise %d has no row", n)
		}
	}
	named := regexp.MustCompile(`^TestPromise\d\d`)
	var endings []string
	for _, m := range regexp.MustCompile("`\\.\\.\\.([A-Z]\\w*)`").FindAllStringSubmatch(text, -1) {
		endings = append(endings, m[1])
	}
	for name := range tr.tests() {
		cited := strings.Contains(text, name) ||
			slices.ContainsFunc(endings, func(end string) bool { return strings.HasSuffix(name, end) })
		if named.MatchString(name) && !cited {
			t.Errorf("docs/promises.md: %s is in no row", name)
		}
	}
}
