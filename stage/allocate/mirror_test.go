package allocate

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/trainyard/trainyard/sched"
)

// Ensure that a mirror is a ledger of the View's targets after jobs exchanged them, nodes went down and came up, events
// were missed, and others booked and released on it what they took back.
func TestMirrorFollowsTheView(t *testing.T) {
	for seed := range uint64(50) {
		r := rand.New(rand.NewPCG(seed, 27))
		v := &sched.View{ShareLimit: 1}
		for n := range 6 {
			v.Nodes = append(v.Nodes, sched.Node{First: sched.GPUID(4 * n), Spec: sched.NodeSpec{GPUs: 4}})
			for range 4 {
				v.GPUs = append(v.GPUs, sched.GPU{Node: sched.NodeID(n)})
			}
		}
		v.Jobs = make([]sched.Job, 20)
		m := &mirror{}
		report := func(e *sched.Event) {
			if v.Version++; r.IntN(40) > 0 {
				m.observe(v, e)
			}
		}
		for range 100 {
			for _, j := range exchange(r, v) {
				report(&sched.Event{Kind: sched.Decided, Job: j})
			}
			if r.IntN(10) == 0 {
				n := r.IntN(len(v.Nodes))
				v.Nodes[n].State = [2]sched.NodeState{sched.NodeUp, sched.NodeDown}[r.IntN(2)]
				report(&sched.Event{Kind: sched.NodeChanged, Node: sched.NodeID(n)})
			}
			if r.IntN(3) == 0 {
				continue
			}
			l, mark := m.of(v)
			compareLedgers(t, v, l)
			for j := range v.Jobs {
				if set := l.Set(sched.JobID(j)); len(set) > 0 && r.IntN(2) == 0 {
					l.Release(sched.JobID(j))
				}
			}
			for g := range v.GPUs {
				if j := sched.JobID(r.IntN(len(v.Jobs))); l.IsFree(sched.GPUID(g)) && len(l.Set(j)) == 0 {
					l.Book(j, []sched.GPUID{sched.GPUID(g)})
				}
			}
			m.undo(mark)
		}
	}
}

// exchange has some jobs give up their targets and others take what is free, and returns who did, some of them twice.
func exchange(r *rand.Rand, v *sched.View) (jobs []sched.JobID) {
	taken := make([]bool, len(v.GPUs))
	for j := range v.Jobs {
		if r.IntN(4) == 0 {
			v.Jobs[j].Target = nil
			jobs = append(jobs, sched.JobID(j))
		}
		for _, g := range v.Jobs[j].Target {
			taken[g] = true
		}
	}
	for j := range v.Jobs {
		for g := range v.GPUs {
			if !taken[g] && len(v.Jobs[j].Target) == 0 && r.IntN(8) == 0 {
				taken[g] = true
				v.Jobs[j].Target = []sched.GPUID{sched.GPUID(g)}
				jobs = append(jobs, sched.JobID(j))
			}
		}
	}
	r.Shuffle(len(jobs), func(i, k int) { jobs[i], jobs[k] = jobs[k], jobs[i] })
	return jobs
}

func compareLedgers(t *testing.T, v *sched.View, l *sched.Ledger) {
	t.Helper()
	fresh := sched.NewLedger(v)
	for j := range v.Jobs {
		if got, want := l.Set(sched.JobID(j)), fresh.Set(sched.JobID(j)); !slices.Equal(got, want) {
			t.Fatalf("job %d has %v, want %v", j, got, want)
		}
	}
	for n := range v.Nodes {
		if got, want := l.FreeOn(sched.NodeID(n)), fresh.FreeOn(sched.NodeID(n)); got != want {
			t.Fatalf("node %d has %d GPUs free, want %d", n, got, want)
		}
	}
}
