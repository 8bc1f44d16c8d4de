package reference

import (
	"os"
	"path/filepath"
	"testing"
)

// Ensure that the first line that differs is found, also where one text ends.
func TestDiffer(t *testing.T) {
	for _, c := range []struct {
		a, b string
		want int
	}{{"a\nb\n", "a\nb\n", 0}, {"a\nb\n", "a\nc\n", 2}, {"a\n", "a\nb\n", 2}, {"", "a", 1}} {
		if got := Differ(c.a, c.b); got != c.want {
			t.Errorf("%q and %q differ in line %d, want %d", c.a, c.b, got, c.want)
		}
	}
}

func TestTable(t *testing.T) {
	const want = "| a | b |\n|---|---|\n| x\\|y | one two |\n"
	if got := Table([]string{"a", "b"}, []string{"x|y", "one\n two"}); got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

// Ensure that constants of one type are read with their comments, and others are not.
func TestConsts(t *testing.T) {
	file := filepath.Join(t.TempDir(), "a.go")
	const text = "package a\n\ntype T int\n\nconst (\n\tA T = iota // first\n\t// second\n\tB\n)\n\n" +
		"const C = 7 // other\n"
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	got := Consts(t, file, "T")
	if len(got) != 2 || got[0] != (Const{"A", "", "first\n"}) || got[1] != (Const{"B", "", "second\n"}) {
		t.Errorf("%q", got)
	}
	if got := Consts(t, file, ""); len(got) != 1 || got[0] != (Const{"C", "7", "other\n"}) {
		t.Errorf("%q", got)
	}
}
