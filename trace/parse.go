package trace

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/trainyard/trainyard/sched"
)

// parser turns the text of one file into jobs.
type parser struct {
	file   string
	in     lines
	o      Options
	layout *layout
	unit   time.Duration
	names  []string  // column names in the order of the file
	means  []meaning // their meanings

	jobs  []Job
	lines []int32 // the line of each job
	// takes a job as soon as it is read, instead of jobs, in which it then lies alone; nil = jobs keeps all
	each  func(*Job) error
	index nameIndex
	words words
	said  said
	drop  string // why the row read last is no job; "" = it is one
	pai   paiTables

	offset     time.Duration // of the first clock from UTC, where clocks tell
	offsetSeen bool

	rows     int // read, those left out included
	kept     int // jobs
	clamped  int // rows said to be clamped
	sorted   bool
	latest   sched.Time // submission of the job read last
	earliest sched.Time // of all submissions
	began    time.Time  // what the clock showed at time 0, by the file's own comments
	source   string     // what the file says of where it comes from
	leftOut  []Count
	oddities []Count // what is odd about how many jobs
	notes    []string
}

// said is what a row says in columns that are no field of a Job.
type said struct {
	iterations   float64
	start, end   time.Duration // -1 = not said
	width        int
	parts        float64
	copies       float64
	factor       float64
	asked, given string
}

func newParser(file string, o Options) *parser {
	return &parser{file: file, o: o, unit: time.Second, sorted: true, index: newNameIndex()}
}

func (p *parser) fail(format string, args ...any) error {
	return &ParseError{p.file, max(p.in.line, 1), fmt.Sprintf(format, args...)}
}

// next reads one line that is no comment; ok is false at the end of the text.
func (p *parser) next() (line string, ok bool, err error) {
	for {
		line, ok, err = p.in.next()
		switch {
		case err != nil:
			return "", false, inFile(p.file, p.in.line+1, err)
		case len(line) > MaxLine:
			return "", false, p.fail("%d bytes, want at most %d in a line", len(line), MaxLine)
		case !ok || p.layout == nil || p.layout.comment == 0 || line == "" || line[0] != p.layout.comment:
			return line, ok, nil
		}
		p.comment(line)
	}
}

// all reads the whole text.
func (p *parser) all() error {
	first, err := p.header()
	if err != nil {
		return err
	}
	if p.layout.begin != nil {
		err = p.layout.begin(p)
	}
	switch {
	case err != nil:
	case p.layout.whole == nil:
		err = p.table(first)
	case p.each != nil:
		err = errNoStream
	default:
		err = p.layout.whole(p)
	}
	switch {
	case err != nil:
		return err
	case p.kept == 0 && p.rows > 0:
		return p.fail("no jobs in %d rows (%s), want at least one", p.rows, reasons(p.leftOut))
	case p.kept == 0:
		p.in.line++
		return p.fail("no jobs, want at least one row below the header")
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
	p.layout = layoutNamed(p.o.Format)
	if ok, _ := p.in.fill(); ok && p.layout == nil && isJSON(p.in.blocks[0]) {
		p.layout = &phillyLogLayout
	}
	if p.layout != nil && p.layout.whole != nil {
		return "", p.options()
	}
	line, ok, err := p.firstLine()
	if err != nil {
		return "", err
	}
	if !ok {
		return "", p.fail("empty file, want a header line and jobs")
	}
	if p.layout == nil {
		if p.layout = detect(line); p.layout == nil {
			return "", p.unknown(line)
		}
	}
	if p.names, ok = p.layout.split(line, nil); !ok {
		return "", p.fail("header %q, want quotation marks in pairs around whole column names", clip(line))
	}
	if missing, _ := p.layout.differences(p.names); p.layout.bare != nil && len(missing) > 0 {
		p.names, row = p.layout.names(), line
	}
	return row, p.columns(line)
}

// firstLine reads up to the first line that is neither empty, where that does not matter, nor a comment.
func (p *parser) firstLine() (line string, ok bool, err error) {
	for {
		if line, ok, err = p.next(); err != nil || !ok {
			return "", false, err
		}
		switch {
		case line == "":
			return line, true, nil
		case line[0] == swfLayout.comment && p.layout == nil:
			p.layout = &swfLayout
		case line[0] != '#' || p.layout != nil && p.layout != &trainyardLayout:
			return line, true, nil
		default:
			p.layout = &trainyardLayout
		}
		p.comment(line)
	}
}

// unknown says what a file of no known format may be, or which it comes nearest to.
func (p *parser) unknown(line string) error {
	if what := container(line); what != "" {
		return p.fail("no list of jobs: %s", what)
	}
	if wrong := misread(line); wrong != "" {
		return p.fail("header %q, %s", clip(line), wrong)
	}
	header, ok := split(line, nil)
	if !ok {
		return p.fail("header %q, want quotation marks in pairs around whole column names", clip(line))
	}
	for _, s := range strangers {
		if n := len(s.columns); slices.Equal(s.columns, header) || 1 < n && n < len(header) &&
			slices.Equal(s.columns, header[:n]) {
			return p.fail("no list of jobs: %s", s.what)
		}
	}
	near := nearest(line)
	columns, _ := near.split(line, nil)
	return p.fail("header %q, want that of a known format; nearest is %s: %s", clip(line), near.name,
		near.complain(columns))
}

// columns finds the meaning of each column of the header.
func (p *parser) columns(header string) error {
	if why := p.layout.complain(p.names); why != "" {
		return p.fail("header %q, want that of format %s: %s", clip(header), p.layout.name, why)
	}
	if name, ok := twice(p.names); ok {
		return p.fail("column %q twice, want it once", name)
	}
	for _, name := range p.names {
		p.means = append(p.means, p.layout.column(name).means)
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
		return p.fail("format %s with a job or instance table, want none: these belong to %s", l.name,
			paiTaskLayout.name)
	}
	return p.units()
}

// units finds the unit of times.
func (p *parser) units() error {
	if p.layout.unit > 0 {
		p.unit = p.layout.unit
	}
	switch o := p.o.Unit; {
	case o == 0 || o == p.unit:
	case p.layout.anyUnit:
		p.unit = o
	case p.unit == time.Millisecond:
		return p.fail("format %s with unit %v, want none: its times are milliseconds", p.layout.name, o)
	default:
		return p.fail("format %s with unit %v, want none: its times are seconds", p.layout.name, o)
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
			if line, ok, err = p.next(); err != nil {
				return err
			}
		}
		if !ok {
			return nil
		}
		if line == "" {
			continue
		}
		j := p.slot()
		if !p.quick(j, line) {
			*j = Job{}
			if fields, ok = p.layout.split(line, fields[:0]); !ok {
				return p.fail("row %q, want quotation marks in pairs around whole fields", clip(line))
			}
			if err := p.row(j, fields); err != nil {
				return err
			}
		}
		if err := p.finish(j); err != nil {
			return err
		}
		line = ""
	}
}

// quick sets j from a row between commas without quotation marks, as most are, if nothing is wrong with it: what is,
// row finds out.
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
		if m != ignored && p.set(j, m, line[:at]) != "" {
			return false
		}
		line = line[min(at+1, len(line)):]
	}
	return true
}

// row sets j from the fields of its row.
func (p *parser) row(j *Job, fields []string) error {
	if len(fields) != len(p.means) {
		separator := ","
		if p.layout.separator != 0 {
			separator = string(p.layout.separator)
		}
		return p.fail("%d fields, want %d: %s", len(fields), len(p.means), strings.Join(p.names, separator))
	}
	for i, m := range p.means {
		if m == ignored {
			continue
		}
		if want := p.set(j, m, fields[i]); want != "" {
			return p.fail("%s %q, %s", p.names[i], clip(fields[i]), want)
		}
	}
	return nil
}

// finish takes in j, whose row has been read.
func (p *parser) finish(j *Job) error {
	if p.layout.finish != nil {
		if wrong := p.layout.finish(p, j); wrong != "" {
			return p.fail("%s", wrong)
		}
	}
	return p.enter(j)
}

// slot returns an empty job behind those read.
func (p *parser) slot() *Job {
	p.drop = ""
	if n := len(p.jobs); n < cap(p.jobs) {
		p.jobs = p.jobs[:n+1] // empty: what is left out is cleared
	} else {
		p.jobs = append(p.jobs, Job{})
	}
	return &p.jobs[len(p.jobs)-1]
}

// enter takes in j, the last of the jobs, or takes it away if it is to be left out.
func (p *parser) enter(j *Job) error {
	p.rows++
	if p.drop != "" {
		p.leftOut = tally(p.leftOut, p.drop)
		*j = Job{}
		p.jobs = p.jobs[:len(p.jobs)-1]
		return nil
	}
	if p.kept == MaxJobs && p.each == nil {
		return p.fail("more than %d jobs, want less", MaxJobs)
	}
	if j.Spec.Name == "" {
		j.Spec.Name = p.words.keep(strconv.Itoa(p.rows - 1))
	}
	if j.Spec.Submit < p.latest {
		p.sorted = false
	}
	if p.latest = j.Spec.Submit; p.kept == 0 || p.latest < p.earliest {
		p.earliest = p.latest
	}
	p.kept++
	if j.MilliGPU > 0 {
		p.odd(partsBooked)
	}
	if p.each != nil {
		return p.hand(j)
	}
	p.lines = append(p.lines, int32(p.in.line))
	if twin := p.index.add(p.jobs); twin >= 0 {
		return p.fail("%s %q, want a name of its own: line %d has it too", p.nameColumn(), clip(j.Spec.Name),
			p.lines[twin])
	}
	return nil
}

// partsBooked is odd about jobs until GPUs are shared by share.
const partsBooked = "ask for parts of a GPU: whole GPUs are booked for them"

// leaveOut says that the row being read is no job to be scheduled, and why.
func (p *parser) leaveOut(why string) { p.drop = why }

// odd notes that one more job is odd in some way.
func (p *parser) odd(how string) { p.oddities = tally(p.oddities, how) }

// tally counts name in list, which is short.
func tally(list []Count, name string) []Count {
	for i := range list {
		if list[i].Name == name {
			list[i].Jobs++
			return list
		}
	}
	return append(list, Count{name, 1})
}

// nameColumn is the name of the column that names jobs.
func (p *parser) nameColumn() string {
	for i, m := range p.means {
		if m == jobID {
			return p.names[i]
		}
	}
	return "job"
}
