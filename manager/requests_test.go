package manager_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/trainyard/trainyard/host"
	"github.com/trainyard/trainyard/manager"
	"github.com/trainyard/trainyard/manager/jobfile"
	"github.com/trainyard/trainyard/sched"
)

// served is a manager that runs until the test ends it.
type served struct {
	*rig
	m    *manager.Manager
	stop func() error // ends the run and lets go of the folder
}

// serve runs a manager of a folder, into which jobs are to be handed.
func (r *rig) serve() *served {
	r.Helper()
	r.options.Jobs = nil
	m := r.open()
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- m.Run(ctx) }()
	s := &served{rig: r, m: m}
	s.stop = sync.OnceValue(func() error {
		cancel()
		err := <-ended
		return errors.Join(err, m.Close())
	})
	r.Cleanup(func() { _ = s.stop() })
	return s
}

// list reads jobs as the rig's own.
func (r *rig) list(jobs string) []jobfile.Job {
	r.Helper()
	return newRig(r.T, "fifo", 1, jobs).options.Jobs.Jobs
}

// submit hands jobs in.
func (s *served) submit(jobs string) sched.JobID {
	s.Helper()
	first, err := s.m.Submit(s.Context(), s.list(jobs))
	if err != nil {
		s.Fatal(err)
	}
	return first
}

// until waits for a job to stand as wanted.
func (s *served) until(id sched.JobID, what string, stands func(*host.Row) bool) host.Row {
	s.Helper()
	timeout := time.After(time.Minute)
	for {
		row, _, changed := s.m.Board().Row(id)
		if stands(&row) {
			return row
		}
		select {
		case <-changed:
		case <-timeout:
			s.Fatalf("job %d: %+v, want it %s", id, row, what)
		}
	}
}

func done(r *host.Row) bool { return r.State == sched.Done }
func runs(r *host.Row) bool { return r.Attempt == sched.Running }

// Ensure that jobs submitted by many at once are all there, numbered without gaps, those of one list in a row, also
// after the manager was replaced; that a list refers to its own jobs; and that a manager that stops or has the jobs of
// a file says so.
func TestSubmitMany(t *testing.T) {
	t.Parallel()
	const clients, lists = 8, 5
	s := newRig(t, "fifo", 4, "jobs: [{command: [x]}]").serve()
	pair := s.list("jobs: [{name: b, after: [a], command: [sh, -c, 'exit 0']}, {name: a, command: [sh, -c, 'exit 0']}]")
	var mu sync.Mutex
	firsts := make(map[sched.JobID]bool)
	var all sync.WaitGroup
	for range clients {
		all.Go(func() {
			for range lists {
				first, err := s.m.Submit(t.Context(), pair)
				if row, known, _ := s.m.Board().Row(first + 1); err != nil || !known || row.Name != "b" {
					t.Errorf("submitted as %d, %v; the next is %+v", first, err, row)
				}
				mu.Lock()
				firsts[first] = true
				mu.Unlock()
			}
		})
	}
	all.Wait()
	for i := range sched.JobID(clients * lists) {
		if !firsts[2*i] {
			t.Errorf("no list starts with job %d", 2*i)
		}
	}
	last := sched.JobID(2*clients*lists - 1)
	if row := s.until(last, "done", done); row.Outcome != sched.Finished {
		t.Errorf("%+v, want it finished", row)
	}
	if err := s.m.Look(t.Context(), func(v *sched.View) {
		for id := range v.Jobs {
			if after := v.Jobs[id].Spec.After; id%2 == 1 && (len(after) != 1 || int(after[0]) != id-1) {
				t.Errorf("job %d after %v, want the one before it", id, after)
			}
		}
	}); err != nil {
		t.Error(err)
	}
	if err := s.stop(); !errors.Is(err, context.Canceled) {
		t.Errorf("the run ended with %v", err)
	}
	if _, err := s.m.Submit(t.Context(), pair); !errors.Is(err, host.ErrStopped) {
		t.Errorf("submitted to one that has stopped: %v", err)
	}
	again := s.serve()
	if first := again.submit("jobs: [{command: [sh, -c, 'exit 0']}]"); first != last+1 {
		t.Errorf("the first after the restart is %d, want %d", first, last+1)
	}
	again.until(last+1, "done", done)
}

// Ensure that what cannot run is refused as a whole, before anything is durable.
func TestSubmitRefused(t *testing.T) {
	t.Parallel()
	s := newRig(t, "fifo", 2, "jobs: [{command: [x]}]").serve()
	_, err := s.m.Submit(t.Context(), s.list("jobs: [{command: [x]}, {name: wide, gpus: 3, command: [x]}]"))
	if !errors.Is(err, manager.ErrRefused) || !strings.Contains(err.Error(), "job wide needs 3") {
		t.Errorf("%v, want job wide refused", err)
	}
	if rows := s.m.Board().Rows(); len(rows) > 0 {
		t.Errorf("%v were taken", rows)
	}
}

// Ensure that commands are durable when they return and do what they say, in every state of a job.
func TestCommandDurable(t *testing.T) {
	t.Parallel()
	s := newRig(t, "fifo", 1, "jobs: [{command: [x]}]").serve()
	id := s.submit("jobs: [{name: long, command: WAITING}, {name: next, command: WAITING}]")
	s.until(id, "running", runs)
	do := func(c sched.Command, id sched.JobID, want error) {
		t.Helper()
		if err := s.m.Command(t.Context(), id, c); !errors.Is(err, want) {
			t.Errorf("command %d on job %d: %v, want %v", c, id, err, want)
		}
	}
	do(sched.PauseJob, id, nil)
	s.until(id+1, "running", runs)
	do(sched.ResumeJob, id, nil)
	do(sched.CancelJob, id, nil)
	s.until(id, "done", done)
	for _, c := range []sched.Command{sched.CancelJob, sched.RequeueJob, sched.PauseJob, sched.ResumeJob} {
		do(c, id, host.ErrDone)
	}
	do(sched.RequeueJob, id+1, nil)
	s.until(id+1, "running again", func(r *host.Row) bool { return runs(r) && r.Attempts == 2 })
	do(sched.CancelJob, id+2, host.ErrNoJob)
	do(sched.CancelJob, id+1, nil)
}

// Ensure that a drained machine, or slot, is given to no new job and takes jobs again when that is lifted; that it
// survives the manager.
func TestDrain(t *testing.T) {
	t.Parallel()
	s := newRig(t, "fifo", 2, "jobs: [{command: [x]}]").serve()
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	a := s.submit("jobs: [{name: a, command: WAITING}]")
	s.until(a, "running", runs)
	must(s.m.Drain(t.Context(), true))
	b := s.submit("jobs: [{name: b, command: WAITING}, {name: c, command: WAITING}]")
	_ = s.stop()
	again := s.serve()
	if row, _, _ := again.m.Board().Row(b); row.Attempts > 0 {
		t.Errorf("%+v, want it to wait", row)
	}
	must(again.m.DrainGPUs(t.Context(), []sched.GPUID{0, 1}, true))
	must(again.m.Drain(t.Context(), false))
	must(again.m.DrainGPUs(t.Context(), []sched.GPUID{0, 1}, false))
	again.until(b, "running", runs)
	if row, _, _ := again.m.Board().Row(b + 1); row.Attempts > 0 {
		t.Errorf("%+v, want it to wait: a still has its slot", row)
	}
}

// Ensure that a log from before numbers were refused as names is read, and that its jobs go on.
func TestNumberAsName(t *testing.T) {
	t.Parallel()
	s := newRig(t, "fifo", 1, "jobs: [{command: [x]}]").serve()
	list := s.list("jobs: [{name: old, command: WAITING}]")
	list[0].Spec.Name = "12"
	id, err := s.m.Submit(t.Context(), list)
	if err != nil {
		t.Fatal(err)
	}
	s.until(id, "running", runs)
	_ = s.stop()
	again := s.serve()
	if row := again.until(id, "running", runs); row.Name != "12" || row.Attempts != 1 {
		t.Errorf("%+v, want it to go on as 12", row)
	}
}

// Ensure that who follows hears of every event once, in order, whatever there was before and comes while he reads.
func TestEvents(t *testing.T) {
	t.Parallel()
	s := newRig(t, "fifo", 1, "jobs: [{command: [x]}]").serve()
	for range 40 {
		s.submit("jobs: [{count: 10, command: [sh, -c, 'exit 0'], after: []}]")
	}
	var arrived int
	enough := errors.New("enough")
	want := uint64(1)
	err := s.m.Events(t.Context(), 1, func(seq uint64, line []byte) error {
		if seq != want || !strings.HasPrefix(string(line), fmt.Sprintf(`{"seq":%d,`, seq)) {
			t.Fatalf("event %d is %s, want %d", seq, line, want)
		}
		want++
		if strings.Contains(string(line), `"event":"arrived"`) {
			if arrived++; arrived == 400 {
				s.submit("jobs: [{command: [sh, -c, 'exit 0']}]")
			}
		}
		if arrived == 401 {
			return enough
		}
		return nil
	})
	if !errors.Is(err, enough) {
		t.Error(err)
	}
}

// Ensure that another system takes over a folder with its jobs, and that the log says so.
func TestSystemChanges(t *testing.T) {
	t.Parallel()
	r := newRig(t, "fifo", 1, "jobs: [{command: [x]}]")
	s := r.serve()
	wide := s.submit("jobs: [{name: a, preemptible: true, command: WAITING}, {name: b, command: WAITING}]")
	s.until(wide, "running", runs)
	_ = s.stop()
	r.options.System, r.options.Settings = "tiresias-las", map[string]string{"thresholds": "0.2", "min_run": "0"}
	s = r.serve()
	s.until(wide+1, "running in turn", runs)
	_ = s.stop()
	s = r.serve() // and that one is found again
	if h := s.m.Header(); h.System != "tiresias-las" {
		t.Errorf("header %+v", h)
	}
	s.until(wide+1, "there", func(row *host.Row) bool { return row.Attempts > 0 })
}

// Ensure that of two changes of a job that are asked for at once neither undoes the other.
func TestChangesAtOnce(t *testing.T) {
	t.Parallel()
	s := newRig(t, "elastic", 8, "jobs: [{command: [x]}]").serve()
	id := s.submit("jobs: [{command: [sleep, 1h], submit: 1h, gpus: 1}]")
	for n := range int32(20) {
		var all sync.WaitGroup
		for _, change := range []func(*sched.JobChange){
			func(c *sched.JobChange) { c.Priority = n + 1 },
			func(c *sched.JobChange) { c.GPUs.Max = 1 + n%8 },
			func(c *sched.JobChange) { c.WallTime = time.Duration(n+1) * time.Hour },
		} {
			all.Go(func() {
				if err := s.m.Change(t.Context(), id, change); err != nil {
					t.Error(err)
				}
			})
		}
		all.Wait()
		if err := s.m.Look(t.Context(), func(v *sched.View) {
			if p := v.Job(id).Spec; p.Priority != n+1 || p.GPUs.Max != 1+n%8 ||
				p.WallTime != time.Duration(n+1)*time.Hour {
				t.Errorf("round %d: priority %d, %d GPUs at most, wall time %v", n, p.Priority, p.GPUs.Max, p.WallTime)
			}
		}); err != nil {
			t.Fatal(err)
		}
	}
}
