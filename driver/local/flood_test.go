package local

import (
	"log/slog"
	"os"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/trainyard/trainyard/attempt/progress"
	"github.com/trainyard/trainyard/driver/local/shim"
)

// flooded is a tail of an attempt that writes much.
type flooded struct {
	*tail
	out *os.File
}

func newFlooded(t testing.TB, from progress.From) *flooded {
	t.Helper()
	d := &Driver{o: Options{State: "/nowhere", Log: slog.New(slog.DiscardHandler)}, quit: make(chan struct{})}
	f := &flooded{tail: newTail(&attempt{d: d, odo: progress.NewOdometer(1, progress.Kept{}, 0),
		dir: shim.RunDir(t.TempDir())}, progress.NewReader(from), nil)}
	var err error
	if f.out, err = os.Create(f.a.dir.Output()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = f.out.Close() })
	return f
}

// writes has the job write, and the tail read that.
func (f *flooded) writes(t testing.TB, text string) {
	t.Helper()
	if _, err := f.out.WriteString(text); err != nil {
		t.Fatal(err)
	}
	f.read(nil)
}

// Ensure that of a job that writes too much at once lines made for us count all the same, that lines of its logs count
// again as soon as it writes less, and that what it wrote before anybody read counts, however much that is.
func TestFlood(t *testing.T) {
	t.Parallel()
	much := strings.Repeat("nothing of any interest\n", 2*readFully/24)
	f := newFlooded(t, progress.Steps)
	f.writes(t, much+"step 1/100\nstep 2/100\nstep 3/100\nstep 4/100\n")
	if got := f.a.odo.Steps(); got != 4 {
		t.Errorf("step %d of what was written before, want 4", got)
	}
	f.writes(t, "step 5/100\n"+much+"step 6/100\n")
	if got := f.a.odo.Steps(); got != 5 {
		t.Errorf("step %d behind a flood, want the 5 before it", got)
	}
	f.writes(t, "step 7/100\n")
	if got := f.a.odo.Steps(); got != 7 {
		t.Errorf("step %d after a flood, want 7", got)
	}
	f.writes(t, much+"TRAINYARD step=8 done\n")
	if got := f.a.odo.Steps(); got != 8 || !f.done {
		t.Errorf("step %d of a line of ours behind a flood, done %v, want 8, done", got, f.done)
	}
}

// cpuSeconds is the CPU time of the process, user and system: a machine that is busy elsewhere makes it no longer.
func cpuSeconds(t testing.TB) float64 {
	t.Helper()
	var r unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_SELF, &r); err != nil {
		t.Fatal(err)
	}
	return float64(r.Utime.Nano()+r.Stime.Nano()) / 1e9
}

// BenchmarkFlood is the reading of a job that writes 20 MB at once, of lines of a kind.
func BenchmarkFlood(b *testing.B) {
	for name, line := range map[string]string{
		"bars":  "\rEpoch 3:  45%|####5     | 450/1000 [00:12<00:15, 36.10it/s, v_num=0, train_loss=0.131]",
		"words": strings.Repeat("epoch step samples ", 200) + "\n",
		"steps": "[2026-11-22 03:44:19] step 100/1000 | loss: 2.4000 | 812.5 samples/s | lr 3.0e-4\n",
		"other": "2026-11-22 03:44:19,123 INFO worker 3: the quick brown fox has read shard 17 of the data set, all " +
			"is well\n",
		"own":   "TRAINYARD step=120 total=90000 loss=2.1 samples=30720\n",
		"short": "x\n",
	} {
		b.Run(name, func(b *testing.B) {
			f := newFlooded(b, progress.Auto)
			f.writes(b, "starts\n")
			text := strings.Repeat(line, 20_000_000/len(line))
			if _, err := f.out.WriteString(text); err != nil {
				b.Fatal(err)
			}
			b.SetBytes(int64(len(text)))
			began, n := cpuSeconds(b), 0
			for ; b.Loop(); n++ {
				if _, err := f.files[0].Seek(7, 0); err != nil {
					b.Fatal(err)
				}
				f.read(nil)
			}
			b.ReportMetric(float64(n*len(text))/1e6/(cpuSeconds(b)-began), "MB/cpu-s")
		})
	}
}
