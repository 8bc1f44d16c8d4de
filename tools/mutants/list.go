package main

import (
	"fmt"
	"os"
	"strings"
)

// mutant is a planted fault.
type mutant struct {
	promise  string // that it breaks, by its number in docs/promises.md
	name     string
	file     string
	old, new string // lines, whole
	pkg      string // of the test
	test     string // regular expression of the test that must fail
	survives string // why no test finds it; "" = one must
}

// parse reads a list. Each entry is
//
//	## PROMISE: NAME
//	file PATH
//	-A LINE OF THE SOURCE, as often as it takes
//	+A LINE IN ITS PLACE
//	test PACKAGE REGEXP
//	survives WHY
//
// The last line is left out where the test must find the fault. Lines that start with # and a space, and empty ones,
// count for nothing. An error starts with the number of the line.
func parse(text string) (list []mutant, err error) {
	for n, line := range strings.Split(text, "\n") {
		word, rest, _ := strings.Cut(line, " ")
		if strings.HasPrefix(line, "-") || strings.HasPrefix(line, "+") {
			word, rest = line[:1], line[1:]
		}
		var m *mutant
		if len(list) > 0 {
			m = &list[len(list)-1]
		}
		switch {
		case line == "" || word == "#":
		case word == "##":
			promise, name, found := strings.Cut(rest, ": ")
			if !found {
				return nil, fmt.Errorf("%d: %q, want ## PROMISE: NAME", n+1, line)
			}
			list = append(list, mutant{promise: promise, name: name})
		case m == nil:
			return nil, fmt.Errorf("%d: %q before the first ## PROMISE: NAME", n+1, line)
		default:
			if err := m.add(word, rest); err != nil {
				return nil, fmt.Errorf("%d: %w", n+1, err)
			}
		}
	}
	for i := range list {
		if m := &list[i]; m.file == "" || m.old == "" || m.test == "" {
			return nil, fmt.Errorf("1: %s: %s: want lines file, - and test", m.promise, m.name)
		}
	}
	return list, nil
}

// add takes a line of an entry.
func (m *mutant) add(word, rest string) error {
	switch word {
	case "file":
		m.file = rest
	case "-":
		m.old += rest + "\n"
	case "+":
		m.new += rest + "\n"
	case "test":
		m.pkg, m.test, _ = strings.Cut(rest, " ")
	case "survives":
		m.survives = rest
	default:
		return fmt.Errorf("%q, want file, -, +, test or survives", word)
	}
	return nil
}

// mutated returns the source with the fault, whose lines must be there once.
func (m *mutant) mutated(root string) (string, error) {
	b, err := os.ReadFile(root + "/" + m.file)
	if err != nil {
		return "", err
	}
	source := "\n" + string(b)
	if n := strings.Count(source, "\n"+m.old); n != 1 {
		return "", fmt.Errorf("%s: %s: its lines are %d times in %s, want once", m.promise, m.name, n, m.file)
	}
	return strings.Replace(source, "\n"+m.old, "\n"+m.new, 1)[1:], nil
}
