package engine_test

import (
	"bytes"
	"strings"
	"testing"

	"github.com/trainyard/trainyard/eventlog"
	"github.com/trainyard/trainyard/internal/memo"
	"github.com/trainyard/trainyard/memory"
	"github.com/trainyard/trainyard/pipeline"
	"github.com/trainyard/trainyard/sched"
	"github.com/trainyard/trainyard/stage/order"
	"github.com/trainyard/trainyard/stage/place"
	"github.com/trainyard/trainyard/stage/provision"
)

// older is a Decider that saves as the one inside, in an older format.
type older struct{ sched.Decider }

func (older) Format() string { return "pipeline/0" }

// Ensure that memory of another version, or of a system made of other parts, is refused with what was found and wanted,
// and never misread.
func TestMemoryOfOthers(t *testing.T) {
	queues := func(learned bool) sched.Orderer {
		if learned {
			q, err := order.NewLearnedGittins([]float64{5}, false, 0, 0)
			must(err)
			return q
		}
		q, err := order.NewMLFQ([]float64{5}, false, 0, nil)
		must(err)
		return q
	}
	plain := func() sched.Decider {
		return pipeline.New(pipeline.Stages{Order: queues(false), Place: place.Count{}})
	}
	learned := func() sched.Decider {
		return pipeline.New(pipeline.Stages{Order: queues(true), Place: place.Count{}})
	}
	fifo := func() sched.Decider { return pipeline.New(plainFIFO) }
	skew := func() sched.Decider {
		return pipeline.New(pipeline.Stages{Order: queues(false),
			Place: place.NewLearnedSkew(func(string) (float64, bool) {
				return 0, false
			})})
	}
	sleeps := func() sched.Decider {
		return pipeline.Compose(plain(), pipeline.Parts{Provision: []sched.Provisioner{&provision.Sleep{}}})
	}
	old := func() sched.Decider { return older{plain()} }
	v := &sched.View{Jobs: []sched.Job{{Spec: &sched.JobSpec{GPUs: sched.Rigid(1)}, State: sched.Waiting}},
		Nodes: []sched.Node{{Spec: sched.NodeSpec{GPUs: 1, Pool: sched.None}}}, GPUs: make([]sched.GPU, 1)}
	for _, c := range []struct {
		from, to func() sched.Decider
		want     string
	}{
		{plain, plain, ""},
		{sleeps, sleeps, ""},
		{old, plain, `engine: memory of job 0: found memory of "pipeline/0", want that of pipeline/1`},
		{plain, sleeps, `engine: memory of job 0: found memory of "pipeline/1", want that of parts/1`},
		{plain, learned, `engine: memory of job 0: pipeline/1: found memory of "mlfq/1", want that of ` +
			`learned-gittins/1`},
		{plain, fifo, `engine: memory of job 0: pipeline/1: found memory of "mlfq/1", want no more`},
		{fifo, plain, `engine: memory of job 0: pipeline/1: found nothing more, want memory of mlfq/1`},
		{plain, skew, `engine: memory of job 0: pipeline/1: found nothing more, want memory of learned-skew/1`},
	} {
		from := c.from()
		from.Decide(v, &sched.Desired{})
		got := ""
		if err := memory.Save(v, from).Load(v, c.to()); err != nil {
			got = err.Error()
		}
		if got != c.want {
			t.Errorf("%s, want %s", got, c.want)
		}
		if c.want == "" {
			continue
		}
		m := memory.Save(v, from)
		m.Jobs = nil // the rest alone says it as well
		if err := m.Load(v, c.to()); err == nil || !strings.HasPrefix(err.Error(), "engine: memory: ") {
			t.Errorf("of the rest: %v, want as of a job: %s", err, c.want)
		}
	}
}

// FuzzLoadMemory loads anything into a pipeline that remembers: it may refuse, but must not panic.
func FuzzLoadMemory(f *testing.F) {
	new := func() *pipeline.Pipeline {
		q, err := order.NewLearnedGittins([]float64{5}, false, 2, 0)
		must(err)
		return pipeline.New(pipeline.Stages{Order: q, KeepOrder: true,
			Place: place.NewLearnedSkew(func(string) (float64, bool) {
				return 0, false
			})})
	}
	v := &sched.View{Jobs: []sched.Job{{Spec: &sched.JobSpec{GPUs: sched.Rigid(1)}, State: sched.Waiting}},
		Nodes: []sched.Node{{Spec: sched.NodeSpec{GPUs: 1, Pool: sched.None}}}, GPUs: make([]sched.GPU, 1)}
	p := new()
	p.Decide(v, &sched.Desired{})
	m := memory.Save(v, p)
	f.Add(m.Jobs[0], m.Rest)
	f.Add(memo.NoPart(nil), m.Rest)
	f.Fuzz(func(_ *testing.T, job, rest []byte) {
		_ = memory.Memory{Jobs: [][]byte{job}, Rest: rest}.Load(v, new())
	})
}

// Ensure that what the store looks for is in the line of every Renewed, and in no other that quotes it.
func TestRenewedMark(t *testing.T) {
	for kind, want := range map[sched.EventKind]bool{sched.Renewed: true, sched.Noted: false} {
		line := eventlog.AppendEvent(nil, 1,
			&sched.Event{Seq: 1, Kind: kind, Job: sched.None, Text: eventlog.RenewedMark})
		if got := bytes.Contains(line, []byte(eventlog.RenewedMark)); got != want {
			t.Errorf("%v: %s has the mark: %v, want %v", kind, line, got, want)
		}
	}
}
