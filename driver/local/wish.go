package local

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/trainyard/trainyard/sched"
)

// Submit hands jobs in. They arrive together with the next answer, in the order in which jobs returns them: it is called once, by the
// goroutine of the engine, as that answer is made, and is told which number the first of them gets and when that is. So whoever hands
// jobs in waits for nobody, and those that come while a batch is made durable are all in the next one. The events point to the very
// specs returned, so that a sink can tell whose they are. From then on these belong to the driver, which sets their times of
// submission. They must be valid, and name under After none but jobs that arrive before. The channel is closed once what came
// of it is durable. Submit may be called by anybody at any time.
func (d *Driver) Submit(jobs func(first sched.JobID, now sched.Time) []*sched.JobSpec) (durable <-chan struct{}) {
	return d.keep(wish{jobs: jobs})
}

// Command passes on what a user wants done with a job that has arrived. The channel is closed once what came of it is durable.
// It may be called by anybody at any time.
func (d *Driver) Command(job sched.JobID, c sched.Command) (durable <-chan struct{}) {
	return d.wish(sched.Event{Kind: sched.JobCommanded, Job: job, Code: int32(c)})
}

// Change passes on how a user wants a job from now on that has arrived; it must be valid. The channel is closed once what came
// of it is durable. It may be called by anybody at any time.
func (d *Driver) Change(job sched.JobID, c sched.JobChange) (durable <-chan struct{}) {
	return d.wish(sched.Event{Kind: sched.JobChanged, Job: job, Change: &c})
}

// Tell passes on what a user wants of the machine:
//
//   - NodeChanged, Code NodeDraining: its GPUs are given to no new job, and those on them go on; NodeUp lifts that;
//   - GPUChanged, Code GPUWithheld: the same of one GPU; GPUInUse lifts that, and the GPU is then what it is seen to be.
//
// Where devices are lent one by one a node is a GPU, and what is wished of the node is wished of the GPU: it holds whether the
// device is lent at the moment or not. The wishes outlive the driver, as the View of the next one has them. What is so already is
// not told again. Anything else is an error, and then nothing of the list is done. The channel is closed once what came of it is
// durable. Tell may be called by anybody at any time.
func (d *Driver) Tell(wishes ...sched.Event) (durable <-chan struct{}, err error) {
	for i := range wishes {
		if err := d.tellable(&wishes[i]); err != nil {
			return nil, err
		}
		if e := &wishes[i]; d.lending.on && e.Kind == sched.NodeChanged {
			*e = ofDevice(e)
		}
	}
	return d.wish(wishes...), nil
}

// ofDevice is the wish for a node as one for the device that it is.
func ofDevice(e *sched.Event) sched.Event {
	state := sched.GPUInUse
	if sched.NodeState(e.Code) == sched.NodeDraining {
		state = sched.GPUWithheld
	}
	return sched.Event{Kind: sched.GPUChanged, Value: float64(e.Node), Code: int32(state)}
}

// tellable returns what is wrong with the wish e.
func (d *Driver) tellable(e *sched.Event) error {
	switch {
	case e.Kind == sched.NodeChanged:
		if s := sched.NodeState(e.Code); s != sched.NodeDraining && s != sched.NodeUp {
			return fmt.Errorf("local: state %d of a node, want draining or up", e.Code)
		}
		if d.lending.on && (e.Node < 0 || int(e.Node) >= len(d.devices)) {
			return fmt.Errorf("local: node %d, want one of %d", e.Node, len(d.devices))
		}
	case e.Kind != sched.GPUChanged:
		return fmt.Errorf("local: an event %q, want one about a node or a GPU", e.Kind)
	case !(e.Value >= 0) || int(e.Value) >= len(d.devices):
		return fmt.Errorf("local: GPU %v, want one of %d", e.Value, len(d.devices))
	case sched.GPUState(e.Code) != sched.GPUWithheld && sched.GPUState(e.Code) != sched.GPUInUse:
		return fmt.Errorf("local: state %d of a GPU, want withheld or in use", e.Code)
	}
	return nil
}

// wish is what a user wants.
type wish struct {
	events  []sched.Event
	jobs    func(first sched.JobID, now sched.Time) []*sched.JobSpec // see Submit; nil = events
	durable chan struct{}
}

// wish keeps what a user wants for the next answer.
func (d *Driver) wish(events ...sched.Event) <-chan struct{} { return d.keep(wish{events: events}) }

func (d *Driver) keep(w wish) <-chan struct{} {
	w.durable = make(chan struct{})
	d.mu.Lock()
	d.wishes = append(d.wishes, w)
	d.mu.Unlock()
	select {
	case d.knock <- struct{}{}:
	default:
	}
	return w.durable
}

// confirm tells those whose wishes were part of an earlier answer: it is durable by now, as the engine asks for the next.
func (d *Driver) confirm() {
	if d.behind { // part of that answer is yet to be told
		d.behind = false
		return
	}
	for _, durable := range d.answered {
		close(durable)
	}
	d.answered = d.answered[:0]
}

// granted returns what of the wishes is to be told at the instant now.
func (d *Driver) granted(now sched.Time) (events []sched.Event) {
	d.mu.Lock()
	wishes := d.wishes
	d.wishes = nil
	d.mu.Unlock()
	next := sched.JobID(len(d.specs))
	for _, w := range wishes {
		d.answered = append(d.answered, w.durable)
		if w.jobs != nil {
			for _, spec := range w.jobs(next, now) {
				events = append(events, sched.Event{Kind: sched.JobArrived, Spec: spec})
				next++
			}
		}
		for _, e := range w.events {
			switch {
			case e.Kind == sched.GPUChanged:
				d.withheld[int(e.Value)] = sched.GPUState(e.Code) == sched.GPUWithheld
				events = append(events, d.changes()...)
			case e.Kind == sched.NodeChanged:
				events = slices.DeleteFunc(events, func(x sched.Event) bool { return x.Kind == e.Kind && x.Node == e.Node }) // the last counts
				if !d.isSo(&e) {
					events = append(events, e)
				}
			default:
				events = append(events, e)
			}
		}
	}
	return events
}

// isSo reports whether the node of e is in its state already, or is none that is there.
func (d *Driver) isSo(e *sched.Event) bool {
	if e.Node < 0 || int(e.Node) >= len(d.view.Nodes) {
		return true
	}
	return d.view.Nodes[e.Node].State == sched.NodeState(e.Code)
}

// ErrClosed says that the driver was closed before it did what it was asked.
var ErrClosed = errors.New("closed")

// Do has f called by the goroutine of the engine while that waits inside Next, and returns when f has returned: f may read the
// View and what the Decider remembers, all of which is durable then. No answer comes of it, and no decision. Nothing goes on
// meanwhile: f must be short, and must not call Do. The error is that of ctx, or ErrClosed, and f was not called then. Do may
// be called by anybody at any time.
func (d *Driver) Do(ctx context.Context, f func()) error {
	done := make(chan struct{})
	select {
	case d.visits <- func() { defer close(done); f() }:
		<-done
		return nil
	case <-ctx.Done():
		return ctx.Err()
	case <-d.quit:
		return ErrClosed
	}
}

// Clock returns the present, in the time of events. It is for functions that Do calls.
func (d *Driver) Clock() sched.Time { return d.clock() }

// atOnce is how many functions are called in a row before the engine goes on.
const atOnce = 16

// receive calls the functions that wait, so that they are called however seldom the engine has to wait.
func (d *Driver) receive() {
	for range atOnce {
		select {
		case visit := <-d.visits:
			visit()
		default:
			return
		}
	}
}
