package host

import (
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"slices"

	"github.com/trainyard/trainyard/engine"
	"github.com/trainyard/trainyard/eventlog"
	"github.com/trainyard/trainyard/pipeline"
	"github.com/trainyard/trainyard/sched"
)

// Errors of Explain.
var (
	ErrNoEvent     = errors.New("no such event")
	ErrNoDecision  = errors.New("is no decision")
	ErrLate        = errors.New("the log is long: it was not decided again in the time given")
	ErrOtherSystem = errors.New("was decided by another system or version, of which the log does not keep enough")
)

// Decision is one change of target of the log, decided again.
type Decision struct {
	Event sched.Event // Decided, Refused, Rejected or Noted; a copy
	Batch uint64
	Was   []sched.GPUID // what its job was to hold before
	Free  []sched.GPUID // that could be used and were no one's target
	// that waited or held GPUs, in the order in which the system looked at them; nil = it has none that could be
	// reported
	Order   []sched.JobID
	Waited  []sched.JobID // those of them, or all, that waited for GPUs
	Wanted  []Wanted      // what the system wanted of the instant, this decision included
	Facts   []sched.Fact  // on which it rests, of its job, as they were when it was decided
	Refused []sched.Event // what of Wanted was refused
	View    *sched.View   // at the end of the instant, for names
}

// Wanted is a target that the system wanted.
type Wanted struct {
	Job  sched.JobID
	GPUs []sched.GPUID
	Why  sched.Reason
}

// Explain has the decision of event seq of the log decided again, on a state that is replayed from the log, and says
// what went in and what came of it. The time it takes grows with the log: for 100,000 events under tiresias-las about a
// second of a processor, under elastic six. ErrNoEvent, ErrNoDecision and ErrOtherSystem say why it cannot be, ErrLate
// that ctx came to its time limit, and where the replay was by then.
func (h *Host) Explain(ctx context.Context, seq uint64) (*Decision, error) {
	batch, from, err := h.locate(ctx, seq)
	if err != nil {
		return nil, err
	}
	dec, err := h.fresh()
	if err != nil {
		return nil, err
	}
	w := &witness{Decider: dec, seq: seq, batch: batch, now: 1}
	r, err := h.reader()
	if err != nil {
		return nil, err
	}
	swap := func(b uint64, _ *sched.View, d sched.Decider) (sched.Decider, error) {
		w.now = b
		return d, nil
	}
	state, _, err := engine.Recover(ctx, r.Header(), upTo(r.Records(), batch), w,
		engine.ReplayOptions{Sinks: []eventlog.Sink{w}, From: from, Swap: swap})
	if astray := (*engine.Divergence)(nil); errors.As(err, &astray) {
		return nil, fmt.Errorf("event %d %w", seq, ErrOtherSystem)
	}
	switch {
	case err != nil:
		return nil, late(err, w.at, seq)
	case w.found == nil:
		return nil, fmt.Errorf("event %d %w", seq, ErrOtherSystem)
	}
	w.found.View = state.View()
	return w.found, nil
}

// locate finds the batch of event seq, which must be a decision, and the last batch up to there in which a system
// started again.
func (h *Host) locate(ctx context.Context, seq uint64) (batch, renewed uint64, err error) {
	if last := h.LastEvent(); seq == 0 || seq > last {
		return 0, 0, fmt.Errorf("event %d: %w; the log has 1 to %d", seq, ErrNoEvent, last)
	}
	r, err := h.reader()
	if err != nil {
		return 0, 0, err
	}
	for rec, err := range r.Records() {
		switch {
		case err != nil:
			return 0, 0, err
		case rec.Event.Seq%page == 0 && ctx.Err() != nil:
			return 0, 0, late(ctx.Err(), 0, seq)
		case rec.Event.Kind == sched.Renewed:
			renewed = rec.Batch
		case rec.Event.Seq == seq:
			return rec.Batch, renewed, decisive(&rec.Event)
		}
	}
	return 0, 0, fmt.Errorf("event %d: %w", seq, ErrNoEvent)
}

// late says how far the replay up to event seq was if err is the end of its time.
func late(err error, at, seq uint64) error {
	if !errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	return fmt.Errorf("event %d: %w, but up to event %d", seq, ErrLate, at)
}

// decisive refuses an event that is no decision of a system.
func decisive(e *sched.Event) error {
	switch e.Kind {
	case sched.Decided, sched.Refused, sched.Rejected, sched.Noted:
		return nil
	case sched.Ordered:
		return fmt.Errorf("event %d (%v) %w: it carries one out; see the decided event of job %d before it", e.Seq,
			e.Kind, ErrNoDecision, e.Job)
	}
	return fmt.Errorf("event %d (%v) %w: want one of kind %v, %v, %v or %v", e.Seq, e.Kind, ErrNoDecision,
		sched.Decided, sched.Refused, sched.Rejected, sched.Noted)
}

// upTo returns the records of a log up to the end of a batch.
func upTo(log iter.Seq2[*eventlog.Record, error], batch uint64) iter.Seq2[*eventlog.Record, error] {
	return func(yield func(*eventlog.Record, error) bool) {
		for rec, err := range log {
			if err == nil && rec.Batch > batch || !yield(rec, err) {
				return
			}
		}
	}
}

// witness is a Decider, and a Sink, that writes down how one decision of another comes about.
type witness struct {
	sched.Decider
	seq, batch uint64
	now        uint64                // the batch under way
	at         uint64                // the event replayed last
	last       *Decision             // what went in when the system was asked last, in the batch that is looked for
	of         map[sched.JobID]about // of the jobs it decided about then
	found      *Decision
}

// about is what a decision about one job rests on.
type about struct {
	was   []sched.GPUID
	facts []sched.Fact
}

var _ eventlog.Sink = (*witness)(nil)

// Decide notes what goes in, and what the system makes of it.
func (w *witness) Decide(v *sched.View, d *sched.Desired) {
	if w.now != w.batch || w.found != nil {
		w.Decider.Decide(v, d)
		return
	}
	w.last = &Decision{Batch: w.batch}
	for g := range v.GPUs {
		if v.Usable(sched.GPUID(g)) && v.GPUs[g].Targets == 0 {
			w.last.Free = append(w.last.Free, sched.GPUID(g))
		}
	}
	w.Decider.Decide(v, d)
	w.last.order(pipeline.Order(v, w.Decider), v)
	w.of = make(map[sched.JobID]about)
	for i := range d.Jobs {
		t := &d.Jobs[i]
		w.last.Wanted = append(w.last.Wanted, Wanted{t.Job, slices.Clone(d.Set(t)), t.Why})
		w.note(v, t.Job)
	}
	for i := range d.Reject {
		w.note(v, d.Reject[i].Job)
	}
	for i := range d.Notes {
		w.note(v, d.Notes[i].Job)
	}
}

// order notes who waited and who was looked at.
func (x *Decision) order(order []sched.JobID, v *sched.View) {
	x.Order = order
	waits := func(id sched.JobID) bool { return v.Job(id).Eligible() && len(v.Job(id).Target) == 0 }
	for _, id := range order {
		if waits(id) {
			x.Waited = append(x.Waited, id)
		}
	}
	for id := range v.Jobs {
		if order == nil && waits(sched.JobID(id)) {
			x.Waited = append(x.Waited, sched.JobID(id))
		}
	}
}

// note keeps what a decision about job id rests on.
func (w *witness) note(v *sched.View, id sched.JobID) {
	if id >= 0 && int(id) < len(v.Jobs) {
		w.of[id] = about{slices.Clone(v.Job(id).Target), facts(v, w.Decider, id)}
	}
}

// Log takes the event that is looked for, and what was refused of the same requests.
func (w *witness) Log(_ *sched.View, e *sched.Event) {
	w.at = e.Seq
	if w.now != w.batch || w.last == nil {
		return
	}
	if e.Kind == sched.Refused {
		w.last.Refused = append(w.last.Refused, copyOf(e))
	}
	if e.Seq == w.seq {
		w.found = w.last
		w.found.Event = copyOf(e)
		w.found.Was, w.found.Facts = w.of[e.Job].was, w.of[e.Job].facts
	}
}

// copyOf returns an event that can be kept.
func copyOf(e *sched.Event) sched.Event {
	x := *e
	if x.GPUs = slices.Clone(e.GPUs); e.Target != nil {
		t := *e.Target
		x.Target = &t
	}
	return x
}

// reader reads the log from its start. No one is kept from writing: the store is asked for some lines at a time.
func (h *Host) reader() (*eventlog.Reader, error) {
	pager, ok := h.o.Store.(Pager)
	if !ok {
		return nil, ErrNotHere
	}
	p := &pages{log: pager, last: h.LastEvent(), rest: append(eventlog.AppendHeader(nil, h.Header()), '\n'), at: 1}
	return eventlog.NewReader(p, h.o.Folder)
}

// pages reads a log as lines of JSON, its header first.
type pages struct {
	log      Pager
	at, last uint64
	rest     []byte
}

// Read reads what is left of a page, or the next one.
func (p *pages) Read(b []byte) (int, error) {
	if len(p.rest) == 0 {
		if p.at > p.last {
			return 0, io.EOF
		}
		lines, err := p.log.Page(p.at, int(min(page, p.last-p.at+1)))
		if err != nil {
			return 0, err
		}
		if len(lines) == 0 {
			return 0, fmt.Errorf("host: event %d of %d is not in the log", p.at, p.last)
		}
		for _, line := range lines {
			p.rest = append(append(p.rest, line...), '\n')
		}
		p.at += uint64(len(lines))
	}
	n := copy(b, p.rest)
	p.rest = p.rest[n:]
	return n, nil
}
