// Package shimtest helps tests that run jobs for real to leave nothing behind.
package shimtest

import (
	"errors"
	"math"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"github.com/trainyard/trainyard/driver/local/shim"
)

// patience is how long the end of all that runs may take, on however busy a machine, before the test fails.
const patience = time.Minute

// later is a manager's number above that of any in a test.
const later = 1 << 40

// EndAll ends what runs in a state folder, as a later manager would, and returns once no shim writes there any more:
// the folder can be removed then. It meets shims that were started an instant ago as well, whether they listen yet or
// not.
func EndAll(t testing.TB, state shim.State) {
	t.Helper()
	orders, err := filepath.Glob(filepath.Join(string(state), "jobs", "*", "*", "order.json"))
	if err != nil {
		t.Error(err)
	}
	if len(orders) == 0 {
		return
	}
	if err := state.SetEpoch(later); err != nil { // who has not started does not start
		t.Error(err)
	}
	for deadline := time.Now().Add(patience); ; time.Sleep(5 * time.Millisecond) {
		busy := ""
		for _, order := range orders {
			run := filepath.Dir(order)
			stop(shim.RunDir(run))
			if held(state, filepath.Base(filepath.Dir(run))) {
				busy = run
			}
		}
		if busy == "" {
			return
		}
		if time.Now().After(deadline) {
			t.Errorf("%s: its shim goes on %v after it was asked to end", busy, patience)
			return
		}
	}
}

// stop has the shim of a run directory end its attempt, and waits until it has; at once if none listens.
func stop(run shim.RunDir) {
	conn, err := shim.Dial(run, later)
	if err != nil {
		return
	}
	_ = conn.Stop()
	_ = conn.Watch(func(*shim.Alive) {})
	_ = conn.Close()
}

// held reports whether a shim of a job lives. If none does, none starts one of its attempts any more.
func held(state shim.State, job string) bool {
	id, err := strconv.ParseInt(job, 10, 32)
	if err != nil {
		return false // not a job's
	}
	lock, err := state.Begin(int32(id), math.MaxInt32)
	if err == nil {
		_ = lock.Close()
	}
	return errors.Is(err, shim.ErrHeld)
}
