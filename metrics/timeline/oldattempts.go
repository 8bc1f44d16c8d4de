package timeline

import (
	"encoding/binary"
	"math"
	"math/bits"
	"slices"

	"github.com/trainyard/trainyard/sched"
)

// perChunk is how many attempts are packed together, once the jobs of all of them are done.
const perChunk = 32

// old is where a Timeline keeps Jobs and Attempts, where those of jobs that are done are to take few bytes.
type old struct {
	view   *sched.View // that events are about: it has what submitters said of jobs
	n      int         // attempts
	chunks []chunk
	other  map[sched.JobID]Job // of jobs that are done, whose description the View no longer has
}

// chunk is perChunk attempts, in the order in which they were ordered; the last one may have fewer.
type chunk struct {
	list      []Attempt // nil = they are packed
	packed    []byte
	open      int32 // how many are of jobs that are not done
	low, high sched.JobID
}

// NewCompact returns a Timeline that keeps what is over in few bytes. Its Jobs and Attempts are empty: Snapshot has
// them, as a Timeline that is not compact would, and OfJob some. watts is Watts.
func NewCompact(m Meter) *Timeline { return &Timeline{Meter: m, old: new(old)} }

// add appends an attempt.
func (o *old) add(a Attempt) {
	if o.n%perChunk == 0 {
		o.chunks = append(o.chunks, chunk{list: make([]Attempt, 0, perChunk), low: a.Job, high: a.Job})
	}
	o.n++
	c := &o.chunks[len(o.chunks)-1]
	c.list = append(c.list, a)
	c.open++
	c.low, c.high = min(c.low, a.Job), max(c.high, a.Job)
}

// at returns attempt i of a job that is not done.
func (o *old) at(i int) *Attempt { return &o.chunks[i/perChunk].list[i%perChunk] }

// over notes that a job is done of which these are the attempts.
func (o *old) over(own []int32) {
	for _, i := range own {
		c := &o.chunks[i/perChunk]
		if c.open--; c.open > 0 || len(c.list) < perChunk {
			continue
		}
		for k := range c.list {
			c.packed = packAttempt(c.packed, &c.list[k])
		}
		c.packed, c.list = slices.Clone(c.packed), nil
	}
}

// all appends all attempts of a chunk to a list.
func (c *chunk) all(list []Attempt) []Attempt {
	if c.list != nil {
		return append(list, c.list...)
	}
	for b := c.packed; len(b) > 0; {
		var a Attempt
		a, b = unpackAttempt(b)
		list = append(list, a)
	}
	return list
}

// all returns all attempts.
func (o *old) all() []Attempt {
	list := make([]Attempt, 0, o.n)
	for i := range o.chunks {
		list = o.chunks[i].all(list)
	}
	return list
}

// OfJob returns the attempts of a job, in the order in which they were ordered.
func (t *Timeline) OfJob(id sched.JobID) (list []Attempt) {
	pick := func(from []Attempt) {
		for i := range from {
			if from[i].Job == id {
				list = append(list, from[i])
			}
		}
	}
	if t.old == nil {
		pick(t.Attempts)
		return list
	}
	for i := range t.old.chunks {
		if c := &t.old.chunks[i]; c.low <= id && id <= c.high {
			pick(c.all(nil))
		}
	}
	return list
}

// said returns how a job is described that is not done.
func (t *Timeline) said(id sched.JobID, l *live) *Job {
	if t.old == nil {
		return &t.Jobs[id]
	}
	return &l.job
}

// forget notes that job id is done, whose description the View has from now on, if it has the same.
func (t *Timeline) forget(id sched.JobID, l *live) {
	if t.old == nil {
		return
	}
	if l.job != described(&t.old.view.Jobs[id]) {
		if t.old.other == nil {
			t.old.other = make(map[sched.JobID]Job)
		}
		t.old.other[id] = l.job
	}
	t.old.over(l.own)
}

// jobs returns what submitters said of all jobs, by JobID.
func (o *old) jobs(b *jobs) []Job {
	list := make([]Job, len(b.at))
	for i := range list {
		id := sched.JobID(i)
		if l := b.of(id); l != nil {
			list[i] = l.job
		} else if other, is := o.other[id]; is {
			list[i] = other
		} else {
			list[i] = described(&o.view.Jobs[id])
		}
	}
	return list
}

// described returns a job as the View has it.
func described(j *sched.Job) Job {
	s := j.Spec
	return Job{Name: s.Name, User: s.User, Group: s.Group, Model: s.Model, Class: s.Class, Submit: j.Arrived,
		Deadline: s.Deadline, GPUs: s.GPUs}
}

// packedByUser is the bit of a packed outcome that says that the user had the attempt stopped.
const packedByUser = 1 << 7

// packAttempt appends an attempt: times as differences to the one before, which are small.
func packAttempt(b []byte, a *Attempt) []byte {
	for _, x := range [...]int64{int64(a.Job), int64(a.Number), int64(a.Ordered), int64(a.Batch),
		int64(a.Given)} {
		b = binary.AppendVarint(b, x)
	}
	outcome := byte(a.Outcome)
	if a.byUser {
		outcome |= packedByUser
	}
	b = append(b, outcome, byte(a.Marks), byte(a.Reason.Code))
	b = binary.AppendVarint(b, int64(a.Reason.Job))
	for _, x := range [...]float64{a.Reason.A, a.Reason.B} {
		b = binary.AppendUvarint(b, bits.ReverseBytes64(math.Float64bits(x)))
	}
	last := a.Ordered
	for _, x := range a.times() {
		if *x == sched.None {
			b = append(b, 0)
			continue
		}
		b = binary.AppendUvarint(b, zigzag(int64(*x-last))+1)
		last = *x
	}
	b = binary.AppendUvarint(b, uint64(len(a.GPUs)))
	for _, r := range a.GPUs {
		b = binary.AppendUvarint(binary.AppendUvarint(b, uint64(r.First)), uint64(r.Count))
	}
	return b
}

// unpackAttempt reads an attempt from b, and returns what follows it.
func unpackAttempt(b []byte) (Attempt, []byte) {
	u := unpacker(b)
	var a Attempt
	a.Job, a.Number = sched.JobID(u.signed()), int32(u.signed())
	a.Ordered, a.Batch = sched.Time(u.signed()), int32(u.signed())
	a.Given = uint64(u.signed())
	outcome := u.octet()
	a.Outcome, a.byUser, a.Marks = sched.Outcome(outcome&^packedByUser), outcome&packedByUser != 0, Marks(u.octet())
	a.Reason.Code, a.Reason.Job = sched.ReasonCode(u.octet()), sched.JobID(u.signed())
	a.Reason.A = math.Float64frombits(bits.ReverseBytes64(u.unsigned()))
	a.Reason.B = math.Float64frombits(bits.ReverseBytes64(u.unsigned()))
	last := a.Ordered
	for _, x := range a.times() {
		z := u.unsigned()
		if *x = sched.None; z > 0 {
			*x = last + sched.Time(int64((z-1)>>1)^-int64((z-1)&1))
			last = *x
		}
	}
	a.GPUs = make([]Run, u.unsigned())
	for i := range a.GPUs {
		a.GPUs[i] = Run{sched.GPUID(u.unsigned()), int32(u.unsigned())}
	}
	return a, u
}

// times are those of an attempt that may be None, in the order in which they mostly come.
func (a *Attempt) times() [5]*sched.Time {
	return [...]*sched.Time{&a.Up, &a.Work, &a.Kept, &a.Stopped, &a.Ended}
}

// unpacker is what is left of a packed chunk.
type unpacker []byte

func (u *unpacker) unsigned() uint64 {
	x, n := binary.Uvarint(*u)
	*u = (*u)[n:]
	return x
}

func (u *unpacker) signed() int64 {
	x, n := binary.Varint(*u)
	*u = (*u)[n:]
	return x
}

func (u *unpacker) octet() byte {
	x := (*u)[0]
	*u = (*u)[1:]
	return x
}

// zigzag makes small numbers of either sign small ones without.
func zigzag(x int64) uint64 { return uint64(x)<<1 ^ uint64(x>>63) }
