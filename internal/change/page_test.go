package change

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// example is a change that the page makes.
type example struct {
	title string
	most  int // files, as the page says
	edits []edit
	run   []string // commands, in order
}

// edit is a new file, or lines put into one. Its place is named by what stands there, not by numbers of lines.
type edit struct {
	path    string
	after   string // what a single line of the file contains; "": the file is new
	below   string // the first line below that one which is this; "": that line itself
	instead bool   // of that line
	text    string
}

var (
	newFile   = regexp.MustCompile("^New file `([^`]+)`:$")
	afterLine = regexp.MustCompile("^In `([^`]+)`, after the line with `([^`]+)`, insert:$")
	belowLine = regexp.MustCompile("^In `([^`]+)`, after the first line `([^`]+)` below the one with `([^`]+)`, " +
		"insert:$")
	insteadOf = regexp.MustCompile("^In `([^`]+)`, replace the line with `([^`]+)` by:$")
	bound     = regexp.MustCompile(`At most (\d+) files\.$`)
)

// parse reads a page: a heading for each change, and a block of text below each line that says what to do with it.
func parse(page string) (all []example, err error) {
	lines := strings.Split(page, "\n")
	for i := 0; i < len(lines); i++ {
		line := lines[i]
		if title, is := strings.CutPrefix(line, "## "); is {
			all = append(all, example{title: title})
			continue
		}
		if len(all) == 0 {
			continue
		}
		last := &all[len(all)-1]
		if m := bound.FindStringSubmatch(line); m != nil {
			last.most, _ = strconv.Atoi(m[1])
		}
		if strings.HasPrefix(line, "```") {
			return nil, fmt.Errorf("line %d: a block of text that no line says what to do with", i+1)
		}
		e, is := editOf(line)
		if !is && line != "Run:" {
			if strings.HasSuffix(line, " insert:") || strings.HasSuffix(line, " by:") {
				return nil, fmt.Errorf("line %d: %q is not understood", i+1, line)
			}
			continue
		}
		end := slices.Index(lines[min(i+3, len(lines)):], "```")
		if end < 0 || lines[i+1] != "" || !strings.HasPrefix(lines[i+2], "```") {
			return nil, fmt.Errorf("line %d: want an empty line and a block of text below it", i+1)
		}
		e.text = strings.Join(lines[i+3:i+3+end], "\n") + "\n"
		if is {
			last.edits = append(last.edits, e)
		} else {
			last.run = strings.Split(strings.TrimSpace(strings.ReplaceAll(e.text, "\n\t", " ")), "\n")
		}
		i += 3 + end
	}
	return all, nil
}

// editOf returns the edit that a line announces.
func editOf(line string) (edit, bool) {
	if m := newFile.FindStringSubmatch(line); m != nil {
		return edit{path: m[1]}, true
	}
	if m := afterLine.FindStringSubmatch(line); m != nil {
		return edit{path: m[1], after: m[2]}, true
	}
	if m := belowLine.FindStringSubmatch(line); m != nil {
		return edit{path: m[1], below: m[2], after: m[3]}, true
	}
	if m := insteadOf.FindStringSubmatch(line); m != nil {
		return edit{path: m[1], after: m[2], instead: true}, true
	}
	return edit{}, false
}

// apply makes the edit below root.
func (e *edit) apply(root string) error {
	path := filepath.Join(root, e.path)
	b, err := os.ReadFile(path)
	if e.after == "" {
		if err == nil {
			return fmt.Errorf("%s is there already", e.path)
		}
		return os.WriteFile(path, []byte(e.text), 0o666)
	}
	if err != nil {
		return err
	}
	lines := strings.SplitAfter(string(b), "\n")
	at, err := e.place(lines)
	if err != nil {
		return fmt.Errorf("%s: %w", e.path, err)
	}
	end := at + 1
	if !e.instead {
		at++
	}
	return os.WriteFile(path, []byte(strings.Join(slices.Concat(lines[:at], []string{e.text}, lines[end:]), "")), 0o666)
}

// place returns the number of the line that the edit is about.
func (e *edit) place(lines []string) (int, error) {
	at := -1
	for i, line := range lines {
		if !strings.Contains(line, e.after) {
			continue
		}
		if at >= 0 {
			return 0, fmt.Errorf("lines %d and %d contain %q, want one", at+1, i+1, e.after)
		}
		at = i
	}
	if at < 0 {
		return 0, fmt.Errorf("no line contains %q", e.after)
	}
	if e.below == "" {
		return at, nil
	}
	n := slices.IndexFunc(lines[at:], func(line string) bool { return strings.TrimSpace(line) == e.below })
	if n < 0 {
		return 0, fmt.Errorf("no line %q below the one that contains %q", e.below, e.after)
	}
	return at + n, nil
}

// files returns the files that the edits touch and those among them that are generated.
func (x *example) files() (written, generated []string) {
	for _, e := range x.edits {
		list := &written
		if strings.HasPrefix(e.path, "docs/reference/") || strings.HasPrefix(e.path, "internal/freeze/testdata/") {
			list = &generated
		}
		if !slices.Contains(*list, e.path) {
			*list = append(*list, e.path)
		}
	}
	return written, generated
}
