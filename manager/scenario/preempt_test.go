package scenario

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/trainyard/trainyard/driver/local/device"
	"github.com/trainyard/trainyard/model/restart"
	"github.com/trainyard/trainyard/sched"
)

// victim trains, in steps of a twentieth of a second until there is a file NAME.enough, and saves every tenth. It keeps
// a ledger: start STEP, saved NANOSECONDS and end NANOSECONDS STEP, where the shell's clock stands. AT_TERM is what it
// does when it is asked to stop.
const victim = `
dir=$TRAINYARD_CHECKPOINT_DIR
n=$(cat "$dir/step" 2>/dev/null || echo 0)
save() { echo $n > "$dir/step.tmp" && mv "$dir/step.tmp" "$dir/step" && echo saved $(date +%s%N) >> NAME.ledger && echo "TRAINYARD saved step=$n"; }
trap 'AT_TERM; echo end $(date +%s%N) $n >> NAME.ledger; exit 1' TERM
echo start $n >> NAME.ledger
while [ ! -e NAME.enough ]; do
	sleep 0.05
	n=$((n + 1))
	echo "TRAINYARD step=$n"
	if [ $((n % 10)) = 0 ]; then save; fi
done
`

// Promise 16: whoever is preempted loses at most what it did since its last checkpoint, and what it does in its grace;
// it is preempted no more often in an hour than the default limit says, however many jobs come that would have its
// slot; and it gets on in each attempt. (system has every system, against a day of such jobs.)
func TestPromise16PreemptionsAreBounded(t *testing.T) {
	t.Parallel()
	for name, atTerm := range map[string]string{"saves": "save", "deaf": ":"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			const grace = 2 * time.Second
			s := newScene(t, "las", device.Slots(1), map[string]string{"min_run": "0.5"}).run()
			script := strings.NewReplacer("AT_TERM", atTerm, "NAME", name).Replace(victim)
			if err := os.WriteFile(filepath.Join(s.dir, name), []byte(script), 0o600); err != nil {
				t.Fatal(err)
			}
			job := s.submit(fmt.Sprintf("jobs: [{name: victim, grace: %v, command: [sh, %s]}]", grace, name))
			steps := 0. // where an attempt started, at most
			for attempt := int32(1); attempt <= int32(restart.DefaultRails.PerHour); attempt++ {
				s.await(0, "it has saved", func(e *sched.Event) bool {
					return e.Kind == sched.Progressed && e.Job == job && e.Attempt == attempt && e.Value > steps+10
				})
				s.submit("jobs: [{name: adversary, command: [sleep, '0.1']}]")
				s.await(0, fmt.Sprint("attempt ", attempt, " is preempted"), func(e *sched.Event) bool {
					if e.Job == job && e.Attempt == attempt {
						steps = max(steps, e.Value)
					}
					return e.Kind == sched.AttemptEnded && e.Job == job && e.Attempt == attempt &&
						e.Outcome == sched.Preempted
				})
			}
			s.started(job, int32(restart.DefaultRails.PerHour)+1)
			last := s.submit("jobs: [{name: adversary, count: 3, command: [sleep, '0.1']}]")
			s.await(0, "it goes on next to them", func(e *sched.Event) bool {
				return e.Kind == sched.Progressed && e.Job == job &&
					e.Attempt == int32(restart.DefaultRails.PerHour)+1 && e.Value > steps+20
			})
			s.let(name + ".enough")
			if s.finished(job) > s.finished(last+2) {
				t.Error("the last adversary did not wait until the job it may not preempt was done")
			}
			s.checkLosses(job, grace, ledgerOf(t, filepath.Join(s.dir, name+".ledger")), atTerm == "save")
		})
	}
}

// life is an attempt as its own ledger shows it.
type life struct {
	begin, end  int // steps
	saved, over time.Time
}

func ledgerOf(t *testing.T, path string) (lives []life) {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(b)) {
		var word string
		var x, y int64
		n, _ := fmt.Sscan(line, &word, &x, &y)
		if word == "start" {
			lives = append(lives, life{begin: int(x)})
			continue
		}
		l := &lives[len(lives)-1]
		switch {
		case word == "saved" && n == 2:
			l.saved = time.Unix(0, x)
		case word == "end" && n == 3:
			l.over, l.end = time.Unix(0, x), int(y)
		default:
			t.Fatalf("%s: %q", path, line)
		}
	}
	return lives
}

// checkLosses compares what the log says that each preempted attempt of a job lost with what the job itself wrote.
func (s *scene) checkLosses(job sched.JobID, grace time.Duration, lives []life, saves bool) {
	s.Helper()
	if want := restart.DefaultRails.PerHour + 1; len(lives) != want {
		s.Fatalf("%d attempts, want %d", len(lives), want)
	}
	for i := range lives[:len(lives)-1] {
		l, most, after := &lives[i], time.Duration(0), time.Duration(0)
		for _, e := range s.events() {
			switch {
			case e.Job != job || e.Attempt != int32(i+1):
			case e.Kind == sched.Progressed:
				most = max(most, e.Work)
			case e.Kind == sched.AttemptEnded:
				after = e.Work
			}
		}
		unsaved := lives[i].over.Sub(lives[i].saved)
		if lost := most - after; lost > unsaved+grace || saves && lost > grace {
			s.Errorf("attempt %d lost %v by the log, %v after its last checkpoint, grace %v", i+1, lost, unsaved, grace)
		}
		if next := lives[i+1].begin; next <= l.begin || saves && next != l.end || !saves && next != l.end/10*10 {
			s.Errorf("attempt %d went from step %d to %d, the next starts at %d", i+1, l.begin, l.end, next)
		}
	}
}
