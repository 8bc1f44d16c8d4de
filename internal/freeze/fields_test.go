package freeze

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
)

// fieldsPath lists the fields of documents that are frozen: a row for each, its schema and its path, in which [] stands
// for any place in a list. Documents may gain fields; digests are of those listed alone. -rewrite adds the fields of a
// schema that has none in the list. To freeze new fields of another, remove its rows from the list first: that renews
// the digests of its documents.
const fieldsPath = "testdata/fields.txt"

// measured are fields that are never alike twice: how long a simulation took.
var measured = []string{"results[].decision_p50_us", "results[].decision_p99_us", "results[].wall_s"}

// fieldList is the list of fields as read, or as it grows.
type fieldList struct {
	once  sync.Once
	mu    sync.Mutex
	known map[string]bool
	old   map[string]bool // schemas that had fields when the list was read
	grew  bool
}

var fields fieldList

func (l *fieldList) read() {
	l.known, l.old = map[string]bool{}, map[string]bool{}
	b, err := os.ReadFile(fieldsPath)
	if os.IsNotExist(err) && *rewrite {
		return
	}
	if err != nil {
		panic(err)
	}
	for line := range strings.Lines(string(b)) {
		schema, _, _ := strings.Cut(line, " ")
		l.known[strings.TrimSpace(line)], l.old[schema] = true, true
	}
}

// frozen says whether the field is part of digests.
func (l *fieldList) frozen(schema, path string) bool {
	l.once.Do(l.read)
	if slices.Contains(measured, path) {
		path += " (its value is not)"
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if *rewrite && !l.old[schema] {
		l.known[schema+" "+path], l.grew = true, true
	}
	return l.known[schema+" "+path]
}

// write writes the list if it grew.
func (l *fieldList) write() error {
	if !l.grew {
		return nil
	}
	var rows []string
	for row := range l.known {
		rows = append(rows, row+"\n")
	}
	slices.Sort(rows)
	return os.WriteFile(fieldsPath, []byte(strings.Join(rows, "")), 0o666)
}

// value is a leaf of a document: where it is, with and without its places in lists, and its literal.
type value struct{ at, path, literal string }

// document returns the digest of the frozen fields of a document, in its order.
func document(t *testing.T, doc []byte) string {
	t.Helper()
	var schema struct{ Schema string }
	if err := json.Unmarshal(doc, &schema); err != nil || schema.Schema == "" {
		t.Fatalf("%v: want a document that states its schema:\n%.400s", err, doc)
	}
	var b strings.Builder
	for _, v := range leaves(t, doc) {
		if slices.Contains(measured, v.path) {
			v.literal = "measured"
		}
		if fields.frozen(schema.Schema, v.path) {
			fmt.Fprintf(&b, "%s=%s\n", v.at, v.literal)
		}
	}
	return digest([]byte(b.String()))
}

// leaves returns the values of a document in its order. An empty list or object is a value too.
func leaves(t *testing.T, doc []byte) (all []value) {
	t.Helper()
	in := json.NewDecoder(bytes.NewReader(doc))
	in.UseNumber()
	next := func() json.Token {
		token, err := in.Token()
		if err != nil {
			t.Fatal(err)
		}
		return token
	}
	var walk func(at, path string)
	walk = func(at, path string) {
		token := next()
		if token != json.Delim('{') && token != json.Delim('[') {
			literal := fmt.Sprint(token)
			if s, ok := token.(string); ok {
				literal = fmt.Sprintf("%q", s)
			}
			all = append(all, value{at, path, literal})
			return
		}
		if !in.More() {
			all = append(all, value{at, path, "empty"})
		}
		for i := 0; in.More(); i++ {
			if token == json.Delim('[') {
				walk(fmt.Sprintf("%s[%d]", at, i), path+"[]")
				continue
			}
			key := next().(string)
			walk(strings.TrimPrefix(at+"."+key, "."), strings.TrimPrefix(path+"."+key, "."))
		}
		next()
	}
	walk("", "")
	return all
}

// Ensure that a digest of a document sees a changed value, a lost one and another order, and no new field.
func TestDocumentDigest(t *testing.T) {
	if *rewrite {
		t.Skip("the list of fields is being written")
	}
	const doc = `{"schema": "trainyard.simulate/v1",
		"results": [{"system": "fifo", "jobs": 2}, {"system": "las", "jobs": 3}]}`
	want := document(t, []byte(doc))
	for _, c := range []struct {
		old, new string
		same     bool
	}{
		{`"jobs": 3`, `"jobs": 3, "no_such_field": 1`, true},
		{`"jobs": 3`, `"jobs": 4`, false},
		{`"jobs": 3`, `"jobs": 3.0`, false},
		{`, "jobs": 3`, ``, false},
		{`"system": "las", "jobs": 3`, `"jobs": 3, "system": "las"`, false},
		{`, {"system": "las", "jobs": 3}`, ``, false},
	} {
		changed := strings.Replace(doc, c.old, c.new, 1)
		if got := document(t, []byte(changed)); (got == want) != c.same {
			t.Errorf("%s instead of %s: the same digest is %v, want %v", c.new, c.old, got == want, c.same)
		}
	}
}
