package trace

import (
	"cmp"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/trainyard/trainyard/internal/suggest"
	"github.com/trainyard/trainyard/sched"
)

// Job is one row of a trace: what its submitter said, and the truth that only packages trace and driver/sim know.
type Job struct {
	Spec     sched.JobSpec
	Duration time.Duration // true run time on the GPUs asked for, alone; >= 0
	State    string        // how the job ended in the original cluster, in the trace's own word; "" = unknown
	GPUType  string        // GPU type asked for, by name: a cluster gives it a number; "" = any
	Attempts int32         // how often the original cluster started it; 0 = unknown
	Saves    Saving        // whether it keeps its work when it is stopped
	// thousandths of a GPU asked for in all, if that is no whole number; Spec.GPUs has it rounded up; 0 = Spec.GPUs
	MilliGPU int32
}

// Saving says whether a job keeps its work when it is stopped.
type Saving uint8

// Savings. Jobs of which it is unknown keep all of it, and nothing shows that.
const (
	SavingUnknown Saving = iota
	SavesWork
	LosesWork // it starts from zero
)

var savingWords = []string{"", "yes", "no"}

// String returns the word of a known saving, "" if it is unknown.
func (s Saving) String() string { return savingWords[s] }

// Demand is how many GPUs j asks for, parts of a GPU included.
func (j *Job) Demand() float64 {
	if j.MilliGPU > 0 {
		return float64(j.MilliGPU) / 1000
	}
	return float64(j.Spec.GPUs.Want)
}

// Trace is a list of jobs in order of submission; jobs submitted at the same time keep the order of the file.
type Trace struct {
	Path     string   // as given to Read or Parse; "" when generated
	Format   string   // name of the format read, or "generated"
	Jobs     []Job    // sorted by Spec.Submit, ties in file order; names are unique
	Warnings []string // what is odd about the file as a whole; not errors
	Zone     string   // what is known of the origin of the times and of their zone
	Profiled bool     // durations are 0: they follow from the profiles of the applications that Spec.Model names

	Origin time.Time // what the recorded clock showed at time 0, as if it were UTC; zero = unknown
	// what the data are, by which rule the run times, and what was done to them before; "" = not known
	Source  string
	LeftOut []Count // rows that are no jobs to be scheduled, by reason, in order of first appearance

	clamped bool // the file says which durations are clamped
}

// Options says what the header of a file cannot. The zero value is right for most files.
type Options struct {
	Format string        // name of the format; "" = found by the header, or by the first row where there is no header
	Unit   time.Duration // what the number 1 means in a time of a tiresias file; 0 = a second. Other formats refuse it
	// what the clock showed at time 0, where the format does not say; only what is reported of the trace changes
	Origin time.Time
	Steps  *StepTimes // how long iterations take, for formats that count them; nil = not known
	// Jobs and Instances are tables that belong to the task table of PAI, nil = none: users and times of submission,
	// and the run times of a task's instances. Other formats refuse them.
	Jobs, Instances io.Reader
	// Roughly reads a file that does not give durations all the same, with durations of 0 and a warning.
	Roughly bool
}

// Limits of what a trace may hold. They keep sums of times inside 64 bits and a wrong file from filling the memory.
const (
	MaxTime = 36525 * 24 * time.Hour // of a time or a duration: 100 years
	MaxGPUs = 1_000_000              // of one job
	MaxLine = 1 << 20                // bytes of a line
	MaxText = 1 << 30                // bytes of a file, uncompressed
	MaxJobs = 1 << 24                // of a trace
	MaxWord = 4096                   // bytes of a job name, user, model, ...
)

// ParseError is the error about a malformed file.
type ParseError struct {
	File string
	Line int    // from 1
	Text string // column, value and what was wanted
}

// Error names the file and the line.
func (e *ParseError) Error() string {
	return fmt.Sprintf("trace: %s: line %d: %s", e.File, e.Line, e.Text)
}

// Read reads the trace in the file at path, which may be compressed with gzip (found by content). The error is a
// *ParseError if the file is malformed, wraps that of package os if it cannot be read, and is neither if o is wrong.
func Read(path string, o Options) (*Trace, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("trace: %w", err)
	}
	defer f.Close()
	return Parse(f, path, o)
}

// Parse reads a trace from r as Read does; name stands for the file in errors and in Trace.Path.
func Parse(r io.Reader, name string, o Options) (*Trace, error) {
	if err := o.validate(); err != nil {
		return nil, err
	}
	text, err := readText(r, name)
	if err != nil {
		return nil, err
	}
	p := newParser(name, o)
	p.in.blocks = text
	rows := min(p.in.rows(), MaxJobs)
	p.jobs.jobs, p.jobs.lines = make([]Job, 0, rows), make([]int32, 0, rows)
	if err := p.all(); err != nil {
		return nil, err
	}
	t := p.trace()
	t.Jobs = p.jobs.jobs
	if p.layout.clock {
		t.rebase(p.jobs.earliest)
	}
	if p.jobs.unsorted {
		t.warn("rows are not in order of submission: sorted, %d of %d moved", t.sort(), len(t.Jobs))
	}
	return t, nil
}

// trace returns what is known of the file once all of it is read, jobs aside.
func (p *parser) trace() *Trace {
	l := p.layout
	t := &Trace{Path: p.in.file, Format: l.name, Zone: l.zone, Source: cmp.Or(l.source, p.in.remarks.source),
		Origin: p.origin(), LeftOut: p.jobs.leftOut, Profiled: l.profiled}
	for _, c := range p.jobs.leftOut {
		t.warn("%d of %d rows left out: %s", c.Jobs, p.jobs.rows, c.Name)
	}
	if t.clamped = p.row.clamped > 0; t.clamped {
		t.warn("%d of %d durations are clamped at 48 h", p.row.clamped, p.jobs.kept)
	}
	for _, c := range p.row.odds {
		t.warn("%d of %d jobs %s", c.Jobs, p.jobs.kept, c.Name)
	}
	t.Warnings = append(t.Warnings, p.notes...)
	if p.o.Steps != nil && !l.counts() {
		t.warn("the step times given are not used: the format counts no iterations")
	}
	if o := p.o.Origin; !o.IsZero() && !o.Equal(t.Origin) {
		t.warn("the origin given, %s, is not used: the file states its own", o.Format(originFormat))
	}
	return t
}

// origin returns what the clock showed at time 0.
func (p *parser) origin() time.Time {
	switch {
	case p.layout.clock:
		return time.Unix(0, int64(p.jobs.earliest)).UTC()
	case !p.in.remarks.began.IsZero():
		return p.in.remarks.began
	case !p.layout.origin.IsZero():
		return p.layout.origin
	}
	return p.o.Origin
}

// rebase counts the times of a file that states them by the clock from the earliest submission on.
func (t *Trace) rebase(earliest sched.Time) {
	for i := range t.Jobs {
		t.Jobs[i].Spec.Submit -= earliest
	}
}

func (o Options) validate() error {
	if o.Unit < 0 {
		return fmt.Errorf("trace: unit %v, want > 0", o.Unit)
	}
	if o.Format != "" && layoutNamed(o.Format) == nil {
		names := formatNames()
		return fmt.Errorf("trace: format %q%s, want one of %s",
			o.Format, suggest.Hint(o.Format, names), strings.Join(names, ", "))
	}
	return nil
}

func (t *Trace) warn(format string, args ...any) {
	t.Warnings = append(t.Warnings, fmt.Sprintf(format, args...))
}

// sort puts the jobs in order of submission, jobs submitted together in the order they had, and returns how many
// changed place.
func (t *Trace) sort() (moved int) {
	order := make([]int32, len(t.Jobs))
	for i := range order {
		order[i] = int32(i)
	}
	slices.SortFunc(order, func(a, b int32) int {
		return cmp.Or(cmp.Compare(t.Jobs[a].Spec.Submit, t.Jobs[b].Spec.Submit), cmp.Compare(a, b))
	})
	sorted := make([]Job, len(order))
	for i, from := range order {
		sorted[i] = t.Jobs[from]
		if int(from) != i {
			moved++
		}
	}
	t.Jobs = sorted
	return moved
}
