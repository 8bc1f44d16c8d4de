package local

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/trainyard/trainyard/driver/local/shim"
	"github.com/trainyard/trainyard/sched"
)

// past is a folder in which a driver has started attempt 1 of job 0 and is gone, and what its log says.
type past struct {
	dir    string
	origin time.Time
	list   []Arrival
	mark   string
	goOn   string // a file: the job ends once it is there, with exit code 5
	view   sched.View
}

// begun has a driver start an attempt and close.
func begun(t *testing.T) *past {
	t.Helper()
	p := &past{dir: folder(t), goOn: filepath.Join(t.TempDir(), "go")}
	p.list, _ = jobs(t, time.Minute, "")
	a, mark := jobOf(t, `sleep MARK & echo ready; while [ ! -e `+p.goOn+` ]; do sleep 0.02; done; exit 5`, time.Minute)
	p.list, p.mark = []Arrival{a}, mark
	d := open(t, p.dir, 1, 2, p.list...)
	h := take(t, d, sched.View{})
	h.arrivals(1)
	h.apply(start(0, 1, 0))
	h.await(sched.AttemptStarted, 0)
	h.outputHas(0, 1, "ready")
	d.Close()
	p.origin = d.o.Origin
	p.view = known(d, sched.Job{Attempt: sched.Running, Up: true, Attempts: 1})
	return p
}

// known is a View of the first job of d, which holds slot 0.
func known(d *Driver, j sched.Job) sched.View {
	j.Spec, j.State, j.GPUs = d.view.Jobs[0].Spec, sched.Active, []sched.GPUID{0}
	return sched.View{Now: d.now, Jobs: []sched.Job{j}, Nodes: []sched.Node{{State: sched.NodeUp}},
		GPUs: make([]sched.GPU, len(d.dev.list))}
}

// next opens the driver of the next manager of the folder, not yet synced.
func (p *past) next(t *testing.T, epoch int64) *Driver {
	t.Helper()
	d := open(t, p.dir, epoch, 2, p.list...)
	t.Cleanup(d.Close)
	d.o.Origin = p.origin
	return d
}

func (p *past) run() shim.RunDir { return shim.State(p.dir).RunDir(0, 1) }

// ended lets the job end while no one watches, and returns its record.
func (p *past) ended(t *testing.T) *shim.Over {
	t.Helper()
	touch(t, p.goOn)
	p.gone(t)
	return overOf(t, p.dir, 0, 1)
}

// gone waits for the shim to go.
func (p *past) gone(t *testing.T) {
	t.Helper()
	waitFor(t, "the end of the shim", func() bool {
		alive, err := p.run().Alive()
		return err == nil && !alive.Lives()
	})
}

// Ensure that an attempt goes on without its driver, and that the next one follows it to its end.
func TestAdopted(t *testing.T) {
	t.Parallel()
	p := begun(t)
	h := take(t, p.next(t, 2), p.view)
	if len(h.events) > 0 {
		t.Errorf("sync reports %v, want nothing new", h.events)
	}
	h.apply(start(0, 1, 0)) // given again
	touch(t, p.goOn)
	if e := h.end(0, sched.Failed); e.Code != 5 || e.Attempt != 1 {
		t.Errorf("%+v, want code 5 of attempt 1", e)
	}
	none(t, p.mark)
}

// Ensure that an attempt is known by its process too: one whose lock and socket were removed is waited for, not started
// again.
func TestAdoptedWithoutLock(t *testing.T) {
	t.Parallel()
	p := begun(t)
	remove(t, filepath.Join(shim.State(p.dir).Job(0), "lock"))
	remove(t, filepath.Join(string(p.run()), "control"))
	h := take(t, p.next(t, 2), p.view)
	h.apply(start(0, 1, 0)) // given again
	time.Sleep(300 * time.Millisecond)
	touch(t, p.goOn)
	if e := h.end(0, sched.Failed); e.Code != 5 || e.Attempt != 1 {
		t.Errorf("%+v, want code 5 of attempt 1", e)
	}
	none(t, p.mark)
}

// Ensure that a driver that adopts an attempt can stop it, also where the stop was ordered by the one before.
func TestAdoptedAndStopped(t *testing.T) {
	t.Parallel()
	for name, cancel := range map[string]bool{"preempted": false, "cancelled": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := begun(t)
			j := &p.view.Jobs[0]
			j.Attempt, j.Cancel = sched.Stopping, cancel
			h := take(t, p.next(t, 2), p.view)
			h.apply(stop(0, 1))
			h.end(0, map[bool]sched.Outcome{false: sched.Preempted, true: sched.Cancelled}[cancel])
			none(t, p.mark)
		})
	}
}

// Ensure that the end of an attempt that no one watched is reported with its code and with the time at which it
// happened.
func TestEndedMeanwhile(t *testing.T) {
	t.Parallel()
	for name, up := range map[string]bool{"up": true, "not known to be up": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := begun(t)
			over := p.ended(t)
			j := &p.view.Jobs[0]
			if j.Up = up; !up {
				j.Attempt, p.view.Now = sched.Starting, 1
			}
			time.Sleep(50 * time.Millisecond) // the time of the end is not that of the sync
			h := take(t, p.next(t, 2), p.view)
			e := h.find(sched.AttemptEnded, 0)
			if e == nil || e.Code != 5 || e.Outcome != sched.Failed || e.Time != sched.Time(over.Ended.Sub(p.origin)) {
				t.Errorf("sync reports %+v, want code 5 at %v", e, over.Ended.Sub(p.origin))
			}
			s := h.find(sched.AttemptStarted, 0)
			if up != (s == nil) || s != nil && s.Time != sched.Time(over.Started.Sub(p.origin)) {
				t.Errorf("sync reports the start as %+v, known %v, want %v", s, up, over.Started.Sub(p.origin))
			}
		})
	}
}

// Ensure that an attempt of which there is no record is lost, with its processes, and never waited for.
func TestLost(t *testing.T) {
	t.Parallel()
	for name, lose := range map[string]func(t *testing.T, p *past){
		"shim killed": func(t *testing.T, p *past) {
			killShim(t, p.run())
			p.gone(t)
		},
		"no over.json": func(t *testing.T, p *past) {
			p.ended(t)
			remove(t, filepath.Join(string(p.run()), "over.json"))
		},
		"torn over.json": func(t *testing.T, p *past) {
			p.ended(t)
			touch(t, filepath.Join(string(p.run()), "over.json"))
		},
		"lock lost": func(t *testing.T, p *past) {
			killShim(t, p.run())
			p.gone(t)
			remove(t, filepath.Join(p.dir, "jobs", "0", "lock"))
		},
		"lock torn": func(t *testing.T, p *past) {
			killShim(t, p.run())
			p.gone(t)
			if err := os.WriteFile(filepath.Join(p.dir, "jobs", "0", "lock"), []byte{0, 0}, 0o600); err != nil {
				t.Fatal(err)
			}
		},
		"another boot": func(t *testing.T, p *past) {
			p.ended(t)
			remove(t, filepath.Join(string(p.run()), "over.json"))
			alive, err := p.run().Alive()
			if err != nil {
				t.Fatal(err)
			}
			alive.BootID = "another"
			spoil(t, filepath.Join(string(p.run()), "alive.json"), alive)
		},
		"all of it": func(t *testing.T, p *past) {
			p.ended(t)
			remove(t, filepath.Join(p.dir, "jobs"))
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := begun(t)
			lose(t, p)
			h := take(t, p.next(t, 2), p.view)
			e := h.end(0, sched.NodeLost)
			none(t, p.mark)
			if (name == "another boot") != strings.Contains(e.Text, "machine") {
				t.Errorf("reported as %q", e.Text)
			}
			h.apply(start(0, 2, 0)) // and it goes on
			h.until("second attempt", func() bool {
				return len(h.events) > 0 && h.events[len(h.events)-1].Attempt == 2
			})
		})
	}
}

// Ensure that an attempt whose end no shim wrote down, as its machine went down or it ran before a restore elsewhere,
// ends when it is last known to have run: the time since counts for no one.
func TestEndedBeforeThisMachine(t *testing.T) {
	t.Parallel()
	for name, restored := range map[string]bool{"machine went down": false, "restored": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := begun(t)
			p.ended(t)
			p.origin = p.origin.Add(-3*time.Hour - shim.SinceBoot()) // of which the log knows the first hour
			p.view.Now = sched.Time(time.Hour)
			run, want := string(p.run()), sched.Time(2*time.Hour)
			d := p.next(t, 2)
			if restored {
				d.o.Restored = p.origin.Add(time.Duration(want))
				remove(t, filepath.Join(p.dir, "jobs"))
			} else {
				remove(t, filepath.Join(run, "over.json"))
				alive, err := p.run().Alive()
				if err != nil {
					t.Fatal(err)
				}
				alive.BootID = "another"
				spoil(t, filepath.Join(run, "alive.json"), alive)
				p.lastWritten(t, want)
			}
			h := take(t, d, p.view)
			e := h.find(sched.AttemptEnded, 0)
			if e == nil || e.Outcome != sched.NodeLost || e.Time != want || e.Attempt != 1 {
				t.Errorf("sync reports %+v, want that attempt 1 was lost at %v", e, want)
			}
			if h.view.Now < want.Add(time.Hour) {
				t.Errorf("sync ends at %v, want the present: what follows is decided now", h.view.Now)
			}
			h.apply(start(0, 2, 0)) // and it goes on
			h.until("second attempt", func() bool {
				return len(h.events) > 0 && h.events[len(h.events)-1].Attempt == 2
			})
		})
	}
}

// lastWritten has the files of the attempt be as old as at a time.
func (p *past) lastWritten(t *testing.T, at sched.Time) {
	t.Helper()
	entries, err := os.ReadDir(string(p.run()))
	if err != nil {
		t.Fatal(err)
	}
	for _, entry := range entries {
		when := p.origin.Add(time.Duration(at))
		if err := os.Chtimes(filepath.Join(string(p.run()), entry.Name()), when, when); err != nil {
			t.Fatal(err)
		}
	}
}

func remove(t *testing.T, path string) {
	t.Helper()
	if err := os.RemoveAll(path); err != nil {
		t.Fatal(err)
	}
}

// Ensure that an order that was written, but that no shim has started, is carried out once it is given again.
func TestOrderedNotBegun(t *testing.T) {
	t.Parallel()
	list, _ := jobs(t, time.Second, "echo $TRAINYARD_ATTEMPT; exit 0")
	dir := folder(t)
	first := open(t, dir, 1, 2, list...)
	h := take(t, first, sched.View{})
	h.arrivals(1)
	if err := shim.WriteOrder(&shim.Order{State: first.o.State, Attempt: 1, Epoch: 1, Command: []string{"false"},
		Dir: dir}); err != nil {
		t.Fatal(err)
	}
	first.Close()
	p := &past{dir: dir, origin: first.o.Origin, list: list}
	h = take(t, p.next(t, 2), known(first, sched.Job{Attempt: sched.Starting, Attempts: 1}))
	if len(h.events) > 0 {
		t.Errorf("sync reports %v of what did not happen", h.events)
	}
	h.apply(start(0, 1, 0))
	h.end(0, sched.Finished)
	if out := h.output(0, 1); out != "1\n" {
		t.Errorf("it wrote %q", out)
	}
}

// Ensure that a log that knows less than the folder is refused: a job would be started twice.
func TestOlderLog(t *testing.T) {
	t.Parallel()
	p := begun(t)
	p.view.Jobs[0].Attempts, p.view.Jobs[0].Attempt = 0, sched.NoAttempt
	for name, v := range map[string]sched.View{"attempt not known": p.view, "job not known": {}} {
		d := open(t, p.dir, 2, 2, p.list...)
		_, err := d.Sync(t.Context(), &v)
		d.Close()
		if err == nil || !strings.Contains(err.Error(), "older than the folder") {
			t.Errorf("%s: %v, want the log to be refused", name, err)
		}
	}
	touch(t, p.goOn)
}

// Ensure that an older manager cannot act any more once a later one is there: it ends, and leaves no trace.
func TestFenced(t *testing.T) {
	t.Parallel()
	p := begun(t)
	old := take(t, p.next(t, 2), p.view)
	h := take(t, p.next(t, 3), p.view)
	if err := shim.State(p.dir).SetEpoch(2); !errors.Is(err, shim.ErrFenced) {
		t.Errorf("epoch 2 after 3: %v, want ErrFenced", err)
	}
	fenced(old, stop(0, 1))
	again := open2(t, p) // the driver of an old manager that was in the middle of its work
	fenced(again, start(0, 2, 1))
	if h.d.o.State.Begun(0, 2) {
		t.Error("an old manager's attempt was started")
	}
	h.apply(start(0, 1, 0))
	touch(t, p.goOn)
	h.end(0, sched.Failed) // by itself: no one stopped it
}

// open2 returns a driver that thinks its epoch is 2 and has not heard of the attempt.
func open2(t *testing.T, p *past) *hand {
	t.Helper()
	d := p.next(t, 3)
	d.o.Epoch = 2
	v := p.view
	v.Jobs = []sched.Job{p.view.Jobs[0]}
	v.Jobs[0].Attempt = sched.Ended
	return take(t, d, v)
}

// fenced gives an order and waits for the driver to find out that it has none to give.
func fenced(h *hand, a sched.Action) {
	h.Helper()
	h.apply(a)
	for deadline := time.Now().Add(patience); time.Now().Before(deadline); {
		_, err := h.d.Next(h.Context(), h.d.Now().Add(100*time.Millisecond))
		if errors.Is(err, shim.ErrFenced) {
			return
		}
		if err != nil {
			h.Fatal(err)
		}
	}
	h.Fatal("the old driver goes on")
}
