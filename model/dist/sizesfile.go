package dist

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
)

// heading is the name of the one column of a sample file.
const heading = "duration"

// Read reads a sample from a file of one column headed "duration", one size in each line below. Lines may end in CR LF,
// a value may stand in double quotes, blank lines are passed over, and a byte order mark is ignored. name is what
// errors call the file, such as
//
//	dist: sizes.csv: line 7: "soon", want a number >= 0
//
// The format is that of the distribution files of the Tiresias simulator (Gu et al., NSDI'19), where the column holds
// GPU-seconds in spite of its name.
func Read(r io.Reader, name string) (*Empirical, error) {
	lines := bufio.NewScanner(r) // refuses lines above 64 KiB
	var sizes []float64
	line, headed := 0, false
	for lines.Scan() {
		line++
		text := cell(lines.Text(), line)
		switch {
		case text == "":
			continue
		case !headed:
			if text != heading {
				return nil, fmt.Errorf("dist: %s: line %d: %s, want the heading %q", name, line, quote(text), heading)
			}
			headed = true
			continue
		case len(sizes) == MaxSamples:
			return nil, fmt.Errorf("dist: %s: line %d: too many sizes, want at most %d", name, line, MaxSamples)
		}
		size, err := parse(text)
		if err != nil {
			return nil, fmt.Errorf("dist: %s: line %d: %s, want %w", name, line, quote(text), err)
		}
		sizes = append(sizes, size)
	}
	if err := lines.Err(); err != nil {
		return nil, fmt.Errorf("dist: %s: line %d: %w", name, line+1, err)
	}
	if len(sizes) == 0 {
		return nil, fmt.Errorf("dist: %s: line %d: no sizes, want at least one below the heading %q", name, line,
			heading)
	}
	return sorted(sizes), nil
}

// cell returns the one value of a line, without spaces, quotes and the byte order mark of the first line.
func cell(text string, line int) string {
	if line == 1 {
		text = strings.TrimPrefix(text, "\ufeff")
	}
	text = strings.TrimSpace(text)
	if n := len(text); n >= 2 && text[0] == '"' && text[n-1] == '"' {
		text = strings.TrimSpace(text[1 : n-1])
	}
	return text
}

// parse returns the size written in text. The error is what is wanted, alone.
func parse(text string) (float64, error) {
	size, err := strconv.ParseFloat(text, 64)
	if err != nil {
		return 0, errors.New("a number >= 0")
	}
	if wanted := wrong(size); wanted != "" {
		return 0, errors.New(wanted)
	}
	return size, nil
}

// quote quotes text for an error, cut to a length fit to print.
func quote(text string) string {
	const longest = 80
	if len(text) > longest {
		text = text[:longest] + "..."
	}
	return strconv.Quote(text)
}
