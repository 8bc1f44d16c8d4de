package manager

import (
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"github.com/trainyard/trainyard/driver/local/shim"
	"github.com/trainyard/trainyard/engine"
	"github.com/trainyard/trainyard/eventlog"
	"github.com/trainyard/trainyard/manager/store"
	"github.com/trainyard/trainyard/sched"
)

// Repaired says what Repair found and did.
type Repaired struct {
	Copy string   // the folder that has what was there before; "": nothing was wrong, and nothing is changed
	Done []string // sentences: what was quarantined or moved
	Lost []string // sentences: what is to be done again, and by whom
	Jobs int      // that the log knows now
}

// repair is a Repair at work.
type repair struct {
	Repaired
	k     *keeper
	state shim.State
	view  *sched.View

	standIns []store.StandIn
	cut      uint64 // the log ends before this event; 0 = it ends where it did
	why      string // it does
	strange  []stray
}

// stray is what the folder has of a job that the log does not know of.
type stray struct {
	job      int32
	attempts int32 // that the log knows of; -1: it does not know the job
}

// Repair makes a folder that no one serves one that can be served: events that cannot be read, or that contradict those
// before them, are quarantined, and what the folder has of attempts that the log does not know is moved away. All that
// is changed is copied before. store.ErrBusy: another serves it. What cannot be repaired is an error, and stays as it
// is.
func Repair(dir string) (*Repaired, error) {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return nil, err
	}
	if _, missing := os.Stat(filepath.Join(dir, store.FileName)); missing != nil { // Open would make one
		return nil, missing
	}
	s, err := store.OpenDamaged(dir)
	if err != nil {
		return nil, err
	}
	r := &repair{k: &keeper{Store: s, dir: dir, before: math.MaxInt64}, state: shim.State(dir)}
	err = r.plan()
	if err == nil && (len(r.standIns) > 0 || r.cut > 0 || len(r.strange) > 0) {
		err = r.carryOut(time.Now())
	}
	if failed := errors.Join(err, s.Close()); failed != nil {
		return nil, failed
	}
	return &r.Repaired, nil
}

// plan finds out what is to be done, and changes nothing.
func (r *repair) plan() error {
	state, err := r.folded()
	if err != nil {
		return err
	}
	r.view = state.View()
	r.Jobs = len(r.view.Jobs)
	return r.strays()
}

// folded returns the state of the log once what is wrong with it is left out.
func (r *repair) folded() (*engine.State, error) {
	bad, err := r.k.Unreadable()
	if errors.Is(err, store.ErrUnread) {
		return nil, err
	}
	state, at, fault := r.k.fold()
	if errors.Is(fault, eventlog.ErrNewer) { // nothing is wrong with it
		return nil, fmt.Errorf("%w: it is as it was; use the newer Trainyard", fault)
	}
	if fault == nil && len(bad) == 0 {
		return state, nil
	}
	if r.standIns = r.k.mend(); len(r.standIns) > 0 {
		state, _, err = r.k.fold()
		return state, err
	}
	if r.cut, r.why = at, "it contradicts what came before"; len(bad) > 0 {
		r.cut, r.why = bad[0].Seq, bad[0].Why
	}
	if r.cut <= 1 {
		return nil, fmt.Errorf("manager: %s: nothing of the log can be used (%s): put a copy of %s from before back",
			r.k.dir, r.why, store.FileName)
	}
	r.k.before = r.cut
	state, _, err = r.k.fold()
	return state, err
}

// strays looks for attempts in the folder that the log does not know of. One that runs is an error: no one would know
// which GPUs it holds.
func (r *repair) strays() error {
	jobs, err := os.ReadDir(filepath.Join(string(r.state), "jobs"))
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	for _, entry := range jobs {
		id, err := strconv.ParseInt(entry.Name(), 10, 32)
		if err != nil {
			continue // not ours
		}
		x := stray{int32(id), -1}
		if int(id) < len(r.view.Jobs) {
			x.attempts = r.view.Jobs[id].Attempts
		}
		if !r.state.Begun(x.job, max(x.attempts, 0)+1) {
			continue
		}
		if r.state.Held(x.job) {
			return fmt.Errorf("manager: %s: job %d runs, and the log that is left does not know of its attempt: wait "+
				"for its end, or end it (%s), and repair then", r.k.dir, id, r.state.Job(x.job))
		}
		r.strange = append(r.strange, x)
	}
	return nil
}

// carryOut copies the log and then does what was planned.
func (r *repair) carryOut(now time.Time) error {
	r.Copy = filepath.Join(r.k.dir, "repair-"+now.UTC().Format("20060102-150405.000"))
	if err := os.Mkdir(r.Copy, 0o700); err != nil {
		return err
	}
	for _, name := range []string{store.FileName, store.FileName + "-wal"} {
		err := copyFile(filepath.Join(r.Copy, name), filepath.Join(r.k.dir, name))
		if err != nil && !errors.Is(err, os.ErrNotExist) {
			return err
		}
	}
	if len(r.standIns) > 0 {
		for i := range r.standIns {
			r.report(&r.standIns[i])
		}
		if err := r.k.Settle(); err != nil {
			return err
		}
	}
	if r.cut > 0 {
		if err := r.cutOff(); err != nil {
			return err
		}
	}
	for _, x := range r.strange {
		if err := r.moveAway(x); err != nil {
			return err
		}
	}
	return nil
}

// report says what an event that cannot be read means.
func (r *repair) report(x *store.StandIn) {
	what := "what it said is lost"
	if x.Kept {
		what = "its text was cut, and nothing else is lost"
	}
	r.Done = append(r.Done, fmt.Sprintf("event %d of the log was quarantined: %s; %s", x.Seq, x.Why, what))
	if x.Event.Kind == sched.JobArrived && !x.Kept {
		r.Lost = append(r.Lost, fmt.Sprintf("job %d: nothing is known of it but its number: `trainyard cancel "+
			"%d`, and "+
			"submit it again", x.Event.Job, x.Event.Job))
	}
}

// cutOff sets the end of the log aside, and says what it meant, as far as it can be read.
func (r *repair) cutOff() error {
	last, err := r.k.Last()
	if err != nil {
		return err
	}
	err = r.k.Behind(r.cut, func(e *sched.Event) {
		switch {
		case e.Kind == sched.JobArrived:
			r.Lost = append(r.Lost, fmt.Sprintf("job %d (%s) arrived later: submit it again", e.Job, e.Spec.Name))
		case e.Kind == sched.AttemptEnded && e.Outcome == sched.Finished && int(e.Job) < r.Jobs:
			r.Lost = append(r.Lost, fmt.Sprintf("job %d (%s) finished later: it will be run again, unless you "+
				"cancel it",
				e.Job, r.view.Jobs[e.Job].Spec.Name))
		}
	})
	if err != nil {
		return err
	}
	r.Done = append(r.Done, fmt.Sprintf("events %d to %d of the log were quarantined: %s, and what follows was "+
		"decided "+
		"on it", r.cut, last, r.why))
	return r.k.Exclude(r.cut, r.why)
}

// moveAway moves what the folder has of attempts that the log does not know of into the copy.
func (r *repair) moveAway(x stray) error {
	to := filepath.Join(r.Copy, "jobs")
	if err := os.MkdirAll(to, 0o700); err != nil {
		return err
	}
	name := strconv.Itoa(int(x.job))
	if x.attempts < 0 {
		r.Done = append(r.Done, fmt.Sprintf("the folder of job %d, which the log does not know, was moved to %s, "+
			"with its "+
			"checkpoints", x.job, filepath.Join(to, name)))
		return os.Rename(r.state.Job(x.job), filepath.Join(to, name))
	}
	entries, err := os.ReadDir(r.state.Job(x.job))
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Join(to, name), 0o700); err != nil {
		return err
	}
	for _, entry := range entries {
		n, err := strconv.ParseInt(entry.Name(), 10, 32)
		if err != nil || n <= int64(x.attempts) {
			continue
		}
		if err := os.Rename(filepath.Join(r.state.Job(x.job), entry.Name()), filepath.Join(to, name,
			entry.Name())); err != nil {
			return err
		}
	}
	r.Done = append(r.Done, fmt.Sprintf("attempts of job %d after number %d, which the log does not know, were "+
		"moved to %s",
		x.job, x.attempts, filepath.Join(to, name)))
	return r.state.Rewind(x.job, x.attempts)
}

// copyFile copies a file, durably.
func copyFile(to, from string) error {
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer in.Close()
	out, err := os.OpenFile(to, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, err = io.Copy(out, in)
	return errors.Join(err, out.Sync(), out.Close())
}
