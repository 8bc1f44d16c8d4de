package crashtest

import (
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/trainyard/trainyard/driver/local/shim"
	"github.com/trainyard/trainyard/driver/local/shim/shimtest"
)

// The size of the test. A campaign is one state folder; the jobs of one last for some thirty kills.
const (
	kills        = 100 // at least
	perCampaign  = 36  // at most
	maxCampaigns = 8
	longest      = 400 * time.Millisecond // life that is not to end the jobs
	absence      = 1500 * time.Millisecond
	pauseEvery   = 11          // kills, after which no one is there for so long
	promised     = time.Second // in which a manager has found what is alive
)

// TestHundredKills: no acknowledged job is lost, no job has two attempts at a time, whatever was alive is taken up
// again, and all end as they should, however often and wherever the manager is killed.
func TestHundredKills(t *testing.T) {
	all := &tally{tried: make(map[string]int), reached: make(map[string]int), rand: rand.New(rand.NewPCG(1, 2))}
	for n := 0; all.kills < kills || len(all.missing()) > 0; n++ {
		if n == maxCampaigns {
			t.Fatalf("%d kills and points never passed: %v after %d campaigns, want %d and none", all.kills,
				all.missing(), n, kills)
		}
		t.Run(fmt.Sprint(n), func(t *testing.T) { newCampaign(t, all, jobs()).run() })
		if t.Failed() {
			return
		}
	}
	t.Log(all)
	if took, _ := all.adoptions(); took > promised {
		t.Errorf("it takes %v (median) to find what is alive, want %v", took, promised)
	}
}

// tally is what all campaigns have done so far.
type tally struct {
	rand     *rand.Rand
	kills    int
	tried    map[string]int // by point
	reached  map[string]int
	adopted  []time.Duration
	attempts int // alive at a kill
	unseen   int // ended while no manager was there
	starts   int
	cpu      time.Duration // of the managers
}

// missing are the points at which no manager has died yet.
func (a *tally) missing() (names []string) {
	for _, p := range slices.Concat(births, points) {
		if a.reached[p] == 0 {
			names = append(names, p)
		}
	}
	return names
}

func (a *tally) String() string {
	median, most := a.adoptions()
	return fmt.Sprintf("%d kills, %d of them at points %v; %d starts; %d times an attempt was alive at a kill, %d "+
		"ended with no one there; "+
		"%v of CPU for the managers; all adopted within %v (median of %d), %v (longest)",
		a.kills, a.atPoints(), a.reached, a.starts, a.attempts, a.unseen, a.cpu, median, len(a.adopted), most)
}

// adoptions returns how long it took managers to find what was alive.
func (a *tally) adoptions() (median, longest time.Duration) {
	if len(a.adopted) == 0 {
		return 0, 0
	}
	slices.Sort(a.adopted)
	return a.adopted[len(a.adopted)/2].Round(time.Millisecond), a.adopted[len(a.adopted)-1].Round(time.Millisecond)
}

func (a *tally) atPoints() (n int) {
	for _, count := range a.reached {
		n += count
	}
	return n
}

// next returns the point that was tried least, at random among equals, and counts it as tried.
func (a *tally) next() string {
	order := a.rand.Perm(len(points))
	best := points[slices.MinFunc(order, func(i, k int) int { return a.tried[points[i]] - a.tried[points[k]] })]
	a.tried[best]++
	return best
}

// death is how a manager dies: at the given pass of a point, or after so long by a signal from outside.
type death struct {
	point   string
	pass    int
	after   time.Duration
	patient bool // not before it has found all that is alive
}

// armed is the value of the failpoint's variable.
func (d death) armed() string {
	if d.point == "" {
		return ""
	}
	return fmt.Sprintf("%s:%d", d.point, d.pass)
}

// campaign is the story of one state folder.
type campaign struct {
	t     *testing.T
	all   *tally
	dir   string
	state shim.State
	jobs  []job
	names []string // of the jobs, by number; known in the end
	alive []runner // at the last kill
	known []runner // at any kill
	gaps  []gap    // in which no manager was there
	lossy bool     // shims are killed as well

	mu        sync.Mutex
	accepted  map[string]bool // acknowledged, by name
	cancelled map[string]bool // acknowledged as well
	asking    sync.WaitGroup  // cancels under way
}

// gap is a time without a manager.
type gap struct{ from, to time.Time }

func newCampaign(t *testing.T, all *tally, list []job) *campaign {
	dir := t.TempDir()
	c := &campaign{t: t, all: all, dir: dir, state: shim.State(filepath.Join(dir, "state")), jobs: list,
		accepted: make(map[string]bool), cancelled: make(map[string]bool)}
	writeJobs(t, dir, c.jobs)
	t.Cleanup(func() { shimtest.EndAll(t, c.state) })
	return c
}

// run kills managers until the jobs are nearly done, lets a last one end them, and checks.
func (c *campaign) run() {
	for _, point := range births {
		c.live(death{point: point, pass: 1, after: longest})
	}
	for n := range perCampaign {
		if n%pauseEvery == pauseEvery-1 {
			time.Sleep(absence)
		}
		if done := c.live(c.choose(n)); done {
			break
		}
	}
	c.checkEnd(c.last())
}

// choose says how the n-th manager is to die: mostly at a point, else at random, before or after it has found its jobs.
func (c *campaign) choose(n int) death {
	random := time.Duration(c.all.rand.Int64N(int64(longest)))
	switch n % 5 {
	case 0:
		return death{after: random / 3, patient: true}
	case 1:
		return death{after: random}
	}
	d := death{point: c.all.next(), pass: 1, after: longest}
	if n%3 == 0 && !slices.Contains(once, d.point) {
		d.pass += 1 + c.all.rand.IntN(3)
	}
	return d
}

// live has a manager live until it dies. It reports whether all jobs were done before.
func (c *campaign) live(d death) (done bool) {
	l := c.begin(d.armed())
	adopted := c.adoption(l)
	if d.patient {
		took, ok := <-adopted
		c.note(took, ok)
	}
	l.within(d.after)
	l.kill()
	c.asking.Wait()
	c.all.cpu += l.cmd.ProcessState.UserTime() + l.cmd.ProcessState.SystemTime()
	if !l.shot() {
		if code := l.cmd.ProcessState.ExitCode(); code != exitJobFailed {
			c.t.Fatalf("a manager ended with code %d, armed with %q:\n%s", code, d.armed(), &l.stderr)
		}
		return true
	}
	c.all.kills++
	if !l.killed {
		c.all.reached[d.point]++
	}
	c.gaps = append(c.gaps, gap{from: time.Now()})
	c.alive = aliveNow(c.t, c.state)
	c.known = append(c.known, c.alive...)
	c.all.attempts += len(c.alive)
	return false
}

// begin starts a manager, and ends the time without one.
func (c *campaign) begin(armed string, more ...string) *life {
	if n := len(c.gaps); n > 0 && c.gaps[n-1].to.IsZero() {
		c.gaps[n-1].to = time.Now()
	}
	return begin(c.t, c.dir, armed, c.hear, more...)
}

// last has a manager live to the end of all jobs.
func (c *campaign) last() *life {
	l := c.begin("", "--json", "--events-out", "events.jsonl")
	for _, j := range c.jobs {
		if j.cancel != "" {
			c.insist(l, j.name)
		}
	}
	if !l.within(time.Minute) {
		c.t.Fatalf("the last manager does not come to an end:\n%s", &l.stderr)
	}
	c.asking.Wait()
	return l
}

// insist has a job cancelled that is not yet, once the manager hears of it.
func (c *campaign) insist(l *life, name string) {
	for over := false; !over && !c.isCancelled(name) && !c.cancel(name); {
		over = l.within(20 * time.Millisecond)
	}
}

// hear takes a line of a manager: acknowledgements are kept, and whoever waits for this moment cancels.
func (c *campaign) hear(line string) {
	_, rest, found := strings.Cut(line, "  job ")
	if !found {
		return
	}
	_, rest, _ = strings.Cut(rest, " ")
	name, what, _ := strings.Cut(rest, ": ")
	if strings.HasPrefix(what, "accepted") {
		c.accept(name)
	}
	for _, j := range c.jobs {
		if j.name == name && j.cancel != "" && strings.Contains(what, j.cancel) {
			c.asking.Go(func() { _ = c.cancel(name) })
		}
	}
}

// accept takes an acknowledgement. The job file is still there: a job that is lost is acknowledged once more.
func (c *campaign) accept(name string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.accepted[name] {
		c.t.Errorf("job %s was acknowledged, and lost, and is acknowledged again", name)
	}
	c.accepted[name] = true
}

// cancel asks for the end of a job and reports whether that is granted. It may find no manager, or lose it meanwhile.
func (c *campaign) cancel(name string) bool {
	const exitRefused = 5
	code, said := command(c.t, c.dir, "cancel", "--state", "state", name)
	if code == exitRefused {
		c.t.Errorf("cancel of %s, which does not end by itself: %s", name, said)
	}
	if code != 0 {
		return false
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.cancelled[name] = true
	return true
}

func (c *campaign) isCancelled(name string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.cancelled[name]
}
