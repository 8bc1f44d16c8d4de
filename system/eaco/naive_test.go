package eaco_test

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/trainyard/trainyard/model/interference"
	"github.com/trainyard/trainyard/sched"
	"github.com/trainyard/trainyard/system/eaco"
	"github.com/trainyard/trainyard/trace"
)

// naive decides what becomes of one job as described in words, GPU by GPU, remembering nothing. No job is on trial, and
// now is 0.
type naive struct {
	*still
	p       *eaco.Params
	history *interference.History
	id      sched.JobID
}

// on returns the jobs on a GPU.
func (n *naive) on(g sched.GPUID) (list []sched.JobID) {
	for id := range n.view.Jobs {
		if slices.Contains(n.view.Jobs[id].Target, g) {
			list = append(list, sched.JobID(id))
		}
	}
	return list
}

// use returns the use and the memory of a GPU.
func (n *naive) use(g sched.GPUID) (use, gb float64) {
	for _, o := range n.on(g) {
		use, gb = use+float64(n.jobs[o].Spec.Util), gb+float64(n.jobs[o].Spec.GPUMemGB)
	}
	return use, gb
}

// offer returns the most used GPUs of a node that the job may join, and their mean use; nil if there are not enough.
func (n *naive) offer(node int) (set []sched.GPUID, mean float64) {
	need := n.jobs[n.id].Spec
	for g := sched.GPUID(8 * node); g < sched.GPUID(8*node+8); g++ {
		use, gb := n.use(g)
		if tenants := len(n.on(g)); tenants == 0 ||
			tenants < n.p.Most && use <= n.p.Use && gb/nodeGB <= n.p.Memory && nodeGB-gb > float64(need.GPUMemGB) {
			set = append(set, g)
		}
	}
	slices.SortStableFunc(set, func(x, y sched.GPUID) int {
		a, _ := n.use(x)
		b, _ := n.use(y)
		return int(1e6 * (b - a))
	})
	if len(set) < int(need.GPUs.Want) {
		return nil, 0
	}
	set = set[:need.GPUs.Want]
	for _, g := range set {
		use, _ := n.use(g)
		mean += use / float64(len(set))
	}
	slices.Sort(set)
	return set, mean
}

// slow returns how much slower job o of some GPUs is where the newcomer is on joined.
func (n *naive) slow(o sched.JobID, gpus, joined []sched.GPUID) float64 {
	worst := 1.0
	for _, g := range gpus {
		node := &n.view.Nodes[g/8].Spec
		set := []interference.Member{{Model: n.jobs[o].Spec.Model, Use: float64(n.jobs[o].Spec.Util)}}
		others := n.on(g)
		if slices.Contains(joined, g) {
			others = append(others, n.id)
		}
		for _, other := range others {
			if other != o {
				set = append(set, interference.Member{Model: n.jobs[other].Spec.Model,
					Use: float64(n.jobs[other].Spec.Util)})
			}
		}
		est, err := n.history.Slowdowns(interference.Place{GPU: "v100", How: node.Sharing, Width: int32(len(gpus))},
			set, nil)
		if err != nil {
			panic(err)
		}
		for i := range est { // of equal models it may be any
			if set[i].Model == set[0].Model {
				worst = max(worst, est[i].Slow)
			}
		}
	}
	return worst
}

func (n *naive) keeps(o sched.JobID, slow float64) bool {
	if s := n.jobs[o].Spec; s.Deadline > 0 {
		return float64(n.jobs[o].Duration)*slow <= float64(s.Deadline)
	}
	return slow <= n.p.Slow
}

// fits reports whether all keep what they are promised if the job joins set.
func (n *naive) fits(set []sched.GPUID) bool {
	var crowd []sched.JobID
	for _, g := range set {
		crowd = append(crowd, n.on(g)...)
	}
	slices.Sort(crowd)
	crowd = slices.Compact(crowd)
	if len(crowd) == 0 {
		return true
	}
	if !n.keeps(n.id, n.slow(n.id, set, set)) {
		return false
	}
	size := func(o sched.JobID) (most int) {
		for _, g := range n.view.Jobs[o].Target {
			most = max(most, len(n.on(g))+1)
		}
		return most
	}
	epoch := func(o sched.JobID) float64 { return float64(n.jobs[o].Duration) / float64(n.jobs[o].Spec.Epochs) }
	longest, most := epoch(n.id), 0
	for _, o := range crowd {
		if !n.keeps(o, n.slow(o, n.view.Jobs[o].Target, set)) {
			return false
		}
		longest, most = max(longest, epoch(o)), max(most, size(o))
	}
	lasts := 2 * longest * n.history.Worst(most) * n.p.Patience
	for _, o := range crowd {
		worst := n.history.Worst(size(o))
		cost := max(epoch(o)*worst, lasts*(1-1/worst))
		if s := n.jobs[o].Spec; s.Deadline > 0 && float64(n.jobs[o].Duration)*n.slow(o, n.view.Jobs[o].Target,
			nil)+cost > float64(s.Deadline) {
			return false
		}
	}
	return true
}

// decide returns the set that the job is to have: of the most used node on which it fits, ties by GPUs that no one has,
// then by number.
func (n *naive) decide() (best []sched.GPUID) {
	most, free := -1.0, 0
	for node := range n.view.Nodes {
		set, mean := n.offer(node)
		idle := 0
		for g := sched.GPUID(8 * node); g < sched.GPUID(8*node+8); g++ {
			if len(n.on(g)) == 0 {
				idle++
			}
		}
		if set != nil && (mean > most+1e-9 || mean > most-1e-9 && idle < free) && n.fits(set) {
			best, most, free = set, mean, idle
		}
	}
	return best
}

// company draws nodes, some shared by MPS, with jobs of all widths, some with deadlines, what is known of some sets,
// and one job more.
func company(seed uint64) *naive {
	r := rand.New(rand.NewPCG(seed, 8))
	nodes := 1 + r.IntN(4)
	n := &naive{still: newStill(nodes), history: &interference.History{}}
	models := []string{"a", "b", "c"}
	draw := func(width int) trace.Job {
		j := trace.Job{Duration: hours(1 + 9*r.Float64()),
			Spec: sched.JobSpec{Model: models[r.IntN(3)], GPUs: sched.Rigid(width), Epochs: int32(10 + r.IntN(90)),
				Share: sched.ShareAllow, Util: float32(1+r.IntN(3)) / 8, GPUMemGB: float32(5 + r.IntN(30))}}
		if r.IntN(2) == 0 {
			j.Spec.Deadline = sched.Time(float64(j.Duration) * (1.01 + 0.6*r.Float64()))
		}
		return j
	}
	for node := range nodes {
		n.view.Nodes[node].Spec.Sharing = sched.Mechanism(r.IntN(4) / 3)
		for range r.IntN(6) {
			j := draw(1 << r.IntN(4))
			id := n.add(j, node)
			from := r.IntN(9 - int(j.Spec.GPUs.Want))
			for i := range n.view.Jobs[id].Target {
				n.view.Jobs[id].Target[i] += sched.GPUID(from)
			}
		}
	}
	for range r.IntN(12) {
		set, slow := []string{models[r.IntN(3)], models[r.IntN(3)]}, []float64{1 + r.Float64()/2, 1 + r.Float64()/2}
		if r.IntN(2) == 0 {
			set, slow = append(set, models[r.IntN(3)]), append(slow, 1+r.Float64()/2)
		}
		if err := n.history.Record(interference.Place{GPU: "v100", How: sched.Mechanism(r.IntN(2)),
			Width: 1 << r.IntN(4)}, set, slow, 0); err != nil {
			panic(err)
		}
	}
	n.p = &eaco.Params{Slow: 1.05 + r.Float64()/3, Use: 0.3 + 0.7*r.Float64(), Memory: 0.3 + 0.7*r.Float64(),
		Most: 1 + r.IntN(4), Patience: 0.1 + r.Float64()}
	n.p.Learner, n.p.Work = interference.NewLearner(n.history), n.still
	n.id = n.add(draw(1<<r.IntN(4)), -1)
	return n
}

// Ensure that the set found inside a node, of jobs of any width, is the one that its naive twin finds.
func TestAgainstNaive(t *testing.T) {
	joined, alone := 0, 0
	for seed := range uint64(3000) {
		n := company(seed)
		want := n.decide()
		d, err := eaco.New(*n.p)
		if err != nil {
			t.Fatal(err)
		}
		d.Resume(&n.view)
		var out sched.Desired
		d.Decide(&n.view, &out)
		var got []sched.GPUID
		if len(out.Jobs) > 0 {
			got = out.Set(&out.Jobs[0])
		}
		if want == nil && got != nil && !slices.ContainsFunc(got,
			func(g sched.GPUID) bool { return len(n.on(g)) > 0 }) {
			continue // GPUs that no one has, on several nodes
		}
		if !slices.Equal(got, want) {
			t.Fatalf("seed %d: %v, the naive twin has %v", seed, got, want)
		}
		switch {
		case len(out.Jobs) > 0 && out.Jobs[0].Trial:
			joined++
		case want != nil:
			alone++
		}
	}
	if joined < 500 || alone < 500 {
		t.Errorf("%d joined, %d alone of 3000: too few to say anything", joined, alone)
	}
	t.Logf("%d joined others, %d got GPUs alone", joined, alone)
}
