package main

import (
	"os"
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
	if f.jobsOut != "" && f.jobsOut == f.eventsOut {
		return usagef("--jobs-out and --events-out are both %s, want two files", f.jobsOut)
	}
	var err error
	if f.jobsOut != "" {
		if out.jobs, err = f.create(f.jobsOut); err != nil {
			return err
		}
	}
	if f.eventsOut == "" {
		return nil
	}
	for i := range c.runs {
		path := f.eventsOut
		if len(c.runs) > 1 {
			path = withName(path, c.runs[i].sim.System)
		}
		file, err := f.create(path)
		if err != nil {
			return err
		}
		out.events = append(out.events, file)
	}
	return nil
}

// create begins one file, which must not be the trace itself.
func (f *simulateFlags) create(path string) (*outFile, error) {
	in, err := os.Stat(f.trace)
	if out, missing := os.Stat(path); err == nil && missing == nil && os.SameFile(in, out) && in.Mode().IsRegular() {
		return nil, usagef("%s is the trace that is read, want another file to write", path)
	}
	return createOut(path)
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
