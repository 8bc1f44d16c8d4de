package main

import (
	"errors"
	"os"
	"strings"
	"testing"
)

// Ensure that each fault of the list fits the source, so that those whose turn comes later do too, and that its test is
// there.
func TestListFits(t *testing.T) {
	text, err := os.ReadFile("list.txt")
	if err != nil {
		t.Fatal(err)
	}
	list, err := parse(string(text))
	if err != nil {
		t.Fatal(err)
	}
	seen := make(map[string]bool)
	for i := range list {
		m := &list[i]
		mutated, err := m.mutated("../..")
		if err != nil {
			t.Error(err)
		}
		source, err := os.ReadFile("../../" + m.file)
		if err != nil || mutated == string(source) {
			t.Errorf("%s: %s: nothing is changed (%v)", m.promise, m.name, err)
		}
		if key := m.promise + ": " + m.name; seen[key] {
			t.Errorf("%s: twice", key)
		} else {
			seen[key] = true
		}
		if _, err := os.Stat("../../" + m.pkg); err != nil || !strings.HasPrefix(m.pkg, "./") {
			t.Errorf("%s: %s: package %s: %v, want a folder from the root on", m.promise, m.name, m.pkg, err)
		}
	}
}

// Ensure that what is no list is refused with its line.
func TestParseRefuses(t *testing.T) {
	const whole = "## 1: a\nfile f\n-x\n+y\ntest ./p T\n"
	for text, line := range map[string]string{"file f\n": "1: ", "## 1\n": "1: ", whole + "tests ./p T\n": "6: ",
		whole + "## 2: b\nfile g\n": "1: 2: b: want lines"} {
		if _, err := parse(text); err == nil || !strings.HasPrefix(err.Error(), line) {
			t.Errorf("%q: %v, want line %s", text, err, line)
		}
	}
	list, err := parse("# note\n\n" + whole + "-z\n")
	if err != nil || len(list) != 1 || list[0].old != "x\nz\n" || list[0].new != "y\n" || list[0].test != "T" {
		t.Errorf("%+v, %v", list, err)
	}
}

// Ensure that a fault that does not compile, or has no test, does not pass for one that was found, and that a hang
// does.
func TestJudge(t *testing.T) {
	failed := errors.New("exit status 1")
	for out, want := range map[string]state{
		"FAIL\tp [build failed]\n":                 unfit,
		"ok  \tp\t0.1s [no tests to run]\n":        unfit,
		"--- FAIL: TestX\nFAIL\n":                  killed,
		"panic: test timed out after 1m0s\nFAIL\n": killed,
	} {
		err := failed
		if strings.HasPrefix(out, "ok") {
			err = nil
		}
		if got, _ := judge([]byte(out), err); got != want {
			t.Errorf("%q: %v, want %v", out, got, want)
		}
	}
	if got, _ := judge([]byte("ok  \tp\t0.1s\n"), nil); got != survived {
		t.Errorf("a test that passes: %v", got)
	}
}

// Ensure that all of the list has its turn, whatever its length.
func TestTurned(t *testing.T) {
	list := make([]mutant, 7)
	for i := range list {
		list[i].name = string(rune('a' + i))
	}
	first := make(map[string]bool)
	for day := range 7 {
		now := turned(list, day)
		if len(now) != 7 {
			t.Fatal(now)
		}
		first[now[0].name] = true
	}
	if len(first) != 7 {
		t.Errorf("first on seven days: %v", first)
	}
}
