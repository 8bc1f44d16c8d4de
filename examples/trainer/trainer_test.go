package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/trainyard/trainyard/internal/linestest"
)

// program is the built trainer: signals and exit codes are part of the contract, so it runs as a process of its own.
var program string

func TestMain(m *testing.M) { os.Exit(testMain(m)) }

func testMain(m *testing.M) int {
	dir, err := os.MkdirTemp("", "trainer")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(dir)
	program = filepath.Join(dir, "trainer")
	if out, err := exec.Command("go", "build", "-o", program, ".").CombinedOutput(); err != nil {
		fmt.Fprintf(os.Stderr, "go build: %v\n%s", err, out)
		return 1
	}
	return m.Run()
}

// process is a trainer that runs.
type process struct {
	*linestest.Process
	t *testing.T
}

// start runs the trainer with the environment, of the form NAME=value, and with no other.
func start(t *testing.T, env []string, args ...string) *process {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	t.Cleanup(cancel)
	cmd := exec.CommandContext(ctx, program, args...)
	cmd.Env = append([]string{}, env...)
	return &process{linestest.Start(t, cmd), t}
}

// begun waits for the first line. From then on signals are answered.
func (p *process) begun() *process {
	p.t.Helper()
	if !p.Next() {
		p.t.Fatalf("no line of output; stderr:\n%s", p.Stderr.String())
	}
	return p
}

func (p *process) signal(s syscall.Signal) *process {
	p.t.Helper()
	if err := p.Cmd.Process.Signal(s); err != nil {
		p.t.Fatal(err)
	}
	return p
}

// code waits for the end and returns the exit code, -1 after SIGKILL.
func (p *process) code() int {
	p.t.Helper()
	for p.Next() {
	}
	var exit *exec.ExitError
	if err := p.Cmd.Wait(); err != nil && !errors.As(err, &exit) {
		p.t.Fatal(err)
	}
	return p.Cmd.ProcessState.ExitCode()
}

// wantCode waits for the end.
func (p *process) wantCode(want int) *process {
	p.t.Helper()
	if got := p.code(); got != want {
		p.t.Fatalf("exit code %d, want %d; stdout:\n%s\nstderr:\n%s", got, want, strings.Join(p.Lines, "\n"),
			p.Stderr.String())
	}
	return p
}

// field returns the value of key=value in the line, or "".
func field(line, key string) string {
	for word := range strings.FieldsSeq(line) {
		if value, ok := strings.CutPrefix(word, key+"="); ok {
			return value
		}
	}
	return ""
}

// firstStep returns the step of the first line.
func (p *process) firstStep() string { return field(p.Lines[0], "step") }

func (p *process) last() string { return p.Lines[len(p.Lines)-1] }

// hash returns the hash of the last line, which must say that the run is done.
func (p *process) hash() string {
	p.t.Helper()
	hash := field(p.last(), "hash")
	if !strings.HasPrefix(p.last(), "TRAINYARD done ") || len(hash) != 64 {
		p.t.Fatalf("last line %q, want that of a finished run", p.last())
	}
	return hash
}

func width(n int) string { return fmt.Sprint("TRAINYARD_NUM_GPUS=", n) }

func checkpoints(dir string) string { return "TRAINYARD_CHECKPOINT_DIR=" + dir }

// Ensure that a run with no flags at all learns, and that its lines and its result agree.
func TestLearns(t *testing.T) {
	t.Parallel()
	out := filepath.Join(t.TempDir(), "result.json")
	p := start(t, nil, "--out", out).wantCode(exitDone)
	first, err1 := strconv.ParseFloat(field(p.Lines[0], "loss"), 64)
	last, err2 := strconv.ParseFloat(field(p.last(), "loss"), 64)
	if err1 != nil || err2 != nil || !(last < first/5) {
		t.Errorf("loss from %v to %v, want a fall to less than a fifth", p.Lines[0], p.last())
	}
	if got, want := p.Lines[10], "TRAINYARD step=100 total=1000 loss="; !strings.HasPrefix(got, want) ||
		!strings.HasSuffix(got, " samples=25600 epoch=2") {
		t.Errorf("line %q, want %s... samples=25600 epoch=2", got, want)
	}
	data, err := os.ReadFile(out)
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Contains(p.Lines, strings.TrimSpace(string(data))) {
		t.Errorf("result %s is not printed", data)
	}
	var r result
	if err := json.Unmarshal(data, &r); err != nil {
		t.Fatal(err)
	}
	if r.Steps != 1000 || r.Width != 1 || r.Samples != 256000 || r.Hash != p.hash() {
		t.Errorf("result %s, want 1000 steps at width 1 and the hash of the last line", data)
	}
}

// Ensure that at each width a run that is stopped and killed at random moments ends with the weights of one left alone.
func TestDisturbedRunEndsAlike(t *testing.T) {
	t.Parallel()
	train := []string{"--steps", "200", "--batch", "30"}
	for _, n := range []int{1, 2, 3} {
		t.Run(width(n), func(t *testing.T) {
			t.Parallel()
			want := start(t, []string{width(n)}, train...).wantCode(exitDone).hash()
			env := []string{width(n), checkpoints(t.TempDir())}
			args := slices.Concat(train, []string{"--checkpoint-every", "15", "--report-every", "1", "--step-time",
				fmt.Sprint(5*n, "ms")})
			rng := rand.New(rand.NewPCG(uint64(n), 0))
			ends := map[int]int{}
			for attempt := 0; ; attempt++ {
				if attempt == 200 {
					t.Fatalf("not done after %d attempts", attempt)
				}
				p := start(t, env, args...)
				disturb(p, 1+rng.IntN(40), []syscall.Signal{syscall.SIGTERM, syscall.SIGKILL}[attempt%2])
				code := p.code()
				ends[code]++
				if code == exitDone {
					if got := p.hash(); got != want {
						t.Errorf("hash %s after %v, want %s", got, ends, want)
					}
					break
				}
			}
			t.Logf("exit codes and their numbers: %v", ends)
			delete(ends, exitDone)
			disturbed := ends[-1] + ends[exitPreempted]
			delete(ends, -1)
			delete(ends, exitPreempted)
			if disturbed == 0 || len(ends) > 0 {
				t.Errorf("%d runs disturbed and other exits %v, want some and none", disturbed, ends)
			}
		})
	}
}

// disturb sends the signal after a number of lines, if the run still lives.
func disturb(p *process, lines int, s syscall.Signal) {
	for range lines {
		if !p.Next() {
			return
		}
	}
	p.signal(s)
}

// Ensure that another width and another batch continue where the first ones stopped, and that a finished run gives its
// answer again.
func TestOtherWidthLoads(t *testing.T) {
	t.Parallel()
	env := []string{checkpoints(t.TempDir()), "TRAINYARD_LR_SCALE=2"}
	args := []string{"--steps", "100", "--batch", "32", "--report-every", "1"}
	p := start(t, append(env, width(2)), append(args, "--step-time", "10ms")...)
	disturb(p, 20, syscall.SIGTERM)
	p.wantCode(exitPreempted)
	step, err := strconv.Atoi(field(p.last(), "step"))
	if err != nil || step < 19 || !strings.HasPrefix(p.last(), "TRAINYARD preempted ") {
		t.Fatalf("last line %q, want that of a stop at step 19 or later", p.last())
	}
	wide := start(t, append(env, width(5), "TRAINYARD_BATCH_GLOBAL=80"), args...).wantCode(exitDone)
	if got := wide.firstStep(); got != strconv.Itoa(step) {
		t.Errorf("the wider run starts at step %s, want %d", got, step)
	}
	samples := strconv.Itoa(32*step + 80*(100-step))
	if got := field(wide.Lines[len(wide.Lines)-4], "samples"); got != samples {
		t.Errorf("line %q, want %s samples", wide.Lines[len(wide.Lines)-4], samples)
	}
	again := start(t, append(env, width(1)), args...).wantCode(exitDone)
	if again.hash() != wide.hash() || again.firstStep() != "100" {
		t.Errorf("after the end: %v, want the same hash at once", again.Lines)
	}
}

// Ensure that damaged checkpoints cost work and nothing else: one falls back on the one before, two on the start.
func TestDamagedCheckpoints(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	env := []string{checkpoints(dir)}
	args := []string{"--steps", "100", "--batch", "16", "--checkpoint-every", "40"}
	want := start(t, env, args...).wantCode(exitDone).hash()
	wantSteps(t, dir, 80, 100)
	for _, tt := range []struct {
		damaged []int
		from    string
	}{{[]int{100}, "80"}, {[]int{80, 100}, "0"}} {
		for _, step := range tt.damaged {
			if err := os.Truncate(filepath.Join(dir, fileName(step)), 1000); err != nil {
				t.Fatal(err)
			}
		}
		p := start(t, env, args...).wantCode(exitDone)
		if p.hash() != want || p.firstStep() != tt.from {
			t.Errorf("damaged %v: from step %s to %s, want from %s to %s", tt.damaged, p.firstStep(), p.hash(), tt.from,
				want)
		}
	}
}

// Ensure that a signal ends the wait of a step at once, that the work is saved, and that without a folder the exit code
// does not claim so.
func TestSignals(t *testing.T) {
	t.Parallel()
	for _, s := range []syscall.Signal{syscall.SIGTERM, syscall.SIGINT} {
		dir := t.TempDir()
		start(t, []string{checkpoints(dir)}, "--step-time", "1h").begun().signal(s).wantCode(exitPreempted)
		wantSteps(t, dir, 0)
		start(t, nil, "--step-time", "1h").begun().signal(s).wantCode(exitSignal + int(s))
	}
}

// Ensure that the save after SIGTERM takes its time, and that a run killed before that is over has saved nothing.
func TestSlowSave(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	p := start(t, []string{checkpoints(dir)}, "--step-time", "1h", "--save-time", "300ms").begun()
	began := time.Now()
	p.signal(syscall.SIGTERM).wantCode(exitPreempted)
	if took := time.Since(began); took < 300*time.Millisecond {
		t.Errorf("the save took %v, want 300ms or more", took)
	}
	dir = t.TempDir()
	start(t, []string{checkpoints(dir)}, "--step-time", "1h", "--save-time", "1h").
		begun().signal(syscall.SIGTERM).signal(syscall.SIGKILL).wantCode(-1)
	wantSteps(t, dir)
}

// Ensure that steps take their time, less of it on a wider job.
func TestPace(t *testing.T) {
	t.Parallel()
	for n, want := range map[int]time.Duration{1: 400 * time.Millisecond, 4: 100 * time.Millisecond} {
		began := time.Now()
		start(t, []string{width(n)}, "--steps", "20", "--batch", "8", "--step-time", "20ms").wantCode(exitDone)
		if took := time.Since(began); took < want {
			t.Errorf("width %d: 20 steps took %v, want %v or more", n, took, want)
		}
	}
}

// Ensure that a run over so many samples ends with the first step that completes them, also when it went on with
// another batch size, and says how accurate it is.
func TestSamples(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	args := []string{"--batch", "64", "--report-every", "1", "--samples"}
	start(t, []string{checkpoints(dir)}, append(args, "640")...).wantCode(exitDone)
	p := start(t, []string{checkpoints(dir), "TRAINYARD_BATCH_GLOBAL=100"}, append(args, "1000")...).wantCode(exitDone)
	var r result
	for _, line := range p.Lines {
		if strings.HasPrefix(line, "{") {
			if err := json.Unmarshal([]byte(line), &r); err != nil {
				t.Fatal(err)
			}
		}
	}
	if r.Steps != 14 || r.Samples != 1040 || !(r.Accuracy > 0 && r.Accuracy < 1) {
		t.Errorf("%+v, want 10 steps of 64 and 4 of 100", r)
	}
	if first := p.Lines[0]; !strings.Contains(first, "step=10 total=14 ") {
		t.Errorf("it starts with %q, want 14 steps expected", first)
	}
}

// Ensure that a failure loses the work since the last checkpoint, comes back on each attempt, and with --fail-once on
// the first one only, whether a checkpoint folder or the ledger remembers it.
func TestFailAt(t *testing.T) {
	t.Parallel()
	args := []string{"--steps", "60", "--batch", "8", "--checkpoint-every", "20", "--fail-at", "40"}
	env := []string{checkpoints(t.TempDir())}
	start(t, env, args...).wantCode(exitFailed)
	for range 2 {
		if p := start(t, env, args...).wantCode(exitFailed); p.firstStep() != "20" {
			t.Errorf("resumed at step %s, want 20", p.firstStep())
		}
	}
	args = append(args, "--fail-once")
	for _, e := range [][]string{{checkpoints(t.TempDir())}, {"TRAINER_LEDGER=" + t.TempDir(), "TRAINYARD_JOB_ID=7"}} {
		start(t, e, args...).wantCode(exitFailed)
		start(t, e, args...).wantCode(exitDone)
	}
}

// Ensure that a run fails once a file is there, and not before.
func TestFailWhen(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "fail")
	args := []string{"--steps", "20", "--batch", "8", "--fail-when", file}
	start(t, nil, args...).wantCode(exitDone)
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	start(t, nil, args...).wantCode(exitFailed)
}

// Ensure that what the user got wrong is reported apart from what went wrong.
func TestErrors(t *testing.T) {
	t.Parallel()
	used := t.TempDir()
	start(t, []string{checkpoints(used)}, "--steps", "1").wantCode(exitDone)
	for _, tt := range []struct {
		env  string // one variable
		args string
		code int
		want string // on stderr
	}{
		{"A=", "-h", exitDone, "-checkpoint-every"},
		{"A=", "--steps 0", exitUsage, "--steps 0"},
		{"A=", "--fail-once --fail-at 3", exitUsage, "--fail-once"},
		{"A=", "--step-time -1s", exitUsage, "--step-time"},
		{"A=", "--parallel 1.5", exitUsage, "--parallel 1.5"},
		{"A=", "--samples -1", exitUsage, "--samples -1"},
		{"A=", "more", exitUsage, `"more"`},
		{"A=", "--nonsense", exitUsage, "nonsense"},
		{width(0), "", exitUsage, "TRAINYARD_NUM_GPUS"},
		{"TRAINYARD_NUM_GPUS=two", "", exitUsage, "TRAINYARD_NUM_GPUS"},
		{"TRAINYARD_BATCH_GLOBAL=-1", "", exitUsage, "TRAINYARD_BATCH_GLOBAL"},
		{"TRAINYARD_LR_SCALE=NaN", "", exitUsage, "TRAINYARD_LR_SCALE"},
		{"TRAINER_LEDGER=" + used, "", exitUsage, "TRAINYARD_JOB_ID"},
		{"TRAINYARD_LR_SCALE=1e300", "", exitError, "loss"},
		{checkpoints(used), "--seed 2", exitError, "--seed 1"},
		{"A=", "--steps 1 --out " + used + "/no/result.json", exitError, "result.json"},
		{"A=", "--steps 1 --checkpoint-dir " + program, exitError, program},
	} {
		p := start(t, []string{tt.env}, strings.Fields(tt.args)...).wantCode(tt.code)
		if !strings.Contains(p.Stderr.String(), tt.want) {
			t.Errorf("%s trainer %s: stderr %q, want %q in it", tt.env, tt.args, p.Stderr.String(), tt.want)
		}
	}
}

// Ensure that the flags and the environment are as doc.go lists them, defaults and precedence included.
func TestParse(t *testing.T) {
	env := map[string]string{"TRAINYARD_CHECKPOINT_DIR": "there", "TRAINYARD_BATCH_GLOBAL": "10",
		"TRAINYARD_LR_SCALE": "2"}
	args := []string{"--checkpoint-dir", "here", "--batch", "4", "--epoch-steps", "5", "--step-time", "6s"}
	c, err := parse(args, func(name string) string { return env[name] }, io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	if c.checkpointDir != "there" || c.batch != 10 || c.dataset != 20 || c.rate != 2*baseRate || c.width != 1 {
		t.Errorf("%+v, want folder there, batch 10, data set 20, width 1 and twice the rate", c)
	}
	c.width = 4
	if c.pace() != 1500*time.Millisecond {
		t.Errorf("pace %v at width 4, want 1.5s", c.pace())
	}
	c.parallel = 0.5
	if c.pace() != 3750*time.Millisecond {
		t.Errorf("pace %v at width 4 with half of it parallel, want 3.75s", c.pace())
	}
}
