package scenario

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/trainyard/trainyard/driver/local/device"
	"github.com/trainyard/trainyard/model/speedup"
	"github.com/trainyard/trainyard/sched"
	"github.com/trainyard/trainyard/system"
)

// growing knows of an application net that takes up to 64 samples on each of up to most slots, and is worth more the
// wider it is: its best batch size grows with its width.
func growing(most int) system.Knowledge {
	app := &speedup.Throughputs{Name: "net", Worth: speedup.Samples{1e6}}
	for k := 1; k <= most; k++ {
		app.GPUs, app.Batches = append(app.GPUs, k), append(app.Batches, 64*k)
		rates := make([]float64, most)
		for width := k; width <= most; width++ {
			rates[width-1] = float64(width) / float64(k) // updates per second
		}
		for width := k; width <= most; width++ {
			rates[width-1] *= 1 + .1*float64(k) // larger batches are worth it
		}
		app.Rates = append(app.Rates, rates)
	}
	return system.Knowledge{Speeds: speedup.NewOracle(map[string]speedup.App{"net": app}, most, most)}
}

// free has a system of elastic jobs do as it likes: no restart is spared.
func free(curves string) map[string]string {
	return map[string]string{"min_run": "0", "preempt_limit": "0", "horizon": "0", "curves": curves}
}

// progressed matches what the trainers report.
var progressed = regexp.MustCompile(`(?m)^TRAINYARD step=(\d+) total=\d+ .*\bsamples=(\d+)`)

// batchOf returns the samples of a step as an attempt reported them, and its first step.
func batchOf(t *testing.T, output string) (batch, first int) {
	t.Helper()
	lines := progressed.FindAllStringSubmatch(output, -1)
	if len(lines) < 2 {
		t.Fatalf("it reported too little:\n%s", output)
	}
	number := func(i, k int) int { n, _ := strconv.Atoi(lines[i][k]); return n }
	return (number(1, 2) - number(0, 2)) / (number(1, 1) - number(0, 1)), number(0, 1)
}

// Ensure that elastic narrows a training for the sake of another job and widens it again, each time with the batch size
// that is best there and the factor on the learning rate that follows, that it goes on from its checkpoint, and that
// the log reports speeds by width as they are and not in proportion.
func TestElasticResizesTraining(t *testing.T) {
	t.Parallel()
	s := newScene(t, "elastic", device.Slots(4), free("oracle"))
	s.options.Knows = growing(4)
	s.run()
	long := s.submit(`jobs: [{name: long, model: net, gpus: {min: 1, max: 4}, batch: {global_min: 64, global_max: 256, per_gpu_max: 64, lr_scaling: sqrt},
  command: [sh, -c, 'echo "scale $TRAINYARD_LR_SCALE"; exec "$0" --steps 100000 --report-every 1 --step-time 200ms --checkpoint-every 0', TRAINER]}]`)
	wide := s.measured(long, 1, 0)
	guest := s.submit("jobs: [{name: guest, gpus: 2, command: " + until("go") + "}]")
	s.started(guest, 1)
	narrow := s.measured(long, 2, 0)
	s.let("go")
	again := s.measured(long, 3, 0)
	if narrow >= 0.45*wide || again <= 2*narrow {
		t.Errorf("rates %.3f on 4 slots, %.3f on 2 and %.3f on 4 again, want them to fall and rise with the batch "+
			"size as well", wide, narrow, again)
	}
	s.wantAttempt(long, 1, 4, 256, "2")
	s.wantAttempt(long, 2, 2, 128, "1.4142135")
	s.wantAttempt(long, 3, 4, 256, "2")
}

// measured waits until an attempt has reported how fast it is so often that it was measured on these slots, and returns
// the rate.
func (s *scene) measured(job sched.JobID, attempt int32, from int) float64 {
	s.Helper()
	n := 0
	at := s.await(from, fmt.Sprintf("job %d attempt %d said its speed", job, attempt), func(e *sched.Event) bool {
		if e.Kind == sched.Progressed && e.Job == job && e.Attempt == attempt {
			n++
		}
		return n == 8
	})
	return s.events()[at].Rate
}

// wantAttempt checks how an attempt ran: its width and batch size as ordered and as the job reported them, the factor
// on the learning rate that it was given, and that it started where the one before it ended.
func (s *scene) wantAttempt(job sched.JobID, attempt int32, gpus, batch int, scale string) {
	s.Helper()
	slots, output := s.slots(job, attempt), s.output(job, attempt)
	reported, first := batchOf(s.T, output)
	if len(slots) != gpus || reported != batch || !strings.Contains(output, "scale "+scale+"\n") {
		s.Errorf("attempt %d on slots %v with steps of %d samples, want %d slots, %d samples and scale %s:\n%.300s",
			attempt, slots, reported, gpus, batch, scale, output)
	}
	if attempt == 1 {
		return
	}
	before := s.output(job, attempt-1)
	if want := fmt.Sprintf("TRAINYARD preempted step=%d", first); first == 0 || !strings.Contains(before, want) {
		s.Errorf("attempt %d starts at step %d, want where the one before it ended:\n%s", attempt, first,
			before[max(0, len(before)-300):])
	}
}
