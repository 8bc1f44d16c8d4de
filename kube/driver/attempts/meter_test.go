package attempts

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/trainyard/trainyard/attempt/progress"
	"github.com/trainyard/trainyard/sched"
)

// Ensure that what an attempt did after the checkpoint that it reported last is lost, unless it is ready or has
// finished.
func TestLost(t *testing.T) {
	const steps = "0 step=0\n10 step=100\n20 step=200\n"
	for _, c := range []struct {
		name, said string // seconds and words
		outcome    sched.Outcome
		want       string
	}{
		{"nothing of checkpoints", steps, sched.Preempted, "20s stopped"},
		{"saved half way", steps + "20 saved step=200\n30 step=300\n", sched.Preempted,
			"20s stopped; what it did in its last 10s is lost"},
		{"saved as it is stopped", steps + "21 saved\n", sched.Preempted, "20s stopped; what it did is saved"},
		{"ready", "0 step=0\n5 saved\n10 step=100\n20 step=200\n20 ready\n", sched.Preempted,
			"20s stopped; what it did is saved"},
		{"a step after that", steps + "20 ready\n5 saved\n40 step=400\n", sched.NodeLost,
			"20s stopped; what it did in its last 20s is lost"},
		{"finished", steps + "20 saved\n30 step=300\n", sched.Finished, "30s stopped"},
	} {
		m := &meter{reader: progress.NewReader(progress.Auto), odo: progress.NewOdometer(1, progress.Kept{}, 0)}
		origin := time.Now()
		for line := range strings.Lines(c.said) {
			var at int
			var words string
			if _, err := fmt.Sscanf(line, "%d %v", &at, &words); err != nil {
				t.Fatal(err)
			}
			m.hear(progress.Output, origin.Add(time.Duration(at)*time.Second),
				[]byte("TRAINYARD"+line[len(fmt.Sprint(at)):]))
		}
		m.odo.Measure()
		e := sched.Event{Kind: sched.AttemptEnded, Outcome: c.outcome, Text: "stopped"}
		e.Work, _, _ = m.state()
		m.keep(&e)
		if got := fmt.Sprint(e.Work.Round(time.Second), " ", e.Text); got != c.want {
			t.Errorf("%s: %s, want %s", c.name, got, c.want)
		}
	}
}
