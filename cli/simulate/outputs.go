package simulate

import (
	"bufio"
	"io"

	"github.com/trainyard/trainyard/cli/term"
)

// outputs are the files a comparison writes, all of them or none.
type outputs struct {
	jobs   *term.OutFile   // nil = not asked for
	events []*term.OutFile // one per system, in their order; empty = not asked for
	report *term.Report    // nil = not asked for
}

// outputs creates all files asked for, so that a wrong name is found before anything runs.
func (f *simulateFlags) outputs(c *comparison) (*outputs, error) {
	out := &outputs{}
	if err := f.begin(out, c); err != nil {
		out.discard()
		return nil, err
	}
	return out, nil
}

func (f *simulateFlags) begin(out *outputs, c *comparison) error {
	for i := range c.runs {
		if r := &c.runs[i]; f.eventsOut != "" && r.replica() {
			return term.Usagef("--events-out: preset %s has a simulator of its own for %s, which knows no events; "+
				"leave --events-out out",
				r.request.Preset, r.request.System)
		}
	}
	var err error
	if out.report, err = f.report.Create(); err != nil {
		return err
	}
	if f.jobsOut != "" {
		if out.jobs, err = term.CreateOut(f.jobsOut); err != nil {
			return err
		}
	}
	for _, path := range f.eventPaths(c.names()) {
		file, err := term.CreateOut(path)
		if err != nil {
			return err
		}
		out.events = append(out.events, file)
	}
	return nil
}

// eventFile is where the log of run i goes; nil if none was asked for.
func (o *outputs) eventFile(i int) *term.OutFile {
	if len(o.events) == 0 {
		return nil
	}
	return o.events[i]
}

// names returns the names of the systems.
func (c *comparison) names() []string {
	names := make([]string, len(c.runs))
	for i := range c.runs {
		names[i] = c.runs[i].request.System
	}
	return names
}

// eventPaths returns the path of each system's event log; empty if none was asked for.
func (f *simulateFlags) eventPaths(systems []string) []string {
	switch {
	case f.eventsOut == "":
		return nil
	case len(systems) == 1:
		return []string{f.eventsOut}
	}
	paths := make([]string, len(systems))
	for i, name := range systems {
		paths[i] = term.WithName(f.eventsOut, name)
	}
	return paths
}

// commit writes what is known only now and gives the files their names.
func (o *outputs) commit(c *comparison) error {
	if o.jobs != nil {
		if err := writeJobs(o.jobs, c.runs); err != nil {
			return err
		}
		if err := o.jobs.Commit(); err != nil {
			return err
		}
	}
	for _, f := range o.events {
		if err := f.Commit(); err != nil {
			return err
		}
	}
	return o.report.Commit()
}

// discard removes what was not committed.
func (o *outputs) discard() {
	if o.jobs != nil {
		o.jobs.Discard()
	}
	for _, f := range o.events {
		f.Discard()
	}
	o.report.Discard()
}

// writeJobs writes one row per system and job, in the order of systems and arrivals.
func writeJobs(w io.Writer, runs []systemRun) error {
	out := bufio.NewWriter(w)
	_, _ = out.WriteString(term.JobColumns) // the first error sticks until Flush
	for i := range runs {
		if err := term.WriteJobRows(out, runs[i].request.System, runs[i].outcome.PerJob); err != nil {
			return err
		}
	}
	return out.Flush()
}
