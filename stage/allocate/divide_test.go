package allocate

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/trainyard/trainyard/model/elastic"
	"github.com/trainyard/trainyard/model/speedup"
	"github.com/trainyard/trainyard/sched"
)

// curves is a Source of chains by job; nil = nothing is known of it.
type curves []speedup.Chain

// Chain returns the first phase of job j.
func (c curves) Chain(_ *sched.View, j sched.JobID) (speedup.Chain, int, float64) { return c[j], 0, 0 }

// randomCurve has holes and falls, as measured ones do.
func randomCurve(r *rand.Rand, most int) speedup.Chain {
	if r.IntN(8) == 0 {
		return nil
	}
	speed := make([]float64, most+1)
	for k := 1; k <= most; k++ {
		if r.IntN(4) > 0 {
			speed[k] = r.Float64() * float64(k)
		}
	}
	return speedup.Chain{{Size: 1, Curve: speedup.Curve{Speed: speed}}}
}

// scene is a cluster of several GPU types, with jobs that hold GPUs and jobs that wait.
type scene struct {
	v     sched.View
	rates Rates
	room  []int32
	order []sched.JobID
}

func randomScene(r *rand.Rand, types int) *scene {
	s := &scene{}
	for t := range types {
		n := r.IntN(8)
		s.v.Nodes = append(s.v.Nodes, sched.Node{Spec: sched.NodeSpec{GPUs: n, Type: sched.TypeID(t)},
			First: sched.GPUID(len(s.v.GPUs))})
		for range n {
			s.v.GPUs = append(s.v.GPUs, sched.GPU{Node: sched.NodeID(t)})
		}
		s.room = append(s.room, int32(n))
	}
	var known curves
	free := slices.Clone(s.room)
	for j := range r.IntN(10) {
		least := 1 + r.IntN(4)
		spec := &sched.JobSpec{GPUs: sched.Range{Min: int32(least), Want: int32(least + r.IntN(3))}}
		spec.GPUs.Max = spec.GPUs.Want + int32(r.IntN(5))
		for t := range types {
			if r.IntN(3) > 0 {
				spec.Types = spec.Types.With(sched.TypeID(t))
			}
		}
		known = append(known, randomCurve(r, 10))
		s.v.Jobs = append(s.v.Jobs, sched.Job{Spec: spec, Attempts: int32(r.IntN(2))})
		s.order = append(s.order, sched.JobID(j))
	}
	s.rates.Curves = known
	for j := range s.v.Jobs { // who holds GPUs, holds a possible width
		c := s.rates.claim(&s.v, sched.JobID(j))
		least, ok := c.Least()
		for t := range types {
			if ok && r.IntN(3) == 0 && s.v.Jobs[j].Spec.Types.Has(sched.TypeID(t)) && int(free[t]) >= least {
				first := s.v.Nodes[t].First + sched.GPUID(s.room[t]-free[t])
				for g := range least {
					s.v.Jobs[j].Target = append(s.v.Jobs[j].Target, first+sched.GPUID(g))
				}
				s.v.Jobs[j].Attempts = 1
				free[t] -= int32(least)
				break
			}
		}
	}
	return s
}

// literally is admission as the paper has it: a dynamic programme for each waiting job, over all jobs that take part on
// the type. It returns who takes part on which type, and who is rejected.
func (s *scene) literally(mode elastic.Mode) (on map[sched.JobID]int, rejected []sched.JobID) {
	on = make(map[sched.JobID]int)
	part := make([][]elastic.Job, len(s.room))
	for _, j := range s.order {
		if t := s.v.Jobs[j].Target; len(t) > 0 {
			typ := int(s.v.Nodes[s.v.GPUs[t[0]].Node].Spec.Type)
			c := s.rates.claim(&s.v, j)
			on[j], part[typ] = typ, append(part[typ], c.Job)
		}
	}
	for _, j := range s.order {
		job := &s.v.Jobs[j]
		if len(job.Target) > 0 {
			continue
		}
		c := s.rates.claim(&s.v, j)
		enters, ever, best := -1, false, -1
		for t := range s.room {
			if !job.Spec.Types.Has(sched.TypeID(t)) {
				continue
			}
			ever = ever || feasible([]elastic.Job{c.Job}, s.room[t])
			left := s.left(part[t], t)
			if left > best && feasible(append(slices.Clone(part[t]), c.Job), s.room[t]) {
				enters, best = t, left
			}
		}
		switch {
		case enters >= 0:
			on[j], part[enters] = enters, append(part[enters], c.Job)
		case mode == elastic.Drop && job.Attempts == 0:
			rejected = append(rejected, j)
		case mode == elastic.Queue && ever:
			return on, rejected
		}
	}
	return on, rejected
}

// left is what is left of a type beyond the minima of jobs.
func (s *scene) left(jobs []elastic.Job, t int) int {
	left := int(s.room[t])
	for i := range jobs {
		least, _ := jobs[i].Least()
		left -= least
	}
	return left
}

func feasible(jobs []elastic.Job, gpus int32) bool {
	var table elastic.Table
	table.Fill(jobs, int(gpus))
	_, ok := table.At(len(jobs), int(gpus))
	return ok
}

// Ensure that minima alone let in whom a dynamic programme for each candidate would let in, in all modes, on one type
// and on several; that those who take part get what the programme gives them on their type; and that holders come
// first. Reference: specification of elastic scaling, 3.2.
func TestAdmissionTwin(t *testing.T) {
	for seed := range uint64(4000) {
		r := rand.New(rand.NewPCG(seed, 8))
		s := randomScene(r, 1+r.IntN(3))
		mode := elastic.Mode(r.IntN(3))
		a := &Divide{Rates: &s.rates, Rule: &Sum{}, Admits: true, Mode: mode}
		var d sched.Desired
		grants := a.Allocate(&s.v, slices.Clone(s.room), s.order, &d, nil)
		on, rejected := s.literally(mode)
		var dropped []sched.JobID
		for i := range d.Reject {
			dropped = append(dropped, d.Reject[i].Job)
		}
		if got, want := fmt.Sprint(widthsOf(grants), dropped), fmt.Sprint(s.divided(on), rejected); got != want {
			t.Fatalf("seed %d, mode %d: %s, want %s", seed, mode, got, want)
		}
		for i := range grants {
			if typ, ok := a.TypeOf(grants[i].Job); !ok || int(typ) != on[grants[i].Job] {
				t.Fatalf("seed %d: job %d is granted type %d, want %d", seed, grants[i].Job, typ, on[grants[i].Job])
			}
			if i > 0 && came(&s.v, grants[i].Job) < came(&s.v, grants[i-1].Job) {
				t.Fatalf("seed %d: holder %d comes after newcomer %d", seed, grants[i].Job, grants[i-1].Job)
			}
		}
	}
}

func widthsOf(grants []sched.Grant) map[sched.JobID]int {
	widths := make(map[sched.JobID]int)
	for i := range grants {
		widths[grants[i].Job] = int(grants[i].GPUs)
	}
	return widths
}

// divided returns the widths of the literal dynamic programme on each type.
func (s *scene) divided(on map[sched.JobID]int) map[sched.JobID]int {
	widths := make(map[sched.JobID]int)
	for t := range s.room {
		var jobs []elastic.Job
		var ids []sched.JobID
		for _, j := range s.order {
			if typ, ok := on[j]; ok && typ == t {
				c := s.rates.claim(&s.v, j)
				jobs, ids = append(jobs, c.Job), append(ids, j)
			}
		}
		var table elastic.Table
		table.Fill(jobs, int(s.room[t]))
		answer, _ := table.Widths(nil, int(s.room[t]))
		for i, k := range answer {
			widths[ids[i]] = k
		}
	}
	return widths
}

// Ensure that rented nodes count once, among those that their pool may have, when it is asked whether a job could ever
// run: else one that could not would hold up all behind it.
func TestEverCountsRentedNodesOnce(t *testing.T) {
	v := oneJob(sched.Rigid(9), 0)
	v.Jobs = append(v.Jobs, sched.Job{Spec: &sched.JobSpec{GPUs: sched.Rigid(1)}})
	v.Nodes[0].Spec.Pool = 0
	v.Pools = []sched.Pool{{Spec: sched.PoolSpec{GPUs: 8, Max: 1}}}
	a := &Divide{Rates: &Rates{Curves: curves{nil, nil}}, Rule: &Sum{}, Admits: true}
	for max, want := range map[int32]int{1: 1, 2: 0} { // nodes of the pool, grants
		v.Pools[0].Spec.Max = max
		if got := a.Allocate(v, []int32{8}, []sched.JobID{0, 1}, &sched.Desired{}, nil); len(got) != want {
			t.Errorf("%d nodes at most: granted %+v, want %d grants", max, got, want)
		}
	}
}
