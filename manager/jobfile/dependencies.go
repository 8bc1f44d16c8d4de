package jobfile

import (
	"cmp"
	"container/heap"
	"slices"
	"strconv"
	"strings"

	"github.com/trainyard/trainyard/internal/strictyaml"
	"github.com/trainyard/trainyard/sched"
)

// span is the jobs that a name stands for: numbers first..last through the file, of entry number entry.
type span struct{ first, last, entry int }

// plan is the jobs before they are put in order. A job's number is its place in the file, copies counted.
type plan struct {
	list  []entry
	names []string        // of a job
	of    []int           // entry of a job
	first []int           // job of an entry
	spans map[string]span // by name of a job, and of an entry with count
	deps  [][]int         // of an entry: the jobs that each of its jobs waits for, ascending
	ends  [][]ending      // of an entry: how some of them must end
	exist [][]Existing    // of an entry: jobs that are not in the list
}

// ending is how a job must end that another waits for.
type ending struct {
	job int
	how string
}

// plan puts the jobs of list in order.
func (r *reader) plan(list []entry) (p *plan, order []int) {
	p = &plan{list: list, spans: make(map[string]span)}
	r.names(p)
	if r.Err() == nil {
		r.waits(p)
	}
	if r.Err() != nil {
		return nil, nil
	}
	order = p.order()
	if len(order) < len(p.names) {
		circle := p.circle(order)
		r.Fail(list[p.of[circle[0]]].afterAt, "after makes a circle: %s, want none", p.describe(circle))
	}
	return p, order
}

// names names the jobs.
func (r *reader) names(p *plan) {
	unnamed := 0
	for i := range p.list {
		e := &p.list[i]
		first := len(p.names)
		p.first = append(p.first, first)
		for c := range e.copies() {
			name := e.copyName(c)
			if name == "" {
				unnamed++
				name = "job-" + strconv.Itoa(unnamed)
			}
			r.add(p, e, name, span{first + c, first + c, i})
			p.names, p.of = append(p.names, name), append(p.of, i)
		}
		if e.name != "" && e.several() {
			r.add(p, e, e.name, span{first, len(p.names) - 1, i})
		}
	}
}

// add gives name a meaning.
func (r *reader) add(p *plan, e *entry, name string, s span) {
	if other, again := p.spans[name]; again {
		r.Fail(e.nameAt, "name %s given twice, want names of their own (first on line %d)", strictyaml.Quote(name),
			p.list[other.entry].nameAt.GetToken().Position.Line)
	}
	p.spans[name] = s
}

// waits finds out which jobs those of each entry wait for.
func (r *reader) waits(p *plan) {
	p.deps, p.ends, p.exist = make([][]int, len(p.list)), make([][]ending, len(p.list)), make([][]Existing,
		len(p.list))
	pairs := 0
	for i := range p.list {
		e := &p.list[i]
		var deps []int
		for _, a := range e.after {
			s, ok := p.spans[a.name]
			switch {
			case !ok:
				p.exist[i] = append(p.exist[i], r.exists(p, a))
				s = span{0, -1, -1}
			case s.entry == i:
				r.Fail(a.at, "after %s is the job itself, want another", strictyaml.Quote(a.name))
			case p.list[s.entry].submit() > e.submit():
				r.Fail(a.at, "after %s, which is submitted later (at %v, this one at %v), want one that is not",
					strictyaml.Quote(a.name),
					p.list[s.entry].submit(), e.submit())
			}
			if pairs += max(s.last-s.first+1, 1) * e.copies(); pairs > MaxAfter {
				r.Fail(a.at, "more than %d pairs of a job and one it waits for, want less", MaxAfter)
			}
			if r.Err() != nil {
				return
			}
			for d := s.first; d <= s.last; d++ {
				deps = append(deps, d)
				if a.how != AfterAny {
					p.ends[i] = append(p.ends[i], ending{d, a.how})
				}
			}
		}
		slices.Sort(deps)
		p.deps[i] = slices.Compact(deps)
	}
}

// known returns the names that are suggested: those of entries, and those made for entries without one.
func (p *plan) known() []string {
	var list []string
	for j, i := range p.of {
		switch e := &p.list[i]; {
		case e.name == "" || !e.several():
			list = append(list, p.names[j])
		case j == 0 || p.of[j-1] != i:
			list = append(list, e.name)
		}
	}
	return list
}

// order returns the jobs by submit time and number, each after those it waits for; those in a circle, and behind one,
// are missing. As no job waits for one that is submitted later, taking the first of those that wait for nothing more
// keeps the submit times in order.
func (p *plan) order() []int {
	waiters := make([][]int, len(p.names)) // entries, by the job they wait for
	left := make([]int, len(p.names))      // jobs that a job still waits for
	q := &queue{p: p}
	for j, i := range p.of {
		if j == 0 || p.of[j-1] != i {
			for _, d := range p.deps[i] {
				waiters[d] = append(waiters[d], i)
			}
		}
		if left[j] = len(p.deps[i]); left[j] == 0 && !p.follows(j) {
			q.jobs = append(q.jobs, j)
		}
	}
	heap.Init(q)
	var order []int
	for q.Len() > 0 {
		for j := heap.Pop(q).(int); ; j++ {
			order = append(order, j)
			for _, i := range waiters[j] {
				for w := p.first[i]; w < p.first[i]+p.list[i].copies(); w++ {
					if left[w]--; left[w] == 0 && !p.follows(w) {
						heap.Push(q, w)
					}
				}
			}
			if !p.follows(j + 1) {
				break
			}
		}
	}
	return order
}

// follows reports whether a job is a task of an array and not the first: it comes right behind the one before it.
func (p *plan) follows(j int) bool {
	return j > 0 && j < len(p.of) && p.of[j] == p.of[j-1] && len(p.list[p.of[j]].array.Indices) > 0
}

// queue is a heap of jobs, by submit time and number.
type queue struct {
	p    *plan
	jobs []int
}

// Len is that of a heap.
func (q *queue) Len() int { return len(q.jobs) }

// Swap is that of a heap.
func (q *queue) Swap(a, b int) { q.jobs[a], q.jobs[b] = q.jobs[b], q.jobs[a] }

// Push is that of a heap; x is an int.
func (q *queue) Push(x any) { q.jobs = append(q.jobs, x.(int)) }

// Pop is that of a heap; it returns an int.
func (q *queue) Pop() any {
	last := len(q.jobs) - 1
	j := q.jobs[last]
	q.jobs = q.jobs[:last]
	return j
}

// Less ranks by submit time, then by number.
func (q *queue) Less(a, b int) bool {
	x, y := q.jobs[a], q.jobs[b]
	return cmp.Or(cmp.Compare(q.p.list[q.p.of[x]].submit(), q.p.list[q.p.of[y]].submit()), cmp.Compare(x, y)) < 0
}

// circle returns jobs of which each waits for the next and the last for the first, none of them in order, where such
// are.
func (p *plan) circle(order []int) []int {
	placed := make([]bool, len(p.names))
	for _, j := range order {
		placed[j] = true
	}
	var path []int
	at := make(map[int]int) // place in path
	for j := slices.Index(placed, false); ; {
		if from, again := at[j]; again {
			return path[from:]
		}
		at[j] = len(path)
		path = append(path, j)
		deps := p.deps[p.of[j]]
		j = deps[slices.IndexFunc(deps, func(d int) bool { return !placed[d] })]
	}
}

// describe returns "a after b after a", cut if it is long.
func (p *plan) describe(circle []int) string {
	var words []string
	for _, j := range circle[:min(len(circle), 5)] {
		words = append(words, p.names[j])
	}
	if len(circle) > 5 {
		words = append(words, "...")
	}
	return strings.Join(append(words, p.names[circle[0]]), " after ")
}

// build returns the jobs in the order given.
func (p *plan) build(order []int) []Job {
	ids := make([]sched.JobID, len(order))
	for id, j := range order {
		ids[j] = sched.JobID(id)
	}
	waits := make([][]sched.JobID, len(p.list))
	for i, deps := range p.deps {
		for _, d := range deps {
			waits[i] = append(waits[i], ids[d])
		}
		slices.Sort(waits[i])
	}
	jobs := make([]Job, len(order))
	for id, j := range order {
		e := &p.list[p.of[j]]
		jobs[id] = Job{Submit: e.submit(), Spec: e.spec, Task: e.task, Inherit: e.inherit}
		jobs[id].Spec.Name = p.names[j]
		jobs[id].Spec.Saves = e.task.Checkpoint.Declared()
		jobs[id].Spec.After = waits[p.of[j]]
		jobs[id].Existing = p.exist[p.of[j]]
		for _, end := range p.ends[p.of[j]] {
			tie(&jobs[id].Spec.Ties, end.how, ids[end.job])
		}
		jobs[id].Spec.Ties.Array = e.array.task(j - p.first[p.of[j]])
	}
	return jobs
}

// hash returns the hash of the jobs that were built in the order given.
func (p *plan) hash(order []int, jobs []Job) string {
	sums := make([]string, len(p.list))
	for i := range p.list {
		sums[i] = taskHash(p.list[i].task)
	}
	tasks := make([]string, len(order))
	for id, j := range order {
		tasks[id] = sums[p.of[j]]
	}
	return hash(jobs, tasks)
}
