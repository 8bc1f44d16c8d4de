package crashtest

import (
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/trainyard/trainyard/engine"
	"github.com/trainyard/trainyard/eventlog"
	"github.com/trainyard/trainyard/sched"
)

// campaigns are run once, by the first test that wants to look at what they leave.
var campaigns struct {
	once sync.Once
	list []*served
}

// evidence returns what campaigns against daemons leave, -kills kills in all.
func evidence(t *testing.T) []*served {
	t.Helper()
	campaigns.once.Do(func() {
		var list []*served
		for left, seed := servedKills.N(), uint64(1); left > 0; seed++ {
			n := min(left, perFolder)
			left -= n
			list = append(list, campaignServed(t, n, seed))
		}
		campaigns.list = list
	})
	if campaigns.list == nil {
		t.Fatal("the campaign failed")
	}
	return campaigns.list
}

// Promise 1: a job that was acknowledged is there, under its number and name, however often the daemon is killed; of
// jobs that were submitted together all are there or none; what was cancelled stays so.
func TestPromise01NoAcknowledgedJobIsLost(t *testing.T) {
	kills, acknowledged, points := 0, 0, 0
	for _, s := range evidence(t) {
		kills += s.kills
		acknowledged += len(s.jobs)
		for _, n := range s.at {
			points += n
		}
		for _, p := range mailPoints {
			if s.at[p] == 0 {
				t.Errorf("no manager died at %s", p)
			}
		}
		for id, name := range s.jobs {
			if j, known := s.end[name]; !known || j.ID != id {
				t.Errorf("job %s was acknowledged as %d and is lost: %+v", name, id, j)
			}
		}
		for _, list := range s.lists {
			there := 0
			for _, name := range list {
				if _, known := s.end[name]; known {
					there++
				}
			}
			if there != 0 && there != len(list) {
				t.Errorf("of the jobs %v, submitted together, %d are there", list, there)
			}
		}
		for name := range s.cancelled {
			if j := s.end[name]; j.State != "done" || j.Outcome != "cancelled" && !slices.Contains(s.real, name) {
				t.Errorf("job %s was cancelled, and is %+v", name, j)
			}
		}
		if len(s.jobs) < s.kills || len(s.cancelled) == 0 {
			t.Errorf("%d jobs and %d cancels acknowledged in %d kills, want a load", len(s.jobs), len(s.cancelled),
				s.kills)
		}
	}
	t.Logf("%d kills, %d of them at failpoints; %d jobs acknowledged", kills, points, acknowledged)
}

// Promise 2: no two processes of a job, or on a device, at a time: by locks that the processes themselves take, and by
// the log.
func TestPromise02AtMostOneLiveAttempt(t *testing.T) {
	attempts := 0
	for _, s := range evidence(t) {
		book := readLedger(t, s.dir)
		book.check(t)
		s.log.check(t)
		attempts += len(book.runs)
		for a, run := range book.runs {
			rec := s.log.runs[a]
			if rec == nil || !rec.started {
				t.Errorf("attempt %v ran, but the log does not say so", a)
			} else if devices := slots(rec.gpus); devices != run.devices {
				t.Errorf("attempt %v ran on %s, the log says %s", a, run.devices, devices)
			}
		}
		if len(s.log.lost) > 0 {
			t.Errorf("no shim was killed, and lost are %v", s.log.lost)
		}
	}
	t.Logf("%d attempts that ran", attempts)
}

// Promise 4: who is done never starts again, and all GPU time is accounted for: the service of the jobs as they are
// reported, the time in which their processes came up, and idle time are that of the machine.
func TestPromise04FinishedWorkIsNotRunAgain(t *testing.T) {
	for _, s := range evidence(t) {
		b := accounts(t, s)
		for _, text := range b.again {
			t.Error(text)
		}
		reported := 0.0
		for _, j := range s.end {
			reported += j.GPUSeconds
			if have := b.service[sched.JobID(j.ID)]; math.Abs(have-j.GPUSeconds) > 1e-3*max(have, 1) {
				t.Errorf("job %s had GPUs for %.4f GPU-seconds by the log, %.4f are reported:%s", j.Name, have,
					j.GPUSeconds, s.story(t, sched.JobID(j.ID)))
			}
		}
		whole := float64(s.slots) * b.span
		if off := math.Abs(reported + b.coming + b.idle - whole); off > 1e-3*whole {
			t.Errorf("jobs %.3f + coming up %.3f + idle %.3f GPU-seconds, want the %.3f of the machine", reported,
				b.coming,
				b.idle, whole)
		}
		t.Logf("jobs %.3f + coming up %.3f + idle %.3f of %.3f GPU-seconds", reported, b.coming, b.idle, whole)
	}
}

// story is what the log has about a job, a line for each event.
func (s *served) story(t *testing.T, id sched.JobID) string {
	t.Helper()
	var b strings.Builder
	s.fold(t, func(v *sched.View, e *sched.Event) {
		if e.Job == id && int(id) < len(v.Jobs) {
			fmt.Fprintf(&b, "\n%d at %v: %+v; service %v", e.Seq, e.Time, *e, v.Jobs[id].Service)
		}
	})
	return b.String()
}

// books are the accounts of a log, kept the simple way: slot by slot.
type books struct {
	service map[sched.JobID]float64 // GPU-seconds from the start of their processes to their end
	held    map[sched.JobID]float64 // GPU-seconds from the order to start them to their end
	coming  float64                 // GPU-seconds held before the start
	idle    float64
	span    float64 // seconds from the first event to the last
	again   []string
}

// slot is what one slot does, since when.
type slot struct {
	job   sched.JobID // None = nothing
	up    bool
	since sched.Time
}

// accounts reads the log of a campaign slot by slot.
func accounts(t *testing.T, s *served) *books {
	t.Helper()
	b := &books{service: make(map[sched.JobID]float64), held: make(map[sched.JobID]float64)}
	var from, at sched.Time
	all := slices.Repeat([]slot{{job: sched.None}}, s.slots)
	turn := func(x *slot, job sched.JobID, up bool, when sched.Time) {
		took := (when - x.since).Seconds()
		b.held[x.job] += took
		switch {
		case x.job == sched.None:
			b.idle += took
		case x.up:
			b.service[x.job] += took
		default:
			b.coming += took
		}
		*x = slot{job, up, when}
	}
	over := make(map[sched.JobID]bool)
	s.fold(t, func(v *sched.View, e *sched.Event) {
		if at = e.Time; e.Seq == 1 {
			from = at
			for i := range all {
				all[i].since = at
			}
		}
		for i := range all {
			x := &all[i]
			switch mine := x.job == e.Job; {
			case e.Kind == sched.Ordered && sched.ActionKind(e.Code) == sched.Start &&
				slices.Contains(v.Jobs[e.Job].GPUs, sched.GPUID(i)):
				turn(x, e.Job, false, at)
			case e.Kind == sched.AttemptStarted && mine:
				turn(x, e.Job, true, max(e.Happened(), x.since))
			case (e.Kind == sched.AttemptEnded || e.Kind == sched.StartFailed) && mine:
				turn(x, sched.None, false, max(e.Happened(), x.since))
			}
		}
		switch {
		case e.Kind == sched.Ordered && sched.ActionKind(e.Code) == sched.Start && over[e.Job]:
			b.again = append(b.again, say(e, "started after its end"))
		case e.Kind == sched.AttemptEnded:
			over[e.Job] = v.Jobs[e.Job].State == sched.Done
		}
	})
	for i := range all {
		turn(&all[i], sched.None, false, at)
	}
	b.span = (at - from).Seconds()
	return b
}

// fold calls see with every event of the log of a campaign and the state that it leads to.
func (s *served) fold(t *testing.T, see func(v *sched.View, e *sched.Event)) {
	t.Helper()
	file, err := os.Open(filepath.Join(s.dir, "events.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	r, err := eventlog.NewReader(file, "events.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := engine.Fold(r.Header(), r.Records(), seer(see)); err != nil {
		t.Fatal(err)
	}
}

// seer is a sink.
type seer func(v *sched.View, e *sched.Event)

func (f seer) Log(v *sched.View, e *sched.Event) { f(v, e) }

// Promise 6: at no event of the log is a GPU in more hands than may share it, and none that is not there.
func TestPromise06NoGPUIsOverGiven(t *testing.T) {
	events := 0
	for _, s := range evidence(t) {
		holders := make([]map[sched.JobID]bool, s.slots)
		for g := range holders {
			holders[g] = make(map[sched.JobID]bool)
		}
		s.fold(t, func(v *sched.View, e *sched.Event) {
			events++
			if e.Job == sched.None || int(e.Job) >= len(v.Jobs) {
				return
			}
			for g := range holders {
				delete(holders[g], e.Job)
			}
			if !v.Jobs[e.Job].HoldsDevices() {
				return
			}
			for _, g := range v.Jobs[e.Job].GPUs {
				holders[g][e.Job] = true
				if len(holders[g]) > max(v.ShareLimit, 1) {
					t.Errorf("%s: slot %d is held by %v", say(e, "too many"), g, holders[g])
				}
			}
		})
	}
	t.Logf("%d events", events)
}

// Promise 12: the log of a manager that was killed again and again replays to the very same decisions.
func TestPromise12ReplayDecidesTheSame(t *testing.T) {
	for _, s := range evidence(t) {
		for _, more := range [][]string{nil, {"--reload"}} {
			code, said := command(t, s.dir, append([]string{"replay", "events.jsonl"}, more...)...)
			if code != 0 || !strings.Contains(said, "every decision of ") {
				t.Errorf("replay %v: code %d: %s", more, code, said)
			}
		}
	}
}
