package engine_test

import (
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/trainyard/trainyard/engine"
	"github.com/trainyard/trainyard/eventlog"
	"github.com/trainyard/trainyard/sched"
)

// deal is a Decider and Driver of one instant after another: at instant k each job i is to hold sets[k][i]. The targets
// are named in an order drawn from r.
type deal struct {
	script
	r    *rand.Rand
	sets [][][]sched.GPUID
	k    int
}

func (d *deal) Sync(context.Context, *sched.View) ([]sched.Event, error) {
	events := []sched.Event{{Kind: sched.NodeJoined, NodeSpec: &sched.NodeSpec{Name: "a", GPUs: 8, Pool: sched.None}}}
	for range d.sets[0] {
		events = append(events, sched.Event{Kind: sched.JobArrived,
			Spec: &sched.JobSpec{GPUs: sched.Range{Min: 1, Want: 1, Max: 8}}})
	}
	return events, nil
}

func (d *deal) Next(context.Context, sched.Time) ([]sched.Event, error) {
	if d.k++; d.k == len(d.sets) {
		return nil, io.EOF
	}
	return []sched.Event{{Time: sched.Time(d.k), Kind: sched.Ticked}}, nil
}

func (d *deal) Decide(_ *sched.View, to *sched.Desired) {
	for _, i := range d.r.Perm(len(d.sets[d.k])) {
		to.Give(sched.JobID(i), d.sets[d.k][i], sched.Reason{})
	}
}

// Ensure that a Desired in which nothing conflicts gives the same targets in whatever order it names them, also where
// every set is someone else's at the time.
func TestExchangeIsOrderFree(t *testing.T) {
	for seed := range uint64(300) {
		r := rand.New(rand.NewPCG(seed, 5))
		jobs, sets := 1+r.IntN(6), make([][][]sched.GPUID, 5)
		for k := range sets { // each instant deals all GPUs again
			sets[k] = make([][]sched.GPUID, jobs)
			for g := range sched.GPUID(8) {
				if i := r.IntN(jobs + 1); i < jobs {
					sets[k][i] = append(sets[k][i], g)
				}
			}
		}
		for order := range uint64(3) {
			d := &deal{r: rand.New(rand.NewPCG(seed, 100+order)), sets: sets}
			s := engine.NewState(eventlog.Header{})
			refused := sinkFunc(func(_ *sched.View, e *sched.Event) {
				if e.Kind == sched.Refused {
					t.Fatalf("seed %d, order %d: refused job %d: %s", seed, order, e.Job, e.Text)
				}
			})
			if err := engine.Run(context.Background(), s, d, d,
				engine.Options{Sinks: []eventlog.Sink{refused, &checker{}}}); err != nil {
				t.Fatal(err)
			}
			for i, want := range sets[len(sets)-1] {
				if got := s.View().Jobs[i].Target; !slices.Equal(got, want) {
					t.Fatalf("seed %d, order %d: job %d has target %v, want %v", seed, order, i, got, want)
				}
			}
		}
	}
}

// Ensure that wild requests, most of them wrong, never break an invariant: they are refused.
func TestWildWishes(t *testing.T) {
	for seed := range uint64(300) {
		r := rand.New(rand.NewPCG(seed, 6))
		text := fmt.Sprintf("share %d\nnode a 3\nnode b 2 type=%d\n", 1+r.IntN(3), r.IntN(2))
		for j := range 5 {
			text += fmt.Sprintf("0 job j %d-%d share=%s\n", 1+r.IntN(2), 2+r.IntN(2), pick(r, "allow", "never"))
			_ = j
		}
		for at := range 40 {
			for range r.IntN(4) {
				text += fmt.Sprintf("%d give %d %s as=%s at=%s batch=%d\n", at, r.IntN(6),
					pick(r, "-", "0", "1", "0,1", "1,2", "3,4", "2,3", "4"),
					pick(r, "", "shared", "trial"), pick(r, "now", "now", "epoch"), r.IntN(2))
			}
			if r.IntN(3) == 0 {
				text += fmt.Sprintf("%d reject %d\n", at, r.IntN(30))
			}
		}
		s, err := parseScript(text)
		must(err)
		s.answers = r
		s.state = engine.NewState(eventlog.Header{ShareLimit: s.share})
		if err := engine.Run(context.Background(), s.state, s, s,
			engine.Options{Sinks: []eventlog.Sink{s, &checker{scripted: true}}}); err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
	}
}
