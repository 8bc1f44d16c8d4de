// Package policytest plays data files: worked examples of a policy, each a few lines of a small command language with
// the outcome below each command. It knows how a line is written; what the commands mean is up to the test that plays
// them.
//
//	# Ensure that a gang takes the node with the fewest free GPUs that holds it.
//	nodes 2x4
//	book 0-1
//	place consolidate n=2
//	  free 2: n0, 4: n1
//	  n0: 2-3
//
// A line is a verb, words and key=value pairs; '#' starts a comment. Lines that start with a space are the outcome of
// the command above. With -rewrite they are written again: read the diff.
package policytest

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

var rewrite = flag.Bool("rewrite", false, "write the outcomes in testdata again")

// Intent opens every data file: one sentence that says what it ensures.
const Intent = "# Ensure that "

// Run plays every data file of the folder testdata, each with a handler of its own from start, and compares outcomes.
func Run(t *testing.T, begin func() Handler) {
	t.Helper()
	files, err := filepath.Glob("testdata/*.txt")
	if err != nil || len(files) == 0 {
		t.Fatalf("%d data files, %v", len(files), err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txt"), func(t *testing.T) {
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			got, err := Play(string(text), begin())
			switch {
			case err != nil:
				t.Fatalf("%s: %v", file, err)
			case got == string(text):
			case *rewrite:
				if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
					t.Fatal(err)
				}
			default:
				t.Errorf("%s: outcome is\n%s\nwant\n%s\nRead why; -rewrite takes it over.", file, got, text)
			}
		})
	}
}

// Handler carries out a command and returns its outcome, "" for none.
type Handler func(c *Command) string

// Play returns text with the outcome of each command as do gives it, or the first mistake in the text.
func Play(text string, do Handler) (out string, err error) {
	if !strings.HasPrefix(text, Intent) {
		return "", fmt.Errorf("line 1: want an intent, %q", Intent+"...")
	}
	number := 0
	defer func() {
		switch p := recover().(type) {
		case nil:
		case mistake:
			out, err = "", fmt.Errorf("line %d: %s", number, p)
		default:
			panic(p)
		}
	}()
	var b strings.Builder
	for line := range strings.Lines(text) {
		number++
		if strings.HasPrefix(line, " ") {
			continue
		}
		b.WriteString(strings.TrimRight(line, " \n") + "\n")
		line, _, _ = strings.Cut(line, "#")
		if c := parse(line); c != nil {
			outcome := do(c)
			c.done()
			for line := range strings.Lines(outcome) {
				b.WriteString("  " + strings.TrimRight(line, " \n") + "\n")
			}
		}
	}
	return b.String(), nil
}

// Command is one line. What its handler does not ask for is a mistake in the file.
type Command struct {
	Verb  string
	words []string
	keys  map[string]string
}

// mistake is what a file says wrongly; Play returns it with the number of the line.
type mistake string

func parse(line string) *Command {
	f := strings.Fields(line)
	if len(f) == 0 {
		return nil
	}
	c := &Command{Verb: f[0], keys: map[string]string{}}
	for _, w := range f[1:] {
		k, v, isKey := strings.Cut(w, "=")
		switch _, twice := c.keys[k]; {
		case !isKey:
			c.words = append(c.words, w)
		case twice:
			c.Fail("%s is given twice", k)
		default:
			c.keys[k] = v
		}
	}
	return c
}

// Fail ends the file with a mistake in this line.
func (c *Command) Fail(format string, args ...any) {
	panic(mistake(c.Verb + ": " + fmt.Sprintf(format, args...)))
}

// More reports whether there is another word.
func (c *Command) More() bool { return len(c.words) > 0 }

// Word takes the next word, which must be there; what names it.
func (c *Command) Word(what string) string {
	if !c.More() {
		c.Fail("want %s", what)
	}
	w := c.words[0]
	c.words = c.words[1:]
	return w
}

// Text takes the value of a key, "" if it is not given.
func (c *Command) Text(key string) string {
	v := c.keys[key]
	delete(c.keys, key)
	return v
}

// Number takes the value of a key, or def.
func (c *Command) Number(key string, def float64) float64 {
	if _, given := c.keys[key]; !given {
		return def
	}
	return c.Float(key, c.Text(key))
}

// Numbers takes the values of a key, separated by commas, nil if it is not given.
func (c *Command) Numbers(key string) (list []float64) {
	if _, given := c.keys[key]; !given {
		return nil
	}
	for w := range strings.SplitSeq(c.Text(key), ",") {
		list = append(list, c.Float(key, w))
	}
	return list
}

// Float returns the number w; what names it.
func (c *Command) Float(what, w string) float64 {
	x, err := strconv.ParseFloat(w, 64)
	if err != nil {
		c.Fail("%s %q, want a number", what, w)
	}
	return x
}

// Int returns the whole number w, at least low; what names it.
func (c *Command) Int(what, w string, low int) int {
	n, err := strconv.Atoi(w)
	if err != nil || n < low {
		c.Fail("%s %q, want a whole number >= %d", what, w, low)
	}
	return n
}

// done finds what no one asked for.
func (c *Command) done() {
	if c.More() {
		c.Fail("%q is one word too many", c.words[0])
	}
	for k := range c.keys {
		c.Fail("no key %s", k)
	}
}
