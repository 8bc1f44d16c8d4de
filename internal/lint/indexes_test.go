package lint

import (
	"fmt"
	"go/ast"
	"os"
	"os/exec"
	"path"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/trainyard/trainyard/internal/reference"
)

// adrHead is how each decision starts: its title and four facts.
var adrHead = regexp.MustCompile(`(?s)^# (\d+)\. ([^\n]+)\n\n- Status: ([^\n]+)\n- Date: (\d{4}-\d\d-\d\d)\n` +
	`- Replaces: ([^\n]+)\n- Alternatives: ([^\n]+)\n\n`)

const adrFolder = "docs/inside/adr/"

// TestReferenceDecisions: each decision has its facts, and the index lists all of them.
func TestReferenceDecisions(t *testing.T) {
	rows := [][]string{{"decision", "status", "date", "replaces", "alternatives"}}
	for _, d := range repository(t).docs {
		base, ok := strings.CutPrefix(d.name, adrFolder)
		if !ok {
			continue
		}
		m := adrHead.FindStringSubmatch(string(d.text))
		if len(m) < 2 || !strings.HasPrefix(base, fmt.Sprintf("%04s-", m[1])) {
			t.Errorf("%s: want `# NUMBER. TITLE`, the file's number, then Status, Date, Replaces, Alternatives", d.name)
			continue
		}
		rows = append(rows, []string{fmt.Sprintf("[%s. %s](%s)", m[1], m[2], base), m[3], m[4], m[5], m[6]})
	}
	if len(rows) < 30 {
		t.Errorf("%d decisions, want more", len(rows)-1)
	}
	reference.Compare(t, root, adrFolder+"README.md", "# Decisions\n\n"+writtenMark+"the heads of the decisions. "+
		"Do not edit. -->\n\nA decision stays as it was written. One that no longer holds names what replaces it.\n\n"+
		reference.Table(rows...))
}

// TestReferenceMoved: the page of what moved lists every file that git saw move since the base, where it lies now, and
// none that is gone. Without the history it checks the page alone.
func TestReferenceMoved(t *testing.T) {
	if os.Getenv(reference.Variable) == "write" {
		reference.Compare(t, root, movedPage, movedText(t))
	}
	text, err := os.ReadFile(root + "/" + movedPage)
	if err != nil {
		t.Fatal(err)
	}
	tr, listed := repository(t), 0
	for _, m := range movedRow.FindAllStringSubmatch(string(text), -1) {
		if listed++; !tr.paths[m[2]] {
			t.Errorf("%s: %s is said to be %s, which is not there: run `make reference`", movedPage, m[1], m[2])
		}
	}
	if listed < 100 {
		t.Errorf("%s lists %d files, want more", movedPage, listed)
	}
}

const (
	movedPage = "docs/inside/moved.md"
	movedBase = "3a24f71"
)

var movedRow = regexp.MustCompile("(?m)^\\| `([^`]+)` \\| `([^`]+)` \\|$")

// movedPackages are the packages that were cut or moved whole.
var movedPackages = [][]string{
	{"before", "now"},
	{"`engine`", "`eventlog` (header, lines, reader, hash), `pipeline` (systems made of stages), `explain` (why a " +
		"job waits), `memory` (saved parts), `engine` (state, fold, loop, replay)"},
	{"`system/tiresias/published`, `system/pal/published`, ...", "`replica/tiresias`, `replica/pal`, " +
		"`replica/gavel`, `replica/muri`, `replica/pollux`"},
	{"`driver/local/progress`, `driver/local/task`", "`attempt/progress`, `attempt/task`"},
	{"`manager/api`", "`api` (the contract), `api/server` (what serves it), `api/site` (what differs between hosts)"},
	{"`manager` (the loop, mailbox, board, sinks), the same of `kube/controller`", "`host`"},
	{"`manager/teller.go`, `kube/record.Reason`", "`explain/text`"},
	{"`manager/whatif`", "`whatif` (forecasts, remedies), `cli/past` (history, comparison)"},
	{"`experiment`", "`simulate` (a simulation, presets), `cli/experiment` (published figures)"},
	{"`cmd/trainyard`", "`cli/*` (the verbs), `cli/term` (what they share)"},
	{"keys and their parsers in `system`", "`system/key`"},
}

// movedText is the page, from git's history.
func movedText(t *testing.T) string {
	t.Helper()
	now := make(map[string]string) // where each file that was there at the base is now
	out, err := exec.Command("git", "log", "--reverse", "--diff-filter=RD", "--name-status", "-M", "--format=",
		movedBase+"..HEAD").Output()
	if err != nil {
		t.Fatal(err)
	}
	base, err := exec.Command("git", "ls-tree", "-r", "--full-tree", "--name-only", movedBase).Output()
	if err != nil {
		t.Fatal(err)
	}
	atBase := strings.Fields(string(base))
	was := make(map[string]string) // by the path that a file has, its path at the base
	for line := range strings.Lines(string(out)) {
		f := strings.Split(strings.TrimSpace(line), "\t")
		if len(f) != 3 {
			continue
		}
		old := f[1]
		if first, ok := was[old]; ok {
			delete(was, old)
			old = first
		}
		was[f[2]], now[old] = old, f[2]
	}
	rows := [][]string{{"before", "now"}}
	tr := repository(t)
	for old, path := range now {
		if tr.paths[path] && !tr.paths[old] && slices.Contains(atBase, old) {
			rows = append(rows, []string{reference.Code(old), reference.Code(path)})
		}
	}
	slices.SortFunc(rows[1:], func(a, b []string) int { return strings.Compare(a[0], b[0]) })
	return "# What moved\n\n" + writtenMark + "the history. Do not edit. -->\n\nPaths before and after the house was " +
		"rebuilt, since commit " + movedBase + ".\n\n## Packages\n\n" + reference.Table(movedPackages...) +
		"\n## Files\n\n" + reference.Table(rows...)
}

var markdownLink = regexp.MustCompile(`\]\(([^)\s]+)\)`)

// TestLinks: each link of a document to a file leads to one, and each to a heading to a heading.
func TestLinks(t *testing.T) {
	tr := repository(t)
	checked := 0
	for name := range tr.paths {
		if path.Ext(name) != ".md" || underTestdata(name) {
			continue
		}
		text, err := os.ReadFile(root + "/" + name)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range markdownLink.FindAllStringSubmatch(withoutCode(string(text)), -1) {
			if checked++; !tr.leads(t, name, m[1]) {
				t.Errorf("%s: %s leads nowhere", name, m[1])
			}
		}
	}
	if checked < 50 {
		t.Errorf("%d links, want more", checked)
	}
}

// leads says whether a link from a document leads somewhere. Those to other sites are not followed.
func (tr *tree) leads(t *testing.T, from, link string) bool {
	t.Helper()
	if strings.Contains(link, "://") || strings.HasPrefix(link, "mailto:") {
		return true
	}
	file, heading, _ := strings.Cut(link, "#")
	to := from
	if file != "" {
		to = path.Join(path.Dir(from), file)
	}
	if !tr.paths[to] && to != "." {
		return false
	}
	if heading == "" {
		return true
	}
	text, err := os.ReadFile(root + "/" + to)
	return err == nil && slices.Contains(headings(string(text)), heading)
}

var notInAnchor = regexp.MustCompile(`[^\w\- ]`)

// headings returns the anchors of the headings of a document.
func headings(text string) (all []string) {
	for line := range strings.Lines(text) {
		if title := strings.TrimLeft(line, "#"); title != line {
			anchor := notInAnchor.ReplaceAllString(strings.ToLower(strings.TrimSpace(title)), "")
			all = append(all, strings.ReplaceAll(anchor, " ", "-"))
		}
	}
	return all
}

// withoutCode returns a document without its blocks of code and its inline code.
func withoutCode(text string) string {
	var b strings.Builder
	for i, part := range strings.Split(text, "```") {
		if i%2 == 0 {
			b.WriteString(part)
		}
	}
	return inlineCode.ReplaceAllString(b.String(), "` `")
}

var linkedFunction = regexp.MustCompile("\\[`[a-z]+\\.(?:\\(\\*?(\\w+)\\)\\.)?(\\w+)`\\]\\(([^)]+\\.go)\\)")

// TestLinkedFunctions: each function that the page of one decision links to is in that file.
func TestLinkedFunctions(t *testing.T) {
	const page = "docs/inside/decision.md"
	text, err := os.ReadFile(root + "/" + page)
	if err != nil {
		t.Fatal(err)
	}
	tr, linked := repository(t), linkedFunction.FindAllStringSubmatch(string(text), -1)
	if len(linked) < 10 {
		t.Errorf("%s links to %d functions, want more", page, len(linked))
	}
	for _, m := range linked {
		file := path.Join(path.Dir(page), m[3])
		if !slices.ContainsFunc(tr.code, func(f *goFile) bool { return f.name == file && f.declares(m[1], m[2]) }) {
			t.Errorf("%s: %s has no function %s", page, file, strings.TrimPrefix(m[1]+"."+m[2], "."))
		}
	}
}

// declares says whether the file has the function, or the method of the type.
func (f *goFile) declares(receiver, name string) bool {
	for _, d := range f.ast.Decls {
		fn, ok := d.(*ast.FuncDecl)
		if !ok || fn.Name.Name != name || (fn.Recv == nil) != (receiver == "") {
			continue
		}
		if fn.Recv == nil {
			return true
		}
		of := fn.Recv.List[0].Type
		if star, ok := of.(*ast.StarExpr); ok {
			of = star.X
		}
		if id, ok := of.(*ast.Ident); ok && id.Name == receiver {
			return true
		}
	}
	return false
}
