package shim

import (
	"os"
	"testing"
	"time"

	"github.com/trainyard/trainyard/attempt/task"
)

// counts is a script that counts signals, and ends with 3 at the second.
const counts = `n=0; trap 'n=$((n+1)); echo signal $n; [ $n -lt 2 ] || exit 3' TERM; while :; do sleep 0.02; done`

// Ensure that a shim ends a job whose time is over, with no manager, warns it before by the signal that it handles, and
// that what ends by itself, by the warning or by an order in between are kept apart.
func TestTimeLimit(t *testing.T) {
	t.Parallel()
	const soon = time.Hour - 1500*time.Millisecond // once the script handles it
	for name, c := range map[string]struct {
		script      string
		limit, warn time.Duration
		stopped     bool // in between, once it was warned
		want        Over // Code, Stopped, TimedOut
		wrote       string
	}{
		"warned, then ended": {counts, 3 * time.Second, 1500 * time.Millisecond, false,
			Over{Code: 3, Stopped: true, TimedOut: true}, "signal 1\nsignal 2\n"},
		"not warned": {"exec sleep 1000", 200 * time.Millisecond, 0, false,
			Over{Code: 143, Stopped: true, TimedOut: true}, ""},
		"handles no warning": {"exec sleep 1000", time.Second, 800 * time.Millisecond, false,
			Over{Code: 143, Stopped: true, TimedOut: true}, ""},
		"ends by the warning": {`trap 'exit 75' TERM; while :; do sleep 0.02; done`, time.Hour, soon, false,
			Over{Code: 75, TimedOut: true}, ""},
		"done after the warning": {`trap 'exit 0' TERM; while :; do sleep 0.02; done`, time.Hour, soon, false,
			Over{}, ""},
		"ends by itself": {"exit 7", time.Hour, time.Minute, false, Over{Code: 7}, ""},
		"stopped after a warning": {counts, time.Hour, soon, true, Over{Code: 3, Stopped: true},
			"signal 1\nsignal 2\n"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o := sh(State(t.TempDir()), c.script)
			o.Limit, o.Warn = c.limit, c.warn
			p := begin(t, o)
			if c.stopped {
				conn := p.dial(1)
				for text := ""; text != "signal 1\n"; time.Sleep(5 * time.Millisecond) {
					b, _ := os.ReadFile(p.dir.Output())
					text = string(b)
				}
				if err := conn.Stop(); err != nil {
					t.Fatal(err)
				}
			}
			over := p.over()
			if over.Code != c.want.Code || over.Stopped != c.want.Stopped || over.TimedOut != c.want.TimedOut {
				t.Errorf("code %d, stopped %v, timed out %v, want %d, %v, %v", over.Code, over.Stopped, over.TimedOut,
					c.want.Code, c.want.Stopped, c.want.TimedOut)
			}
			if warned := c.warn > 0 && name != "ends by itself"; over.Warned.IsZero() == warned {
				t.Errorf("warned at %v, want so: %v", over.Warned, warned)
			}
			if out, err := os.ReadFile(p.dir.Output()); err != nil || string(out) != c.wrote {
				t.Errorf("wrote %q, %v, want %q", out, err, c.wrote)
			}
		})
	}
}

// Ensure that a job that saves because its user sent it the signal to do so is not asked again by a stop that comes
// meanwhile, as that of a job that requeues itself.
func TestStopAfterSignal(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	o := sh(State(dir), `trap 'echo signal' TERM; until [ -e `+dir+`/go ]; do sleep 0.02; done; kill $$
		until [ -e `+dir+`/stopped ]; do sleep 0.02; done; sleep 0.5; exit 7`)
	o.Grace = time.Minute
	p := begin(t, o)
	conn := p.dial(1)
	if err := p.dir.NoteSignal(); err != nil {
		t.Fatal(err)
	}
	for _, next := range []func() error{
		func() error { return os.WriteFile(dir+"/go", nil, 0o600) }, conn.Requeue,
		func() error { return os.WriteFile(dir+"/stopped", nil, 0o600) },
	} {
		if err := next(); err != nil {
			t.Fatal(err)
		}
	}
	over := p.over()
	out, err := os.ReadFile(p.dir.Output())
	if over.Code != 7 || !over.Stopped || string(out) != "signal\n" || err != nil {
		t.Errorf("code %d, stopped %v, wrote %q, %v, want 7 of a stop after one signal", over.Code, over.Stopped, out,
			err)
	}
}

// Ensure that a job which its user had save, or which was warned of its time, is given a moment before it is asked only
// where it was requeued lately, and all of its grace once it is asked.
func TestGraceAfterSignal(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		requeued, noted, warned bool
		ago                     time.Duration
		waits                   bool
	}{
		"requeued": {true, true, false, 0, true}, "stopped by others": {false, true, false, 0, false},
		"requeued by others": {true, false, false, 0, false}, "long ago": {true, true, false, time.Hour, false},
		"a clock was set back":      {true, true, false, -time.Hour, false},
		"requeued after a warning":  {true, false, true, 0, true},
		"cancelled after a warning": {false, false, true, 0, false},
	} {
		dir, asked := RunDir(t.TempDir()), time.Now()
		s := &shim{dir: dir, requeued: c.requeued, times: task.Times{Grace: time.Minute}}
		if c.noted {
			if err := dir.NoteSignal(); err != nil {
				t.Fatal(err)
			}
			at := asked.Add(-c.ago)
			if err := os.Chtimes(dir.file("signalled"), at, at); err != nil {
				t.Fatal(err)
			}
		}
		a := &asking{shim: s, from: asked, over: &Over{StopAsked: asked}}
		if c.warned {
			a.over.Warned = asked.Add(-c.ago)
		}
		if a.endsByWarning(nil) || a.from.After(asked) != c.waits || c.waits && a.from.Sub(asked) < ownPatience {
			t.Errorf("%s: the grace counts from %v after the stop, want a wait %v", name, a.from.Sub(asked), c.waits)
		}
	}
}

// Ensure that a shim goes by the times that a manager said last, also once that is gone, and by none that an old one
// says, or that no job can have.
func TestRetime(t *testing.T) {
	t.Parallel()
	const deaf = `trap "" TERM; echo up; while :; do sleep 0.02; done`
	short := task.Times{Limit: time.Millisecond, Grace: 50 * time.Millisecond}
	for name, c := range map[string]struct {
		script  string
		stopped bool // before it hears of the times
		times   []task.Times
		want    Over
	}{
		"a limit": {deaf, false, []task.Times{short}, Over{Code: 137, Stopped: true, Killed: true, TimedOut: true}},
		"a limit that it used up before": {deaf, false, []task.Times{{Limit: time.Hour, Grace: short.Grace}},
			Over{Code: 137, Stopped: true, Killed: true, TimedOut: true}},
		"a grace while it is to end": {deaf, true, []task.Times{{Grace: short.Grace}},
			Over{Code: 137, Stopped: true, Killed: true}},
		"no such times": {deaf, true, []task.Times{{Grace: short.Grace}, {Limit: -1, Grace: 2}, {Grace: -1}},
			Over{Code: 137, Stopped: true, Killed: true}},
		"a warning": {`trap 'exit 75' TERM; echo up; while :; do sleep 0.02; done`, false,
			[]task.Times{{Limit: 2 * time.Hour, Warn: 90 * time.Minute, Grace: time.Hour}},
			Over{Code: 75, TimedOut: true}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o := sh(State(t.TempDir()), c.script)
			o.Ran, o.Grace = time.Hour, time.Hour
			p := begin(t, o)
			conn := p.dial(1)
			for text := ""; text != "up\n"; time.Sleep(5 * time.Millisecond) {
				b, _ := os.ReadFile(p.dir.Output())
				text = string(b)
			}
			if c.stopped {
				if err := conn.Stop(); err != nil {
					t.Fatal(err)
				}
			}
			for _, times := range c.times {
				if err := conn.Retime(times); err != nil {
					t.Fatal(err)
				}
			}
			_ = conn.Close()
			over := p.over()
			if over.Code != c.want.Code || over.Stopped != c.want.Stopped || over.TimedOut != c.want.TimedOut ||
				over.Killed != c.want.Killed {
				t.Errorf("%+v, want %+v", over, c.want)
			}
			if want := c.times[0].Grace; over.Grace != want {
				t.Errorf("a grace of %v, want %v", over.Grace, want)
			}
		})
	}
}

// Ensure that a job is warned once of each end of its time.
func TestTimersFollow(t *testing.T) {
	t.Parallel()
	s, started := &shim{}, time.Now().Add(-time.Minute)
	for _, c := range []struct {
		limit, warn         time.Duration
		warned              bool // before
		warnsNow, endsNow   bool
		warnedStill, warnsN bool // afterwards; and it will be
	}{
		{2 * time.Minute, 30 * time.Second, false, false, false, false, true},
		{2 * time.Minute, 90 * time.Second, false, true, false, false, true},
		{2 * time.Minute, 90 * time.Second, true, false, false, true, false},
		{time.Hour, 90 * time.Second, true, false, false, false, true}, // longer than when it was warned
		{30 * time.Second, 10 * time.Second, true, false, true, true, false},
	} {
		over := &Over{Started: started}
		if c.warned {
			over.Warned = started.Add(time.Second)
		}
		warn, limit := s.timers(task.Times{Limit: c.limit, Warn: c.warn}, over)
		if fires(warn) != c.warnsNow || fires(limit) != c.endsNow || over.Warned.IsZero() == c.warnedStill ||
			(warn != nil) != c.warnsN {
			t.Errorf("%+v: %+v", c, over)
		}
	}
}

// fires reports whether a timer of no time fires.
func fires(c <-chan time.Time) bool {
	select {
	case <-c:
		return true
	case <-time.After(50 * time.Millisecond):
		return false
	}
}
