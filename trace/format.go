package trace

import (
	"fmt"
	"slices"
	"strings"

	"github.com/trainyard/trainyard/internal/suggest"
)

// Format describes a file format: a comma-separated table under a header line that names the columns, in any order.
type Format struct {
	Name     string   // as Options.Format takes it
	Line     string   // what it is, in one line
	Columns  []string // that must be there, in the order in which they are usually written
	Optional []string // that may be there
}

// Formats lists the formats that Read knows, Trainyard's own first. The caller may keep and change the list.
func Formats() []Format {
	list := make([]Format, len(layouts))
	for i, l := range layouts {
		list[i] = Format{Name: l.name, Line: l.line}
		for _, c := range l.columns {
			if c.optional {
				list[i].Optional = append(list[i].Optional, c.name)
			} else {
				list[i].Columns = append(list[i].Columns, c.name)
			}
		}
	}
	return list
}

// layouts holds one literal per format; no header matches two of them.
var layouts = []*layout{&trainyardLayout, &tiresiasLayout, &phillyLayout, &venusLayout, &paiLayout, &palLayout, &polluxLayout}

// layout is a format: its columns and what each of them means.
type layout struct {
	name, line string
	zone       string
	anyUnit    bool // Options.Unit says the unit of times; otherwise it is the second
	profiled   bool // durations follow from profiles
	columns    []column
	finish     func(*parser, *Job) (wrong string) // called on each row once all columns are set; nil = nothing to do
}

type column struct {
	name     string
	means    meaning
	optional bool
}

// meaning says where the value of a column goes.
type meaning uint8

const (
	ignored meaning = iota
	jobID
	submit
	gpus
	duration
	iterations
	user
	group
	model
	class
	state
	gpuType
	priority
	batch
	deadline
	wallTime
	clamped
	meanings
)

func layoutNamed(name string) *layout {
	for _, l := range layouts {
		if l.name == name {
			return l
		}
	}
	return nil
}

func formatNames() []string {
	var names []string
	for _, l := range layouts {
		names = append(names, l.name)
	}
	return names
}

// detect returns the only layout that has all columns of the header.
func detect(header []string) *layout {
	for _, l := range layouts {
		if missing, unknown := l.differences(header); len(missing)+len(unknown) == 0 {
			return l
		}
	}
	return nil
}

// nearest returns the layout that the fewest columns keep from being that of header, the earlier one of two.
func nearest(header []string) *layout {
	best, fewest := layouts[0], int(^uint(0)>>1)
	for _, l := range layouts {
		missing, unknown := l.differences(header)
		if n := len(missing) + len(unknown); n < fewest {
			best, fewest = l, n
		}
	}
	return best
}

// differences returns the columns that l must have and header has not, and those that header has and l does not know.
func (l *layout) differences(header []string) (missing, unknown []string) {
	for _, c := range l.columns {
		if !c.optional && !slices.Contains(header, c.name) {
			missing = append(missing, c.name)
		}
	}
	for _, name := range header {
		if l.column(name) == nil {
			unknown = append(unknown, name)
		}
	}
	return missing, unknown
}

func (l *layout) column(name string) *column {
	for i := range l.columns {
		if l.columns[i].name == name {
			return &l.columns[i]
		}
	}
	return nil
}

// complain says what keeps header from being one of l.
func (l *layout) complain(header []string) string {
	missing, unknown := l.differences(header)
	var parts []string
	if len(missing) > 0 {
		parts = append(parts, "missing "+strings.Join(missing, ", "))
	}
	var known []string
	for _, c := range l.columns {
		if !slices.Contains(header, c.name) {
			known = append(known, c.name)
		}
	}
	for i, name := range unknown {
		if i == 4 {
			parts = append(parts, fmt.Sprintf("and %d unknown more", len(unknown)-i))
			break
		}
		parts = append(parts, fmt.Sprintf("unknown %q%s", clip(name), suggest.Hint(name, known)))
	}
	return strings.Join(parts, "; ")
}
