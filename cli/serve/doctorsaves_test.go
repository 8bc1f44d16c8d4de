package serve

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/trainyard/trainyard/api"
	"github.com/trainyard/trainyard/driver/local/shim"
)

// Ensure that doctor names each job that loses its work, why, and what to do, and no other.
func TestDoctorNamesJobsThatLoseWork(t *testing.T) {
	at := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	asked := shim.Over{Stopped: true, StopAsked: at, Grace: 30 * time.Second}
	record := func(code int, killed bool) *shim.Over {
		o := asked
		o.Code, o.Killed = code, killed
		return &o
	}
	for name, c := range map[string]struct {
		job    api.Job
		over   map[int]*shim.Over // by attempt
		signal string
		found  string // "" = nothing
		do     string
	}{
		"no handler": {job: api.Job{Saves: "saves-not", Attempt: 2}, over: map[int]*shim.Over{1: record(143, false)},
			found: "saved nothing (attempt 1): it has no handler for SIGTERM", do: "have it handle SIGTERM"},
		"no handler of its signal": {job: api.Job{Saves: "saves-not", Attempt: 2}, signal: "USR1",
			over:  map[int]*shim.Over{1: record(138, false)},
			found: "it has no handler for SIGUSR1", do: "checkpoint: {signal}"},
		"too long": {job: api.Job{Saves: "saves-not", Attempt: 3}, over: map[int]*shim.Over{2: record(137, true)},
			found: "(attempt 2): it was killed, as it had not ended 30s after it was asked", do: "grace"},
		"by itself": {job: api.Job{Saves: "saves-not", Attempt: 1}, over: map[int]*shim.Over{1: record(1, false)},
			found: "it ended by itself with code 1", do: "`trainyard logs 7 --attempt 1`"},
		"the latest that was asked": {job: api.Job{Saves: "saves-not", Attempt: 3},
			over:  map[int]*shim.Over{1: record(143, false), 2: record(5, false), 3: {Code: 9}},
			found: "(attempt 2): it ended by itself with code 5", do: "a worker"},
		"no record": {job: api.Job{Saves: "saves-not", Attempt: 3}, found: "was asked to save and saved nothing",
			do: "`trainyard logs 7`"},
		"from zero": {job: api.Job{Saves: "resumes-not", Attempt: 2}, found: "saves, but did not resume",
			do: "preemptible: true"},
		"unsaved for long": {job: api.Job{Saves: "seen", Attempt: 1, UnsavedSec: 1860},
			found: "has 31 min 0 s of work in no checkpoint", do: "TRAINYARD saved"},
		"unsaved for a while": {job: api.Job{Saves: "seen", Attempt: 1, UnsavedSec: 1799}},
		"proven":              {job: api.Job{Saves: "proven", Attempt: 4}},
		"done":                {job: api.Job{Saves: "saves-not", Attempt: 2, State: "done"}},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			for n, over := range c.over {
				plant(t, shim.State(dir).RunDir(7, int32(n)), "over.json", over)
				order := &shim.Order{State: shim.State(dir), Job: 7}
				order.Save.Signal = c.signal
				plant(t, shim.State(dir).RunDir(7, int32(n)), "order.json", order)
			}
			c.job.ID, c.job.Name = 7, "train"
			p := &patient{dir: dir, jobs: &api.Jobs{Jobs: []api.Job{c.job}}}
			all := p.saves()
			switch f := all[0]; {
			case len(all) != 1:
				t.Errorf("%+v, want one", all)
			case c.found == "" && f.State != fine:
				t.Errorf("%+v, want nothing to note", f)
			case c.found != "" && (f.State != note || !strings.HasPrefix(f.Found, "job 7 (train) ") ||
				!strings.Contains(f.Found, c.found) || !strings.Contains(f.Do, c.do)):
				t.Errorf("%+v, want %q and %q", f, c.found, c.do)
			}
		})
	}
	many := make([]api.Job, 100)
	for i := range many {
		many[i].Saves = "resumes-not"
	}
	all := (&patient{jobs: &api.Jobs{Jobs: many}}).saves()
	if last := all[len(all)-1]; len(all) != mostSaves+1 || last.Found != fmt.Sprintf("%d jobs more like these",
		100-mostSaves) {
		t.Errorf("%d findings, the last %+v, want %d", len(all), last, mostSaves+1)
	}
}

// plant leaves a record in a run directory.
func plant(t *testing.T, run shim.RunDir, name string, x any) {
	t.Helper()
	text, err := json.Marshal(x)
	if err == nil {
		err = os.MkdirAll(string(run), 0o700)
	}
	if err == nil {
		err = os.WriteFile(filepath.Join(string(run), name), text, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
}
