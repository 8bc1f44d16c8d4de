package crashtest

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"sort"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/trainyard/trainyard/attempt/task"
	"github.com/trainyard/trainyard/driver/local/device"
	"github.com/trainyard/trainyard/driver/local/procs"
	"github.com/trainyard/trainyard/driver/local/shim"
	"github.com/trainyard/trainyard/eventlog"
	"github.com/trainyard/trainyard/internal/testsize"
	"github.com/trainyard/trainyard/manager"
	"github.com/trainyard/trainyard/manager/jobfile"
	"github.com/trainyard/trainyard/sched"
)

// How many states of a folder after a power cut are looked at.
var (
	powerCuts = testsize.Flag("power-cuts", 350, 20000, "states of a folder after a power cut that are checked")
	allCuts   = flag.Bool("power-all", false, "check the folder as it may be after every call that changed it")
)

const (
	perControl = 70 // states of a control that are checked together
	rounds     = 6  // of a control, until one shows a loss
)

// Promises 1, 2, 4, 9 and 10 hold when the power fails: whatever of the bytes and names that were not synced is lost,
// torn or there, a manager opens the folder, has all that was acknowledged, believes each end that a shim has written,
// and starts no attempt again. Where syncs of one kind are taken for none, that is not so.
func TestPowerCut(t *testing.T) {
	r := recordWhole(t, 6, 5)
	n := powerCuts.N()
	if *allCuts {
		n = len(r.seen.effects) * int(cuts)
	}
	r.mustSurvive(n)
	for _, c := range controls {
		checked, bad := 0, []string(nil)
		for round := 0; round < rounds && bad == nil; round++ {
			more, found := r.cutAll(perControl, round, c.ignored)
			checked, bad = checked+more, found
		}
		t.Logf("without the sync of %s: %d states checked, %d bad", c.name, checked, len(bad))
		if bad == nil {
			t.Errorf("without the sync of %s nothing is lost: the test is blind to it", c.name)
		} else {
			t.Log(bad[0])
		}
	}
}

// The same in small, for faults that are planted in the program.
func TestPowerCutShort(t *testing.T) { recordWhole(t, 2, 4).mustSurvive(150) }

// mustSurvive fails the test if one of n states of the folder after a power cut is bad.
func (r *recording) mustSurvive(n int) {
	checked, bad := r.cutAll(n, 0, nil)
	for _, b := range bad[:min(len(bad), 10)] {
		r.t.Error(b)
	}
	r.t.Logf("%d changes by %d attempts and %d daemons, %d answers, %d calls cut off: %d states checked, %d bad",
		len(r.seen.effects), len(r.seen.runs), r.lives+1, len(r.heard), r.cutOff, checked, len(bad))
}

// controls are syncs without which something must be lost.
var controls = []struct {
	name    string
	ignored func(path string, folder bool) bool
}{
	{"commits", func(path string, _ bool) bool { return strings.HasPrefix(filepath.Base(path), "trainyard.db") }},
	{"folders", func(_ string, folder bool) bool { return folder }},
	{"locks of attempts", func(path string, _ bool) bool { return filepath.Base(path) == "lock" }},
	{"JSON records", func(path string, folder bool) bool { return !folder && strings.Contains(path, ".json") }},
}

// cutAll checks n states, spread evenly over all that was done and all ways of a cut; others in each round.
func (r *recording) cutAll(n, round int, ignored func(string, bool) bool) (checked int, bad []string) {
	d := newDisk()
	d.ignored = ignored
	all := len(r.seen.effects)
	n = min(n, all*int(cuts))
	var mu sync.Mutex
	var work sync.WaitGroup
	room := make(chan struct{}, runtime.GOMAXPROCS(0))
	next := 0
	for i := range r.seen.effects {
		if err := d.do(&r.seen.effects[i]); err != nil {
			r.t.Fatal(err)
		}
		for ; next < n && (next*all+round*all/rounds)/n == i; next++ {
			how := cut(next % int(cuts))
			image := d.after(how, rand.New(rand.NewPCG(uint64(round), uint64(next))))
			room <- struct{}{}
			work.Go(func() {
				defer func() { <-room }()
				list := r.check(image, i)
				mu.Lock()
				defer mu.Unlock()
				checked++
				if list != nil {
					bad = append(bad, fmt.Sprintf("after effect %d, what is not synced is %v: %s", i, how,
						strings.Join(list, "; ")))
				}
			})
		}
	}
	work.Wait()
	return checked, bad
}

// memoryFolder returns a new folder, in memory if there is such a file system: what it holds need not last.
func memoryFolder() (string, error) {
	if dir, err := os.MkdirTemp("/dev/shm", "trainyard-powercut-"); err == nil {
		return dir, nil
	}
	return os.MkdirTemp(filepath.Dir(trainyard), "powercut-")
}

// otherBoot is the boot after the power cut, of which this one must be an earlier one.
const otherBoot = "00000000-0000-4000-8000-000000000000"

// check says what is wrong with a folder after a power cut that followed an effect.
func (r *recording) check(m *image, i int) (bad []string) {
	dir, err := memoryFolder()
	if err != nil {
		return []string{err.Error()}
	}
	defer os.RemoveAll(dir)
	boot, err := procs.BootID()
	if err == nil {
		err = m.write(dir, func(b []byte) []byte {
			return bytes.ReplaceAll(b, []byte(boot), []byte(otherBoot))
		})
	}
	if err != nil {
		return []string{err.Error()}
	}
	now := int64(1) << 62 // all that was heard before the next effect was heard before the cut
	if i+1 < len(r.seen.effects) {
		now = r.seen.effects[i+1].when
	}
	a := &afterCut{recording: r, dir: filepath.Join(dir, filepath.Base(string(r.state))), now: now}
	a.open()
	return a.bad
}

// afterCut is a folder that is opened after a power cut.
type afterCut struct {
	*recording
	dir  string
	now  int64 // of the cut, µs since 1970
	bad  []string
	said bytes.Buffer
	m    *manager.Manager
	ends map[attempt]*sched.Event // of attempts, reported since it was opened
}

func (a *afterCut) wrong(format string, args ...any) {
	a.bad = append(a.bad, fmt.Sprintf(format, args...))
}

// Log hears events.
func (a *afterCut) Log(_ *sched.View, e *sched.Event) {
	if e.Kind == sched.AttemptEnded || e.Kind == sched.StartFailed {
		x := *e
		a.ends[attempt{int(e.Job), int(e.Attempt)}] = &x
	}
}

// open opens the folder, looks at what there is, has a manager run there for a moment and looks again.
func (a *afterCut) open() {
	a.ends = make(map[attempt]*sched.Event)
	var err error
	a.m, err = manager.Open(a.t.Context(), manager.Options{Dir: a.dir, Devices: device.Host(a.slots), Place: "slots",
		Unit: "slot", System: "tiresias-las", Settings: maps.Clone(settingsOf), Shim: []string{"/bin/true"},
		Sinks: []eventlog.Sink{a}, Log: slog.New(slog.NewTextHandler(&a.said, &slog.HandlerOptions{
			Level: slog.LevelWarn}))})
	if err != nil { // promises 9 and 10
		a.wrong("it is refused: %v", err)
		return
	}
	before := a.lines()
	if _, events, _ := bytes.Cut(before, []byte("\n")); !bytes.HasPrefix(a.events, events) {
		a.wrong("the log is not the start of what was logged")
	}
	known := a.fold(before)
	if a.said.Len() > 0 || len(a.m.Problems()) > 0 {
		a.wrong("%v %s", a.m.Problems(), &a.said)
	}
	a.acknowledged()
	jobs := len(a.m.View().Jobs)
	ctx, cancel := context.WithTimeout(a.t.Context(), time.Minute)
	ended := make(chan error, 1)
	go func() { ended <- a.m.Run(ctx) }()
	probe, _ := jobfile.Parse([]byte("jobs: [{name: probe, command: ['true'], submit: 10h}]"), "probe")
	id, err := a.m.Submit(ctx, probe.Jobs)
	cancel()
	if failed := <-ended; err != nil || !errors.Is(failed, context.Canceled) {
		a.wrong("it does not go on: %v, %v", err, failed)
	} else if int(id) != jobs {
		a.wrong("a new job is number %d, want %d", id, jobs)
	}
	a.once(known)
	a.fold(a.lines())
	if err := a.m.Close(); err != nil {
		a.wrong("%v", err)
	}
}

// lines returns the log.
func (a *afterCut) lines() []byte {
	var b bytes.Buffer
	if err := a.m.WriteLog(&b); err != nil {
		a.wrong("%v", err)
	}
	return b.Bytes()
}

// fold reads a log in the simple way: no GPU is given twice, and no attempt starts twice or ends twice.
func (a *afterCut) fold(lines []byte) *eventLog {
	l, err := foldLog(bytes.NewReader(lines))
	if err != nil {
		a.wrong("%v", err)
		return newEventLog()
	}
	for _, w := range l.wrong {
		a.wrong("%s", w)
	}
	return l
}

// acknowledged: promise 1. What was answered before is so, or has gone on from there, and what jobs inherit is there.
func (a *afterCut) acknowledged() {
	v := a.m.View()
	last := sort.Search(len(a.heard), func(i int) bool { return a.heard[i].at >= a.now })
	for i := range a.heard[:last] {
		h := &a.heard[i]
		if h.job.ID >= len(v.Jobs) || v.Jobs[h.job.ID].Spec.Name != h.job.Name {
			a.wrong("job %d, %s, was acknowledged and is not there", h.job.ID, h.job.Name)
			return
		}
		j := &v.Jobs[h.job.ID]
		done := j.State == sched.Done
		switch {
		case h.cancelled && !j.Cancel && !done:
			a.wrong("job %d was cancelled, and is %v", h.job.ID, j.State)
		case h.job.State == "done" && (!done || j.Outcome.String() != h.job.Outcome):
			a.wrong("job %d was done, %s, and is %v %v", h.job.ID, h.job.Outcome, j.State, j.Outcome)
		case int(j.Attempts) < h.job.Attempt, h.job.State == "running" && int(j.Attempts) == h.job.Attempt &&
			j.FirstStart == sched.None:
			a.wrong("job %d was at attempt %d, %s, and is at %d", h.job.ID, h.job.Attempt, h.job.State, j.Attempts)
		}
	}
	for id := range v.Jobs {
		if spec, err := task.DecodeTask(v.Jobs[id].Spec.Task); err == nil && spec.Inherit != "" {
			if _, lost := shim.State(a.dir).KeptEnv(spec.Inherit); lost != nil {
				a.wrong("job %d: %v", id, lost)
			}
		}
	}
}

// once: promises 2 and 4. No attempt whose command had run is started again, and each end that a shim has reported is
// the one that the log has.
func (a *afterCut) once(known *eventLog) {
	epoch, err := shim.State(a.dir).Epoch()
	if err != nil {
		a.wrong("%v", err)
	}
	for _, run := range a.seen.runs {
		if run.began >= a.now {
			continue
		}
		at := run.attempt
		if o, err := shim.State(a.dir).RunDir(int32(at.job), int32(at.number)).Order(); err == nil && o.Epoch == epoch {
			a.wrong("attempt %d of job %d had run, and is started again", at.number, at.job)
		}
		was, is := known.runs[at], a.log.runs[at]
		if run.over == 0 || run.over >= a.now || was != nil && was.over || is == nil {
			continue
		}
		end := a.ends[at]
		if end != nil && is.outcome == sched.Preempted && end.Outcome == sched.Cancelled &&
			a.m.View().Jobs[at.job].Cancel { // it was cancelled while it was to make room: either is true
			continue
		}
		if end == nil || end.Outcome != is.outcome || int(end.Code) != is.code {
			a.wrong("attempt %d of job %d had ended, %v with code %d, and that is lost: %+v", at.number, at.job,
				is.outcome, is.code, end)
		}
	}
}
