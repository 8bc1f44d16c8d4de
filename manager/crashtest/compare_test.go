package crashtest

import (
	"fmt"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/trainyard/trainyard/sched"
)

// slack is by how much the log may differ from the record of a shim about an end that no manager saw.
const slack = 2 * time.Millisecond

// checkAgainst compares the log with the ledger: each attempt ran on the GPUs that it was given, and ended as, and
// when, its process said, whether a manager was there or not.
func (c *campaign) checkAgainst(book *ledger, log *eventLog) {
	for a, run := range book.runs {
		rec := log.runs[a]
		if c.lossy && rec != nil && rec.outcome == sched.NodeLost {
			continue // how far it came is not known
		}
		if rec == nil || !rec.started {
			c.t.Errorf("attempt %v ran, but the log does not say so", a)
			continue
		}
		if devices := slots(rec.gpus); devices != run.devices {
			c.t.Errorf("attempt %v ran on %s, the log says %s", a, run.devices, devices)
		}
		if run.ended.IsZero() {
			continue
		}
		c.checkTime(a, run, rec)
		if rec.code != run.code && !c.wrapped(a) {
			c.t.Errorf("attempt %v ended with code %d, the log says %d", a, run.code, rec.code)
		}
	}
	c.all.starts += len(log.runs)
}

// checkTime: an attempt that ended while no manager was there ended when its shim noted it, not when the next manager
// came.
func (c *campaign) checkTime(a attempt, run *witness, rec *record) {
	over, err := c.state.RunDir(int32(a.job), int32(a.number)).Over()
	if err != nil {
		c.t.Errorf("attempt %v: %v", a, err)
		return
	}
	if over.Ended.Before(run.ended) || rec.ended.Before(run.ended) {
		c.t.Errorf("attempt %v ended at %v, its shim says %v, the log %v", a, run.ended, over.Ended, rec.ended)
	}
	if !c.none(over.Ended) {
		return
	}
	c.all.unseen++
	if late := rec.ended.Sub(over.Ended).Abs(); late > slack {
		c.t.Errorf("attempt %v ended at %v, the log says %v, %v next to it", a, over.Ended, rec.ended, late)
	}
}

// wrapped reports whether the trainer is not the job's own process.
func (c *campaign) wrapped(a attempt) bool { return c.find(c.names[a.job]).command[0] == "sh" }

// none reports whether no manager was there at t.
func (c *campaign) none(t time.Time) bool {
	for _, g := range c.gaps {
		if t.After(g.from) && t.Before(g.to) {
			return true
		}
	}
	return false
}

func slots(gpus []sched.GPUID) string {
	names := make([]string, len(gpus))
	for i, g := range gpus {
		names[i] = fmt.Sprintf("slot-%d", g)
	}
	return strings.Join(names, ",")
}

// checkAdopted: what was alive when a manager died went on in the same process to an end of its own.
func (c *campaign) checkAdopted(log *eventLog) {
	for _, r := range c.known {
		now, err := r.dir.Alive()
		if err != nil || *now != r.alive {
			c.t.Errorf("%s: run by %+v, later by %+v (%v)", r.dir, r.alive, now, err)
		}
		if _, err := r.dir.Over(); err != nil {
			c.t.Errorf("%s: it did not come to its end: %v", r.dir, err)
		}
		if rec := log.runs[attemptOf(r)]; rec == nil || !rec.over || rec.outcome == sched.NodeLost {
			c.t.Errorf("%s: it was alive, and the log says %+v", r.dir, rec)
		}
	}
}

// attemptOf names the attempt of a run directory.
func attemptOf(r runner) (a attempt) {
	number, job := filepath.Base(string(r.dir)), filepath.Base(filepath.Dir(string(r.dir)))
	a.number, _ = strconv.Atoi(number)
	a.job, _ = strconv.Atoi(job)
	return a
}
