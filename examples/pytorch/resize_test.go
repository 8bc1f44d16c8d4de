//go:build !invariants

package pytorch

import (
	"bufio"
	"encoding/json"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// short is a run of 128 steps that reports each.
var short = []string{"--epochs", "4", "--dataset", "1024", "--batch", "32", "--report-every", "1", "--checkpoint-every",
	"15"}

// pace leaves a signal time to arrive in the middle.
func pace(seconds string) []string {
	return append(short[:len(short):len(short)], "--step-time", seconds)
}

// Ensure that a run that is stopped and goes on at other widths, with accumulation, follows the loss curve of one left
// alone, step by step, also while it takes statistics; and that it goes on from there, over the same number of samples,
// with another batch size.
func TestResize(t *testing.T) {
	needTorch(t)
	t.Parallel()
	left := start(t, newPlace(t), 2, nil, short...).wantCode(0)
	left.done()

	p := newPlace(t)
	two := start(t, p, 2, nil, append(pace("0.04"), "--grad-stats")...).reach(20)
	at := wantSaved(t, p, two.signal(two.all(), syscall.SIGTERM).wantCode(1), 20)
	wantAlong(t, left, two, 20)
	if two.number("grad_var") <= 0 || two.number("grad_sqr") == 0 {
		t.Errorf("no statistics of the gradient in\n%s", two.Lines[len(two.Lines)-3])
	}

	three := start(t, p, 3, []string{"TRAINYARD_BATCH_GLOBAL=32", "TRAINYARD_BATCH_PER_GPU=4"},
		pace("0.06")...).reach(at + 20)
	wantFirst(t, three, at)
	at = wantSaved(t, p, three.signal(three.first(), syscall.SIGTERM).wantCode(1), at+20) // torchrun signals its ranks
	wantAlong(t, left, three, 20)

	one := start(t, p, 1, []string{"TRAINYARD_BATCH_GLOBAL=64", "TRAINYARD_LR_SCALE=1.41"}, short...).wantCode(0)
	one.done()
	wantFirst(t, one, at)
	if got, want := one.number("step"), float64(at)+math.Ceil(float64(4*1024-at*32)/64); got != want ||
		one.number("samples") != 4096 {
		t.Errorf("the last step is %v after %v samples, want %v after 4096", got, one.number("samples"), want)
	}
	was, is := left.number("accuracy"), one.number("accuracy")
	t.Logf("accuracy %.4f left alone, %.4f resized; stopped at step %d", was, is, at)
	if was < 0.8 || math.Abs(was-is) > 0.03 {
		t.Errorf("accuracy %v left alone and %v resized, want 0.8 or more, and alike", was, is)
	}
	wantLog(t, p, two, three, one)
}

// wantSaved checks that an attempt that was asked to stop saved at step least or later and says so, and returns the
// step.
func wantSaved(t *testing.T, p place, j *job, least int) int {
	t.Helper()
	step, file, ok := p.ready(t)
	if !ok || step < least || int(j.number("step")) != step {
		t.Fatalf("ready file %v with step %d, want one with step %d or more, and\n%s", ok, step, least,
			j.Lines[len(j.Lines)-1])
	}
	if _, err := os.Stat(filepath.Join(p.checkpoints, file)); err != nil {
		t.Error(err)
	}
	if last := j.Lines[len(j.Lines)-1]; last != "TRAINYARD preempted step="+strconv.Itoa(step) {
		t.Errorf("last line %q, want that of a stop at step %d", last, step)
	}
	return step
}

func wantFirst(t *testing.T, j *job, step int) {
	t.Helper()
	if got := field(j.Lines[0], "step"); got != strconv.Itoa(step) {
		t.Errorf("it starts at step %s, want %d", got, step)
	}
}

// wantAlong checks that the losses of two runs agree wherever both report one, which must be at least so often. They
// train on the same samples; sums in float32 over other partitions differ a little, and momentum carries that along.
func wantAlong(t *testing.T, a, b *job, least int) {
	t.Helper()
	n, worst := 0, 0.0
	want := a.curve()
	for samples, loss := range b.curve() {
		if w, ok := want[samples]; ok {
			n, worst = n+1, max(worst, math.Abs(loss-w)/w)
		}
	}
	if n < least || worst > 1e-3 {
		t.Errorf("%d losses alike within %.2g, want %d or more within 1e-3", n, worst, least)
	}
	t.Logf("%d losses alike within %.2g", n, worst)
}

// wantLog checks that progress.jsonl says what the attempts have said on stdout.
func wantLog(t *testing.T, p place, attempts ...*job) {
	t.Helper()
	f, err := os.Open(filepath.Join(p.run, "progress.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	lines := bufio.NewScanner(f)
	for _, j := range attempts {
		for _, said := range j.Lines {
			if field(said, "total") == "" {
				continue
			}
			var r struct {
				Step, Total, Samples int
				Loss                 float64
			}
			if !lines.Scan() || json.Unmarshal(lines.Bytes(), &r) != nil ||
				strconv.Itoa(r.Step) != field(said, "step") ||
				strconv.Itoa(r.Total) != field(said, "total") || strconv.Itoa(r.Samples) != field(said, "samples") {
				t.Fatalf("progress.jsonl has %q, want the like of %q", lines.Text(), said)
			}
		}
	}
	if lines.Scan() {
		t.Errorf("progress.jsonl has %q more", lines.Text())
	}
}

// Ensure that a run on one rank that is stopped and killed, before its first step too, ends with the very weights of
// one left alone; that it gives them again when it is started once more; and that another run does not take them for
// its own.
func TestDisturbedRunEndsAlike(t *testing.T) {
	needTorch(t)
	t.Parallel()
	want := alone(t, newPlace(t), short...).wantCode(0).done()
	p := newPlace(t)
	j := alone(t, p, short...)
	j.signal(j.first(), syscall.SIGTERM).wantCode(-1) // nothing to save: the signal ends it
	j = alone(t, p, pace("0.02")...).reach(13)
	wantSaved(t, p, j.signal(j.first(), syscall.SIGTERM).wantCode(75), 13)
	j = alone(t, p, pace("0.02")...).reach(52) // past 45, where it has saved
	j.signal(j.first(), syscall.SIGKILL).wantCode(-1)
	j = alone(t, p, short...).wantCode(0)
	if from, err := strconv.Atoi(field(j.Lines[0], "step")); err != nil || from < 45 || from%15 != 0 {
		t.Errorf("it starts again at step %s, want the last of every 15th before the kill", field(j.Lines[0], "step"))
	}
	again := alone(t, p, short...).wantCode(0)
	wantFirst(t, again, 128)
	if j.done() != want || again.done() != want {
		t.Errorf("hash %s, once more %s, want %s", j.done(), again.done(), want)
	}
	other := alone(t, p, append(short[:len(short):len(short)], "--seed", "2")...).wantCode(1)
	if !strings.Contains(other.Stderr.String(), "train: checkpoint of --seed 1, want 2\n") {
		t.Errorf("another seed: %q", other.Stderr.String())
	}
}

// Ensure that torchrun ends with code 1, soon and leaving no one behind, when a rank is killed: it must not be taken
// for one that has saved, and the next attempt starts at the last checkpoint.
func TestKilledRank(t *testing.T) {
	needTorch(t)
	t.Parallel()
	p := newPlace(t)
	j := start(t, p, 2, nil, pace("0.04")...).reach(20)
	began := time.Now()
	j.signal(rankOf(t, j, 1), syscall.SIGKILL).wantCode(1)
	t.Logf("it took %v", time.Since(began).Round(time.Millisecond))
	if _, _, ok := p.ready(t); ok || !strings.Contains(j.Stderr.String(), "Signal 9 (SIGKILL)") {
		t.Errorf("ready file %v, want none, and a word on SIGKILL in\n%s", ok, j.Stderr.String())
	}
	if err := syscall.Kill(j.all(), 0); err == nil {
		t.Error("some of its processes live on")
	}
	j = start(t, p, 1, nil, short...).wantCode(0)
	j.done()
	wantFirst(t, j, 15)
}

// rankOf returns the pid of a rank among the children of torchrun.
func rankOf(t *testing.T, j *job, rank int) int {
	t.Helper()
	pid := strconv.Itoa(j.first())
	children, err := os.ReadFile(filepath.Join("/proc", pid, "task", pid, "children"))
	if err != nil {
		t.Fatal(err)
	}
	for child := range strings.FieldsSeq(string(children)) {
		env, _ := os.ReadFile(filepath.Join("/proc", child, "environ"))
		if n, err := strconv.Atoi(child); err == nil &&
			strings.Contains(string(env), "\x00RANK="+strconv.Itoa(rank)+"\x00") {
			return n
		}
	}
	t.Fatalf("no rank %d among the children %q", rank, children)
	return 0
}
