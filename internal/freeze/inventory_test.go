package freeze

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// additions compares what there is with the lines of testdata/inventory/name: every line must still be there, and there
// may be more. With -rewrite it writes the file.
func additions(t *testing.T, name string, present []string) {
	t.Helper()
	slices.Sort(present)
	present = slices.Compact(present)
	path := filepath.Join("testdata/inventory", name)
	if *rewrite {
		if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(strings.Join(present, "\n")+"\n"), 0o666); err != nil {
			t.Fatal(err)
		}
		return
	}
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for _, line := range missing(strings.Split(strings.TrimSpace(string(b)), "\n"), present) {
		t.Errorf("%s: gone or changed: %s", path, line)
	}
}

// missing returns the lines of want that are not in present, which is sorted.
func missing(want, present []string) (gone []string) {
	for _, line := range want {
		if _, ok := slices.BinarySearch(present, line); !ok {
			gone = append(gone, line)
		}
	}
	return gone
}

var (
	verbLine    = regexp.MustCompile(`^  ([a-z][a-z-]*) +[A-Z]`)
	flagLine    = regexp.MustCompile(`^ +(?:-([A-Za-z]), |    )--([a-z-]+)( [^ ]+)?(?:  |$)`)
	defaultText = regexp.MustCompile(`\(default ("[^"]*"|[^\s)]+)\)`)
	exitCodes   = regexp.MustCompile(`(?:^|, )(\d+) `)
)

// Ensure that every verb, alias and flag is there, with its short form and default, and takes a value or none as it
// did; and every exit code. What help says in sentences may change.
func TestCommands(t *testing.T) {
	dir := folder(t.TempDir())
	var lines []string
	var walk func(verb []string)
	walk = func(verb []string) {
		help := string(dir.run(t, append(slices.Clone(verb), "--help")...))
		name := strings.Join(verb, " ")
		sections := split(help)
		lines = append(lines, flags(name, sections["Flags:"])...)
		if aliases := strings.TrimSpace(sections["Aliases:"]); aliases != "" {
			for _, alias := range strings.Split(aliases, ", ")[1:] {
				lines = append(lines, fmt.Sprintf("alias %s: %s", name, alias))
			}
		}
		for line := range strings.Lines(sections["Available Commands:"]) {
			if m := verbLine.FindStringSubmatch(line); m != nil {
				sub := append(slices.Clone(verb), m[1])
				lines = append(lines, "verb "+strings.Join(sub, " "))
				walk(sub)
			}
		}
	}
	walk(nil)
	head, _, _ := strings.Cut(string(dir.run(t, "--help")), "\n\nUsage:")
	_, codes, _ := strings.Cut(head, "Exit codes: ")
	for _, m := range exitCodes.FindAllStringSubmatch(strings.ReplaceAll(codes, "\n", " "), -1) {
		lines = append(lines, "exit code "+m[1])
	}
	if len(lines) < 250 {
		t.Errorf("%d lines, want more: help is not understood", len(lines))
	}
	additions(t, "commands.txt", lines)
}

// split returns the sections of a help text by their headings.
func split(help string) map[string]string {
	sections, heading := map[string]string{}, ""
	for line := range strings.Lines(help) {
		if line[0] != ' ' && strings.HasSuffix(line, ":\n") {
			heading = strings.TrimSpace(line)
			continue
		}
		sections[heading] += line
	}
	return sections
}

// flags returns a line for each flag that the section of a verb lists. A default that a sentence states is none of it.
func flags(verb, section string) (lines []string) {
	var at []string // each flag with all its lines
	for line := range strings.Lines(section) {
		if flagLine.MatchString(line) {
			at = append(at, line)
		} else if len(at) > 0 {
			at[len(at)-1] += line
		}
	}
	for _, text := range at {
		m := flagLine.FindStringSubmatch(strings.SplitN(text, "\n", 2)[0])
		line := fmt.Sprintf("flag %s --%s", verb, m[2])
		if m[1] != "" {
			line += " -" + m[1]
		}
		if m[3] != "" {
			line += " takes a value"
		}
		if d := defaultText.FindStringSubmatch(strings.Join(strings.Fields(text), " ")); d != nil {
			line += ", default " + d[1]
		}
		lines = append(lines, line)
	}
	return lines
}

// Ensure that errors end with the exit code of their kind.
func TestExitCodes(t *testing.T) {
	dir := inputs(t)
	for command, want := range map[string]int{
		"version":              0,
		"simulate":             2,
		"systems --no-such":    2,
		"systems no-such":      2,
		"replay no-such.jsonl": 3,
		"simulate --trace no-such.csv --cluster 1x1 --system fifo": 3,
		"ps --state no-such": 6,
		"simulate --trace caps.csv --cluster 1x1 --system fifo": 9,
		"replay caps.csv": 9,
		"simulate --trace mixed.csv --cluster caps.csv --system fifo": 9,
		"whatif --log caps.csv": 9,
		"simulate --trace mixed.csv --cluster 6x4 --system fifo --set fifo.no-such=1": 2,
		"simulate --trace mixed.csv --cluster 6x4 --system fifo --jobs-out mixed.csv": 2,
	} {
		if _, code, stderr := dir.exit(t, program, strings.Fields(command)...); code != want {
			t.Errorf("trainyard %s: exit code %d, want %d\n%s", command, code, want, stderr)
		}
	}
}

// Ensure that every system, preset, key, default, experiment, format and site is known by its name.
func TestKeys(t *testing.T) {
	dir := folder(t.TempDir())
	var doc struct {
		Systems []struct {
			Name    string
			Presets []string
			Keys    []struct{ Name, Default, Scope string }
		}
	}
	if err := json.Unmarshal(dir.run(t, "systems", "--json"), &doc); err != nil {
		t.Fatal(err)
	}
	var lines []string
	for _, s := range doc.Systems {
		lines = append(lines, "system "+s.Name)
		for _, p := range s.Presets {
			lines = append(lines, fmt.Sprintf("system %s: preset %s", s.Name, p))
		}
		for _, k := range s.Keys {
			lines = append(lines, fmt.Sprintf("system %s: key %s=%s (%s)", s.Name, k.Name, k.Default, k.Scope))
		}
	}
	for _, list := range []string{"simulate --format", "simulate --preset", "simulate --system", "experiment",
		"plan --method", "trace generate --like", "trace convert --to", "ps -o", "ps --job-state",
		"token create --role"} {
		out := string(dir.run(t, append(append([]string{"__complete"}, strings.Fields(list)...), "")...))
		for line := range strings.Lines(out) {
			if word, _, _ := strings.Cut(strings.TrimSpace(line), "\t"); !strings.HasPrefix(word, ":") {
				lines = append(lines, fmt.Sprintf("value of %s: %s", list, word))
			}
		}
	}
	if len(lines) < 700 {
		t.Errorf("%d lines, want more", len(lines))
	}
	additions(t, "keys.txt", lines)
}

// Ensure that every route, parameter, answer, field and named value of the API is there, and every metric with its
// labels.
func TestAPI(t *testing.T) {
	dir := unpackState(t, oldState)
	m := dir.serve(t, program, sameSystem...)
	m.stands(t, inOldState)
	var doc any
	if err := json.Unmarshal(m.get(t, "/openapi.json"), &doc); err != nil {
		t.Fatal(err)
	}
	additions(t, "openapi.txt", described("", doc))
	additions(t, "metrics.txt", metrics(string(m.get(t, "/metrics"))))
	m.end(t)
}

// sentences are the keys of a description whose text is for people.
var sentences = []string{"description", "summary", "title", "version"}

// described returns a line for each value of a description of an interface, but for its sentences. A place in a list is
// the value itself, the name of a parameter, or else a number.
func described(path string, v any) (lines []string) {
	switch v := v.(type) {
	case map[string]any:
		for _, key := range slices.Sorted(maps.Keys(v)) {
			if _, text := v[key].(string); text && slices.Contains(sentences, key) {
				continue
			}
			lines = append(lines, described(path+"/"+strings.ReplaceAll(key, "/", "|"), v[key])...)
		}
	case []any:
		for i, element := range v {
			at := fmt.Sprint(i)
			if named, ok := element.(map[string]any); ok && named["name"] != nil {
				at = fmt.Sprint(named["name"])
			} else if !ok {
				at = ""
			}
			lines = append(lines, described(path+"["+at+"]", element)...)
		}
	default:
		lines = append(lines, fmt.Sprintf("%s = %v", path, v))
	}
	return lines
}

// metrics returns a line for each metric of our own: its type, and its samples with their labels, without buckets.
func metrics(page string) (lines []string) {
	for line := range strings.Lines(page) {
		sample := strings.TrimSpace(line[:strings.LastIndexByte(line, ' ')])
		switch {
		case strings.HasPrefix(line, "# TYPE trainyard_"):
			lines = append(lines, strings.TrimSpace(strings.TrimPrefix(line, "# ")))
		case strings.HasPrefix(line, "trainyard_") && !strings.Contains(line, `le="`):
			lines = append(lines, sample)
		}
	}
	return lines
}

// Ensure that the inventory sees what went, and that a flag that changed is not the flag it was.
func TestMissing(t *testing.T) {
	const help = "  -n, --limit N            only the latest N\n" +
		"      --gpus N     N GPUs, or MIN-MAX where\n                   it may be resized (default \"1\")\n" +
		"      --json       one document\n"
	got := flags("ps", help)
	want := []string{`flag ps --limit -n takes a value`, `flag ps --gpus takes a value, default "1"`, `flag ps --json`}
	if !slices.Equal(got, want) {
		t.Errorf("flags %q, want %q", got, want)
	}
	slices.Sort(got)
	gone := missing([]string{"flag ps --json", "flag ps --gone"}, got)
	if !slices.Equal(gone, []string{"flag ps --gone"}) {
		t.Errorf("missing %q", gone)
	}
	var doc any
	const text = `{"description": "text", "a/b": [{"name": "x", "in": "query"}, 1, "y"]}`
	if err := json.Unmarshal([]byte(text), &doc); err != nil {
		t.Fatal(err)
	}
	api := []string{"/a|b[x]/in = query", "/a|b[x]/name = x", "/a|b[] = 1", "/a|b[] = y"}
	if got := described("", doc); !slices.Equal(got, api) {
		t.Errorf("described %q, want %q", got, api)
	}
}
