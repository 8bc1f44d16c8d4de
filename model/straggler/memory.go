package straggler

import (
	"cmp"
	"encoding/binary"
	"errors"
	"math"
	"slices"

	"github.com/trainyard/trainyard/sched"
)

// Numbers are written as 8 bytes, little end first; lists and texts behind their length. What a Detector remembers of a
// job is its attempt and its history; the rest is GPUs, nodes, kinds, noise and cases.

var errMemory = errors.New("straggler: memory is cut short, too long or makes no sense")

// SaveJob appends what is remembered of job j, nothing if that is nothing.
func (d *Detector) SaveJob(j sched.JobID, b []byte) []byte {
	if j < 0 || int(j) >= len(d.live) || d.live[j] == nil && len(d.past[j]) == 0 {
		return b
	}
	b = putInt(b, len(d.past[j]))
	for _, p := range d.past[j] {
		b = putInt(putFloat(putKind(b, d.peers[p.kind].kind), p.ref), p.weight)
	}
	a := d.live[j]
	if a == nil {
		return append(b, 0)
	}
	b = putGPUs(putKind(append(b, 1), d.peers[a.kind].kind), a.gpus)
	b = putNoise(b, a.noise)
	for _, x := range []float64{a.expected, a.ref, a.dead, a.up, a.down} {
		b = putFloat(b, x)
	}
	for _, x := range []int{int(a.began), int(a.last), a.n, int(a.rise), int(a.onset), a.checks, a.settle, a.weight,
		int(a.source), toInt(a.slow)} {
		b = putInt(b, x)
	}
	for i := range a.recent {
		b = putInt(putFloat(b, a.recent[i]), int(a.times[i]))
	}
	return b
}

// LoadJob takes what SaveJob wrote of job j. On error all stays as it was.
func (d *Detector) LoadJob(j sched.JobID, b []byte) error {
	r := reader{b: b}
	type saved struct {
		kind   Kind
		ref    float64
		weight int
	}
	var history []saved
	for range r.length(5) {
		history = append(history, saved{r.kind(), r.level(), int(r.int(1, refined))})
	}
	var a *attempt
	var kind Kind
	if r.flag() {
		a = &attempt{job: j}
		kind, a.gpus = r.kind(), r.gpus()
		r.attempt(a)
	}
	if j < 0 || !r.done() || a != nil && len(a.gpus) == 0 {
		return errMemory
	}
	if a != nil && len(d.gpus) > 0 && !d.knows(a.gpus) {
		return errMemory
	}
	for int(j) >= len(d.live) {
		d.live, d.past = append(d.live, nil), append(d.past, nil)
	}
	d.past[j] = nil
	for _, p := range history {
		d.past[j] = append(d.past[j], past{d.kindOf(p.kind), p.ref, p.weight})
	}
	if a != nil {
		a.kind = d.kindOf(kind)
	}
	d.live[j] = a
	return nil
}

// SaveRest appends all that is not of one running job.
func (d *Detector) SaveRest(b []byte) []byte {
	b = putInt(b, len(d.gpus))
	for _, g := range d.gpus {
		b = putInt(putInt(putInt(b, int(g.node)), int(g.clear)), int(g.marked))
	}
	b = putInt(b, len(d.nodes))
	for i := range d.nodes {
		b = putGPUs(putInt(b, int(d.nodes[i].rack)), d.nodes[i].gpus)
	}
	b = putNoise(b, d.noise)
	known := slices.DeleteFunc(slices.Clone(d.peers), func(c cohort) bool { return c.noise.n == 0 })
	slices.SortFunc(known, func(x, y cohort) int {
		return cmp.Or(cmp.Compare(x.kind.Model, y.kind.Model), cmp.Compare(x.kind.GPUs, y.kind.GPUs),
			cmp.Compare(x.kind.Nodes, y.kind.Nodes))
	})
	b = putInt(b, len(known))
	for _, c := range known {
		b = putInt(putNoise(putKind(b, c.kind), c.noise), len(c.jobs))
		for i := range c.jobs {
			b = putFloat(putInt(b, int(c.jobs[i])), c.refs[i])
		}
	}
	b = putInt(b, len(d.cases))
	for _, c := range d.cases {
		b = putGPUs(putInt(b, int(c.job)), c.gpus)
		b = putInt(putInt(putFloat(putInt(putInt(b, int(c.onset)), int(c.last)), c.level), int(c.reported)),
			toInt(c.open))
	}
	return b
}

// LoadRest takes what SaveRest wrote. On error all stays as it was.
func (d *Detector) LoadRest(b []byte) error {
	r := reader{b: b}
	next := Detector{gpus: make([]gpu, r.length(3)), kinds: d.kinds}
	for i := range next.gpus {
		next.gpus[i] = gpu{node: int32(r.int(sched.None, math.MaxInt32)), clear: r.time(), marked: int8(r.int(0, owed))}
	}
	next.nodes = make([]site, r.length(2))
	for i := range next.nodes {
		next.nodes[i] = site{rack: int32(r.int(0, maxRack)), gpus: r.gpus()}
	}
	next.noise = r.noise()
	known, ok := r.cohorts()
	if !ok {
		return errMemory
	}
	for range r.length(6) {
		c := &incident{job: sched.JobID(r.int(0, math.MaxInt32)), gpus: r.gpus(), onset: r.time(), last: r.time(),
			level: r.level()}
		c.reported, c.open = int8(r.int(0, outweigh)), r.int(0, 1) == 1
		next.cases = append(next.cases, c)
	}
	if !r.done() || len(next.cases) > maxCases || !next.whole() {
		return errMemory
	}
	for _, a := range d.live {
		if a != nil && !next.knows(a.gpus) {
			return errMemory
		}
	}
	d.replace(&next, known)
	return nil
}

// cohorts reads the cohorts of which something is known; ok is false if one has too many jobs.
func (r *reader) cohorts() (known []cohort, ok bool) {
	for range r.length(4) {
		c := cohort{kind: r.kind(), noise: r.noise()}
		n := r.length(2)
		if n > maxPeers {
			return nil, false
		}
		for range n {
			c.jobs, c.refs = append(c.jobs, sched.JobID(r.int(0, math.MaxInt32))), append(c.refs, r.level())
		}
		known = append(known, c)
	}
	return known, true
}

// replace has d know what next knows, running jobs apart, and of cohorts only those given.
func (d *Detector) replace(next *Detector, known []cohort) {
	d.gpus, d.nodes, d.noise, d.cases = next.gpus, next.nodes, next.noise, next.cases
	d.widest = 0
	for i := range d.nodes {
		d.widest = max(d.widest, int32(len(d.nodes[i].gpus)))
	}
	for i := range d.peers {
		d.peers[i] = cohort{kind: d.peers[i].kind}
	}
	for _, c := range known {
		d.peers[d.kindOf(c.kind)] = c
	}
}

// whole reports whether all GPUs and nodes spoken of are there.
func (d *Detector) whole() bool {
	for _, g := range d.gpus {
		if int(g.node) >= len(d.nodes) {
			return false
		}
	}
	for n := range d.nodes {
		for _, g := range d.nodes[n].gpus {
			if int(g) >= len(d.gpus) || d.gpus[g].node != int32(n) {
				return false
			}
		}
	}
	for _, c := range d.cases {
		if len(c.gpus) == 0 || !d.knows(c.gpus) {
			return false
		}
	}
	return true
}

func putInt(b []byte, x int) []byte { return binary.LittleEndian.AppendUint64(b, uint64(x)) }

func putFloat(b []byte, x float64) []byte {
	return binary.LittleEndian.AppendUint64(b, math.Float64bits(x))
}

func putNoise(b []byte, s noise) []byte { return putInt(putFloat(b, s.mid), int(s.n)) }

func putKind(b []byte, k Kind) []byte {
	return append(putInt(putInt(putInt(b, int(k.GPUs)), int(k.Nodes)), len(k.Model)), k.Model...)
}

func putGPUs(b []byte, gpus []sched.GPUID) []byte {
	b = putInt(b, len(gpus))
	for _, g := range gpus {
		b = putInt(b, int(g))
	}
	return b
}

func toInt(x bool) int {
	if x {
		return 1
	}
	return 0
}

// reader takes numbers off b; once something is wrong it gives zeros.
type reader struct {
	b   []byte
	bad bool
}

// maxRack bounds the number of a rack: units are counted in arrays.
const maxRack = 1 << 20

func (r *reader) done() bool { return !r.bad && len(r.b) == 0 }

func (r *reader) word() uint64 {
	if r.bad || len(r.b) < 8 {
		r.bad = true
		return 0
	}
	x := binary.LittleEndian.Uint64(r.b)
	r.b = r.b[8:]
	return x
}

func (r *reader) int(low, high int64) int64 {
	x := int64(r.word())
	if x < low || x > high {
		r.bad = true
		return 0
	}
	return x
}

// length reads the length of a list whose items have at least so many words.
func (r *reader) length(words int) int {
	n := r.int(0, int64(len(r.b)/(8*words)))
	if r.bad {
		return 0
	}
	return int(n)
}

func (r *reader) flag() bool {
	if r.bad || len(r.b) == 0 || r.b[0] > 1 {
		r.bad = true
		return false
	}
	x := r.b[0] == 1
	r.b = r.b[1:]
	return x
}

func (r *reader) time() sched.Time { return sched.Time(r.int(sched.None, math.MaxInt64)) }

// level reads a finite number; the logarithm of no float64 is as large as 1e4.
func (r *reader) level() float64 {
	x := math.Float64frombits(r.word())
	if !(math.Abs(x) <= 1e4) {
		r.bad = true
		return 0
	}
	return x
}

func (r *reader) noise() noise {
	s := noise{r.level(), r.int(0, math.MaxInt64)}
	r.bad = r.bad || s.mid < 0 || (s.mid == 0) != (s.n == 0)
	return s
}

func (r *reader) kind() Kind {
	k := Kind{GPUs: int32(r.int(math.MinInt32, math.MaxInt32)), Nodes: int32(r.int(math.MinInt32, math.MaxInt32))}
	n := r.int(0, int64(len(r.b)))
	if r.bad || int(n) > len(r.b) {
		r.bad = true
		return Kind{}
	}
	k.Model = string(r.b[:n])
	r.b = r.b[n:]
	return k
}

func (r *reader) gpus() []sched.GPUID {
	gpus := make([]sched.GPUID, r.length(1))
	for i := range gpus {
		gpus[i] = sched.GPUID(r.int(0, math.MaxInt32))
	}
	return gpus
}

// attempt reads what SaveJob wrote behind kind and GPUs.
func (r *reader) attempt(a *attempt) {
	a.noise = r.noise()
	for _, x := range []*float64{&a.expected, &a.ref, &a.dead, &a.up, &a.down} {
		*x = r.level()
	}
	a.began, a.last, a.n, a.rise, a.onset = r.time(), r.time(), int(r.int(0, math.MaxInt32)), r.time(), r.time()
	a.checks, a.settle = int(r.int(0, math.MaxInt32)), int(r.int(0, math.MaxInt32))
	a.weight, a.source, a.slow = int(r.int(0, refined)), source(r.int(0, int64(earlier))), r.int(0, 1) == 1
	r.bad = r.bad || a.dead < 0 || a.up < 0 || a.down < 0 || a.slow && a.n < least
	for i := range a.recent {
		a.recent[i], a.times[i] = r.level(), r.time()
	}
}
