package eventlog

import (
	"encoding/binary"
	"fmt"
	"math"
	"math/bits"

	"github.com/trainyard/trainyard/sched"
)

// Hash is a Sink that hashes the log in a compact binary form: every field of every event, floats by their bits, but
// for the place of a target in the arena of its Desired. Two logs with the same events have the same sum, whether they
// were recorded or read, on any machine. It guards against accidents, not against malice. The zero value is ready to
// use; it allocates nothing.
type Hash struct {
	a, b   uint64
	events uint64
}

var _ Sink = (*Hash)(nil)

// Sum returns the hash of all events so far, as 32 hexadecimal digits.
func (h *Hash) Sum() string {
	c := *h
	c.word(c.events)
	return fmt.Sprintf("%016x%016x", mix(c.a+c.b), mix(c.a^bits.RotateLeft64(c.b, 32)))
}

// Multipliers are odd and have no pattern: the fractional parts of the golden ratio and of the square roots of 2, 3, 5.
const (
	multiplier1 = 0x9e3779b97f4a7c15
	multiplier2 = 0x6a09e667f3bcc909
	multiplier3 = 0xbb67ae8584caa73b
	multiplier4 = 0x3c6ef372fe94f82b
)

// word takes 64 bits into both lanes. Each lane is a bijection of its state for a given word, and of the word for a
// given state, so that logs that differ in one word never meet again by that word alone.
func (h *Hash) word(x uint64) {
	h.a = bits.RotateLeft64(h.a+x*multiplier1, 31) * multiplier2
	h.b = bits.RotateLeft64(h.b^x*multiplier3, 27)*multiplier4 + multiplier1
}

// mix spreads each bit over all others: the finalizer of MurmurHash3 by Austin Appleby, in the public domain.
func mix(x uint64) uint64 {
	x = (x ^ x>>33) * 0xff51afd7ed558ccd
	x = (x ^ x>>33) * 0xc4ceb9fe1a85ec53
	return x ^ x>>33
}

func two(hi, lo int32) uint64 { return uint64(uint32(hi))<<32 | uint64(uint32(lo)) }

func (h *Hash) text(s string) {
	h.word(uint64(len(s)))
	for ; len(s) >= 8; s = s[8:] {
		h.word(uint64(s[0]) | uint64(s[1])<<8 | uint64(s[2])<<16 | uint64(s[3])<<24 |
			uint64(s[4])<<32 | uint64(s[5])<<40 | uint64(s[6])<<48 | uint64(s[7])<<56)
	}
	if s != "" {
		var tail [8]byte
		copy(tail[:], s)
		h.word(binary.LittleEndian.Uint64(tail[:]))
	}
}

// hashIDs takes a list: its length, then its numbers in pairs.
func hashIDs[T ~int32](h *Hash, ids []T) {
	h.word(uint64(len(ids)))
	for ; len(ids) >= 2; ids = ids[2:] {
		h.word(two(int32(ids[0]), int32(ids[1])))
	}
	if len(ids) == 1 {
		h.word(two(int32(ids[0]), 0))
	}
}

// Log takes event e.
func (h *Hash) Log(_ *sched.View, e *sched.Event) {
	h.events++
	h.word(uint64(e.Time))
	h.word(e.Seq)
	h.word(two(int32(uint16(e.Pool))<<16|int32(e.Kind)<<8|int32(e.Outcome), e.Code))
	h.word(two(int32(e.Job), e.Attempt))
	h.word(uint64(uint32(e.Node))<<32 | parts(e))
	h.word(uint64(e.Work))
	h.word(uint64(e.WorkFrom))
	h.word(math.Float64bits(e.Rate))
	h.word(math.Float64bits(e.Value))
	if e.MemGB != 0 {
		h.word(uint64(math.Float32bits(e.MemGB)))
	}
	if e.At != 0 {
		h.word(uint64(e.At))
	}
	hashIDs(h, e.GPUs)
	h.reason(e.Why)
	h.text(e.Text)
	if e.Spec != nil {
		h.jobSpec(e.Spec)
	}
	if e.Change != nil {
		h.word(two(e.Change.Priority, e.Change.GPUs.Min))
		h.word(two(e.Change.GPUs.Want, e.Change.GPUs.Max))
		h.word(uint64(e.Change.WallTime))
		h.word(uint64(e.Change.Deadline))
		if e.Change.Spec != nil {
			h.jobSpec(e.Change.Spec)
		}
	}
	if e.NodeSpec != nil {
		h.nodeSpec(e.NodeSpec)
	}
	if e.PoolSpec != nil {
		h.poolSpec(e.PoolSpec)
	}
	if e.Target != nil {
		h.target(e.Target)
	}
}

// parts says which pointers of e are set, and whether its memory and the key of its spec are.
func parts(e *sched.Event) (set uint64) {
	for i, is := range [...]bool{e.Spec != nil, e.NodeSpec != nil, e.Target != nil, e.PoolSpec != nil, e.MemGB != 0,
		e.Change != nil, e.Spec != nil && e.Spec.Key != "", e.At != 0, e.Change != nil && e.Change.Spec != nil} {
		if is {
			set |= 1 << i
		}
	}
	return set
}

func (h *Hash) reason(r sched.Reason) {
	h.word(two(int32(r.Code), int32(r.Job)))
	h.word(math.Float64bits(r.A))
	h.word(math.Float64bits(r.B))
}

func (h *Hash) target(t *sched.Target) {
	h.word(two(int32(t.Job), t.Want))
	h.word(two(t.Batch, int32(t.Accum)))
	h.word(uint64(math.Float32bits(t.LRScale)))
	h.word(math.Float64bits(float64(t.Cap)))
	flags := uint64(t.Share) | uint64(t.At)<<8
	if t.Trial {
		flags |= 1 << 16
	}
	h.word(flags)
	h.reason(t.Why)
}

func (h *Hash) jobSpec(s *sched.JobSpec) {
	for _, text := range [...]string{s.Name, s.User, s.Group, s.Model, s.Class} {
		h.text(text)
	}
	h.word(uint64(s.Submit))
	h.word(two(s.Priority, s.Retries))
	h.word(two(s.GPUs.Min, s.GPUs.Want))
	h.word(two(s.GPUs.Max, s.Batch.Min))
	h.word(two(s.Batch.Max, s.Batch.PerGPU))
	h.word(uint64(s.Types))
	h.word(uint64(math.Float32bits(s.CPUs))<<32 | uint64(math.Float32bits(s.MemoryGB)))
	h.word(uint64(math.Float32bits(s.GPUMemGB))<<32 | uint64(s.Share))
	h.word(uint64(uint32(s.Epochs))<<32 | uint64(math.Float32bits(s.Util)))
	h.word(uint64(s.WallTime))
	h.word(uint64(s.Deadline))
	h.word(uint64(s.NotBef))
	hashIDs(h, s.After)
	h.text(s.Task)
	if s.Saves || s.Preempt != 0 { // the hash of others is as it was before there was this
		h.word(savesMark)
		h.word(uint64(s.Preempt)<<1 | one(s.Saves))
	}
	if s.Key != "" {
		h.text(s.Key)
	}
	h.ties(&s.Ties)
}

// ties hashes what is between a job and others, where something is.
func (h *Hash) ties(t *sched.Ties) {
	if len(t.AfterOK)+len(t.AfterFail) == 0 && t.Array == (sched.Array{}) {
		return
	}
	h.word(tiesMark)
	hashIDs(h, t.AfterOK)
	hashIDs(h, t.AfterFail)
	h.word(two(t.Array.Place, t.Array.Index))
	h.word(two(t.Array.Size, t.Array.AtOnce))
}

// tiesMark opens the words of a job that is a task of an array, or wants others to end in some way.
const tiesMark = 0x73656974

// savesMark opens the words of a job that says how it saves, or whether it may be stopped.
const savesMark = 0x7361766573

func one(is bool) uint64 {
	if is {
		return 1
	}
	return 0
}

func (h *Hash) nodeSpec(s *sched.NodeSpec) {
	h.text(s.Name)
	h.word(uint64(s.GPUs))
	h.word(two(s.Rack, int32(s.Sharing)<<24|int32(s.Type)<<16|int32(uint16(s.Pool))))
	h.word(uint64(math.Float32bits(s.CPUs))<<32 | uint64(math.Float32bits(s.MemoryGB)))
	h.word(uint64(math.Float32bits(s.GPUMemGB)))
	for _, x := range [...]float64{float64(s.IdleW), float64(s.BusyGPUW), float64(s.SleepW), float64(s.DollarsHr)} {
		h.word(math.Float64bits(x))
	}
	h.word(uint64(len(s.Devices)))
	for _, name := range s.Devices {
		h.text(name)
	}
	h.power(s)
}

// curveMark opens the words of a node that has a power curve or a wake delay: the hash of others is as it was before
// there were any.
const curveMark = 0x637572_7665

func (h *Hash) power(s *sched.NodeSpec) {
	if s.Curve.None() && s.Wake == 0 {
		return
	}
	for _, x := range [...]uint64{curveMark, math.Float64bits(float64(s.Curve.Scale)),
		math.Float64bits(s.Curve.Exponent),
		uint64(s.Wake), uint64(len(s.Curve.Points))} {
		h.word(x)
	}
	for _, p := range s.Curve.Points {
		h.word(math.Float64bits(p.Use))
		h.word(math.Float64bits(float64(p.Watts)))
	}
}

func (h *Hash) poolSpec(s *sched.PoolSpec) {
	h.text(s.Name)
	h.word(two(int32(s.Type), int32(s.GPUs)))
	h.word(math.Float64bits(float64(s.Price)))
	h.word(uint64(s.Boot))
	h.word(uint64(s.Billing))
	h.word(two(s.Min, s.Max))
	if s.FromJoin { // the hash of others is as it was before there was this
		h.word(joinMark)
	}
}

// joinMark stands for PoolSpec.FromJoin.
const joinMark = 0x6a6f696e
