package pipeline

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/trainyard/trainyard/internal/arena"
	"github.com/trainyard/trainyard/sched"
)

// cluster returns a View of nodes with so many GPUs each, and jobs of users u0 and u1 that ask for one GPU.
func cluster(nodes, gpus, jobs int) *sched.View {
	v := &sched.View{ShareLimit: 1, Types: []string{"a"}}
	for n := range nodes {
		v.Nodes = append(v.Nodes, sched.Node{State: sched.NodeUp, First: sched.GPUID(len(v.GPUs)),
			Spec: sched.NodeSpec{Name: string(rune('a' + n)), GPUs: gpus, Pool: sched.None}})
		for range gpus {
			v.GPUs = append(v.GPUs, sched.GPU{Node: sched.NodeID(n)})
		}
	}
	for j := range jobs {
		v.Jobs = append(v.Jobs, sched.Job{Spec: &sched.JobSpec{GPUs: sched.Rigid(1), User: string(rune('u' + j%2))},
			State: sched.Waiting})
	}
	return v
}

func booksOf(v *sched.View) *books {
	b := &books{ledger: sched.NewLedger(v)}
	for id := range v.Jobs {
		b.grow(sched.JobID(id), len(v.Jobs))
		b.enlist(sched.JobID(id), int32(id%2))
	}
	return b
}

// Ensure that books count users, waiting jobs and GPUs given up as a recount of the ledger does, whatever is booked,
// suspended, given back and given up.
func TestBooksCount(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	v := cluster(3, 4, 8)
	b := booksOf(v)
	suspended := map[sched.JobID][]sched.GPUID{}
	for range 3000 {
		id, was := sched.JobID(r.IntN(8)), b.given.now()
		gave := false
		switch set := suspended[id]; {
		case set != nil && r.IntN(2) == 0:
			delete(suspended, id)
			b.giveUp(id, set)
			gave = true
		case set != nil:
			delete(suspended, id)
			b.giveBack(id, set)
		case b.jobs[id].in == holding && r.IntN(2) == 0:
			suspended[id] = b.suspend(id)
		case b.jobs[id].in == holding:
			b.unbook(id)
			b.move(id, b.standing(id))
			gave = true
		default:
			if g := sched.GPUID(r.IntN(len(v.GPUs))); b.ledger.IsFree(g) &&
				!slices.ContainsFunc(valuesOf(suspended), func(s sched.GPUID) bool { return s == g }) {
				b.book(id, []sched.GPUID{g})
				b.move(id, b.standing(id))
			}
		}
		if gave != (b.given.now() != was) {
			t.Fatalf("given up: %v, logged: %v", gave, !gave)
		}
		recount(t, b)
	}
}

func valuesOf(m map[sched.JobID][]sched.GPUID) (all []sched.GPUID) {
	for _, set := range m {
		all = append(all, set...)
	}
	return all
}

func recount(t *testing.T, b *books) {
	t.Helper()
	users, waits := make([]int32, len(b.user)), 0
	for id := range b.jobs {
		users[b.jobs[id].user] += int32(len(b.ledger.Set(sched.JobID(id))))
		if b.jobs[id].in == waiting {
			waits++
		}
	}
	if !slices.Equal(users, b.user) || waits != b.waits {
		t.Fatalf("users hold %v, %d wait; the ledger says %v, %d", b.user, b.waits, users, waits)
	}
}

// steady ranks a job by its number, the larger first, and grows by so much a second while it holds GPUs.
type steady struct{ b *books }

func (s steady) Key(_ *sched.View, id sched.JobID) (sched.Key, sched.Time) {
	k := sched.Key{Value: float64(-id)}
	if s.b.jobs[id].in == holding {
		k.Slope = 2
	}
	return k, sched.Never
}

// Ensure that the worst holder and the victims in turn are those that sorting all jobs gives, in both kinds of index.
func TestRanksVictims(t *testing.T) {
	for _, whole := range []bool{false, true} {
		v := cluster(2, 4, 8)
		b := booksOf(v)
		r := &ranks{order: steady{b}, whole: whole, holders: true}
		for id := range sched.JobID(8) {
			b.jobs[id].shape = r.groups.shapeOf(shapeKey{gpus: 1})
			if id%2 == 0 {
				b.book(id, []sched.GPUID{sched.GPUID(id)})
				b.move(id, holding)
			}
			r.rekey(v, b, id, nil)
			if whole {
				r.enlist(b, id)
			}
		}
		v.Now = sched.Time(time.Second)
		now := v.Now.Seconds()
		r.sortList(b, now)
		all := r.all(b, now)
		if !slices.IsSortedFunc(all, func(i, j sched.JobID) int {
			if b.beforeAt(i, j, now) {
				return -1
			}
			return 1
		}) || len(all) != 8 {
			t.Fatalf("whole %v: %v is not all jobs in order", whole, all)
		}
		var got, want []sched.JobID
		r.cursor = len(r.list) - 1
		for id := r.nextVictim(b, 5, now); id != sched.None; id = r.nextVictim(b, 5, now) {
			got = append(got, id)
		}
		for _, id := range slices.Backward(all[slices.Index(all, 5)+1:]) {
			if b.jobs[id].in == holding {
				want = append(want, id)
			}
		}
		if len(want) == 0 || !slices.Equal(got, want) {
			t.Errorf("whole %v: victims %v, want %v of %v", whole, got, want, all)
		}
	}
}

// Ensure that a claim goes to whoever takes its GPUs, and that a job which stays keeps its own.
func TestClaims(t *testing.T) {
	v := cluster(1, 4, 3)
	b := booksOf(v)
	v.Jobs[0].Target, v.Jobs[1].Target = []sched.GPUID{0}, []sched.GPUID{1}
	g := &grants{}
	g.forget(3)
	g.take([]sched.Grant{{Job: 0, GPUs: 1, Least: 1}, {Job: 1, GPUs: 1, Least: 1}, {Job: 2, GPUs: 1, Least: 1}})
	var c claims
	c.lay(v, g, b.ledger)
	c.settle(0, []sched.GPUID{0}) // stays
	c.settle(2, []sched.GPUID{1}) // takes the GPU of job 1
	for id, want := range [][]sched.GPUID{{0}, nil, {1}} {
		if got := c.ledger.Set(sched.JobID(id)); !arena.SameSet(got, want) {
			t.Errorf("job %d claims %v, want %v", id, got, want)
		}
	}
	g.forget(3)
	g.take([]sched.Grant{{Job: 1, GPUs: 1, Least: 1}})
	c.lay(v, g, b.ledger) // job 0 is granted nothing: its claim goes; job 2 has no target
	for id, want := range [][]sched.GPUID{nil, {1}, nil} {
		if got := c.ledger.Set(sched.JobID(id)); !arena.SameSet(got, want) {
			t.Errorf("laid again, job %d claims %v, want %v", id, got, want)
		}
	}
}

// Ensure that grants are found by job, and that forgetting leaves none behind.
func TestGrants(t *testing.T) {
	var g grants
	if g.to(4) != nil {
		t.Error("a grant before anything was granted")
	}
	g.forget(5)
	g.take([]sched.Grant{{Job: 4, GPUs: 2, Least: 1}, {Job: 0, GPUs: 3, Least: 3}})
	if x := g.to(4); x == nil || x.GPUs != 2 || g.to(1) != nil || g.to(0).GPUs != 3 {
		t.Errorf("job 4 was granted %v, job 1 %v, job 0 %v", x, g.to(1), g.to(0))
	}
	g.forget(9)
	if g.to(4) != nil || g.to(0) != nil || g.to(8) != nil {
		t.Error("grants are left after forget")
	}
}

// Ensure that protection ends minRun after the start, that a start under way protects from now on, and that the
// earliest end is kept.
func TestProtection(t *testing.T) {
	v := cluster(1, 4, 3)
	v.Now = 100e9
	v.Jobs[0].Attempt, v.Jobs[0].LastStart = sched.Running, 95e9
	v.Jobs[1].Attempt = sched.Starting
	p := protection{minRun: 10 * time.Second, retry: sched.Never}
	for id, want := range []sched.Time{105e9, 110e9, 0} {
		if got := p.until(v, sched.JobID(id)); got != want || p.covers(v, sched.JobID(id)) != (want > 0) {
			t.Errorf("job %d is protected until %v, want %v", id, got, want)
		}
	}
	p.retryBy(110e9)
	p.retryBy(105e9)
	p.retryBy(120e9)
	if p.retry != 105e9 {
		t.Errorf("retry at %v, want 105 s", p.retry)
	}
	if none := (protection{}); none.any() || none.covers(v, 0) {
		t.Error("protected by nothing")
	}
}
