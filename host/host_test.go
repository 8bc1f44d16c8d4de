package host_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/trainyard/trainyard/eventlog"
	"github.com/trainyard/trainyard/host"
	"github.com/trainyard/trainyard/host/hosttest"
	"github.com/trainyard/trainyard/sched"
	"github.com/trainyard/trainyard/system"
	"github.com/trainyard/trainyard/system/key"
)

// rig is a disk, and what hosts of it have.
type rig struct {
	*testing.T
	disk    *hosttest.Disk
	fail    func(m hosttest.Moment, batch uint64) error
	driver  *hosttest.Driver // of the last start
	drivers int
}

func newRig(t *testing.T, states bool) *rig {
	t.Helper()
	origin := time.Now().Add(-time.Hour).UTC().Format(time.RFC3339Nano)
	r := &rig{T: t, disk: hosttest.NewDisk(eventlog.Header{Origin: origin, System: "fifo", GPUs: 8, NodeGPUs: 4,
		Types: []string{"gpu"}})}
	r.disk.States = states
	return r
}

// options are those of a host of the disk.
func (r *rig) options() host.Options {
	s := hosttest.NewStore(r.disk)
	s.Fail = func(m hosttest.Moment, batch uint64) error {
		if r.fail == nil {
			return nil
		}
		return r.fail(m, batch)
	}
	return host.Options{Store: s, System: decider, Driver: func(s *host.Start) (host.Driver, error) {
		origin, err := time.Parse(time.RFC3339Nano, s.Header.Origin)
		r.drivers++
		r.driver = hosttest.NewDriver(hosttest.Nodes(2, 4), origin)
		return r.driver, err
	}}
}

// decider is the system that a header names.
func decider(h *eventlog.Header) (sched.Decider, error) {
	info, err := system.Named(h.System)
	if err != nil {
		return nil, err
	}
	sys, err := info.Build(system.Knowledge{}, key.NewSettings(h.Settings), nil)
	return sys.Decider, err
}

// running is a host that runs.
type running struct {
	*host.Host
	rig  *rig
	stop func() error // ends the run and says how it ended
}

func (r *rig) run() *running {
	r.Helper()
	h, err := host.Open(r.Context(), r.options())
	if err != nil {
		r.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	over := make(chan error, 1)
	go func() { over <- h.Run(ctx) }()
	w := &running{Host: h, rig: r}
	w.stop = sync.OnceValue(func() error {
		cancel()
		return errors.Join(<-over, h.Close())
	})
	r.Cleanup(func() { _ = w.stop() })
	if err := h.Look(r.Context(), func(*sched.View) {}); err != nil { // it has a driver by now
		r.Fatal(err)
	}
	return w
}

// jobs are specs of jobs by name.
func jobs(names ...string) func(sched.JobID, sched.Time) []*sched.JobSpec {
	specs := make([]*sched.JobSpec, len(names))
	for i, name := range names {
		specs[i] = &sched.JobSpec{Name: name, User: "ann", GPUs: sched.Rigid(1)}
	}
	return func(sched.JobID, sched.Time) []*sched.JobSpec { return specs }
}

// count says how often each name arrived, by the log.
func (r *rig) count() map[string]int {
	names := make(map[string]int)
	for _, line := range r.disk.Lines() {
		if _, rest, ok := strings.Cut(line, `"event":"arrived"`); ok {
			_, rest, _ = strings.Cut(rest, `"name":"`)
			name, _, _ := strings.Cut(rest, `"`)
			names[name]++
		}
	}
	return names
}

// both has a test run with stores of both kinds.
func both(t *testing.T, test func(r *rig)) {
	for name, states := range map[string]bool{"log": false, "states": true} {
		t.Run(name, func(t *testing.T) { t.Parallel(); test(newRig(t, states)) })
	}
}

// Ensure that a job is durable and shown when its submission returns, runs, and is taken over by the next host.
func TestLifeOfASubmit(t *testing.T) {
	t.Parallel()
	both(t, func(r *rig) {
		w := r.run()
		first, err := w.Submit(r.Context(), jobs("a", "b"))
		if row, known, _ := w.Board().Row(first + 1); err != nil || !known || row.Name != "b" || r.count()["b"] != 1 {
			r.Fatalf("submitted as %d, %v; the next is %+v, the log has %v", first, err, row, r.count())
		}
		w.until(first, func(row host.Row) bool { return row.Attempt == sched.Running })
		if err := w.Command(r.Context(), first+1, sched.PauseJob); err != nil {
			r.Error(err)
		}
		if err := w.stop(); !errors.Is(err, context.Canceled) {
			r.Errorf("the run ended with %v", err)
		}
		again := r.run()
		r.driver.Finish(first)
		again.until(first, func(row host.Row) bool { return row.State == sched.Done })
		if row, _, _ := again.Board().Row(first); row.Outcome != sched.Finished || row.Attempts != 1 {
			r.Errorf("%+v, want it finished in one attempt", row)
		}
		if next, err := again.Submit(r.Context(), jobs("c")); err != nil || next != first+2 {
			r.Errorf("the next is %d, %v, want %d", next, err, first+2)
		}
	})
}

func (w *running) until(id sched.JobID, stands func(host.Row) bool) {
	w.rig.Helper()
	timeout := time.After(20 * time.Second)
	for {
		row, _, changed := w.Board().Row(id)
		if stands(row) {
			return
		}
		select {
		case <-changed:
		case <-timeout:
			w.rig.Fatalf("job %d does not come to stand so: %+v", id, row)
		}
	}
}

var errKilled = errors.New("killed")

// Ensure that of 60 hosts that die before or after a batch is durable, while clients submit, none loses a job that it
// acknowledged or has one twice, and that lists are whole or not there.
func TestSixtyKills(t *testing.T) {
	t.Parallel()
	both(t, func(r *rig) {
		const kills, clients = 60, 3
		rnd := rand.New(rand.NewPCG(1, 2))
		var mu sync.Mutex
		acknowledged := make(map[string]sched.JobID)
		submitted := 0
		for n := range kills {
			left, moment := 1+rnd.IntN(6), []hosttest.Moment{hosttest.Before, hosttest.After}[n%2]
			r.fail = func(m hosttest.Moment, _ uint64) error {
				if m != moment {
					return nil
				}
				if left--; left <= 0 {
					return errKilled
				}
				return nil
			}
			h, err := host.Open(r.Context(), r.options())
			if err != nil {
				r.Fatal(err)
			}
			var all sync.WaitGroup
			for c := range clients {
				all.Go(func() {
					for i := 0; ; i++ {
						a, b := fmt.Sprintf("%d-%d-%d-a", n, c, i), fmt.Sprintf("%d-%d-%d-b", n, c, i)
						mu.Lock()
						submitted++
						mu.Unlock()
						first, err := h.Submit(context.Background(), jobs(a, b))
						if err != nil {
							return
						}
						mu.Lock()
						acknowledged[a], acknowledged[b] = first, first+1
						mu.Unlock()
					}
				})
			}
			if err := h.Run(context.Background()); !errors.Is(err, errKilled) {
				r.Fatalf("kill %d: %v", n, err)
			}
			all.Wait()
		}
		r.fail = nil
		w := r.run()
		names := r.count()
		for name, id := range acknowledged {
			if row, known, _ := w.Board().Row(id); names[name] != 1 || !known || row.Name != name {
				r.Errorf("job %s was acknowledged as %d, arrived %d times, and %d is %+v", name, id, names[name], id,
					row)
			}
		}
		for name, n := range names {
			other := strings.TrimSuffix(name, "a") + "b"
			if n != 1 || strings.HasSuffix(name, "a") && names[other] != 1 {
				r.Errorf("job %s arrived %d times, %s %d times", name, n, other, names[other])
			}
		}
		if len(acknowledged) < kills/2 {
			r.Errorf("%d jobs acknowledged in %d kills, want a load", len(acknowledged), kills)
		}
		r.Logf("%d kills, %d lists submitted, %d jobs acknowledged, %d there", kills, submitted, len(acknowledged),
			len(names))
	})
}

// Ensure that a host whose store cannot be read is none, and that its store is closed; that one which cannot write
// ends, orders nothing of what it could not write, and says so to those who wait; and that it stays so for ever where
// the store does.
func TestStoreFails(t *testing.T) {
	t.Parallel()
	both(t, func(r *rig) {
		disk := errors.New("no disk")
		r.fail = func(m hosttest.Moment, _ uint64) error {
			if m == hosttest.AtLoad {
				return disk
			}
			return nil
		}
		if _, err := host.Open(r.Context(), r.options()); !errors.Is(err, disk) || r.drivers > 0 {
			r.Errorf("opened with %v, %d drivers made", err, r.drivers)
		}
		for range 3 { // for ever
			r.fail = func(m hosttest.Moment, batch uint64) error {
				if m == hosttest.Before && batch > 1 {
					return disk
				}
				return nil
			}
			h, err := host.Open(r.Context(), r.options())
			if err != nil {
				r.Fatal(err)
			}
			over := make(chan error, 1)
			go func() { over <- h.Run(r.Context()) }()
			if _, err := h.Submit(r.Context(), jobs("lost")); !errors.Is(err, host.ErrStopped) {
				r.Errorf("submitted: %v, want that it stops", err)
			}
			if err := <-over; !errors.Is(err, disk) {
				r.Errorf("the run ended with %v, want %v", err, disk)
			}
			if n := r.driver.Starts(); n > 0 {
				r.Errorf("%d attempts were ordered that the store does not have", n)
			}
			if rows := h.Board().Rows(); len(rows) > 0 || r.count()["lost"] > 0 {
				r.Errorf("what was not kept shows: %v, %v", rows, r.count())
			}
		}
	})
}

// Ensure that a submission during which the host starts again, with its batch durable or not, is acknowledged once and
// there once.
func TestReloadDuringSubmit(t *testing.T) {
	t.Parallel()
	for name, moment := range map[string]hosttest.Moment{"not durable": hosttest.Before, "durable": hosttest.After} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			both(t, func(r *rig) {
				armed := make(chan struct{}, 1)
				r.fail = func(m hosttest.Moment, _ uint64) error {
					if m != moment {
						return nil
					}
					select {
					case <-armed:
						return fmt.Errorf("%w: a test", host.ErrReload)
					default:
						return nil
					}
				}
				w := r.run()
				if _, err := w.Submit(r.Context(), jobs("first")); err != nil {
					r.Fatal(err)
				}
				armed <- struct{}{}
				id, err := w.Submit(r.Context(), jobs("a"))
				if row, known, _ := w.Board().Row(id); err != nil || !known || row.Name != "a" || r.count()["a"] != 1 {
					r.Errorf("job %d, %v: %+v, in the log %v", id, err, row, r.count())
				}
				if r.disk.Loads() != 2 || r.drivers != 2 {
					r.Errorf("%d loads and %d drivers, want two each", r.disk.Loads(), r.drivers)
				}
			})
		})
	}
}

// Ensure that a second host of a store fences the first, which ends before it orders anything more, and that both agree
// on what is there.
func TestSecondHost(t *testing.T) {
	t.Parallel()
	both(t, func(r *rig) {
		first := r.run()
		if _, err := first.Submit(r.Context(), jobs("a")); err != nil {
			r.Fatal(err)
		}
		old := r.driver
		second := r.run()
		before := old.Starts()
		if _, err := first.Submit(r.Context(), jobs("b")); !errors.Is(err, host.ErrStopped) {
			r.Errorf("the first took a job: %v", err)
		}
		if err := first.stop(); !errors.Is(err, hosttest.ErrFenced) || old.Starts() != before {
			r.Errorf("the first ended with %v and ordered %d starts since", err, old.Starts()-before)
		}
		if id, err := second.Submit(r.Context(), jobs("c")); err != nil || id != 1 {
			r.Errorf("the second took c as %d, %v, want 1", id, err)
		}
		if n := r.count(); n["a"] != 1 || n["b"] != 0 || n["c"] != 1 {
			r.Errorf("%v, want a and c once", n)
		}
	})
}

// Ensure that of a past whose system, key or file is gone nothing is half done: no driver is made, no batch written,
// and the past is as it was for who has what it names.
func TestWhatItNamesIsGone(t *testing.T) {
	t.Parallel()
	both(t, func(r *rig) {
		w := r.run()
		if _, err := w.Submit(r.Context(), jobs("a")); err != nil {
			r.Fatal(err)
		}
		_ = w.stop()
		before, drivers := strings.Join(r.disk.Lines(), "\n"), r.drivers
		for what, gone := range map[string]func(h *eventlog.Header) (sched.Decider, error){
			"system": func(h *eventlog.Header) (sched.Decider, error) {
				c := *h
				c.System = "gone"
				return decider(&c)
			},
			"key": func(h *eventlog.Header) (sched.Decider, error) {
				info, err := system.Named(h.System)
				if err == nil {
					err = info.CheckKeys(map[string]string{"gone": "1"}, key.Machine)
				}
				return nil, err
			},
			"file": func(*eventlog.Header) (sched.Decider, error) {
				return nil, errors.New("open profiles: no such file")
			},
		} {
			o := r.options()
			o.System = gone
			if _, err := host.Open(r.Context(), o); err == nil {
				r.Errorf("%s: opened", what)
			}
		}
		if after := strings.Join(r.disk.Lines(), "\n"); after != before || r.drivers != drivers {
			r.Errorf("%d drivers made, or the log is another:\n%s\nwas\n%s", r.drivers-drivers, after, before)
		}
		again := r.run()
		if row, known, _ := again.Board().Row(0); !known || row.Name != "a" {
			r.Errorf("%+v, want job a", row)
		}
	})
}

// Ensure that another system goes on with what the one before leaves, and that the log says so once, whatever becomes
// of later hosts.
func TestRenewedOnce(t *testing.T) {
	t.Parallel()
	both(t, func(r *rig) {
		w := r.run()
		if _, err := w.Submit(r.Context(), jobs("a")); err != nil {
			r.Fatal(err)
		}
		_ = w.stop()
		r.disk.Change(func(h *eventlog.Header) { h.System = "las" }, eventlog.GivesWay("fifo", "las"))
		for range 2 {
			w = r.run()
			if _, err := w.Submit(r.Context(), jobs("b")); err != nil {
				r.Fatal(err)
			}
			_ = w.stop()
		}
		n := 0
		for _, line := range r.disk.Lines() {
			if strings.Contains(line, eventlog.RenewedMark) &&
				strings.Contains(line, eventlog.GivesWay("fifo", "las")) {
				n++
			}
		}
		if n != 1 {
			r.Errorf("%d times renewed, want once:\n%s", n, strings.Join(r.disk.Lines(), "\n"))
		}
	})
}

// Ensure that a flood of requests and looks keeps the driver from reporting nothing, and that nothing it reports is
// lost by waits cut short.
func TestFloodDoesNotStarveTheDriver(t *testing.T) {
	t.Parallel()
	r := newRig(t, false)
	w := r.run()
	const n = 8 // GPUs
	names := make([]string, n)
	for i := range names {
		names[i] = fmt.Sprint("job-", i)
	}
	first, err := w.Submit(t.Context(), jobs(names...))
	if err != nil {
		t.Fatal(err)
	}
	stop := make(chan struct{})
	var flood sync.WaitGroup
	for range 4 {
		flood.Go(func() {
			for i := 0; ; i++ {
				select {
				case <-stop:
					return
				default:
				}
				id := first + sched.JobID(i%n)
				if i%2 == 0 {
					_ = w.Command(t.Context(), id, sched.ResumeJob)
				} else if err := w.Look(t.Context(), func(*sched.View) {}); err != nil {
					t.Error(err)
				}
			}
		})
	}
	for i := range n {
		id := first + sched.JobID(i)
		w.until(id, func(row host.Row) bool { return row.Attempt == sched.Running })
		r.driver.Finish(id)
	}
	for i := range n {
		w.until(first+sched.JobID(i), func(row host.Row) bool { return row.State == sched.Done && row.Attempts == 1 })
	}
	close(stop)
	flood.Wait()
	if r.driver.Cut() == 0 {
		t.Error("no wait was cut short")
	}
}
