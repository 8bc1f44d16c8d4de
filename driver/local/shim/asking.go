package shim

import (
	"errors"
	"log/slog"
	"slices"
	"syscall"
	"time"

	"github.com/trainyard/trainyard/driver/local/procs"
)

// Times of an attempt that is to end.
const (
	// mostPatience is how long those that were not asked have to end by themselves once all that were asked have ended;
	// how long a shell that was asked may wait for its child before that is asked; and how long an attempt goes on that
	// says that all is saved.
	mostPatience = 2 * time.Second
	firstLook    = 5 * time.Millisecond // between looks, which become rarer
	lastLook     = 250 * time.Millisecond
	// ownPatience is how long a job that was warned, or sent the signal to save, and was requeued then, has to end by
	// itself. It is less than local.forceAfter: so much later than the grace it may end.
	ownPatience = 4 * time.Second
	lookShare   = 4 // a look that takes long is followed by so many times as long without one
	mostNamed   = 16
)

// mostNewborn is the age from which on a process is taken to run what it was forked to run. Between fork and exec it
// has the handlers of its parent and dies of a signal: on a busy machine for 100 ms, else for less than one. A test
// that makes a machine busier has more.
var mostNewborn = 250 * time.Millisecond

// asking has an attempt end: it looks at its processes again and again, and asks those that are to hear it.
type asking struct {
	shim  *shim
	order *Order
	group *procs.Group
	sig   syscall.Signal
	main  int // pid of the process that was started
	over  *Over
	from  time.Time // since when the grace counts
	ready *readiness

	looks   int
	seen    map[identity]int
	asked   map[identity]notice
	held    map[identity]bool // stopped by us, see family.waiting
	freed   map[identity]bool // held before, and asked to end since
	silent  time.Time         // since when none of those that were asked lives; zero = some do, or none was yet
	refused map[identity]bool // they may not be signalled
	// known has the environments of ranks: of a process that is about to end the kernel shows none any more
	known  map[identity]map[string]string
	family *family // as of the last look
}

// identity names a process for good.
type identity struct {
	pid   int
	start uint64
}

// notice is when a process was asked.
type notice struct {
	look int
	at   time.Time
}

func identityOf(m *procs.Member) identity { return identity{m.PID, m.Start} }

func newAsking(s *shim, group *procs.Group, main int, over *Over) *asking {
	return &asking{shim: s, order: s.order, group: group, sig: s.order.SaveSignal(), main: main, over: over,
		from: over.StopAsked, ready: newReadiness(s, over.StopAsked), seen: make(map[identity]int),
		asked: make(map[identity]notice), held: make(map[identity]bool), freed: make(map[identity]bool),
		refused: make(map[identity]bool), known: make(map[identity]map[string]string), family: newFamily(nil)}
}

// patience is mostPatience, or less where the grace is short.
func (a *asking) patience() time.Duration { return min(mostPatience, a.grace()/4) }

// grace is how long the attempt has to end, as it is now.
func (a *asking) grace() time.Duration {
	times, _ := a.shim.timing()
	return times.Grace
}

// untilGone waits until the job's process and all others of the group have ended, and reports whether they did within
// the grace. A shell that dies of SIGTERM at once must not cost the trainer that it started the time to save.
func (a *asking) untilGone(done <-chan struct{}) bool {
	ended := a.endsByWarning(done)
	if ended {
		done = nil
	}
	for pause := firstLook; ; pause = min(2*pause, lastLook) {
		began := time.Now()
		if left, err := a.look(); err == nil && left == 0 && ended {
			return true
		}
		if a.over.Ready.IsZero() && a.ready.now() {
			a.over.Ready = time.Now()
		}
		end := a.from.Add(a.grace())
		if last := a.over.Ready.Add(a.patience()); !a.over.Ready.IsZero() && last.Before(end) {
			end = last
		}
		rest := min(max(pause, lookShare*time.Since(began)), time.Until(end))
		if rest <= 0 {
			return false
		}
		select {
		case <-done:
			done, ended, pause = nil, true, firstLook/2
		case <-time.After(rest):
		}
	}
}

// endsByWarning waits for the job's process to end before it is asked, and reports whether it did: a moment where the
// job was requeued and was lately warned of its time, or sent the signal that asks it to save. Often it is this process
// that has its job requeued then: the same signal once more would have it do so again, in the middle of what it does to
// save. After such a moment in vain it has all of its grace.
func (a *asking) endsByWarning(done <-chan struct{}) bool {
	grace := a.grace()
	lately := func(at time.Time) bool { // no clock that was set back makes it so
		ago := time.Since(at)
		return ago >= 0 && ago < grace
	}
	if a.over.TimedOut || !a.shim.wasRequeued() || !lately(a.over.Warned) && !lately(a.shim.dir.signalled()) {
		return false
	}
	select {
	case <-done:
		return true
	case <-time.After(min(ownPatience, grace/2)):
	}
	a.from = time.Now()
	return false
}

// look finds out who is there, asks those whose turn it is, and returns how many are left.
func (a *asking) look() (left int, err error) {
	since := SinceBoot()
	members, err := a.group.Look(a.sig, rankVariables...)
	if err != nil {
		slog.Warn("the processes of the job cannot be looked at", "error", err)
		return 0, err
	}
	a.looks++
	now := time.Now()
	a.family = newFamily(a.nodes(members, since, now))
	switch {
	case a.order.Save.To == "all" && len(a.asked) == 0:
		a.askAll(now)
	case a.anyAsked() || len(a.asked) == 0:
		a.silent = time.Time{}
		a.ask(audience(a.order.Save.To, a.main, a.family.list), now)
	case a.silent.IsZero():
		a.silent = now
		a.release(now)
	case now.Sub(a.silent) >= a.patience():
		a.ask(audience("top", a.main, a.family.list), now)
	}
	a.wake()
	return len(members), nil
}

// newborn reports whether a process may not have run its program yet: it is young, handles the signal as its parent
// may, and runs what that runs. A program that a process runs has no handler but those that it sets itself.
func (a *asking) newborn(m *procs.Member, programs map[int]string, since time.Duration) bool {
	program, known := programs[m.Parent]
	return m.Handles && m.PID != a.main && (!known || program == m.Program) &&
		since-m.SinceBoot() < min(mostNewborn, a.patience())
}

// nodes adds to what a look found, at a time since boot, what is known of earlier ones.
func (a *asking) nodes(members []procs.Member, since time.Duration, now time.Time) []node {
	list := make([]node, len(members))
	programs := make(map[int]string, len(members)) // by pid
	for i := range members {
		programs[members[i].PID] = members[i].Program
	}
	for i := range members {
		p := identityOf(&members[i])
		if a.seen[p] == 0 {
			a.seen[p] = a.looks
		}
		if len(members[i].Env) > 0 {
			a.known[p] = members[i].Env
		}
		members[i].Env = a.known[p]
		list[i] = node{Member: members[i], seen: a.seen[p]}
		if n, ok := a.asked[p]; ok {
			list[i].asked, list[i].overdue = n.look, now.Sub(n.at) >= a.patience()
		}
		list[i].Handles = list[i].Handles && !a.refused[p]
		list[i].newborn = a.newborn(&list[i].Member, programs, since)
	}
	return list
}

// anyAsked reports whether someone who was asked to save lives.
func (a *asking) anyAsked() bool {
	return slices.ContainsFunc(a.family.list, func(n node) bool {
		return n.asked > 0 && !a.freed[identityOf(&n.Member)]
	})
}

// askAll sends the signal to whoever is there: tasks of srun get it from that.
func (a *asking) askAll(now time.Time) {
	direct, err := a.family.direct(), error(nil)
	if len(direct) == len(a.family.list) {
		err = a.group.Signal(a.sig) // those too that were forked meanwhile
	} else {
		for _, i := range direct {
			_, failed := a.family.list[i].Signal(a.sig)
			err = errors.Join(err, failed)
		}
	}
	if err != nil {
		slog.Warn("the job gets no signal to end", "error", err)
	}
	for i := range a.family.list {
		a.note(i, now)
	}
}

// note notes that a process got the signal.
func (a *asking) note(i int, now time.Time) {
	n := &a.family.list[i]
	n.asked = a.looks
	a.asked[identityOf(&n.Member)] = notice{a.looks, now}
	a.over.heard(a.family.recipient(i))
}

// ask sends the signal to some of the family, once. Before that it holds the shells that wait for them: these are not
// to go on in their scripts when who was asked has ended.
func (a *asking) ask(some []int, now time.Time) {
	for _, i := range some {
		a.family.list[i].asked = a.looks
	}
	a.hold()
	for _, i := range some {
		n := &a.family.list[i]
		p := identityOf(&n.Member)
		n.asked = 0
		if a.refused[p] {
			continue
		}
		switch ended, err := n.Signal(a.sig); {
		case err != nil:
			a.refused[p] = true
			slog.Warn("a process gets no signal to end", "error", err)
		case !ended:
			a.note(i, now)
			if a.held[p] {
				delete(a.held, p)
				_, _ = n.Signal(syscall.SIGCONT)
			}
		}
	}
}

// heard notes that a process got the signal.
func (o *Over) heard(r Recipient) {
	if o.AskedCount++; len(o.Asked) < mostNamed {
		o.Asked = append(o.Asked, r)
	}
}

// hold stops the shells that wait for someone who is asked.
func (a *asking) hold() {
	for _, i := range a.family.waiting() {
		m := &a.family.list[i].Member
		if p := identityOf(m); !m.Stopped && !a.refused[p] {
			a.held[p] = true
			_, _ = m.Signal(syscall.SIGSTOP)
		}
	}
}

// release ends the shells that were held: all that they waited for are gone. The signal comes before what wakes them.
func (a *asking) release(now time.Time) {
	for i := range a.family.list {
		n := &a.family.list[i]
		p := identityOf(&n.Member)
		if !a.held[p] {
			continue
		}
		delete(a.held, p)
		a.freed[p] = true
		_, _ = n.Signal(a.sig)
		_, _ = n.Signal(syscall.SIGCONT)
		n.asked = a.looks
		a.asked[p] = notice{a.looks, now}
	}
}

// wake has members go on that were stopped by others than us: who is stopped does not save.
func (a *asking) wake() {
	for i := range a.family.list {
		m := &a.family.list[i].Member
		if m.Stopped && !a.held[identityOf(m)] {
			_, _ = m.Signal(syscall.SIGCONT)
		}
	}
}

// left notes who is to be killed, as of the last look.
func (a *asking) left() {
	a.over.KilledCount = len(a.family.list)
	for i := range a.family.list[:min(mostNamed, len(a.family.list))] {
		a.over.KilledOf = append(a.over.KilledOf, a.family.recipient(i))
	}
}
