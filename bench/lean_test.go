package bench

import (
	"math/bits"

	"github.com/trainyard/trainyard/metrics"
	"github.com/trainyard/trainyard/trace"
)

// lean is a minimal simulator of FIFO with exact GPUs: a yardstick for what an event-sourced simulator must cost. A
// gang goes to the node with the fewest free GPUs that hold it, else takes what the nodes with most free ones have, and
// the first that does not fit stops all behind it. Nodes have 64 GPUs at most, no job is wider than the cluster. With
// events each job has five records, which are folded into its live record and given to three listeners: metrics, ranks
// and a hash of 128 bits.
type lean struct {
	trace  *trace.Trace
	starts []int64 // [job] when it started

	free  []uint64   // [node] its free GPUs, as bits
	at    [][]uint64 // [k] nodes with exactly k free GPUs, as bits
	total int        // free GPUs of all

	ends    []leanEnd // a binary heap, the earliest first, then the lower job
	live    []leanJob
	unused  []int32 // records of live without a job
	waiting []int32 // records of jobs that wait, without ranks; those before head have started
	head    int
	spans   [][]leanSpan // [record] GPUs of a gang on more than one node

	busy, area int64 // GPU seconds and node time held, up to now
	nodesBusy  int
	now        int64

	events bool
	heard  []listener
	ranks  *leanRanks
}

// leanJob is what is known of a job that is there: 64 bytes.
type leanJob struct {
	submit, start, length, service int64
	mask                           uint64 // its GPUs on node, where it has one
	job, gpus, node                int32
	place                          int32 // in the heap of ranks; -1 = it is not in it
	state                          uint8
	seen                           uint8 // events so far
}

type leanSpan struct {
	mask uint64
	node int32
}

type leanEnd struct {
	at          int64
	job, record int32
}

// leanEvent is a record of the log: 40 bytes.
type leanEvent struct {
	at, length int64
	mask       uint64
	job, gpus  int32
	node       int32
	kind       leanKind
}

type leanKind uint8

// The five events of a job.
const (
	leanArrived leanKind = iota
	leanTarget
	leanStarted
	leanEnded
	leanReleased
)

// listener is given each event after it was folded.
type listener interface {
	hear(e *leanEvent, j *leanJob, record int32)
}

// newLean returns a simulator of nodes that all have as many GPUs. Room for jobs is made at once.
func newLean(t *trace.Trace, nodes, gpus int, events bool) *lean {
	l := &lean{trace: t, starts: make([]int64, len(t.Jobs)), free: make([]uint64, nodes),
		at: make([][]uint64, gpus+1), total: nodes * gpus, events: events}
	words := (nodes + 63) / 64
	for k := range l.at {
		l.at[k] = make([]uint64, words)
	}
	for n := range l.free {
		l.free[n] = 1<<gpus - 1
		l.at[gpus][n/64] |= 1 << (n % 64)
	}
	if events {
		l.ranks = &leanRanks{all: l}
		l.heard = []listener{&leanMetrics{jobs: make([]metrics.Job, len(t.Jobs))}, l.ranks, &leanHash{}}
	}
	return l
}

// run simulates to the end.
func (l *lean) run() {
	for next := 0; next < len(l.trace.Jobs) || len(l.ends) > 0; {
		now := int64(-1)
		if len(l.ends) > 0 {
			now = l.ends[0].at
		}
		if next < len(l.trace.Jobs) {
			if at := int64(l.trace.Jobs[next].Spec.Submit); now < 0 || at < now {
				now = at
			}
		}
		l.advance(now)
		for len(l.ends) > 0 && l.ends[0].at == now {
			l.end(l.popEnd())
		}
		for ; next < len(l.trace.Jobs) && int64(l.trace.Jobs[next].Spec.Submit) == now; next++ {
			l.arrive(int32(next))
		}
		for r := l.first(); r >= 0 && int(l.live[r].gpus) <= l.total; r = l.first() {
			l.begin(r)
		}
	}
}

// advance integrates what is held up to now.
func (l *lean) advance(now int64) {
	dt := now - l.now
	l.busy += dt * int64(len(l.free)*(len(l.at)-1)-l.total)
	l.area += dt * int64(l.nodesBusy)
	l.now = now
}

func (l *lean) arrive(job int32) {
	r := int32(len(l.live))
	if n := len(l.unused); n > 0 {
		r, l.unused = l.unused[n-1], l.unused[:n-1]
	} else {
		l.live, l.spans = append(l.live, leanJob{}), append(l.spans, nil)
	}
	t := &l.trace.Jobs[job]
	l.live[r] = leanJob{submit: l.now, length: int64(t.Duration), job: job, gpus: t.Spec.GPUs.Max, place: -1}
	l.emit(r, leanArrived)
	if !l.events {
		l.waiting = append(l.waiting, r)
	}
}

// first returns the record of the job that is first in line, -1 if none waits.
func (l *lean) first() int32 {
	switch {
	case l.events && len(l.ranks.order) > 0:
		return l.ranks.order[0]
	case !l.events && l.head < len(l.waiting):
		return l.waiting[l.head]
	}
	return -1
}

// begin starts a job for which there are enough GPUs.
func (l *lean) begin(r int32) {
	j := &l.live[r]
	l.take(r)
	if j.start = l.now; !l.events {
		l.head++
	}
	l.starts[j.job] = l.now
	l.emit(r, leanTarget)
	l.emit(r, leanStarted)
	l.pushEnd(leanEnd{l.now + j.length, j.job, r})
}

func (l *lean) end(e leanEnd) {
	l.emit(e.record, leanEnded)
	j := &l.live[e.record]
	if gang := l.spans[e.record]; len(gang) > 0 {
		for _, s := range gang {
			l.put(s.node, s.mask)
		}
		l.spans[e.record] = gang[:0]
	} else {
		l.put(j.node, j.mask)
	}
	l.emit(e.record, leanReleased)
	l.unused = append(l.unused, e.record)
}

// take gives a job its GPUs, of which there are enough.
func (l *lean) take(r int32) {
	j := &l.live[r]
	left := int(j.gpus)
	for k := left; k < len(l.at); k++ {
		if n := l.nodeWith(k); n >= 0 {
			j.node, j.mask = n, l.cut(n, left)
			return
		}
	}
	j.node = -1
	for k := len(l.at) - 1; left > 0; {
		n := l.nodeWith(k)
		if n < 0 {
			k--
			continue
		}
		part := min(k, left)
		l.spans[r] = append(l.spans[r], leanSpan{l.cut(n, part), n})
		left -= part
	}
}

// nodeWith returns the first node with k free GPUs, -1 if there is none.
func (l *lean) nodeWith(k int) int32 {
	for w, word := range l.at[k] {
		if word != 0 {
			return int32(w*64 + bits.TrailingZeros64(word))
		}
	}
	return -1
}

// cut takes the k lowest free GPUs of a node.
func (l *lean) cut(node int32, k int) uint64 {
	left := l.free[node]
	for range k {
		left &= left - 1
	}
	mask := l.free[node] ^ left
	l.put(node, mask)
	return mask
}

// put takes the GPUs of a mask if they are free, and frees them if they are taken.
func (l *lean) put(node int32, mask uint64) {
	was := bits.OnesCount64(l.free[node])
	l.free[node] ^= mask
	is := bits.OnesCount64(l.free[node])
	l.at[was][node/64] &^= 1 << (node % 64)
	l.at[is][node/64] |= 1 << (node % 64)
	l.total += is - was
	if whole := len(l.at) - 1; was == whole {
		l.nodesBusy++
	} else if is == whole {
		l.nodesBusy--
	}
}

// emit folds an event into the job's record and gives it to all who listen.
func (l *lean) emit(r int32, kind leanKind) {
	if !l.events {
		return
	}
	j := &l.live[r]
	e := leanEvent{at: l.now, length: j.length, mask: j.mask, job: j.job, gpus: j.gpus, node: j.node, kind: kind}
	j.state, j.seen = uint8(kind), j.seen+1
	if kind == leanEnded {
		j.service = (l.now - j.start) * int64(j.gpus)
	}
	for _, h := range l.heard {
		h.hear(&e, j, r)
	}
}

func (l *lean) pushEnd(e leanEnd) {
	l.ends = append(l.ends, e)
	h := l.ends
	for i := len(h) - 1; i > 0 && h[i].before(h[(i-1)/2]); i = (i - 1) / 2 {
		h[i], h[(i-1)/2] = h[(i-1)/2], h[i]
	}
}

func (e leanEnd) before(o leanEnd) bool { return e.at < o.at || e.at == o.at && e.job < o.job }

func (l *lean) popEnd() leanEnd {
	h := l.ends
	top, last := h[0], len(h)-1
	h[0], h = h[last], h[:last]
	for i := 0; ; {
		c := 2*i + 1
		if c+1 < last && h[c+1].before(h[c]) {
			c++
		}
		if c >= last || !h[c].before(h[i]) {
			l.ends = h
			return top
		}
		h[i], h[c] = h[c], h[i]
		i = c
	}
}
