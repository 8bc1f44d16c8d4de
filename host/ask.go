package host

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/trainyard/trainyard/sched"
)

// Errors of those who ask.
var (
	ErrNoJob   = errors.New("no such job")
	ErrDone    = errors.New("done already")
	ErrStopped = errors.New("the manager stops")
	// ErrNotHere says that this host does not have what was asked for.
	ErrNotHere = errors.New("not here")
)

// Submitting says how jobs are submitted, where that matters.
type Submitting struct {
	Once Once // zero: whoever asks again submits them again
	// Refuse says why jobs are not taken at present. It is asked by the engine's goroutine as they arrive, unless they
	// have arrived already. nil: all are taken.
	Refuse func() error
	// Paused has each of the jobs be paused as it arrives: in the same batch, so that no one finds it otherwise.
	Paused bool
}

// Submit has jobs arrive, all of them or none, and returns the number of the first once they are durable; the others
// follow it. They arrive in the order in which specs returns them: it is called once, by the engine's goroutine, as the
// batch is made, with the number that the first of them gets and when that is. So who submits waits for no one, and
// those who come while a batch is made durable are all in the next one. The events point to the very specs returned, of
// which Submit sets the times of submission. They must be valid, and After may name only jobs that arrive before.
//
// how is one at most. Under a key, jobs that have arrived arrive once: the number is that of the first of those;
// ErrKeyUsed: others have. An error of Refuse is returned as it is.
func (h *Host) Submit(ctx context.Context, specs func(first sched.JobID, now sched.Time) []*sched.JobSpec,
	how ...Submitting) (sched.JobID, error) {
	if err := h.running(ctx); err != nil {
		return sched.None, err
	}
	s := append(how, Submitting{})[0]
	// not results: the engine may come to it when no one waits any more
	number, refused := sched.JobID(sched.None), error(nil)
	durable := h.box.Post(func(_ *sched.View, next sched.JobID, now sched.Time) []sched.Event {
		number, refused = sched.None, nil
		if ctx.Err() != nil { // who asked has the answer that it failed
			return nil
		}
		var known bool
		if number, known, refused = h.arrived(&s, next); known || refused != nil {
			return nil
		}
		list := specs(next, now)
		if s.Once.Key != "" && len(list) > 0 {
			list[0].Key = h.keys.add(h.View(), &s.Once, next, len(list))
		}
		return arrivals(list, next, now, s.Paused)
	})
	if err := h.await(ctx, durable); err != nil {
		return sched.None, err
	}
	if refused == nil && number == sched.None {
		return sched.None, ctx.Err()
	}
	return number, refused
}

// arrived returns the number of the first of the jobs of a submission, and whether they have arrived. If not, it is
// next, or they are refused.
func (h *Host) arrived(s *Submitting, next sched.JobID) (first sched.JobID, known bool, err error) {
	if s.Once.Key != "" {
		if first, known, err = h.keys.find(h.View(), &s.Once); known || err != nil {
			return first, known, err
		}
	}
	if s.Refuse != nil {
		err = s.Refuse()
	}
	return next, false, err
}

// Command has done with a job what its user wants, and returns once that is durable. ErrNoJob and ErrDone say why it
// cannot be; under OnlyIf its error does.
func (h *Host) Command(ctx context.Context, id sched.JobID, c sched.Command) error {
	row, known, _ := h.board.Row(id)
	conditional := ctx.Value(conditionKey{}) != nil
	switch {
	case !known:
		return ErrNoJob
	case row.State == sched.Done && !conditional:
		return fmt.Errorf("%w (%v)", ErrDone, row.Outcome)
	}
	if err := h.running(ctx); err != nil {
		return err
	}
	var err error
	if conditional {
		err = h.commandIf(ctx, id, c)
	} else {
		err = h.await(ctx, h.box.Command(id, c))
	}
	if err != nil {
		return err
	}
	if row, _, _ := h.board.Row(id); row.State == sched.Done && !row.Cancelled {
		return fmt.Errorf("%w (%v)", ErrDone, row.Outcome)
	}
	return nil
}

// CommandAll has done with each of some jobs of h what their user wants, in one batch, and returns once that is
// durable: a crash leaves it done with all of them, or with none. The list says of each, in their order, why it cannot
// be: ErrNoJob or ErrDone.
func CommandAll(ctx context.Context, h *Host, ids []sched.JobID, c sched.Command) ([]error, error) {
	if err := h.running(ctx); err != nil {
		return nil, err
	}
	refused := make([]error, len(ids)) // the engine's until the batch is durable
	durable := h.box.Post(func(v *sched.View, _ sched.JobID, _ sched.Time) (events []sched.Event) {
		if ctx.Err() != nil { // who asked has the answer that it failed
			return nil
		}
		clear(refused)
		for i, id := range ids {
			if id < 0 || int(id) >= len(v.Jobs) {
				refused[i] = ErrNoJob
			} else if j := v.Job(id); j.State == sched.Done {
				refused[i] = fmt.Errorf("%w (%v)", ErrDone, j.Outcome)
			} else {
				events = append(events, commanded(id, c)...)
			}
		}
		return events
	})
	if err := h.await(ctx, durable); err != nil {
		return nil, err
	}
	for i, id := range ids { // it may have ended in the same batch
		if row, _, _ := h.board.Row(id); refused[i] == nil && row.State == sched.Done && !row.Cancelled {
			refused[i] = fmt.Errorf("%w (%v)", ErrDone, row.Outcome)
		}
	}
	return refused, ctx.Err()
}

// commandIf is Command under the condition that ctx has.
func (h *Host) commandIf(ctx context.Context, id sched.JobID, c sched.Command) error {
	var refused error
	durable := h.box.follow(func(v *sched.View, earlier []sched.Event, _ sched.JobID, _ sched.Time) []sched.Event {
		refused = onlyIf(ctx, v, earlier, id)
		if j := v.Job(id); refused == nil && j.State == sched.Done {
			refused = fmt.Errorf("%w (%v)", ErrDone, j.Outcome)
		}
		if refused != nil {
			return nil
		}
		return commanded(id, c)
	})
	if err := h.await(ctx, durable); err != nil {
		return err
	}
	return refused
}

// Drain has nodes be given to no new job, or lifts that, and returns once that is durable.
func (h *Host) Drain(ctx context.Context, nodes func(v *sched.View) []sched.NodeID, on bool) error {
	if err := h.running(ctx); err != nil {
		return err
	}
	return h.await(ctx, h.box.Drain(nodes, on))
}

// Post has a request become events, and returns once what came of it is durable.
func (h *Host) Post(ctx context.Context, events Request) error {
	if err := h.running(ctx); err != nil {
		return err
	}
	return h.await(ctx, h.box.Post(events))
}

// Change has a job be otherwise from now on: change is given what may be changed of it, as it is, and makes it what it
// is to be; refuse may say why it cannot be so. Both are called by the engine's goroutine as the event is made, and
// must be short. It returns once that is durable. One that holds GPUs and may no longer hold as many is stopped, saves,
// and waits for its turn. ErrNoJob and ErrDone say why it cannot be; under OnlyIf its error does.
func (h *Host) Change(ctx context.Context, id sched.JobID, change func(*sched.JobChange),
	refuse func(*sched.JobSpec, *sched.JobChange) error) error {
	if err := h.running(ctx); err != nil {
		return err
	}
	var refused error
	late := h.await(ctx, h.box.follow(func(v *sched.View, earlier []sched.Event, _ sched.JobID,
		_ sched.Time) []sched.Event {
		var c sched.JobChange
		if refused = ctx.Err(); refused != nil { // who asked has the answer that it failed
			return nil
		}
		if c, refused = changed(ctx, v, earlier, id, change, refuse); refused != nil {
			return nil
		}
		return []sched.Event{{Kind: sched.JobChanged, Job: id, Change: &c}}
	}))
	if late != nil {
		return late
	}
	if refused != nil {
		return refused
	}
	if row, _, _ := h.board.Row(id); row.State == sched.Done { // it may have been before
		return fmt.Errorf("%w (%v)", ErrDone, row.Outcome)
	}
	return nil
}

// changed returns what a job is to be, or why it cannot be so. What was asked for before in the same batch is not in
// its spec yet.
func changed(ctx context.Context, v *sched.View, earlier []sched.Event, id sched.JobID, change func(*sched.JobChange),
	refuse func(*sched.JobSpec, *sched.JobChange) error) (c sched.JobChange, err error) {
	if id < 0 || int(id) >= len(v.Jobs) {
		return c, ErrNoJob
	}
	if stands := onlyIf(ctx, v, earlier, id); stands != nil {
		return c, stands
	}
	j := v.Job(id)
	if j.State == sched.Done || j.Cancel {
		return c, fmt.Errorf("%w (%v)", ErrDone, j.Outcome)
	}
	c = j.Spec.Change()
	for i := range earlier {
		if e := &earlier[i]; e.Kind == sched.JobChanged && e.Job == id {
			c = *e.Change
		}
	}
	change(&c)
	return c, refuse(j.Spec, &c)
}

type conditionKey struct{}

// condition says why a job is to be left as it is; asked: something else was asked for of it in the same batch.
type condition func(v *sched.View, asked bool) error

// OnlyIf returns a context under which Command and Change leave a job as it is, and return the error of refuse, if it
// returns one. It is called by the engine's goroutine as the event is made, with all as it is then: between its
// answer and what is done no one else does anything to the job. asked: what another wants of the job is part of the
// same batch, so that v does not show it yet. refuse must be short and keep nothing.
func OnlyIf(ctx context.Context, refuse func(v *sched.View, asked bool) error) context.Context {
	return context.WithValue(ctx, conditionKey{}, condition(refuse))
}

// onlyIf returns the error of the condition that ctx has, if any, about a job that has arrived.
func onlyIf(ctx context.Context, v *sched.View, earlier []sched.Event, id sched.JobID) error {
	refuse, some := ctx.Value(conditionKey{}).(condition)
	if !some {
		return nil
	}
	asked := slices.ContainsFunc(earlier, func(e sched.Event) bool {
		return e.Job == id && (e.Kind == sched.JobChanged || e.Kind == sched.JobCommanded)
	})
	return refuse(v, asked)
}

// Look has f look at the state, the system and its books while nothing changes them. All that f sees is durable; its
// time is the present, not that of the last event. f must be short, keep nothing of it, and ask for nothing.
func (h *Host) Look(ctx context.Context, f func(*sched.View)) error {
	if err := h.running(ctx); err != nil {
		return err
	}
	err := h.box.Do(ctx, h.over, func(now sched.Time) {
		v := *h.View()
		v.Now = max(v.Now, now)
		f(&v)
	})
	if errors.Is(err, ErrClosed) {
		return ErrStopped
	}
	return err
}

// running returns once requests can be taken.
func (h *Host) running(ctx context.Context) error {
	select {
	case <-h.up:
		return nil
	case <-h.over:
		return ErrStopped
	case <-ctx.Done():
		return ctx.Err()
	}
}

// await waits until what was asked for is durable.
func (h *Host) await(ctx context.Context, durable <-chan struct{}) error {
	select {
	case <-durable:
		return nil
	case <-h.over:
		select {
		case <-durable: // both
			return nil
		default:
			return ErrStopped
		}
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Problems says in sentences what someone should look at: jobs that cannot be started. Nothing of it keeps the others
// from running. Anyone may ask at any time.
func (h *Host) Problems() []string {
	list := []string{}
	for id, row := range h.board.Rows() {
		if row.Failures > 0 && row.State != sched.Done {
			list = append(list, fmt.Sprintf("job %d (%s) cannot be started (%d times in a row): %s", id, row.Name,
				row.Failures, row.Text))
		}
	}
	return list
}
