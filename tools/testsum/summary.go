package main

import (
	"bufio"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
)

// event is one line of go test -json; see "go doc test2json" and "go help buildjson".
type event struct {
	Action  string
	Package string
	Test    string // empty in an event of the package
	Output  string
	Elapsed float64 // seconds, at the end of a test
}

// line is one piece of output. Its test is empty when the package wrote it.
type line struct{ test, text string }

// pack is what is known of one package until it ends.
type pack struct {
	lines  []line
	passed map[string]bool // tests whose output is of no interest
	failed int             // tests that failed
}

// summary folds events. Errors of writing are kept and reported by verdict.
type summary struct {
	out    io.Writer
	noskip bool
	packs  map[string]*pack
	skips  []string // "package test: reason", in order of the report
	slow   []duration
	passed int
	failed int
	err    error
}

// duration is how long a test took, its subtests included.
type duration struct {
	seconds float64
	test    string // "package test"
}

func newSummary(out io.Writer, noskip bool) *summary {
	return &summary{out: out, noskip: noskip, packs: map[string]*pack{}}
}

// read folds the lines of in until its end. A line that is no JSON object is copied: go and make write such lines too.
func (s *summary) read(in io.Reader) error {
	r := bufio.NewReader(in)
	for {
		text, err := r.ReadString('\n')
		if text != "" {
			var e event
			if strings.HasPrefix(text, "{") && json.Unmarshal([]byte(text), &e) == nil {
				s.fold(e)
			} else {
				s.printf("%s", text)
			}
		}
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

func (s *summary) fold(e event) {
	if e.Action == "build-output" {
		s.printf("%s", e.Output)
		return
	}
	if e.Package == "" {
		return
	}
	p := s.packs[e.Package]
	if p == nil {
		p = &pack{passed: map[string]bool{}}
		s.packs[e.Package] = p
	}
	switch {
	case e.Action == "output":
		p.lines = append(p.lines, line{e.Test, e.Output})
	case e.Test != "":
		s.endTest(p, e)
	case e.Action == "pass", e.Action == "fail", e.Action == "skip":
		s.endPackage(p, e)
		delete(s.packs, e.Package)
	}
}

func (s *summary) endTest(p *pack, e event) {
	if !strings.Contains(e.Test, "/") {
		s.slow = append(s.slow, duration{e.Elapsed, e.Package + " " + e.Test})
	}
	switch e.Action {
	case "pass":
		p.passed[e.Test] = true
		s.passed++
	case "fail":
		p.failed++
		s.failed++
	case "skip":
		p.passed[e.Test] = true
		if s.noskip && !isFuzzInput(e.Test) {
			s.skips = append(s.skips, fmt.Sprintf("%s %s: %s", e.Package, e.Test, p.reason(e.Test)))
			s.failed++
		}
	}
}

// isFuzzInput says whether the test is one input of a fuzz target.
func isFuzzInput(test string) bool {
	return strings.HasPrefix(test, "Fuzz") && strings.Contains(test, "/")
}

// reason returns what a test wrote, without the lines that frame it.
func (p *pack) reason(test string) string {
	var words []string
	for _, l := range p.lines {
		if l.test == test && !isFrame(l.text) {
			words = append(words, strings.TrimSpace(l.text))
		}
	}
	return strings.Join(words, " ")
}

// isFrame says whether go test -v wrote the line, and not the test.
func isFrame(text string) bool {
	text = strings.TrimLeft(text, " ")
	return strings.HasPrefix(text, "=== ") || strings.HasPrefix(text, "--- ")
}

// endPackage prints the package. In one that failed, a test that never ended (a panic, a time limit) is shown like one
// that failed.
func (s *summary) endPackage(p *pack, e event) {
	failed := e.Action == "fail"
	if failed && p.failed == 0 {
		s.failed++
	}
	for _, l := range p.lines {
		switch {
		case !failed && l.test == "" && isVerdict(l.text),
			failed && !p.passed[l.test] && !strings.HasPrefix(l.text, "=== "):
			s.printf("%s", l.text)
		}
	}
}

// isVerdict says whether the line is go test's one line about a package that passed or has no tests.
func isVerdict(text string) bool {
	return strings.HasPrefix(text, "ok  \t") || strings.HasPrefix(text, "?   \t") ||
		strings.HasSuffix(strings.TrimSpace(text), "% of statements")
}

// close prints the skipped tests and the packages that never ended, and returns the closing line.
func (s *summary) close() string {
	for name, p := range s.packs {
		s.printf("FAIL\t%s [never ended]\n", name)
		if p.failed == 0 {
			s.failed++
		}
	}
	if len(s.skips) > 0 {
		s.printf("skipped, counted as failed:\n")
		for _, t := range s.skips {
			s.printf("  %s\n", t)
		}
	}
	return fmt.Sprintf("%d passed, %d failed\n", s.passed, s.failed)
}

// slowest returns the n tests that took longest, one a line: seconds, package and name.
func (s *summary) slowest(n int) string {
	slices.SortStableFunc(s.slow, func(a, b duration) int { return cmp.Compare(b.seconds, a.seconds) })
	var b strings.Builder
	for _, d := range s.slow[:min(n, len(s.slow))] {
		fmt.Fprintf(&b, "%8.1f %s\n", d.seconds, d.test)
	}
	return b.String()
}

func (s *summary) verdict() error {
	switch {
	case s.err != nil:
		return s.err
	case s.failed > len(s.skips):
		return errors.New("tests failed")
	case s.failed > 0:
		return errors.New("tests were skipped")
	case s.passed == 0:
		return errors.New("no test ran")
	}
	return nil
}

func (s *summary) printf(format string, args ...any) {
	if _, err := fmt.Fprintf(s.out, format, args...); err != nil && s.err == nil {
		s.err = err
	}
}
