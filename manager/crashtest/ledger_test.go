package crashtest

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"
)

// attempt names an attempt.
type attempt struct{ job, number int }

// witness is what a process of an attempt wrote down itself.
type witness struct {
	devices string
	began   time.Time
	ended   time.Time // zero if it was killed
	code    int
}

// ledger is what the processes saw, see examples/trainer/ledger.go.
type ledger struct {
	runs  map[attempt]*witness
	order []attempt // as they started
	wrong []string  // lines that must not be there
}

func readLedger(t *testing.T, dir string) *ledger {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(dir, "ledger", "ledger.log"))
	if err != nil {
		t.Fatal(err)
	}
	l := &ledger{runs: make(map[attempt]*witness)}
	for line := range strings.Lines(string(b)) {
		l.read(strings.Fields(line))
	}
	return l
}

// read takes a line apart.
func (l *ledger) read(f []string) {
	number := func(i int) int {
		n, err := strconv.Atoi(f[i])
		if err != nil {
			l.wrong = append(l.wrong, strings.Join(f, " "))
		}
		return n
	}
	moment := func(i int) time.Time { return time.Unix(0, int64(number(i))) }
	a := attempt{number(1), number(2)}
	run := l.runs[a]
	switch {
	case f[0] == "start" && run == nil:
		l.runs[a] = &witness{began: moment(6), devices: f[7]}
		l.order = append(l.order, a)
	case f[0] == "end" && run != nil && run.ended.IsZero():
		run.code, run.ended = number(4), moment(6)
	case f[0] == "resume" && run != nil:
	default: // an overlap, a second start or end
		l.wrong = append(l.wrong, strings.Join(f, " "))
	}
}

// check: no two processes had a job or a device at once, none started twice, and the attempts of a job started in
// order.
func (l *ledger) check(t *testing.T) {
	t.Helper()
	for _, line := range l.wrong {
		t.Errorf("ledger: %s", line)
	}
	last := make(map[int]int)
	until := make(map[string]time.Time) // by device, as far as is known
	for _, a := range l.order {
		if a.number <= last[a.job] {
			t.Errorf("ledger: attempt %d of job %d started after attempt %d", a.number, a.job, last[a.job])
		}
		last[a.job] = a.number
		run := l.runs[a]
		for d := range strings.SplitSeq(run.devices, ",") {
			if run.began.Before(until[d]) {
				t.Errorf("ledger: attempt %d of job %d started on %s before the last one there had ended", a.number,
					a.job, d)
			}
			until[d] = run.ended
		}
	}
}
