package bench

import (
	"math/bits"
	"testing"

	"github.com/trainyard/trainyard/metrics"
	"github.com/trainyard/trainyard/sched"
	"github.com/trainyard/trainyard/simulate"
)

// leanMetrics keeps a record of each job.
type leanMetrics struct {
	jobs                   []metrics.Job
	finished, started      int
	wait, completion, held int64
}

func (m *leanMetrics) hear(e *leanEvent, j *leanJob, _ int32) {
	out := &m.jobs[e.job]
	switch e.kind {
	case leanArrived:
		out.GPUs, out.Submit = e.gpus, sched.Time(e.at)
	case leanStarted:
		out.Start = sched.Time(e.at)
		m.started++
		m.wait += e.at - j.submit
	case leanEnded:
		out.Finish, out.Outcome = sched.Time(e.at), sched.Finished
		out.Run = out.Finish.Sub(out.Start)
		m.held += j.service
	case leanReleased:
		m.finished++
		m.completion += e.at - j.submit
	}
}

// leanRanks orders jobs that wait by submission, then by number: a heap whose jobs know their places.
type leanRanks struct {
	all   *lean
	order []int32 // records
}

func (h *leanRanks) hear(e *leanEvent, _ *leanJob, record int32) {
	switch e.kind {
	case leanArrived:
		h.order = append(h.order, record)
		h.up(len(h.order) - 1)
	case leanTarget:
		h.remove(int(h.all.live[record].place))
	}
}

func (h *leanRanks) less(a, b int32) bool {
	x, y := &h.all.live[a], &h.all.live[b]
	return x.submit < y.submit || x.submit == y.submit && x.job < y.job
}

func (h *leanRanks) set(i int, record int32) {
	h.order[i] = record
	h.all.live[record].place = int32(i)
}

func (h *leanRanks) up(i int) {
	r := h.order[i]
	for ; i > 0 && h.less(r, h.order[(i-1)/2]); i = (i - 1) / 2 {
		h.set(i, h.order[(i-1)/2])
	}
	h.set(i, r)
}

func (h *leanRanks) remove(i int) {
	last := len(h.order) - 1
	h.all.live[h.order[i]].place = -1
	moved := h.order[last]
	h.order = h.order[:last]
	if i == last {
		return
	}
	for {
		c := 2*i + 1
		if c+1 < last && h.less(h.order[c+1], h.order[c]) {
			c++
		}
		if c >= last || !h.less(h.order[c], moved) {
			break
		}
		h.set(i, h.order[c])
		i = c
	}
	h.set(i, moved)
	h.up(i)
}

// leanHash hashes all fields of all events.
type leanHash struct{ a, b uint64 }

func (h *leanHash) hear(e *leanEvent, _ *leanJob, _ int32) {
	for _, x := range [...]uint64{uint64(e.at), uint64(e.length), e.mask, uint64(e.job)<<32 | uint64(uint32(e.gpus)),
		uint64(e.node)<<8 | uint64(e.kind)} {
		h.a = bits.RotateLeft64(h.a+x*0x9e3779b97f4a7c15, 31) * 0x6a09e667f3bcc909
		h.b = bits.RotateLeft64(h.b^x*0xbb67ae8584caa73b, 27) * 0x3c6ef372fe94f82b
	}
}

// Ensure that the yardstick decides as FIFO does: each of Philly's jobs starts when it does under fifo.
func TestLeanStartsAsFIFO(t *testing.T) {
	jobs := phillyTrace(t)
	out, err := (&simulate.Request{Trace: jobs, Cluster: load(t, "352x8"), System: "fifo",
		Settings: map[string]string{"placement": "packed"}}).Run(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, events := range []bool{false, true} {
		l := newLean(jobs, 352, 8, events)
		l.run()
		wrong := 0
		for i := range out.PerJob {
			if l.starts[i] != int64(out.PerJob[i].Start) {
				wrong++
			}
		}
		if wrong > 0 || len(out.PerJob) != 111_549 {
			t.Errorf("events %v: %d of %d jobs start at another time", events, wrong, len(out.PerJob))
		}
	}
}
