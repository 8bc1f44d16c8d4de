package main

import (
	"path/filepath"
	"strings"
)

// outputs are the files a comparison writes, all of them or none.
type outputs struct {
	jobs   *outFile   // nil = not asked for
	events []*outFile // one per system, in their order; empty = not asked for
}

// outputs begins all files asked for, so that a wrong name is told before anything runs.
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
			return usagef("--events-out: preset %s has a simulator of its own for %s, which knows no events; leave --events-out out",
				r.sim.Preset, r.sim.System)
		}
	}
	var err error
	if f.jobsOut != "" {
		if out.jobs, err = createOut(f.jobsOut); err != nil {
			return err
		}
	}
	for _, path := range f.eventPaths(c.names()) {
		file, err := createOut(path)
		if err != nil {
			return err
		}
		out.events = append(out.events, file)
	}
	return nil
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
		paths[i] = withName(f.eventsOut, name)
	}
	return paths
}

// withName puts name before the extension: log.jsonl becomes log.fifo.jsonl.
func withName(path, name string) string {
	ext := filepath.Ext(path)
	return strings.TrimSuffix(path, ext) + "." + name + ext
}

// commit writes what is known only now and gives the files their names.
func (o *outputs) commit(c *comparison) error {
	if o.jobs != nil {
		if err := writeJobs(o.jobs, c.runs); err != nil {
			return err
		}
		if err := o.jobs.commit(); err != nil {
			return err
		}
	}
	for _, f := range o.events {
		if err := f.commit(); err != nil {
			return err
		}
	}
	return nil
}

// discard removes what was not committed.
func (o *outputs) discard() {
	if o.jobs != nil {
		o.jobs.discard()
	}
	for _, f := range o.events {
		f.discard()
	}
}
