package shim

import (
	"os"
	"testing"
	"time"
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
