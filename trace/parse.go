package trace

import (
	"fmt"
	"strings"
	"time"
)

// parser turns the text of one file into jobs.
type parser struct {
	file   string
	text   []string // all of it, in blocks of whole lines
	block  int      // number of the next block
	rest   string   // what is not read yet of the block before
	line   int      // number of the line read last
	layout *layout
	unit   time.Duration

	names   []string  // column names in the order of the file
	means   []meaning // their meanings
	jobs    []Job
	index   nameIndex
	words   words
	clamped int // rows said to be clamped
	// What the row read last says in a column of iterations.
	iterations float64
	sorted     bool
}

func (p *parser) fail(format string, args ...any) error {
	return &ParseError{p.file, p.line, fmt.Sprintf(format, args...)}
}

// next reads one line into line; ok is false at the end of the text.
func (p *parser) next() (line string, ok bool, err error) {
	for p.rest == "" {
		if p.block == len(p.text) {
			return "", false, nil
		}
		p.rest = p.text[p.block]
		p.block++
	}
	p.line++
	line, p.rest = nextLine(p.rest)
	if len(line) > MaxLine {
		return "", false, p.fail("%d bytes, want at most %d in a line", len(line), MaxLine)
	}
	return line, true, nil
}

// header reads the first line, which says what the file is.
func (p *parser) header(o Options) error {
	line, ok, err := p.next()
	if err != nil {
		return err
	}
	if p.line = 1; !ok {
		return p.fail("empty file, want a header line and jobs")
	}
	if p.names, ok = split(line, nil); !ok {
		return p.fail("header %q, want quotation marks in pairs around whole column names", clip(line))
	}
	p.layout = layoutNamed(o.Format)
	if p.layout == nil {
		p.layout = detect(p.names)
	}
	if p.layout == nil {
		near := nearest(p.names)
		return p.fail("header %q, want that of a known format; nearest is %s: %s", clip(line), near.name, near.complain(p.names))
	}
	return p.columns(line, o)
}

// columns finds the meaning of each column of the header.
func (p *parser) columns(header string, o Options) error {
	if why := p.layout.complain(p.names); why != "" {
		return p.fail("header %q, want that of format %s: %s", clip(header), p.layout.name, why)
	}
	seen := make(map[string]bool)
	for _, name := range p.names {
		if seen[name] {
			return p.fail("column %q twice, want it once", name)
		}
		seen[name] = true
		p.means = append(p.means, p.layout.column(name).means)
	}
	if o.Unit != 0 {
		if p.unit = o.Unit; !p.layout.anyUnit && o.Unit != time.Second {
			return p.fail("format %s with unit %v, want none: its times are seconds", p.layout.name, o.Unit)
		}
	}
	return nil
}

// rows reads the rest of the text. Empty lines are skipped.
func (p *parser) rows() error {
	lines := 1
	for _, block := range p.text {
		lines += strings.Count(block, "\n")
	}
	p.jobs = make([]Job, 0, min(lines, 1<<20)) // lines may be empty: no reason to fill the memory
	p.index, p.sorted = newNameIndex(), true
	var room [32]string // on the stack: no write barriers while the collector runs
	fields := room[:0]
	for {
		line, ok, err := p.next()
		if err != nil {
			return err
		}
		if !ok {
			break
		}
		if line == "" {
			continue
		}
		if fields, ok = split(line, fields[:0]); !ok {
			return p.fail("row %q, want quotation marks in pairs around whole fields", clip(line))
		}
		if err := p.row(fields); err != nil {
			return err
		}
	}
	if len(p.jobs) == 0 {
		p.line++
		return p.fail("no jobs, want at least one row below the header")
	}
	return nil
}

// row appends the job that fields describe.
func (p *parser) row(fields []string) error {
	if len(fields) != len(p.means) {
		return p.fail("%d fields, want %d: %s", len(fields), len(p.means), strings.Join(p.names, ","))
	}
	if len(p.jobs) == MaxJobs {
		return p.fail("more than %d jobs, want less", MaxJobs)
	}
	if len(p.jobs) < cap(p.jobs) {
		p.jobs = p.jobs[:len(p.jobs)+1] // still zero
	} else {
		p.jobs = append(p.jobs, Job{})
	}
	j := &p.jobs[len(p.jobs)-1]
	for i, m := range p.means {
		if m == ignored {
			continue
		}
		if want := p.set(j, m, fields[i]); want != "" {
			return p.fail("%s %q, %s", p.names[i], clip(fields[i]), want)
		}
	}
	if p.layout.finish != nil {
		if wrong := p.layout.finish(p, j); wrong != "" {
			return p.fail("%s", wrong)
		}
	}
	if i := len(p.jobs) - 1; i > 0 && j.Spec.Submit < p.jobs[i-1].Spec.Submit {
		p.sorted = false
	}
	if twin := p.index.add(p.jobs); twin >= 0 {
		return p.fail("job_id %q, want a name of its own: line %d has it too", clip(j.Spec.Name), p.lineOf(twin))
	}
	return nil
}

// lineOf returns the number of the line from which job i was read.
func (p *parser) lineOf(i int) int {
	again := parser{text: p.text}
	for row := -1; row <= i; { // the header is row -1
		if line, ok, _ := again.next(); !ok || line != "" {
			row++
		}
	}
	return again.line
}
