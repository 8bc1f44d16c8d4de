package freeze

import (
	"bufio"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
)

// rows is a frozen table: what must come out, by name. A name is the words of a row before its first word with "=".
type rows struct {
	path  string
	mu    sync.Mutex
	want  map[string]string
	found map[string]string
}

// readRows reads testdata/name. With -rewrite a missing file is an empty table.
func readRows(t *testing.T, name string) *rows {
	t.Helper()
	r := &rows{path: filepath.Join("testdata", name), want: map[string]string{}, found: map[string]string{}}
	f, err := os.Open(r.path)
	if os.IsNotExist(err) && *rewrite {
		return r
	}
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for in := bufio.NewScanner(f); in.Scan(); {
		if line := in.Text(); line != "" && line[0] != '#' {
			name, figures := cut(line)
			r.want[name] = figures
		}
	}
	if len(r.want) == 0 && !*rewrite {
		t.Fatalf("%s: no rows", r.path)
	}
	return r
}

// cut splits a row before its first word with "=".
func cut(line string) (name, figures string) {
	at := strings.LastIndexByte(line[:max(0, strings.IndexByte(line, '='))], ' ')
	if at < 0 {
		return line, ""
	}
	return line[:at], line[at+1:]
}

// add compares a row with the frozen one. It may be called by several tests at a time.
func (r *rows) add(t *testing.T, name, figures string) {
	t.Helper()
	r.mu.Lock()
	defer r.mu.Unlock()
	if _, twice := r.found[name]; twice {
		t.Errorf("%s: row %q twice", r.path, name)
	}
	r.found[name] = figures
	if *rewrite {
		return
	}
	switch want, ok := r.want[name]; {
	case !ok:
		t.Errorf("%s: no row %q; it would be\n%s %s", r.path, name, name, figures)
	case want != figures:
		t.Errorf("%s: %s changed\n got %s\nwant %s", r.path, name, figures, want)
	}
}

// end reports the frozen rows that nothing came out for, or writes the table. belongs says which rows the test covers;
// other rows stay as they are.
func (r *rows) end(t *testing.T, header string, belongs func(name string) bool) {
	t.Helper()
	if !*rewrite {
		for name := range r.want {
			if _, ok := r.found[name]; !ok && belongs(name) {
				t.Errorf("%s: nothing came out for row %q", r.path, name)
			}
		}
		return
	}
	if t.Failed() {
		return
	}
	maps.DeleteFunc(r.want, func(name, _ string) bool { return belongs(name) })
	maps.Copy(r.want, r.found)
	var b strings.Builder
	b.WriteString(header)
	for _, name := range slices.Sorted(maps.Keys(r.want)) {
		fmt.Fprintf(&b, "%s %s\n", name, r.want[name])
	}
	if err := os.WriteFile(r.path, []byte(b.String()), 0o666); err != nil {
		t.Fatal(err)
	}
}
