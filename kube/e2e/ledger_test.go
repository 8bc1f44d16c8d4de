package e2e

import (
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/trainyard/trainyard/kube/api/v1alpha1"
	"github.com/trainyard/trainyard/kube/internal/fakenode"
)

// runsFor is the annotation of a template that says how long its process trains; without it, until ledger.finish.
const runsFor = "e2e.trainyard.dev/runs-for"

// saves is how long a process takes to save when it is asked to stop.
const saves = 100 * time.Millisecond

// ledger keeps which attempts had processes, and notes what must never be: two attempts of a job at a time, or a rank
// that is started twice.
type ledger struct {
	mu     sync.Mutex
	alive  map[string]map[string]int // ranks that run, by job, by attempt
	starts map[string]int            // by job, attempt and rank
	wrong  []string
	over   map[string]chan struct{} // closed once a job is to finish
	next   *ledger                  // that keeps account from now on; nil = this one
}

func newLedger() *ledger {
	return &ledger{alive: make(map[string]map[string]int), starts: make(map[string]int),
		over: make(map[string]chan struct{})}
}

// run is a process, from its start to its end.
func (l *ledger) run(p *fakenode.Process) int {
	l.mu.Lock()
	next := l.next
	l.mu.Unlock()
	if next != nil {
		return next.run(p)
	}
	labels := p.Pod.Labels
	job, attempt := p.Pod.Namespace+"/"+labels[v1alpha1.LabelJob], labels[v1alpha1.LabelAttempt]
	finish := l.begin(job, attempt, labels[v1alpha1.LabelRank])
	defer l.end(job, attempt)
	if d, err := time.ParseDuration(p.Pod.Annotations[runsFor]); err == nil {
		return trainFor(d)(p)
	}
	select {
	case <-finish:
		return 0
	case <-p.Term:
	case <-p.Kill:
	}
	return trainFor(0)(p)
}

// trainFor is a process that trains so long; one that is asked to stop saves and says that all is well.
func trainFor(d time.Duration) func(*fakenode.Process) int { return fakenode.Script(d, saves, 0) }

func (l *ledger) begin(job, attempt, rank string) (finish <-chan struct{}) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.starts[job+" "+attempt+" "+rank]++; l.starts[job+" "+attempt+" "+rank] > 1 {
		l.wrong = append(l.wrong, fmt.Sprintf("rank %s of attempt %s of %s was started again", rank, attempt, job))
	}
	if l.alive[job] == nil {
		l.alive[job] = make(map[string]int)
	}
	l.alive[job][attempt]++
	if len(l.alive[job]) > 1 {
		l.wrong = append(l.wrong, fmt.Sprintf("attempt %s of %s started while others ran: %v", attempt, job,
			l.alive[job]))
	}
	return l.gate(job)
}

func (l *ledger) end(job, attempt string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.alive[job][attempt]--; l.alive[job][attempt] == 0 {
		delete(l.alive[job], attempt)
	}
}

// gate returns what is closed once a job is to finish. Callers hold mu.
func (l *ledger) gate(job string) chan struct{} {
	if l.over[job] == nil {
		l.over[job] = make(chan struct{})
	}
	return l.over[job]
}

// finish has a job that runs until then finish, in this attempt or the next.
func (l *ledger) finish(job string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	close(l.gate(job))
}

// attempts returns how many attempts of a job had a process, and whether one has now.
func (l *ledger) attempts(job string) (n int, runs bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for key := range l.starts {
		var name, attempt, rank string
		if _, err := fmt.Sscan(key, &name, &attempt, &rank); err == nil && name == job && rank == "0" {
			n++
		}
	}
	return n, len(l.alive[job]) > 0
}

// check fails the test for what was noted.
func (l *ledger) check(t testing.TB) {
	t.Helper()
	l.mu.Lock()
	defer l.mu.Unlock()
	slices.Sort(l.wrong)
	for _, what := range l.wrong {
		t.Error(what)
	}
}
