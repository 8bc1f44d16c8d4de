package engine_test

import (
	"bytes"
	"slices"
	"testing"

	"github.com/trainyard/trainyard/pipeline"
	"github.com/trainyard/trainyard/sched"
)

// reloading is a Pipeline that is saved and loaded into a new one, made of new stages, between any two instants.
type reloading struct {
	w       *world
	now     *pipeline.Pipeline
	decided bool
	v       *sched.View
}

func (r *reloading) Observe(v *sched.View, e *sched.Event) {
	r.v = v
	r.now.Observe(v, e)
}

// Log and BeginBatch make it a sink that hears when an instant is over and before the next is folded.
func (r *reloading) Log(*sched.View, *sched.Event) {}

func (r *reloading) EndBatch() error { return nil }

func (r *reloading) BeginBatch() {
	if r.decided {
		r.reload(r.v)
	}
}

func (r *reloading) reload(v *sched.View) {
	next := pipeline.New(r.w.stages())
	for j := range v.Jobs {
		must(next.LoadJob(sched.JobID(j), r.now.SaveJob(sched.JobID(j), nil)))
	}
	must(next.LoadRest(r.now.SaveRest(nil)))
	next.Resume(v)
	r.now, r.decided = next, false
}

func (r *reloading) Decide(v *sched.View, d *sched.Desired) {
	r.now.Decide(v, d)
	r.decided = true
}

func (r *reloading) Format() string                         { return r.now.Format() }
func (r *reloading) SaveJob(j sched.JobID, b []byte) []byte { return r.now.SaveJob(j, b) }
func (r *reloading) SaveRest(b []byte) []byte               { return r.now.SaveRest(b) }
func (r *reloading) LoadJob(j sched.JobID, b []byte) error  { return r.now.LoadJob(j, b) }
func (r *reloading) LoadRest(b []byte) error                { return r.now.LoadRest(b) }

func reloadDiffers(w *world) bool {
	a, errA := runTwin(w, false)
	b := hasher{ticks: a.ticks}
	r := &reloading{w: w, now: pipeline.New(w.stages())}
	_, errB := w.run(r, r, &b)
	return a != b || (errA == nil) != (errB == nil)
}

// Ensure that saving and loading between two instants changes nothing of the future.
func TestSaveAndLoadChangeNothing(t *testing.T) {
	for seed := range uint64(cases(t, 1000)) {
		w := newWorld(seed)
		if !reloadDiffers(w) {
			continue
		}
		w = w.shrink(reloadDiffers)
		var a, b transcript
		_, errA := runTwin(w, false, &a)
		r := &reloading{w: w, now: pipeline.New(w.stages())}
		_, errB := w.run(r, r, &b)
		t.Fatalf("%v\nerrors: kept %v, reloaded %v\n%s", w, errA, errB, firstDifference(a.lines, b.lines))
	}
}

// careful is a Pipeline and a sink that asks after each batch of which jobs it remembers something else.
type careful struct {
	*pipeline.Pipeline

	v      *sched.View
	named  map[sched.JobID]bool // by events of the batch
	saved  [][]byte             // by JobID, as of the batch before
	known  int                  // batches of which the Pipeline could say it
	silent bool                 // it has left out a job
}

func (c *careful) Log(v *sched.View, e *sched.Event) {
	c.v = v
	if e.Job != sched.None {
		c.named[e.Job] = true
	}
}

func (c *careful) BeginBatch() { c.named = make(map[sched.JobID]bool) }

func (c *careful) EndBatch() error {
	if c.v == nil {
		return nil
	}
	list, known := c.Changed(nil)
	if known {
		c.known++
	}
	for len(c.saved) < len(c.v.Jobs) {
		c.saved = append(c.saved, nil)
	}
	for j := range c.v.Jobs {
		id := sched.JobID(j)
		b := c.SaveJob(id, nil)
		c.silent = c.silent || known && !c.named[id] && !slices.Contains(list, id) && !bytes.Equal(b, c.saved[id])
		c.saved[id] = b
	}
	return nil
}

// Ensure that a Pipeline leaves out no job of which it remembers something else than before, if no event named it.
func TestChangedLeavesNoJobOut(t *testing.T) {
	known := 0
	for seed := range uint64(cases(t, 300)) {
		w := newWorld(seed)
		c := &careful{Pipeline: pipeline.New(w.stages()), named: make(map[sched.JobID]bool)}
		_, err := w.run(c, c)
		if known += c.known; c.silent {
			t.Fatalf("seed %d: %v\nit leaves a job out (error %v)", seed, w, err)
		}
	}
	if known == 0 {
		t.Error("no pipeline ever knew of which jobs it remembers something else")
	}
}
