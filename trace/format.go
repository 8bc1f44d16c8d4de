package trace

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/trainyard/trainyard/internal/suggest"
)

// Format describes a file format: a table under a header line that names the columns, in any order. Some have no header
// line: their columns stand in the order given.
type Format struct {
	Name     string   // as Options.Format takes it
	Line     string   // what it is, in one line
	Columns  []string // that must be there, in the order in which they are usually written
	Optional []string // that may be there
	Ignored  []string // that may be there and are read over
	Headless bool     // there is no header line
}

// Formats lists the formats that Read knows, Trainyard's own first. The caller may keep and change the list.
func Formats() []Format {
	list := make([]Format, len(layouts))
	for i, l := range layouts {
		list[i] = Format{Name: l.name, Line: l.line, Headless: l.bare != nil || l.whole != nil}
		for _, c := range l.columns {
			switch {
			case !c.optional:
				list[i].Columns = append(list[i].Columns, c.name)
			case c.means == ignored:
				list[i].Ignored = append(list[i].Ignored, c.name)
			default:
				list[i].Optional = append(list[i].Optional, c.name)
			}
		}
	}
	return list
}

// layouts holds one literal per format; no header matches two of them.
var layouts = []*layout{&trainyardLayout, &tiresiasLayout, &phillyLayout, &venusLayout, &paiLayout, &palLayout,
	&muriLayout, &elasticflowLayout, &gavelLayout, &shockwaveLayout, &gavelPhillyLayout, &shockwaveTableLayout,
	&synergyLayout, &bloxLayout, &phillyLogLayout, &phillyPolluxLayout, &heliosLayout, &acmeLayout, &kalosLayout,
	&paiTaskLayout, &openbLayout, &sacctLayout, &swfLayout, &polluxLayout}

// layout is a format: its columns and what each of them means.
type layout struct {
	name, line string
	zone       string
	source     string        // what the data are and the rule for run times; "": the format is used for any data
	origin     time.Time     // what the clock showed at time 0; zero = the format does not say
	clock      bool          // submissions are reported by the clock: time 0 is the earliest
	unit       time.Duration // of times; 0 = a second
	anyUnit    bool          // Options.Unit says the unit of times
	separator  byte          // between fields; 0 = a comma with quotation marks; ' ' = any white space
	comment    byte          // lines that start with it, anywhere, are skipped; 0 = there are none
	profiled   bool          // durations follow from profiles
	columns    []column
	oneOf      []string // optional columns of which one must be there
	// bare reports, where there is no header line, whether fields look like a row; nil: there is one.
	bare func(fields []string) bool
	// finish is called on each row once all columns are set; nil: nothing to do.
	finish func(*row, *Job) (wrong string)
	// begin is called once the columns are known; it returns notes on the file. nil: nothing to do.
	begin func(Options, *row) (notes []string, err error)
	// whole reads a file that is no table; it returns notes on it. nil: the file is a table.
	whole func(*input, *row, *intake) (notes []string, err error)
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
	attempts
	saves       // yes or no
	preemptible // a sched.Preemptible
	gpuParts    // GPUs in all, in decimals
	jobType     // model and batch size in one, as in "LM (batch size 20)"
	limit       // limit on the run time as Slurm prints it
	// The rest is kept in the row's said until the row is finished.
	clockSubmit // times by the clock; that of submission becomes the job's at once
	clockStart
	clockEnd
	started // times in the unit of the file, which may be unknown
	ended
	width  // in GPUs, 0 allowed
	parts  // of a GPU, in thousandths or percent
	copies // instances with as many GPUs each
	factor // deadline over duration; 0 = none
	asked  // text that finish reads: what was asked for, or the first of two parts
	given
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

// detect returns the only layout that has all columns of the header, or else the one that takes line for a row.
func detect(line string) *layout {
	for _, l := range layouts {
		if l.whole != nil {
			continue
		}
		fields, ok := l.split(line, nil)
		if !ok {
			continue
		}
		missing, unknown := l.differences(fields)
		if len(missing)+len(unknown) == 0 || l.bare != nil && len(fields) == len(l.columns) && l.bare(fields) {
			return l
		}
	}
	return nil
}

// nearest returns the layout that the fewest columns keep from being that of the header line, the earlier one of two.
func nearest(line string) *layout {
	best, fewest := layouts[0], int(^uint(0)>>1)
	for _, l := range layouts {
		if l.whole != nil || l.bare != nil || l.separator != 0 && strings.IndexByte(line, l.separator) < 0 {
			continue
		}
		header, _ := l.split(line, nil)
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
	if len(l.oneOf) > 0 && !slices.ContainsFunc(header,
		func(name string) bool { return slices.Contains(l.oneOf, name) }) {
		missing = append(missing, strings.Join(l.oneOf, " or "))
	}
	return missing, unknown
}

// names returns the names of all columns, in their order.
func (l *layout) names() []string {
	var list []string
	for _, c := range l.columns {
		list = append(list, c.name)
	}
	return list
}

// counts reports whether a file of format l counts iterations.
func (l *layout) counts() bool {
	return slices.ContainsFunc(l.columns, func(c column) bool { return c.means == iterations })
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
