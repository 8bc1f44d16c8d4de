package simulate

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// replicaMark marks a figure of docs/papers that a replica of a released simulator computed.
const replicaMark = "ʀ"

// Ensure that no figure in docs/papers was computed by a replica of a released simulator without saying so: in claims
// tables by the column "engine", elsewhere by the mark ʀ and its footnote.
func TestClaimsSayWhoComputedThem(t *testing.T) {
	pages, err := filepath.Glob("../docs/papers/*.md")
	if err != nil || len(pages) < 5 {
		t.Fatal(pages, err)
	}
	replicas := 0
	for _, page := range pages {
		text, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		wrong, n := unmarked(string(text), strings.TrimSuffix(filepath.Base(page), ".md"))
		for _, w := range wrong {
			t.Errorf("%s:%s", page, w)
		}
		replicas += n
	}
	if replicas < 12 {
		t.Errorf("%d claims of replicas, want those of all five", replicas)
	}
}

// Ensure that each way in which a figure of a replica can go unmarked is found.
func TestUnmarkedFigures(t *testing.T) {
	const claims = "| claim | file | test | published | ours | engine |\n|---|---|---|---|---|---|\n"
	const foot = "\nʀ computed by a replica of it\n"
	for _, c := range []struct{ name, text, want string }{
		{"ours", claims + "| a | `system/pal` | `TestX` | 1 | 1 | trainyard |\n", ""},
		{"a replica's", claims + "| a | `replica/pal` | `TestX` | 1 | 1 | replica:pal |\n", ""},
		{"both", claims + "| a | all | – | 1 | 1; 2 | replica:pal; trainyard |\n", ""},
		{"no engine", claims + "| a | `system/pal` | – | 1 | 1 | |\n", `3: engine ""`},
		{"no such replica", claims + "| a | – | – | 1 | 1 | replica:blox |\n", `3: engine "replica:blox"`},
		{"no column", "| claim | file | ours |\n|---|---|---|\n| a | b | 1 |\n", "1: no column engine"},
		{"a replica's file", claims + "| a | `replica/pal/draw.go` | – | 1 | 1 | trainyard |\n",
			"3: replica:pal computed it"},
		{"a preset's file", claims + "| a | `simulate/preset_gavel.go` | – | 1 | 1 | trainyard |\n",
			"3: replica:gavel computed it"},
		{"the same file", claims + "| a | `replica/pal` | – | 1 | 1 | replica:pal |\n| b | the same | – | 1 | 1 | " +
			"trainyard |\n",
			"4: replica:pal computed it"},
		{"a replica's test", claims + "| a | all | `TestGandivaSeeds` | 1 | 1 | trainyard |\n",
			"3: replica:gavel computed it"},
		{"a test of a preset", claims + "| a | all | `TestMuriPreset` | 1 | 1 | trainyard |\n",
			"3: replica:muri computed it"},
		{"a row of a preset", "| a | b |\n|---|---|\n| preset | 1 |\n", "3: no ʀ"},
		{"a marked row", "| a | b |\n|---|---|\n| preset ʀ | 1 |\n" + foot, ""},
		{"no footnote", "| a | b |\n|---|---|\n| preset ʀ | 1 |\n", "ʀ without its footnote"},
		{"a column of a preset", "| a | preset |\n|---|---|\n| `tiresias-las` | 1 |\n", "3: no ʀ"},
		{"an engine's row of it", "| a | preset |\n|---|---|\n| `fifo` | 1 |\n", ""},
		{"a table of a replica", "By `replica/pollux`:\n\n| a | ours |\n|---|---|\n| x | 1 |\n",
			"3: no ʀ in the table"},
		{"that is marked", "By `replica/pollux`:\n\n| a | ours ʀ |\n|---|---|\n| x | 1 |\n" + foot, ""},
	} {
		got, _ := unmarked(c.text, "tiresias")
		switch {
		case c.want == "" && len(got) > 0:
			t.Errorf("%s: found %q, want nothing", c.name, got)
		case c.want != "" && (len(got) != 1 || !strings.Contains(got[0], c.want)):
			t.Errorf("%s: found %q, want one with %q", c.name, got, c.want)
		}
	}
}

// unmarked returns what is wrong with the tables of a page, by line, and how many claims are of replicas. The page of a
// preset has its name.
func unmarked(text, page string) (wrong []string, replicas int) {
	lines := strings.Split(text, "\n")
	before, marked := "", false
	for i := 0; i < len(lines); i++ {
		if !strings.HasPrefix(lines[i], "|") {
			if strings.TrimSpace(lines[i]) != "" {
				before = paragraph(before, lines, i)
			}
			continue
		}
		end := i
		for end < len(lines) && strings.HasPrefix(lines[end], "|") {
			end++
		}
		rows := tableOf(lines[i:end], i+1)
		if strings.HasPrefix(lines[i], "| claim |") {
			bad, n := rows.claims()
			wrong, replicas = append(wrong, bad...), replicas+n
		} else {
			wrong = append(wrong, rows.figures(before, page)...)
			marked = marked || strings.Contains(strings.Join(lines[i:end], ""), replicaMark)
		}
		i, before = end, ""
	}
	if marked && !slices.ContainsFunc(lines, func(l string) bool {
		return strings.HasPrefix(l,
			replicaMark+" computed by a replica of ")
	}) {
		wrong = append(wrong, " "+replicaMark+" without its footnote")
	}
	return wrong, replicas
}

// paragraph adds line i to the paragraph before it, or starts another.
func paragraph(before string, lines []string, i int) string {
	if i > 0 && strings.TrimSpace(lines[i-1]) == "" {
		before = ""
	}
	return before + lines[i] + "\n"
}

// table is the cells of a table, its head first.
type table struct {
	line  int // of the head
	cells [][]string
}

func tableOf(lines []string, at int) table {
	t := table{line: at}
	for _, l := range lines {
		cells := strings.Split(strings.Trim(strings.TrimSpace(l), "|"), "|")
		for i := range cells {
			cells[i] = strings.TrimSpace(cells[i])
		}
		t.cells = append(t.cells, cells)
	}
	return t
}

// claims checks a table of claims.
func (t table) claims() (wrong []string, replicas int) {
	column := slices.Index(t.cells[0], "engine")
	if column < 0 {
		return []string{fmt.Sprintf("%d: no column engine", t.line)}, 0
	}
	file := ""
	for i, row := range t.cells {
		if i < 2 {
			continue
		}
		engines := strings.Split(row[min(column, len(row)-1)], "; ")
		if k := slices.IndexFunc(engines, func(e string) bool { return !isEngine(e) }); k >= 0 {
			wrong = append(wrong, fmt.Sprintf("%d: engine %q, want %s, replica:NAME or –", t.line+2, engines[k],
				Engine))
			continue
		}
		if row[1] != "the same" {
			file = row[1]
		}
		for _, by := range computedBy(file, row[2]) {
			if !slices.Contains(engines, by) {
				wrong = append(wrong, fmt.Sprintf("%d: %s computed it, the column says %q", t.line+i, by, row[column]))
			}
		}
		if strings.Contains(row[column], "replica:") {
			replicas++
		}
	}
	return wrong, replicas
}

func isEngine(e string) bool {
	name, replica := strings.CutPrefix(e, "replica:")
	if !replica {
		return e == Engine || e == "–"
	}
	return slices.ContainsFunc(Presets, func(p PresetInfo) bool { return p.replica == name })
}

var (
	replicaFile = regexp.MustCompile(`replica/(\w+)`)
	presetFile  = regexp.MustCompile("`(simulate/preset_\\w+\\.go)`")
	testName    = regexp.MustCompile("`(Test\\w+)`")
)

// computedBy returns the replicas that a row's files and tests lead to.
func computedBy(file, tests string) (list []string) {
	for _, m := range replicaFile.FindAllStringSubmatch(file, -1) {
		list = append(list, "replica:"+m[1])
	}
	for _, m := range presetFile.FindAllStringSubmatch(file, -1) {
		if text, err := os.ReadFile(filepath.Join("..", m[1])); err == nil {
			for _, r := range replicaFile.FindAllStringSubmatch(string(text), -1) {
				list = append(list, "replica:"+r[1])
			}
		}
	}
	if len(list) > 0 {
		return list
	}
	for _, m := range testName.FindAllStringSubmatch(tests, -1) {
		list = append(list, ranBy(m[1])...)
	}
	return list
}

// figures checks any other table, of which before is the paragraph before it.
func (t table) figures(before, page string) (wrong []string) {
	all := ""
	for _, row := range t.cells {
		all += strings.Join(row, "|") + "\n"
	}
	if strings.Contains(before, "replica/") && !strings.Contains(all, replicaMark) {
		return []string{fmt.Sprintf("%d: no %s in the table", t.line, replicaMark)}
	}
	p, head := PresetNamed(page), strings.Join(t.cells[0], "|")
	for i, row := range t.cells {
		if i < 2 {
			continue
		}
		text := strings.Join(row, "|")
		of := strings.Contains(text, "preset") || strings.Contains(text, "replica") ||
			strings.Contains(text, "released simulator")
		if p != nil && strings.Contains(head, "preset") && p.Replica(strings.Trim(row[0], "`")) {
			of = true
		}
		if of && !strings.Contains(text, replicaMark) {
			wrong = append(wrong, fmt.Sprintf("%d: no %s, but a replica computed it", t.line+i, replicaMark))
		}
	}
	return wrong
}
