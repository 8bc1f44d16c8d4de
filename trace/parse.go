package trace

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// parser turns the text of one file into jobs: in gives the lines, row turns one into a job, jobs takes it in.
type parser struct {
	o      Options
	layout *layout
	names  []string  // column names in the order of the file
	means  []meaning // their meanings
	in     input
	row    row
	jobs   intake
	notes  []string // on the file as a whole
}

func newParser(file string, o Options) *parser {
	return &parser{o: o, in: input{file: file}, jobs: intake{index: newNameIndex(), column: "job"},
		row: row{unit: time.Second, steps: o.Steps, roughly: o.Roughly}}
}

// use makes l the format of the file.
func (p *parser) use(l *layout) { p.layout, p.in.mark = l, l.comment }

// all reads the whole text.
func (p *parser) all() error {
	first, err := p.header()
	if err != nil {
		return err
	}
	l := p.layout
	if l.begin != nil {
		p.notes, err = l.begin(p.o, &p.row)
	}
	switch {
	case err != nil:
	case l.whole == nil:
		err = p.table(first)
	case p.jobs.each != nil:
		err = errNoStream
	default:
		p.notes, err = l.whole(&p.in, &p.row, &p.jobs)
	}
	switch {
	case err != nil:
		return err
	case p.jobs.kept == 0 && p.jobs.rows > 0:
		return p.in.fail("no jobs in %d rows (%s), want at least one", p.jobs.rows, reasons(p.jobs.leftOut))
	case p.jobs.kept == 0:
		p.in.line++
		return p.in.fail("no jobs, want at least one row below the header")
	}
	return nil
}

func reasons(list []Count) string {
	var parts []string
	for _, c := range list {
		parts = append(parts, fmt.Sprintf("%d: %s", c.Jobs, c.Name))
	}
	return strings.Join(parts, "; ")
}

// header finds out what the file is, by its first line that is no comment, which it returns if it is a row.
func (p *parser) header() (row string, err error) {
	if l := layoutNamed(p.o.Format); l != nil {
		p.use(l)
	} else if ok, _ := p.in.fill(); ok && isJSON(p.in.blocks[0]) {
		p.use(&phillyLogLayout)
	}
	if p.layout != nil && p.layout.whole != nil {
		return "", p.options()
	}
	line, ok, err := p.firstLine()
	if err != nil {
		return "", err
	}
	if !ok {
		return "", p.in.fail("empty file, want a header line and jobs")
	}
	if p.layout == nil {
		l := detect(line)
		if l == nil {
			return "", p.in.unknown(line)
		}
		p.use(l)
	}
	if p.names, ok = p.layout.split(line, nil); !ok {
		return "", p.in.fail("header %q, want quotation marks in pairs around whole column names", clip(line))
	}
	if missing, _ := p.layout.differences(p.names); p.layout.bare != nil && len(missing) > 0 {
		p.names, row = p.layout.names(), line
	}
	return row, p.columns(line)
}

// firstLine reads up to the first line that is neither empty, where that does not matter, nor a comment.
func (p *parser) firstLine() (line string, ok bool, err error) {
	for {
		if line, ok, err = p.in.next(); err != nil || !ok {
			return "", false, err
		}
		switch {
		case line == "":
			return line, true, nil
		case line[0] == swfLayout.comment && p.layout == nil:
			p.use(&swfLayout)
		case line[0] != '#' || p.layout != nil && p.layout != &trainyardLayout:
			return line, true, nil
		default:
			p.use(&trainyardLayout)
		}
		p.in.remarks.note(line)
	}
}

// unknown says what a file of no known format may be, or which it comes nearest to.
func (in *input) unknown(line string) error {
	if what := container(line); what != "" {
		return in.fail("no list of jobs: %s", what)
	}
	if wrong := misread(line); wrong != "" {
		return in.fail("header %q, %s", clip(line), wrong)
	}
	header, ok := split(line, nil)
	if !ok {
		return in.fail("header %q, want quotation marks in pairs around whole column names", clip(line))
	}
	for _, s := range strangers {
		if n := len(s.columns); slices.Equal(s.columns, header) ||
			1 < n && n < len(header) && slices.Equal(s.columns, header[:n]) {
			return in.fail("no list of jobs: %s", s.what)
		}
	}
	near := nearest(line)
	columns, _ := near.split(line, nil)
	own := ""
	if missing, unknown := near.differences(columns); near != &trainyardLayout && len(missing)+len(unknown) > 1 {
		needed, _ := trainyardLayout.differences(nil)
		own = "; a table of your own has the columns " + strings.Join(needed, ",") + ", times in seconds"
	}
	return in.fail("header %q, want that of a known format; nearest is %s: %s%s", clip(line), near.name,
		near.complain(columns), own)
}

// columns finds the meaning of each column of the header.
func (p *parser) columns(header string) error {
	if why := p.layout.complain(p.names); why != "" {
		return p.in.fail("header %q, want that of format %s: %s", clip(header), p.layout.name, why)
	}
	if name, ok := twice(p.names); ok {
		return p.in.fail("column %q twice, want it once", name)
	}
	for _, name := range p.names {
		m := p.layout.column(name).means
		if p.means = append(p.means, m); m == jobID {
			p.jobs.column = name
		}
	}
	return p.options()
}

// twice returns the first name that is in a list before.
func twice(names []string) (name string, ok bool) {
	for i, name := range names {
		if slices.Contains(names[:i], name) {
			return name, true
		}
	}
	return "", false
}

// options refuses tables that the format knows nothing of, and finds the unit of times.
func (p *parser) options() error {
	if l := p.layout; (p.o.Jobs != nil || p.o.Instances != nil) && l != &paiTaskLayout {
		return p.in.fail("format %s with a job or instance table, want none: these belong to %s", l.name,
			paiTaskLayout.name)
	}
	return p.units()
}

// units finds the unit of times.
func (p *parser) units() error {
	if p.layout.unit > 0 {
		p.row.unit = p.layout.unit
	}
	switch o := p.o.Unit; {
	case o == 0 || o == p.row.unit:
	case p.layout.anyUnit:
		p.row.unit = o
	case p.row.unit == time.Millisecond:
		return p.in.fail("format %s with unit %v, want none: its times are milliseconds", p.layout.name, o)
	default:
		return p.in.fail("format %s with unit %v, want none: its times are seconds", p.layout.name, o)
	}
	return nil
}

// table reads the rows, the first of which has been read already unless it is empty. Empty lines are skipped.
func (p *parser) table(line string) error {
	var room [32]string // on the stack: no write barriers while the collector runs
	fields := room[:0]
	for {
		ok := true
		if line == "" {
			var err error
			if line, ok, err = p.in.next(); err != nil {
				return err
			}
		}
		if !ok {
			return nil
		}
		if line == "" {
			continue
		}
		j := p.jobs.slot()
		p.row.drop = ""
		if !p.quick(j, line) {
			*j = Job{}
			if fields, ok = p.layout.split(line, fields[:0]); !ok {
				return p.in.fail("row %q, want quotation marks in pairs around whole fields", clip(line))
			}
			if err := p.slow(j, fields); err != nil {
				return err
			}
		}
		if p.layout.finish != nil {
			if wrong := p.layout.finish(&p.row, j); wrong != "" {
				return p.in.fail("%s", wrong)
			}
		}
		if err := p.jobs.enter(&p.row, &p.in); err != nil {
			return err
		}
		line = ""
	}
}

// quick sets j from a row between commas without quotation marks, as most are, if nothing is wrong with it: slow finds
// out what is.
func (p *parser) quick(j *Job, line string) bool {
	if p.layout.separator != 0 || strings.IndexByte(line, '"') >= 0 {
		return false
	}
	for i, m := range p.means {
		at := strings.IndexByte(line, ',')
		if last := i == len(p.means)-1; last != (at < 0) {
			return false // fields are missing, or there are more
		} else if last {
			at = len(line)
		}
		if m != ignored && p.row.set(j, m, bare(line[:at])) != "" {
			return false
		}
		line = line[min(at+1, len(line)):]
	}
	return true
}

// slow sets j from the fields of its row.
func (p *parser) slow(j *Job, fields []string) error {
	if len(fields) != len(p.means) {
		separator := ","
		if p.layout.separator != 0 {
			separator = string(p.layout.separator)
		}
		return p.in.fail("%d fields, want %d: %s", len(fields), len(p.means), strings.Join(p.names, separator))
	}
	for i, m := range p.means {
		if m == ignored {
			continue
		}
		if want := p.row.set(j, m, fields[i]); want != "" {
			return p.in.fail("%s %q, %s", p.names[i], clip(fields[i]), want)
		}
	}
	return nil
}
