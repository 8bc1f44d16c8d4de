package order

import (
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/trainyard/trainyard/internal/arena"
	"github.com/trainyard/trainyard/internal/memo"
	"github.com/trainyard/trainyard/sched"
)

// MLFQ is the discretised two-dimensional attained-service order of Tiresias: K queues with strict priority between
// them. A job enters the first queue, and the next each time its attained service since its last promotion reaches the
// limit of its queue. A job that waits is promoted to the first queue when it has waited Knob times as long as it ran,
// both since its last promotion; then both clocks start again.
//
// Inside a queue jobs that hold GPUs keep their places, in the order in which they came to hold them; behind them those
// that wait: the ones that lost their GPUs at the latest walk first, then by arrival in the queue. That is the list
// order by which the released simulator realises "FIFO by start time".
//
// If Index is set it ranks the jobs inside a queue instead, larger first, ties by arrival. It is asked when a job
// starts, starts again and enters another queue; where there is one queue only, also whenever it changes.
//
// Source: Gu et al., NSDI'19 (Tiresias), discretised 2DAS; list order: released simulator, commit 959f9b0.
// Deviation: demotion happens at the very nanosecond at which the limit is reached; the released simulator mixes
// GPU-seconds with seconds there and is late.
type MLFQ struct {
	sched.ByName

	Limits  []float64 // K-1 upper limits, rising, in GPU-seconds or seconds; none = one queue
	Seconds bool      // attained service counts time, not GPU time
	Knob    float64   // promotion; 0 or +Inf = never
	Index   Index     // nil = FIFO inside queues

	jobs   arena.Pages[turn]
	seq    int64
	astray []sched.JobID
	notes  []sched.Note
}

// Index ranks a job of attained service a (in the unit of MLFQ) in queue q, larger first, and says up to which
// attained service that holds.
type Index interface {
	At(a float64, q int) (index, until float64)
}

// turn is what MLFQ remembers of one job.
type turn struct {
	queue    int32
	part     part
	known    bool
	holding  bool
	astray   bool
	rankedIn int32   // queue+1 for which index was asked
	index    float64 // see indexOf
	seq      int64   // place inside the part
	front    int64   // lost its GPUs at this version; later ones are ahead
	base     float64
	baseRun  time.Duration // run time at the last promotion
	waited   time.Duration // since the last promotion, up to since
	since    sched.Time    // waits since
}

// part is the part of a queue a job stands in: those that hold GPUs, then those that lost them, then the rest.
type part uint8

const (
	inHold part = iota
	inFront
	inTail
)

// NewMLFQ returns the order, or an error if the limits do not rise or the knob is negative.
func NewMLFQ(limits []float64, seconds bool, knob float64, index Index) (*MLFQ, error) {
	for i, l := range limits {
		if !(l > 0) || math.IsInf(l, 0) || i > 0 && l <= limits[i-1] {
			return nil, fmt.Errorf("order: thresholds %v, want finite, positive and rising", limits)
		}
	}
	if !(knob >= 0) {
		return nil, fmt.Errorf("order: promote_knob %v, want >= 0 or inf", knob)
	}
	return &MLFQ{Limits: limits, Seconds: seconds, Knob: knob, Index: index}, nil
}

var (
	_ sched.Orderer = (*MLFQ)(nil)
	_ sched.Turns   = (*MLFQ)(nil)
)

// Key demotes or promotes the job if it is time, and ranks it.
func (o *MLFQ) Key(v *sched.View, id sched.JobID) (sched.Key, sched.Time) {
	t := o.turn(id)
	if t == nil {
		t = o.jobs.Use(int(id))
		*t = turn{known: true, part: inTail, seq: o.next(), since: v.Now}
	}
	service, rate := attained(v, id, o.Seconds)
	ex := service - t.base
	until := o.demote(v, id, t, ex, rate)
	if !t.holding {
		until = min(until, o.promote(v, id, t))
		ex = service - t.base
	}
	if o.Index != nil {
		return sched.Key{Level: int64(t.queue), Value: -o.indexOf(t, ex)}, min(until, o.edge(v.Now, t, ex, rate))
	}
	k := sched.Key{Level: 2 * int64(t.queue), Seq: t.seq}
	switch t.part {
	case inFront:
		k.Level++
		k.Value = -float64(t.front)
	case inTail:
		k.Level++
	}
	return k, until
}

// indexOf returns the index of a job of attained service ex: as it was when the job last came to hold GPUs or entered
// its queue, so that jobs of a queue do not take turns as their indices fall; as it is if there is but one queue.
func (o *MLFQ) indexOf(t *turn, ex float64) float64 {
	if !t.holding || t.rankedIn != t.queue+1 || len(o.Limits) == 0 {
		t.index, _ = o.Index.At(ex, int(t.queue))
		t.rankedIn = t.queue + 1
	}
	return t.index
}

// edge returns when the index of a job that holds GPUs changes while it runs: never if there are queues.
func (o *MLFQ) edge(now sched.Time, t *turn, ex, rate float64) sched.Time {
	if len(o.Limits) > 0 || !t.holding || rate <= 0 {
		return sched.Never
	}
	_, at := o.Index.At(ex, 0)
	return reaches(now, at-ex, rate)
}

func (o *MLFQ) next() int64 {
	o.seq++
	return o.seq
}

// demote moves the job down while it has attained the limit of its queue, and returns when that will next be so. A job
// that lost its GPUs attains service until its attempt has stopped.
func (o *MLFQ) demote(v *sched.View, id sched.JobID, t *turn, ex, rate float64) sched.Time {
	for int(t.queue) < len(o.Limits) {
		left := o.Limits[t.queue] - ex
		if left > 1e-9 { // less than a nanosecond of one GPU
			return reaches(v.Now, left, rate)
		}
		t.queue++
		t.part, t.seq = inTail, o.next()
		if t.holding && !t.astray {
			t.astray = true
			o.astray = append(o.astray, id)
		}
		o.notes = append(o.notes,
			sched.Note{Job: id, Why: sched.Reason{Code: sched.WhyDemoted, A: float64(t.queue), B: ex}})
	}
	return sched.Never
}

// reaches returns when a quantity growing by rate per second has grown by left.
func reaches(now sched.Time, left, rate float64) sched.Time {
	if rate <= 0 || math.IsInf(left, 1) {
		return sched.Never
	}
	ns := math.Ceil(left/rate*1e9 - 0.01) // rounding of left must not cost a nanosecond
	if ns >= math.MaxInt64/2 {
		return sched.Never
	}
	return now.Add(max(time.Duration(ns), 1))
}

// promote moves the job to the first queue if it has waited long enough, and returns when that will be so.
func (o *MLFQ) promote(v *sched.View, id sched.JobID, t *turn) sched.Time {
	ran := v.Jobs[id].RunNow(v.Now) - t.baseRun
	if t.queue == 0 || ran <= 0 || o.Knob == 0 || math.IsInf(o.Knob, 1) {
		return sched.Never
	}
	need := time.Duration(min(math.Ceil(float64(ran)*o.Knob), math.MaxInt64/4))
	waited := t.waited + v.Now.Sub(t.since)
	if waited < need {
		return v.Now.Add(need - waited)
	}
	o.notes = append(o.notes, sched.Note{Job: id,
		Why: sched.Reason{Code: sched.WhyPromoted, A: waited.Seconds(), B: ran.Seconds()}})
	service, _ := attained(v, id, o.Seconds)
	t.base, t.baseRun = service, v.Jobs[id].RunNow(v.Now)
	t.waited, t.since = 0, v.Now
	t.queue, t.part, t.seq = 0, inTail, o.next()
	return sched.Never
}

// Took has job j stand behind all that hold GPUs in its queue.
func (o *MLFQ) Took(v *sched.View, j sched.JobID) {
	if o.turn(j) == nil {
		o.Key(v, j)
	}
	t := o.turn(j)
	if !t.holding {
		if v.Jobs[j].RunNow(v.Now) > t.baseRun {
			t.waited += v.Now.Sub(t.since)
		}
		t.holding = true
	}
	t.astray = false
	t.part, t.seq = inHold, o.next()
}

// Lost has job j stand in front of those that wait in its queue, or where it is if it has just come into the queue.
func (o *MLFQ) Lost(v *sched.View, j sched.JobID) {
	t := o.turn(j)
	if t == nil || !t.holding {
		return
	}
	t.holding, t.since = false, v.Now
	if !t.astray {
		t.part, t.front = inFront, int64(v.Version)
	}
	t.astray = false
}

// turn returns what is remembered of job j; nil = it is not known.
func (o *MLFQ) turn(j sched.JobID) *turn {
	if t := o.jobs.At(int(j)); t != nil && t.known {
		return t
	}
	return nil
}

// Left forgets job j.
func (o *MLFQ) Left(j sched.JobID) {
	if o.turn(j) != nil {
		o.jobs.Drop(int(j))
	}
}

// Astray returns the jobs demoted since it was last asked that hold GPUs still.
func (o *MLFQ) Astray() []sched.JobID {
	list := slices.DeleteFunc(o.astray, func(j sched.JobID) bool {
		t := o.turn(j)
		return t == nil || !t.astray
	})
	o.astray = o.astray[:0]
	return list
}

// Notes returns the promotions and demotions since it was last asked.
func (o *MLFQ) Notes() []sched.Note {
	n := o.notes
	o.notes = o.notes[:0]
	return n
}

// Format names what is saved.
func (*MLFQ) Format() string { return "mlfq/1" }

// SaveJob appends what is remembered of job j; nothing for one that is not known.
func (o *MLFQ) SaveJob(j sched.JobID, b []byte) []byte {
	t := o.turn(j)
	if t == nil {
		return b
	}
	b = memo.Bool(memo.Bool(append(b, byte(t.part)), t.holding), t.astray)
	for _, x := range []int64{int64(t.queue), t.seq, t.front, int64(t.baseRun), int64(t.waited), int64(t.since),
		int64(t.rankedIn)} {
		b = memo.Int(b, x)
	}
	return memo.Float(memo.Float(b, t.base), t.index)
}

// LoadJob restores what SaveJob wrote.
func (o *MLFQ) LoadJob(j sched.JobID, b []byte) error {
	if len(b) == 0 {
		return nil
	}
	r := memo.NewReader(b)
	t := turn{known: true, part: part(r.Byte(byte(inTail))), holding: r.Bool(), astray: r.Bool()}
	t.queue = int32(r.Int(0, int64(len(o.Limits))))
	for _, x := range []*int64{&t.seq, &t.front, (*int64)(&t.baseRun), (*int64)(&t.waited), (*int64)(&t.since)} {
		*x = r.Int(math.MinInt64, math.MaxInt64)
	}
	t.rankedIn = int32(r.Int(0, int64(len(o.Limits)+1)))
	t.base, t.index = r.Float(), r.Float()
	r.Want(!math.IsNaN(t.base+t.index), "attained service %v, index %v", t.base, t.index)
	if err := r.End(); err != nil {
		return fmt.Errorf("order: memory of a job in %d queues: %w", len(o.Limits)+1, err)
	}
	x := o.turn(j)
	if x == nil {
		x = o.jobs.Use(int(j))
	}
	if *x = t; t.astray {
		o.astray = append(o.astray, j)
	}
	return nil
}

// SaveRest appends the counter of places and the notes no one has asked for yet.
func (o *MLFQ) SaveRest(b []byte) []byte {
	b = memo.Uint(memo.Int(b, o.seq), uint64(len(o.notes)))
	for _, n := range o.notes {
		b = append(memo.Uint(b, uint64(n.Job)), byte(n.Why.Code))
		b = memo.Float(memo.Float(b, n.Why.A), n.Why.B)
	}
	return b
}

// LoadRest restores what SaveRest wrote.
func (o *MLFQ) LoadRest(b []byte) error {
	r := memo.NewReader(b)
	seq := r.Int(math.MinInt64, math.MaxInt64)
	notes := make([]sched.Note, r.Count(1+1+8+8))
	for i := range notes {
		notes[i] = sched.Note{Job: sched.JobID(r.Uint(math.MaxInt32)),
			Why: sched.Reason{Code: sched.ReasonCode(r.Byte(math.MaxUint8)), A: r.Float(), B: r.Float()}}
	}
	if err := r.End(); err != nil {
		return fmt.Errorf("order: memory of the queues: %w", err)
	}
	o.seq, o.notes = seq, notes
	return nil
}
