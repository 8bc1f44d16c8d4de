package engine

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"math"
	"slices"
	"strings"

	"github.com/trainyard/trainyard/eventlog"
	"github.com/trainyard/trainyard/sched"
)

// Divergence is the first difference between a recorded log and what its replay gave: the same event reported
// otherwise, or an event that only one of them has. It is an error.
type Divergence struct {
	Seq      uint64
	Batch    uint64
	Recorded string // the line of the log; "" = the log has none
	Replayed string // the line of the replay; "" = the replay gave none
}

// Error shows both lines.
func (d *Divergence) Error() string {
	nothing := "nothing more in this batch"
	recorded, replayed := cmp.Or(d.Recorded, nothing), cmp.Or(d.Replayed, nothing)
	return fmt.Sprintf("log: seq %d, batch %d: the replay differs\nrecorded: %s\nreplayed: %s", d.Seq, d.Batch,
		recorded, replayed)
}

// ReplayOptions are what a replay may be given in addition to the log and its Decider.
type ReplayOptions struct {
	Sinks []eventlog.Sink // are given every event, as in the run that was recorded
	// Swap is asked before each batch but the first who decides from there on: dec, or another that knows as much, such
	// as a new one that was given the memory of dec. nil = dec all along.
	Swap func(batch uint64, v *sched.View, dec sched.Decider) (sched.Decider, error)
	// From is the first batch that is decided again: those before are folded as they were recorded. dec starts there. A
	// Renewed in a later one is an error: another Decider decided what comes before it, see LastRenewed.
	From uint64
}

// Replay runs the engine's own loop on a recorded log: what came from outside is played back, batch by batch, and dec
// decides again. It returns a *Divergence at the first event that differs from the recorded one, byte for byte in the
// encoding of the log. A log that contradicts itself (an attempt that ends but was never ordered) is an error as well.
//
// A log that does not start with an empty cluster starts with the state that its header says, and dec is given the
// memory that goes with it. An error of the log, or ctx, ends the replay.
func Replay(ctx context.Context, h eventlog.Header, log iter.Seq2[*eventlog.Record, error], dec sched.Decider,
	o ReplayOptions) error {
	_, _, err := Recover(ctx, h, log, dec, o)
	return err
}

// Recover is Replay for a run that is to go on: it returns the state that the log leads to, in which dec (or who came
// after it) has decided all along, and the number of the last batch.
func Recover(ctx context.Context, h eventlog.Header, log iter.Seq2[*eventlog.Record, error], dec sched.Decider,
	o ReplayOptions) (*State, uint64, error) {
	next, stop := iter.Pull2(log)
	defer stop()
	state, err := begin(h, dec, o.From == 0)
	if err != nil {
		return nil, 0, err
	}
	p := &player{next: next, dec: dec, o: o, state: state}
	if !p.advance() && p.err != nil {
		return nil, 0, p.err
	}
	if err = p.skip(o.From); err != nil || p.ahead == nil {
		return p.state, p.batch, err
	}
	err = p.run(ctx, Options{Sinks: append([]eventlog.Sink{p}, o.Sinks...)})
	if p.err != nil { // the first cause; what the loop says of it says less
		err = p.err
	}
	return p.state, p.batch, err
}

// Fold returns the state that a log leads to and the number of its last batch, whoever decided: what is left when a
// Decider no longer gives what was recorded. sinks are given every event, and every batch that has one.
func Fold(h eventlog.Header, log iter.Seq2[*eventlog.Record, error], sinks ...eventlog.Sink) (*State, uint64, error) {
	return Recover(context.Background(), h, log, nil, ReplayOptions{Sinks: sinks, From: math.MaxUint64})
}

// skip folds the batches before from without asking anybody.
func (p *player) skip(from uint64) (err error) {
	defer func() {
		if cause := recover(); cause != nil {
			err = brokenLog(cause)
		}
	}()
	r := &run{s: p.state, o: Options{Sinks: p.o.Sinks}, batchers: batchers(p.o.Sinks)}
	for p.ahead != nil && p.ahead.Batch < from {
		if p.ahead.Batch != p.batch {
			if err := r.nextBatch(p.batch > 0); err != nil {
				return err
			}
			p.batch = p.ahead.Batch
		}
		have, e := countsOf(&p.state.view), p.ahead.Event
		if err := have.check(&e); err != nil {
			return err
		}
		p.state.Apply(&e)
		for _, k := range p.o.Sinks {
			k.Log(&p.state.view, &e)
		}
		p.advance()
	}
	if p.batch > 0 && p.err == nil {
		p.err = r.endBatch()
	}
	return p.err
}

// nextBatch ends the batch under way, if there is one, and starts another.
func (r *run) nextBatch(underWay bool) error {
	if underWay {
		if err := r.endBatch(); err != nil {
			return err
		}
	}
	r.beginBatch()
	return nil
}

// brokenPrefix starts what State panics with when an event contradicts it, see State.broken.
const brokenPrefix = "engine: version "

// player is the driver, the first sink and the Decider of a replay.
type player struct {
	state *State
	dec   sched.Decider
	o     ReplayOptions

	next  func() (*eventlog.Record, error, bool)
	ahead *eventlog.Record // the first of a later batch; nil = the log has ended
	last  sched.Time
	err   error

	batch   uint64
	outside []sched.Event // of the batch, to play back
	lines   []byte        // of the batch, as recorded, one after the other
	ends    []int         // where each line ends
	seqs    []uint64
	done    int // lines replayed
	line    []byte
}

var (
	_ sched.Driver  = (*player)(nil)
	_ sched.Decider = (*player)(nil)
	_ eventlog.Sink = (*player)(nil)
)

// run is Run, with an event that contradicts the state as an error: here it is the log that is wrong.
func (p *player) run(ctx context.Context, o Options) (err error) {
	defer func() {
		if cause := recover(); cause != nil {
			err = brokenLog(cause)
		}
	}()
	return Run(ctx, p.state, p, p, o)
}

// brokenLog is the error of a log that contradicts itself; it panics on whatever else was recovered.
func brokenLog(cause any) error {
	text, ok := cause.(string)
	if !ok || !strings.HasPrefix(text, brokenPrefix) {
		panic(cause)
	}
	return errors.New("log: " + text)
}

// Sync plays the first batch back, which is empty if the log starts with a later one.
func (p *player) Sync(ctx context.Context, _ *sched.View) ([]sched.Event, error) {
	events, err := p.Next(ctx, sched.Never)
	if errors.Is(err, io.EOF) { // a log of a header alone
		return nil, nil
	}
	return events, err
}

// Next plays the next batch back, once the last one has been replayed whole.
func (p *player) Next(ctx context.Context, _ sched.Time) ([]sched.Event, error) {
	if p.missing(); p.err == nil {
		p.err = ctx.Err()
	}
	switch {
	case p.err != nil:
		return nil, p.err
	case p.ahead == nil:
		return nil, io.EOF
	case p.ahead.Batch > p.batch+maxEmpty:
		p.err = fmt.Errorf("log: seq %d: batch %d after %d, want at most %d without events", p.ahead.Event.Seq,
			p.ahead.Batch, p.batch, maxEmpty)
		return nil, p.err
	}
	if p.batch++; p.o.Swap != nil && p.batch > 1 {
		if p.dec, p.err = p.o.Swap(p.batch, &p.state.view, p.dec); p.err != nil {
			return nil, p.err
		}
	}
	p.gather()
	if p.err == nil && p.batch != p.o.From &&
		slices.ContainsFunc(p.outside, func(e sched.Event) bool { return e.Kind == sched.Renewed }) {
		p.err = fmt.Errorf("log: batch %d: the system is %v, want a replay from there on", p.batch, sched.Renewed)
	}
	if p.err == nil {
		p.err = p.check()
	}
	return p.outside, p.err
}

// Apply does nothing: what came of the plan is in the log. The end of a divergent replay is as near.
func (p *player) Apply(context.Context, sched.Plan) error { return p.err }

// Now returns the time of the last event read.
func (p *player) Now() sched.Time { return p.last }

// maxEmpty is how many batches without any event may follow one another, so that a wrong number ends.
const maxEmpty = 1 << 20

// advance reads one record ahead and reports whether there is one.
func (p *player) advance() bool {
	rec, err, ok := p.next()
	if p.ahead = nil; !ok || err != nil {
		p.err = err
		return false
	}
	p.ahead = rec
	return true
}

// gather reads the batch that comes next, which has no lines if its number is not the next one in the log.
func (p *player) gather() {
	p.outside, p.lines, p.ends, p.seqs, p.done = p.outside[:0], p.lines[:0], p.ends[:0], p.seqs[:0], 0
	for p.ahead != nil && p.ahead.Batch <= p.batch {
		e := &p.ahead.Event
		p.last = e.Time
		p.lines = eventlog.AppendEvent(p.lines, p.ahead.Batch, e)
		p.ends, p.seqs = append(p.ends, len(p.lines)), append(p.seqs, e.Seq)
		if !e.Kind.Own() {
			p.outside = append(p.outside, *e)
			p.outside[len(p.outside)-1].GPUs = append([]sched.GPUID(nil), e.GPUs...)
		}
		p.advance()
	}
}

// check returns an error about the first event of the batch that names a job, node or GPU which cannot exist by then.
func (p *player) check() error {
	have := countsOf(&p.state.view)
	for i := range p.outside {
		if err := have.check(&p.outside[i]); err != nil {
			return err
		}
	}
	return nil
}

// Log compares what the replay gave with the record.
func (p *player) Log(_ *sched.View, e *sched.Event) {
	if p.err != nil {
		return
	}
	p.line = eventlog.AppendEvent(p.line[:0], p.batch, e)
	if p.done == len(p.ends) {
		p.err = &Divergence{Seq: e.Seq, Batch: p.batch, Replayed: string(p.line)}
		return
	}
	if want := p.recorded(p.done); string(want) != string(p.line) {
		p.err = &Divergence{Seq: e.Seq, Batch: p.batch, Recorded: string(want), Replayed: string(p.line)}
	}
	p.done++
}

// missing notes the first line of the batch that the replay did not give.
func (p *player) missing() {
	if p.err == nil && p.done < len(p.ends) {
		p.err = &Divergence{Seq: p.seqs[p.done], Batch: p.batch, Recorded: string(p.recorded(p.done))}
	}
}

func (p *player) recorded(i int) []byte {
	from := 0
	if i > 0 {
		from = p.ends[i-1]
	}
	return p.lines[from:p.ends[i]]
}

// Observe notifies the Decider of the moment.
func (p *player) Observe(v *sched.View, e *sched.Event) { p.dec.Observe(v, e) }

// Decide asks the Decider of the moment, unless the replay has gone astray.
func (p *player) Decide(v *sched.View, d *sched.Desired) {
	if p.err == nil {
		p.dec.Decide(v, d)
	}
}

// Waits is that of the Decider of the moment: one that waited before the log starts was not asked again until something
// happened.
func (p *player) Waits() (until sched.Time, known bool) {
	if w, ok := p.dec.(sched.Waker); ok {
		return w.Waits()
	}
	return 0, false
}

// Verify has the Decider of the moment verify itself, if it can.
func (p *player) Verify(v *sched.View) {
	if d, ok := p.dec.(sched.Verifier); ok {
		d.Verify(v)
	}
}

// Format, SaveJob, SaveRest, LoadJob and LoadRest complete the Decider; the loop calls none of them.

// Format is that of the Decider of the moment.
func (p *player) Format() string { return p.dec.Format() }

// SaveJob is that of the Decider of the moment.
func (p *player) SaveJob(j sched.JobID, b []byte) []byte { return p.dec.SaveJob(j, b) }

// SaveRest is that of the Decider of the moment.
func (p *player) SaveRest(b []byte) []byte { return p.dec.SaveRest(b) }

// LoadJob is that of the Decider of the moment.
func (p *player) LoadJob(j sched.JobID, b []byte) error { return p.dec.LoadJob(j, b) }

// LoadRest is that of the Decider of the moment.
func (p *player) LoadRest(b []byte) error { return p.dec.LoadRest(b) }
