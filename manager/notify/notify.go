// Package notify has programs and people hear of jobs that are done, were preempted or do nothing: by the program of
// the host, and as the users of jobs ask for.
package notify

import (
	"context"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/trainyard/trainyard/attempt/task"
	"github.com/trainyard/trainyard/eventlog"
	"github.com/trainyard/trainyard/sched"
)

// Notice is what is heard of a job.
type Notice struct {
	Schema   string         `json:"schema"` // trainyard.notice/v1
	Job      int            `json:"job"`
	Name     string         `json:"name"`
	User     string         `json:"user,omitempty"`
	Outcome  string         `json:"outcome"` // finished, failed, cancelled, rejected, preempted, timeout or idle
	ExitCode int            `json:"exit_code"`
	Text     string         `json:"text,omitempty"`  // what was said of its end
	ID       string         `json:"id,omitempty"`    // of this notice to a user; one that is sent again has it again
	Host     string         `json:"host,omitempty"`  // that it ran on
	Also     map[string]int `json:"also,omitempty"`  // notices that were held back since the last, by outcome
	Again    bool           `json:"again,omitempty"` // it is not known whether it was sent before
}

const schema = "trainyard.notice/v1"

// Limits of notices: a program that hangs, or jobs that end by the thousand, must hold nothing up.
const (
	sendTime   = 30 * time.Second // that a notice may take
	stopTime   = 5 * time.Second  // that it may go on once the manager stops
	mostWait   = 1000             // notices that wait, of users and of the host each; later ones are dropped
	mostAtOnce = 32               // notices that are sent to users at once
	userWait   = 100              // notices of a user that wait
	userAtOnce = 2                // notices of a user that are sent at once
	rest       = time.Minute      // between two notices of a job, or of an array, in one way
)

// hostKey is the key of the notices of the host's program, which come one after the other.
const hostKey = "host"

// heard is an event that may be a notice.
type heard struct {
	about   Notice
	words   []string // what users may hear of it as, the most special first; none = it is not for them
	key     string   // of the job, or its array
	attempt int32
	ran     time.Duration // so far
	task    string
	at      sched.Time
	ofHost  bool
}

// Notifier notes what users are to hear as it becomes durable, and sends it meanwhile. What a crash cuts off is sent
// by the next one of the folder.
type Notifier struct {
	o     Options
	batch []heard // under way

	sendTime, stopTime time.Duration // tests have longer ones

	mu    sync.Mutex
	fresh []heard // durable
	tried []tried // the last ones, each of another key

	box    box
	once   sync.Once // of the start
	wake   chan struct{}
	ctx    context.Context //nolint:containedctx // of the goroutines, which Stop ends
	cancel context.CancelFunc
	ending chan struct{}
	over   chan struct{}
}

// Options are those of a Notifier.
type Options struct {
	Program string // of the host: it hears of all jobs; "" = none does
	Dir     string // where it keeps what is not sent yet; "" = nowhere
	Host    string // its name
	Log     *slog.Logger
	Flush   bool // what is held back is sent as it stops: there may be no next one
}

var (
	_ eventlog.Sink    = (*Notifier)(nil)
	_ eventlog.Batcher = (*Notifier)(nil)
)

// New makes a Notifier, which starts with Restart, once the folder is its own. It is to be stopped.
func New(o Options) *Notifier {
	n := &Notifier{o: o, wake: make(chan struct{}, 1), ending: make(chan struct{}), over: make(chan struct{}),
		sendTime: sendTime, stopTime: stopTime}
	n.ctx, n.cancel = context.WithCancel(context.Background())
	return n
}

// Stop ends the notices; those that are sent at the moment have stopTime.
func (n *Notifier) Stop() {
	n.once.Do(func() { close(n.over) }) // it was never started
	close(n.ending)
	defer time.AfterFunc(n.stopTime, n.cancel).Stop()
	<-n.over
	n.cancel()
}

// Restart starts to notify, and notes what ended after the last notices of an earlier one, which were not noted any
// more.
func (n *Notifier) Restart(v *sched.View) {
	n.once.Do(func() {
		n.box.load(n.o.Dir, n.o.Log, time.Now())
		n.mu.Lock()
		n.tried = slices.Clone(n.box.has.Tried)
		n.mu.Unlock()
		if n.o.Program == "" {
			n.box.dropHost()
		}
		go n.run()
	})
	through, known := n.box.since()
	for id := range v.Jobs {
		j := v.Job(sched.JobID(id))
		if !known || j.State != sched.Done || j.End <= through || !asks(j) {
			continue
		}
		h := about(v, sched.JobID(id))
		h.words, h.at = words(j.Outcome, ""), j.End
		h.about.ExitCode, h.about.Text = -1, "it ended before the manager was started again"
		n.batch = append(n.batch, h)
	}
	n.batch = append(n.batch, heard{at: v.Now})
	_ = n.EndBatch()
}

// BeginBatch does nothing.
func (n *Notifier) BeginBatch() {}

// Log notes the end of a job, or of an attempt that was preempted.
func (n *Notifier) Log(v *sched.View, e *sched.Event) {
	if e.Job < 0 || int(e.Job) >= len(v.Jobs) {
		return
	}
	j := v.Job(e.Job)
	h := about(v, e.Job)
	h.about.ExitCode, h.about.Text, h.at, h.ofHost = int(e.Code), e.Text, e.Time, n.o.Program != ""
	outcome := j.Outcome
	switch done := j.State == sched.Done; {
	case e.Kind == sched.AttemptEnded && (done || e.Outcome == sched.Preempted):
		if !done {
			outcome = e.Outcome
		}
	case e.Kind == sched.Rejected, e.Kind == sched.JobCommanded && done && sched.Command(e.Code) == sched.CancelJob &&
		j.End == e.Time:
		h.about.ExitCode = 0
	default:
		return
	}
	h.about.Outcome = outcome.String()
	if asks(j) {
		h.words = words(outcome, e.Text)
	}
	if h.ofHost || len(h.words) > 0 {
		n.batch = append(n.batch, h)
	}
}

// asks reports whether the user of a job may ask for notices: no more is known before its task is read.
func asks(j *sched.Job) bool { return strings.Contains(j.Spec.Task, `"notify":`) }

// about is what is heard of a job whatever became of it.
func about(v *sched.View, id sched.JobID) heard {
	j := v.Job(id)
	h := heard{about: Notice{Schema: schema, Job: int(id), Name: j.Spec.Name, User: j.Spec.User,
		Outcome: j.Outcome.String()}, attempt: j.Attempts, ran: j.RunNow(v.Now), task: j.Spec.Task}
	h.key = keyOf(j.Spec.Ties.Array.First(id))
	return h
}

// words are what users may hear of an outcome as.
func words(outcome sched.Outcome, text string) []string {
	switch outcome {
	case sched.Finished:
		return []string{task.OnFinished}
	case sched.Preempted:
		return []string{task.OnPreempted}
	case sched.Failed, sched.NodeLost, sched.RejectedJob:
		if strings.HasPrefix(text, task.Timeout) {
			return []string{task.OnTimeout, task.OnFailed}
		}
		return []string{task.OnFailed}
	}
	return nil
}

// EndBatch has what was noted be sent. It waits for nothing.
func (n *Notifier) EndBatch() error {
	if len(n.batch) == 0 {
		return nil
	}
	n.mu.Lock()
	dropped := max(len(n.fresh)+len(n.batch)-mostWait, 0)
	n.fresh = append(n.fresh, n.batch[:len(n.batch)-min(dropped, len(n.batch))]...)
	n.mu.Unlock()
	if dropped > 0 {
		n.o.Log.Warn("too many notices wait", "dropped", dropped)
	}
	n.batch = n.batch[:0]
	n.poke()
	return nil
}

// poke has the goroutine look.
func (n *Notifier) poke() {
	select {
	case n.wake <- struct{}{}:
	default:
	}
}

// Idle has the users of jobs hear that these do nothing, once for each attempt.
func (n *Notifier) Idle(v *sched.View, jobs []sched.JobID) {
	var list []heard
	for _, id := range jobs {
		if j := v.Job(id); asks(j) {
			h := about(v, id)
			h.words, h.about.Outcome = []string{task.OnIdle}, task.OnIdle
			h.about.Text = "its GPUs have been idle for " + IdleTime.String()
			list = append(list, h)
		}
	}
	n.mu.Lock()
	n.fresh = append(n.fresh, list...)
	n.mu.Unlock()
	if len(list) > 0 {
		n.poke()
	}
}

// taken returns what became durable.
func (n *Notifier) taken() []heard {
	n.mu.Lock()
	defer n.mu.Unlock()
	list := n.fresh
	n.fresh = nil
	return list
}

// letters are the notices that come of an event.
func (n *Notifier) letters(h *heard) (list []letter) {
	if h.ofHost {
		list = append(list, letter{About: h.about, Key: hostKey})
	}
	if len(h.words) == 0 {
		return list
	}
	t, err := task.DecodeTask(h.task)
	if err != nil {
		n.o.Log.Warn("a job's notices cannot be read", "job", h.about.Job, "error", err)
		return list
	}
	for i := range t.Notify {
		to := &t.Notify[i]
		word := to.Wants(h.words...)
		heard := func(other task.Notify) bool { return other.Alike(to) && other.Wants(h.words...) != "" }
		if word == "" || slices.ContainsFunc(t.Notify[:i], heard) {
			continue
		}
		l := letter{About: h.about, To: *to, Dir: t.Dir, Key: keyOfWay(h.key, i), Attempt: h.attempt, Ran: h.ran}
		l.About.Outcome, l.About.Host = word, n.o.Host
		l.About.ID = idOf(h, word, i)
		list = append(list, l)
	}
	return list
}

// run sends what is due until it is to end.
func (n *Notifier) run() {
	defer close(n.over)
	results := make(chan result)
	ending, last := n.ending, false
	for {
		for _, h := range n.taken() {
			n.box.note(h.at)
			if n.box.idleAgain(&h) {
				continue
			}
			for _, l := range n.letters(&h) {
				n.box.add(l, time.Now())
			}
		}
		var due []letter
		if n.ctx.Err() == nil {
			due = n.box.due(n.moment(last))
		}
		n.keep()
		n.box.save(time.Now())
		for _, l := range due {
			go func() { results <- result{l, n.send(&l)} }()
		}
		if last && n.box.running() == 0 {
			return
		}
		next := time.NewTimer(n.box.wait(time.Now()))
		select {
		case <-n.wake:
		case <-next.C:
		case r := <-results:
			if r.err != nil {
				n.o.Log.Warn("no one was notified", "job", r.About.Job, "outcome", r.About.Outcome, "error", r.err)
			}
			n.went(&r)
			n.box.sent(&r.letter, r.err != nil && n.ctx.Err() != nil)
		case <-ending:
			ending, last = nil, true
		}
		next.Stop()
	}
}

// moment is the time up to which notices are due.
func (n *Notifier) moment(last bool) time.Time {
	if last && n.o.Flush {
		return time.Now().Add(rest)
	}
	return time.Now()
}

// result is what became of a letter.
type result struct {
	letter
	err error
}

// sortedWords are the outcomes of a count in order.
func sortedWords(counts map[string]int) (list []string) {
	for word := range counts {
		list = append(list, word)
	}
	slices.Sort(list)
	return list
}
