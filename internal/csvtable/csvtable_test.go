package csvtable_test

import (
	"errors"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/trainyard/trainyard/internal/csvtable"
)

// read opens a table, wants the columns a and b, and returns the rows in one line.
func read(src string) (string, error) {
	t, err := csvtable.Open(strings.NewReader(src), "pkg", "f")
	if err != nil {
		return "", err
	}
	err = t.Only("a", "b")
	if err != nil {
		return "", err
	}
	rows := ""
	err = t.Each(func() error {
		a, wrong := t.Text("a")
		if wrong == nil {
			_, wrong = t.Number("b", 0, 9)
		}
		rows += a + "=" + t.Raw("b") + ";"
		return wrong
	})
	return rows, err
}

// Ensure that columns come in any order, behind a byte order mark or not, and that lines may end either way.
func TestRows(t *testing.T) {
	for src, want := range map[string]string{"a,b\nx,1\ny,2.5\n": "x=1;y=2.5;", "\ufeffb,a\r\n3,z": "z=3;", "a,b\n": "",
		"a,b\n\"q\"\"\n,\",0\n": ""} {
		got, err := read(src)
		if strings.Contains(src, "q") {
			if err == nil {
				t.Errorf("%q: a name of two lines", src)
			}
			continue
		}
		if err != nil || got != want {
			t.Errorf("%q: %q %v, want %q", src, got, err, want)
		}
	}
}

// Ensure that whatever is wrong is said with its line and what is wanted.
func TestErrors(t *testing.T) {
	for src, want := range map[string]string{
		"":                "line 1: empty, want a header line and rows",
		"a,b,a\n":         `line 1: column "a" twice, want it once`,
		"a\n":             `line 1: no column "b", want the columns a, b`,
		"a,b,c\n":         `line 1: unknown column "c", want the columns a, b`,
		"a,b\nx\n":        "line 2: 1 fields, want 2 as in the header",
		"a,b\nx,1\n,2\n":  `line 3: a "", want a name of 1 to 256 bytes without control characters`,
		"a,b\nx,-1\n":     `line 2: b "-1", want a number from 0 to 9`,
		"a,b\nx,NaN\n":    `line 2: b "NaN", want a number from 0 to 9`,
		"a,b\nx\"y\",1\n": `line 2: bare " in non-quoted-field, want comma-separated values`,
	} {
		if _, err := read(src); err == nil || err.Error() != "pkg: f: "+want {
			t.Errorf("%q:\n got %v\nwant pkg: f: %s", src, err, want)
		}
	}
	broken := errors.New("broken")
	if _, err := csvtable.Open(iotest.ErrReader(broken), "pkg", "f"); !errors.Is(err, broken) {
		t.Error(err)
	}
}

func FuzzTable(f *testing.F) {
	f.Add("a,b\nx,1\n")
	f.Fuzz(func(t *testing.T, src string) {
		if _, err := read(src); err != nil && !strings.HasPrefix(err.Error(), "pkg: f: line ") {
			t.Fatal(err)
		}
	})
}

// Ensure that a kind of table bounds its rows and bytes, and says what it calls a table of nothing.
func TestKinds(t *testing.T) {
	kind := csvtable.Kind{Prefix: "pkg", Empty: "empty file", Bytes: 20, Rows: 2}
	for src, want := range map[string]string{
		"a\n1\n2\n":                    "",
		"a\n1\n2\n3\n":                 "pkg: f: line 4: more than 2 rows, want less",
		"a\n1\n" + "23456789012345678": "pkg: f: line 1: more than 20 bytes, want less",
		"":                             "pkg: f: line 1: empty file, want a header line and rows",
	} {
		table, err := kind.Open(strings.NewReader(src), "f")
		if err == nil {
			err = table.Each(func() error { return nil })
		}
		if err != nil && err.Error() != want || err == nil && want != "" {
			t.Errorf("%q: %v, want %q", src, err, want)
		}
	}
}

// Ensure that columns are found by name, and a missing one is named.
func TestColumns(t *testing.T) {
	table, err := csvtable.Open(strings.NewReader("a,b,c\n"), "pkg", "f")
	if err != nil {
		t.Fatal(err)
	}
	if got := table.Find("c", "x", "a"); got[0] != 2 || got[1] != -1 || got[2] != 0 {
		t.Errorf("found %v, want 2, -1 and 0", got)
	}
	const want = `pkg: f: line 1: no column "x", want the columns b, x`
	if _, err := table.Need("b", "x"); err == nil || err.Error() != want {
		t.Errorf("%v, want %s", err, want)
	}
}
