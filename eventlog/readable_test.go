package eventlog

import (
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/trainyard/trainyard/sched"
)

// Ensure that a long text is cut between two runes, that any other stays, and that a line of one can be read.
func TestCutText(t *testing.T) {
	for _, unit := range []string{"x", "\u00e9", "\u20ac", "\U0001f600", "\xff", "\x80"} {
		for _, n := range []int{0, 1, MaxText/len(unit) - 1, MaxText / len(unit), MaxText/len(unit) + 1, 30 << 20} {
			text := strings.Repeat(unit, n)
			cut := CutText(text)
			whole := len(text) <= MaxText
			if len(cut) > MaxText || whole && cut != text || utf8.ValidString(unit) && !utf8.ValidString(cut) ||
				!whole && !strings.HasPrefix(text, strings.TrimSuffix(cut, "...")) {
				t.Errorf("%q %d times: cut to %d bytes", unit, n, len(cut))
			}
			var c Checker
			e := sched.Event{Seq: 1, Kind: sched.Ticked, Text: cut}
			if err := c.Refuses(AppendEvent(nil, 1, &e)); err != nil {
				t.Errorf("%q %d times: %v", unit, n, err)
			}
		}
	}
}

// Ensure that a Checker refuses what a Reader refuses.
func TestRefuses(t *testing.T) {
	var c Checker
	long := AppendEvent(nil, 1, &sched.Event{Seq: 1, Kind: sched.Ticked, Text: strings.Repeat("x", MaxLine)})
	for line, want := range map[string]bool{string(long): true, "oops": true, `{"seq":1}`: true,
		string(AppendEvent(nil, 1, &sched.Event{Seq: 1, Kind: sched.Ticked})):                  false,
		string(AppendEvent(nil, 1, &sched.Event{Seq: 1, Kind: sched.AttemptStarted, Job: -7})): true} {
		if err := c.Refuses([]byte(line)); want != (err != nil) {
			t.Errorf("%.60s: %v, want it refused %v", line, err, want)
		}
	}
	if rec, err := c.Read(long); err != nil || len(rec.Event.Text) != MaxLine {
		t.Errorf("%v, want the long line read", err)
	}
}
