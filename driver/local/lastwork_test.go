package local

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/trainyard/trainyard/driver/local/shim"
	"github.com/trainyard/trainyard/sched"
)

// Ensure that of an attempt which is stopped before its speed was measured it is reported, before its end, how far it
// came, whether the driver was there or not.
func TestLastWork(t *testing.T) {
	t.Parallel()
	const script = `i=0; while [ $i -lt 40 ]; do i=$((i+1)); echo TRAINYARD step=$i; done; echo up; exec sleep 300`
	const ordered = sched.Time(7)
	const measured = `{"reference":10,"paces":[{"width":2,"batch":0,"tenants":1,"per_second":20}]}`
	for name, away := range map[string]bool{"watched": false, "while no one is there": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := &past{dir: folder(t), list: []Arrival{arrival(t, 0, 1, script)}}
			keepText(t, filepath.Join(p.dir, "jobs", "0", odometerFile), measured)
			d := open(t, p.dir, 1, 1, p.list...)
			p.origin = d.o.Origin
			h := take(t, d, sched.View{})
			h.arrivals(1)
			h.apply(start(0, 1, 0))
			h.outputHas(0, 1, "up")
			h.until("the start", func() bool { return h.of(sched.AttemptStarted, 1) })
			h.apply(stop(0, 1))
			if away {
				d.Close()
				waitFor(t, "the end", func() bool {
					_, err := shim.State(p.dir).RunDir(0, 1).Over()
					return err == nil
				})
				events := h.events
				h = take(t, p.next(t, 2), known(d, sched.Job{Attempt: sched.Stopping, Up: true, Attempts: 1,
					WorkFrom: ordered}))
				h.events = append(events, h.events...)
			} else {
				t.Cleanup(d.Close)
			}
			h.until("the end", func() bool { return h.of(sched.AttemptEnded, 1) })
			end, last := h.find(sched.AttemptEnded, 0), h.find(sched.Progressed, 0)
			if last == nil || last.Work != 4*time.Second || last.Rate != 0 || last.Value != 40 ||
				last.Time >= end.Time {
				t.Errorf("%+v before %v, want 4 s of work in 40 steps, at no rate", last, end.Time)
			}
			if away && last != nil && last.WorkFrom != ordered {
				t.Errorf("work until %v, want %v: when it was ordered to stop", last.WorkFrom, ordered)
			}
		})
	}
}

// keepText writes a file and its folder.
func keepText(t *testing.T, name, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(name), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}
