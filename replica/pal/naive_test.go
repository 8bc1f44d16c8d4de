package pal

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/trainyard/trainyard/internal/mersenne"
)

// naive restates the released simulator plainly: everything is done in each round, sets are lists of GPU numbers, PAL
// tries all combinations. It shares with Run only the parameters and Python's generator.
type naive struct {
	Params
	random, gaps *mersenne.Generator
	owner        []*naiveJob // per GPU
	jobs         []*naiveJob // all that arrived and are not done, in order of arrival
	now          int64       // seconds
}

type naiveJob struct {
	Job
	Outcome
	index    int
	class    int
	second   float64
	done     float64
	attained int64
	gpus     []int // while it runs, else nil
	last     []int // when it ran last
	was      bool  // ran before this boundary
}

func naiveRun(jobs []Job, p Params) Result {
	n := &naive{Params: p, random: generatorAfter(p.Seed, p.gpus(), p.Rows), gaps: mersenne.New(wrapSeed),
		owner: make([]*naiveJob, p.gpus())}
	n.Tracked, n.MaxRounds = cmp.Or(p.Tracked, len(jobs)), cmp.Or(p.MaxRounds, DefaultMaxRounds)
	all := make([]*naiveJob, 0, 2*len(jobs))
	var busy, rounds int64
	for ; rounds <= n.MaxRounds; rounds++ {
		n.now = rounds * n.Round
		if rounds > 0 {
			busy += n.credit()
		}
		if rounds == n.MaxRounds || naiveDone(all, n.Tracked) {
			break
		}
		for {
			j := n.issue(jobs, all)
			if j == nil || j.Submit > n.now {
				break
			}
			all, n.jobs = append(all, j), append(n.jobs, j)
			if j.index >= len(jobs) {
				n.gaps.Float64()
			}
		}
		n.place()
	}
	res := Result{Rounds: rounds, Admitted: len(all), BusyShare: 0}
	if rounds > 0 {
		res.BusyShare = float64(busy) / (float64(p.gpus()) * float64(rounds))
	}
	for i := range n.Tracked {
		o := Outcome{ID: jobs[i].ID, Start: -1, Finish: -1}
		if i < len(all) {
			o = all[i].Outcome
			o.Run = all[i].attained
		}
		res.Jobs = append(res.Jobs, o)
	}
	return res
}

func naiveDone(all []*naiveJob, tracked int) bool {
	done := 0
	for _, j := range all[:min(tracked, len(all))] {
		if j.Finished {
			done++
		}
	}
	return done == tracked
}

// issue makes the next job of the trace. It looks at the generator without moving it.
func (n *naive) issue(jobs []Job, all []*naiveJob) *naiveJob {
	i := len(all)
	if i >= len(jobs) && !n.Wrap {
		return nil
	}
	j := &naiveJob{Job: jobs[i%len(jobs)], index: i}
	if i >= len(jobs) {
		look := *n.gaps
		j.Submit = all[i-1].Submit + int64(math.Ceil(-math.Log(1-look.Float64())/2*3600))
	}
	m := modelOf(j.Model)
	j.class, j.second = m.Class, m.Second
	j.Outcome = Outcome{ID: j.Job.ID, Start: -1, Finish: -1}
	return j
}

// credit adds the round just ended and ends jobs. It returns how many GPUs worked.
func (n *naive) credit() (busy int64) {
	for _, j := range n.jobs {
		if j.gpus == nil {
			continue
		}
		busy += int64(len(j.gpus))
		slowest, nodes := 0.0, map[int]bool{}
		for _, g := range j.gpus {
			slowest = max(slowest, n.PM[j.class][g])
			nodes[n.node(g)] = true
		}
		locality := 1.0
		if len(nodes) > 1 {
			locality = n.Locality
		}
		j.done += float64(n.Round) / (j.second * slowest * locality)
		j.attained += n.Round
		if j.done >= j.Iterations {
			n.drop(j)
			j.Finished, j.Finish = true, n.now
		}
	}
	n.jobs = slices.DeleteFunc(n.jobs, func(j *naiveJob) bool { return j.Finished })
	return busy
}

func (n *naive) node(g int) int { return g / n.perNode() }

func (n *naive) drop(j *naiveJob) {
	for _, g := range j.gpus {
		n.owner[g] = nil
	}
	j.gpus = nil
}

func (n *naive) free() (list []int) {
	for g, j := range n.owner {
		if j == nil {
			list = append(list, g)
		}
	}
	return list
}

func (n *naive) sorted() []*naiveJob {
	key := func(j *naiveJob) float64 {
		switch n.Order {
		case LAS:
			return float64(j.attained)
		case SRTF:
			return float64(j.second*j.Iterations) - float64(j.attained)
		}
		return float64(j.Submit)
	}
	list := slices.Clone(n.jobs)
	slices.SortStableFunc(list, func(a, b *naiveJob) int { return cmp.Compare(key(a), key(b)) })
	return list
}

func (n *naive) place() {
	order := n.sorted()
	for _, j := range n.jobs {
		j.was = j.gpus != nil
		if j.was {
			j.last = j.gpus
		}
	}
	if n.Policy.sticky() {
		n.placeSticky(order)
	} else {
		for _, j := range n.jobs {
			n.drop(j)
		}
		for _, j := range n.byClass(order) {
			if !n.try(j) {
				break
			}
		}
	}
	for _, j := range n.jobs {
		switch {
		case j.gpus == nil && j.was:
			j.Preemptions++
		case j.gpus != nil && j.Start < 0:
			j.Start = n.now
		case j.gpus != nil && !slices.Equal(j.gpus, j.last):
			j.Moves++
		}
	}
}

func (n *naive) byClass(order []*naiveJob) []*naiveJob {
	if !n.Policy.scored() {
		return order
	}
	sum, cut := 0, 0
	for cut < len(order) && sum+order[cut].GPUs <= n.gpus() {
		sum += order[cut].GPUs
		cut++
	}
	slices.SortStableFunc(order[:cut], func(a, b *naiveJob) int { return cmp.Compare(a.class, b.class) })
	return order
}

func (n *naive) placeSticky(order []*naiveJob) {
	for i, j := range order {
		if j.gpus != nil {
			continue
		}
		found := n.try(j)
		for k := len(order) - 1; k > i && !found; k-- {
			if order[k].gpus != nil {
				n.drop(order[k])
				found = n.try(j)
			}
		}
		if !found {
			return
		}
	}
}

func (n *naive) try(j *naiveJob) bool {
	var got []int
	switch free := n.free(); n.Policy {
	case PAL:
		got = naivePAL(n.SF[j.class], n.perNode(), n.Locality, j.GPUs, free)
	case PMFirst:
		got = naivePMFirst(n.SF[j.class], n.perNode(), j.GPUs, free)
	case PackedSticky, PackedNonSticky:
		got = naivePacked(n.perNode(), j.GPUs, free)
	default:
		if len(free) >= j.GPUs {
			mersenne.Sample(n.random, free, j.GPUs, func(g int) { got = append(got, g) })
		}
	}
	if got == nil {
		return false
	}
	slices.Sort(got)
	j.gpus = got
	for _, g := range got {
		n.owner[g] = j
	}
	return true
}

func naivePMFirst(sf []float64, per, n int, free []int) []int {
	if len(free) < n {
		return nil
	}
	far := func(g int) int {
		m := 0
		for _, o := range free {
			if sf[o] == sf[g] && o/per == g/per {
				m++
			}
		}
		return max(m-n, n-m)
	}
	list := slices.Clone(free)
	slices.SortStableFunc(list, func(a, b int) int {
		return cmp.Or(cmp.Compare(sf[a], sf[b]), cmp.Compare(far(a), far(b)))
	})
	return list[:n]
}

func naivePAL(sf []float64, per int, locality float64, n int, free []int) []int {
	if n == 1 || n > per {
		return naivePMFirst(sf, per, n, free)
	}
	type entry struct {
		v       float64
		within  bool
		product float64
	}
	var matrix []entry
	for _, v := range sf {
		if !slices.ContainsFunc(matrix, func(e entry) bool { return e.v == v }) {
			matrix = append(matrix, entry{v, true, v}, entry{v, false, locality * v})
		}
	}
	slices.SortStableFunc(matrix, func(a, b entry) int { return cmp.Compare(a.product, b.product) })
	for _, e := range matrix {
		var sub []int
		for _, g := range free {
			if sf[g] <= e.v {
				sub = append(sub, g)
			}
		}
		if !e.within {
			if len(sub) >= n {
				return naivePMFirst(sf, per, n, sub)
			}
			continue
		}
		if best := naiveWithin(sf, per, n, sub); best != nil {
			return best
		}
	}
	return nil
}

// naiveWithin tries all combinations on all nodes.
func naiveWithin(sf []float64, per, n int, sub []int) (best []int) {
	members := map[int][]int{}
	for _, g := range sub {
		members[g/per] = append(members[g/per], g)
	}
	nodes := slices.Sorted(maps.Keys(members))
	slices.SortStableFunc(nodes, func(a, b int) int { return cmp.Compare(len(members[b]), len(members[a])) })
	score := math.Inf(1)
	for _, node := range nodes {
		for _, list := range combinations(members[node], n) {
			s := 0.0
			for _, g := range list {
				s = max(s, sf[g])
			}
			if s < score {
				best, score = list, s
			}
		}
	}
	return best
}

// combinations of n elements, in the order of the list.
func combinations(list []int, n int) (all [][]int) {
	if n == 0 {
		return [][]int{{}}
	}
	for i := range list {
		for _, rest := range combinations(list[i+1:], n-1) {
			all = append(all, append([]int{list[i]}, rest...))
		}
	}
	return all
}

func naivePacked(per, n int, free []int) (got []int) {
	if len(free) < n {
		return nil
	}
	onNode := map[int][]int{}
	for _, g := range free {
		onNode[g/per] = append(onNode[g/per], g)
	}
	nodes := slices.Sorted(maps.Keys(onNode))
	for _, node := range nodes {
		if len(onNode[node]) == n {
			return onNode[node]
		}
	}
	slices.SortStableFunc(nodes, func(a, b int) int { return cmp.Compare(len(onNode[a]), len(onNode[b])) })
	for _, node := range nodes {
		if len(onNode[node]) >= n {
			return onNode[node][:n]
		}
	}
	slices.SortFunc(nodes, func(a, b int) int { return cmp.Or(cmp.Compare(len(onNode[b]), len(onNode[a])), a-b) })
	for _, node := range nodes {
		got = append(got, onNode[node]...)
	}
	return got[:n]
}

// randomCase makes a small trace and parameters: few bins, nodes of 1 to 8 GPUs, L = 1 in one case of four.
func randomCase(seed uint64) ([]Job, Params) {
	rnd := rand.New(rand.NewPCG(seed, 1))
	per := 1 + rnd.IntN(8)
	gpus := per * (1 + rnd.IntN(6))
	p := Params{Policy: Policy(rnd.IntN(int(policies))), Order: Order(rnd.IntN(int(orders))),
		Round:    []int64{60, 300, 360}[rnd.IntN(3)],
		Locality: []float64{1, 1.25, 1.7, 3}[rnd.IntN(4)], GPUsPerNode: per, Wrap: rnd.IntN(2) == 0, MaxRounds: 3000,
		Seed: rnd.Uint32N(100)}
	p.PM, p.SF = randomScores(rnd, gpus)
	if rnd.IntN(2) == 0 {
		p.Rows = [Classes]int{7, 5, 0, 1000}
	}
	var jobs []Job
	submit := int64(0)
	for i := range 1 + rnd.IntN(30) {
		if rnd.IntN(3) > 0 {
			submit += rnd.Int64N(1500)
		}
		m := Models[rnd.IntN(len(Models))]
		seconds := math.Exp(rnd.Float64() * 9)
		if rnd.IntN(4) == 0 {
			seconds = float64(300 * (1 + rnd.IntN(10))) // ends of rounds
		}
		jobs = append(jobs, Job{ID: fmt.Sprint(i), Submit: submit, GPUs: 1 + rnd.IntN(min(gpus, 2*per)),
			Iterations: seconds / m.Second, Model: m.Name})
	}
	if rnd.IntN(3) == 0 {
		p.Tracked = 1 + rnd.IntN(len(jobs))
	}
	return jobs, p
}

func randomScores(rnd *rand.Rand, gpus int) (pm, sf Scores) {
	bins := []float64{0.9, 0.95, 1, 1.125, 1.7, 2}
	for c := range Classes {
		kinds := 1 + rnd.IntN(len(bins))
		for range gpus {
			b := bins[rnd.IntN(kinds)]
			sf[c] = append(sf[c], b)
			pm[c] = append(pm[c], b+0.01*rnd.Float64())
		}
	}
	return pm, sf
}

// Ensure that Run and its twin agree on every field of the result, on random traces, clusters and settings.
func TestNaive(t *testing.T) {
	var moves, preemptions, late int
	for seed := range uint64(2000) {
		jobs, p := randomCase(seed)
		got, want := Run(jobs, p), naiveRun(jobs, p)
		if diff := difference(got, want); diff != "" {
			t.Fatalf("seed %d: %v, %v, R %d, wrap %v: %s", seed, p.Policy, p.Order, p.Round, p.Wrap, diff)
		}
		for _, o := range got.Jobs {
			moves, preemptions = moves+o.Moves, preemptions+o.Preemptions
			if !o.Finished {
				late++
			}
		}
	}
	t.Logf("%d moves, %d preemptions, %d jobs not done", moves, preemptions, late)
}

// Ensure that Run and its twin agree on the workloads of the experiment, for all placements and orders.
func TestNaiveWorkloads(t *testing.T) {
	dir := dataDir(t)
	p := artifact(t, dir)
	for _, workload := range []int{1, 4} {
		jobs := readJobs(t, dir, workload)
		for order := range orders {
			for policy := range policies {
				p.Policy, p.Order, p.Wrap = policy, order, order == FIFO
				if diff := difference(Run(jobs, p), naiveRun(jobs, p)); diff != "" {
					t.Errorf("workload %d, %v, %v: %s", workload, order, policy, diff)
				}
			}
		}
	}
}

// difference is the first one between two results, or "".
func difference(a, b Result) string {
	for i := range a.Jobs {
		if a.Jobs[i] != b.Jobs[i] {
			return fmt.Sprintf("job %d: %+v and %+v", i, a.Jobs[i], b.Jobs[i])
		}
	}
	if a.Rounds != b.Rounds || a.BusyShare != b.BusyShare || a.Admitted != b.Admitted || len(a.Jobs) != len(b.Jobs) {
		return fmt.Sprintf("%d rounds, %v busy, %d of %d jobs; %d rounds, %v busy, %d of %d jobs",
			a.Rounds, a.BusyShare, a.Admitted, len(a.Jobs), b.Rounds, b.BusyShare, b.Admitted, len(b.Jobs))
	}
	return ""
}
