package crashtest

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/trainyard/trainyard/eventlog"
	"github.com/trainyard/trainyard/sched"
)

// record is what the log says of an attempt.
type record struct {
	gpus    []sched.GPUID
	started bool
	over    bool
	outcome sched.Outcome
	code    int
	ended   time.Time
	text    string
}

// eventLog is the exported log, read the simple way.
type eventLog struct {
	origin  time.Time
	runs    map[attempt]*record
	last    map[sched.JobID]int
	target  map[sched.JobID][]sched.GPUID
	holders map[sched.GPUID]attempt
	wrong   []string
	lost    []string // ends of attempts whose shim died, and starts that failed
}

func readLog(t testing.TB, dir string) *eventLog {
	t.Helper()
	file, err := os.Open(filepath.Join(dir, "events.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	l, err := foldLog(file)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func newEventLog() *eventLog {
	return &eventLog{runs: make(map[attempt]*record), last: make(map[sched.JobID]int),
		target:  make(map[sched.JobID][]sched.GPUID),
		holders: make(map[sched.GPUID]attempt)}
}

// foldLog reads an exported log.
func foldLog(from io.Reader) (*eventLog, error) {
	r, err := eventlog.NewReader(from, "events.jsonl")
	if err != nil {
		return nil, err
	}
	l := newEventLog()
	if l.origin, err = time.Parse(time.RFC3339Nano, r.Header().Origin); err != nil {
		return nil, err
	}
	for rec, bad := range r.Records() {
		if bad != nil {
			return nil, bad
		}
		l.fold(&rec.Event)
	}
	return l, nil
}

func (l *eventLog) fold(e *sched.Event) {
	a := attempt{int(e.Job), int(e.Attempt)}
	switch e.Kind {
	case sched.Decided:
		l.target[e.Job] = slices.Clone(e.GPUs)
	case sched.Ordered:
		if sched.ActionKind(e.Code) == sched.Start {
			l.start(a)
		}
	case sched.AttemptStarted:
		if run := l.run(a); run.started || run.over {
			l.complain(e, "a start too many")
		} else {
			run.started = true
		}
	case sched.AttemptEnded, sched.StartFailed:
		l.end(a, e)
	}
}

// start: attempts are numbered without a hole, and hold GPUs that no one else holds.
func (l *eventLog) start(a attempt) {
	id := sched.JobID(a.job)
	if a.number != l.last[id]+1 || a.number > 1 && !l.run(attempt{a.job, a.number - 1}).over {
		l.wrong = append(l.wrong, fmt.Sprintf("job %d: attempt %d after %d", a.job, a.number, l.last[id]))
	}
	l.last[id] = a.number
	run := &record{gpus: l.target[id]}
	l.runs[a] = run
	for _, g := range run.gpus {
		if other, taken := l.holders[g]; taken {
			l.wrong = append(l.wrong, fmt.Sprintf("GPU %d is given to %v while %v has it", g, a, other))
		}
		l.holders[g] = a
	}
}

func (l *eventLog) end(a attempt, e *sched.Event) {
	run := l.run(a)
	if run.over {
		l.complain(e, "an end too many")
	}
	run.over, run.outcome, run.code, run.text = true, e.Outcome, int(e.Code), e.Text
	run.ended = l.origin.Add(time.Duration(e.Time))
	for _, g := range run.gpus {
		delete(l.holders, g)
	}
	if e.Kind == sched.StartFailed || e.Outcome == sched.NodeLost {
		l.lost = append(l.lost, say(e, e.Text))
	}
}

func (l *eventLog) run(a attempt) *record {
	if l.runs[a] == nil {
		l.wrong = append(l.wrong, fmt.Sprintf("attempt %v was never ordered", a))
		l.runs[a] = new(record)
	}
	return l.runs[a]
}

func (l *eventLog) complain(e *sched.Event, why string) {
	l.wrong = append(l.wrong, say(e, why))
}

func say(e *sched.Event, why string) string {
	return fmt.Sprintf("seq %d, %v of job %d attempt %d: %s", e.Seq, e.Kind, e.Job, e.Attempt, why)
}

// check: what is started is ended, once.
func (l *eventLog) check(t *testing.T) {
	t.Helper()
	for _, text := range l.wrong {
		t.Errorf("log: %s", text)
	}
	for a, run := range l.runs {
		if !run.over {
			t.Errorf("log: attempt %v has no end", a)
		}
	}
}
