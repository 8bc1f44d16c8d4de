package local

import (
	"bytes"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/trainyard/trainyard/attempt/progress"
	"github.com/trainyard/trainyard/driver/local/shim"
	"github.com/trainyard/trainyard/sched"
)

// reader is a tail by hand: the test says what is read, and when.
type reader struct {
	*tail
	reported []sched.Event
	now      time.Time
}

func newReader() *reader {
	r := &reader{now: time.Unix(1e9, 0)}
	d := &Driver{o: Options{State: "/nowhere", Log: slog.New(slog.DiscardHandler)}}
	r.tail = newTail(&attempt{d: d, odo: progress.NewOdometer(1, progress.Kept{}, 0)},
		progress.NewReader(progress.Auto), func(e sched.Event) {
			r.reported = append(r.reported, e)
		})
	return r
}

// at has text read so long after the start.
func (r *reader) at(seconds float64, text string) {
	r.take(progress.Output, []byte(text), r.now.Add(sched.Seconds(seconds)))
}

// facts are what a tail has found out.
type facts struct {
	step, epoch int64
	done        bool
}

func (r *reader) facts() facts { return facts{r.a.odo.Steps(), r.epoch, r.done} }

// Ensure that lines are understood however they are torn, and that what is no such line is passed over.
func TestProgressLines(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("x", 1<<20)
	for _, c := range []struct {
		text string
		want facts
	}{
		{"TRAINYARD step=120 epoch=3 loss=2.1\n", facts{120, 3, false}},
		{"epoch 1\nTRAINYARD step=1\r\n\nTRAINYARD done\n", facts{1, 0, true}},
		{"TRAINYARD step=7", facts{}}, // not ended
		{"TRAINYARD step=7\nTRAINYARD step=8", facts{7, 0, false}},
		{"TRAINYARD  step=x step= step=-1 step=1.5 step=99999999999999999999 epoch=-1 step step=4\n",
			facts{4, 0, false}},
		{"TRAINYARDstep=5\n TRAINYARD step=5\nxTRAINYARD step=5\n", facts{}},
		{"TRAINYARD undone\nTRAINYARD done=1\nTRAINYARD done.\n", facts{}},
		{"TRAINYARD step=9\nTRAINYARD step=3\n", facts{3, 0, false}},
		{"TRAINYARD epoch=9\nTRAINYARD epoch=3\n", facts{0, 9, false}},
		{"TRAINYARD epoch=99999999999\n", facts{}},
		{"TRAINYARD step=1 " + long + " step=2\nTRAINYARD step=3\n", facts{3, 0, false}},
		// cut in the middle of the number
		{"TRAINYARD " + strings.Repeat("x", progress.MaxLine-15) + " step=12345\n", facts{}},
		{long + "\nTRAINYARD done\n", facts{0, 0, true}},
		{"\x00\xff\xfe\n\x1b[31mTRAINYARD step=5\n\x00TRAINYARD done\nTRAINYARD step=\x00\nTRAINYARD step=6 \xff\n",
			facts{6, 0, false}},
	} {
		for _, size := range []int{1, 2, 3, 7, 4095, 4096, 4097, 1 << 30} {
			r := newReader()
			for b := []byte(c.text); len(b) > 0; b = b[min(size, len(b)):] {
				r.take(progress.Output, b[:min(size, len(b))], r.now)
			}
			if r.facts() != c.want {
				t.Errorf("%.60q in parts of %d: %+v, want %+v", c.text, size, r.facts(), c.want)
			}
		}
	}
}

// Ensure that work is the time that the steps done so far take: those lost and done again count once, and what was
// written before anybody looked is no measure of the speed.
func TestWork(t *testing.T) {
	t.Parallel()
	r := newReader()
	for _, c := range []struct {
		at   float64
		text string
		work float64
	}{
		{0, "TRAINYARD step=1\nTRAINYARD step=100\n", 0},
		{10, "TRAINYARD step=105\nTRAINYARD step=110\n", 110},
		{20, "TRAINYARD step=120\n", 120},
		{21, "TRAINYARD step=50\n", 50}, // rolled back
		{31, "TRAINYARD step=60\n", 60},
		{35, "TRAINYARD step=70\n", 70 * 34 / 40.},
		{71, "TRAINYARD step=76\n", 76 / 0.52}, // measured for good: the median of 1, 16/40 and 26/50
	} {
		r.at(c.at, c.text)
		if got := r.a.odo.Work().Seconds(); got < c.work-0.001 || got > c.work+0.001 {
			t.Errorf("at %v s: work %v, want %v", c.at, got, c.work)
		}
	}
	r.at(80, "TRAINYARD step=0\n")
	for i := range 10 { // no sum runs over
		r.at(90+float64(i), "TRAINYARD step=9223372036854775807\nTRAINYARD step=1\nTRAINYARD "+
			"step=9223372036854775806\n")
		if w := r.a.odo.Work(); w < 0 || w > progress.MaxWork {
			t.Errorf("work %v", w)
		}
	}
	if w := progress.NewOdometer(1, progress.Kept{}, time.Hour).Work(); w != time.Hour {
		t.Errorf("work %v, want what the log knows", w)
	}
}

// Ensure that an attempt starts at the rate known for its width, also for a driver that was not there when it was
// measured, and at one in proportion to the width where nothing is known or can be read.
func TestRateAtStart(t *testing.T) {
	t.Parallel()
	kept := `{"reference": 10, "paces": [{"width": 2, "batch": 0, "tenants": 1, "per_second": 8}, {"width": 1, ` +
		`"batch": 0, "tenants": 1, "per_second": 5}]}`
	for _, c := range []struct {
		kept string
		gpus []sched.GPUID
		want float64
	}{
		{"", []sched.GPUID{0}, 0.5},
		{"{", []sched.GPUID{0, 1}, 1},
		{kept, []sched.GPUID{0, 1}, 0.8},
		{kept, []sched.GPUID{1}, 0.5},
		{kept, []sched.GPUID{0, 1, 2}, 1.5},
	} {
		dir, job := folder(t), arrival(t, 0, 2, "exec sleep 60")
		if c.kept != "" {
			if err := os.MkdirAll(shim.State(dir).Job(0), 0o700); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(filepath.Join(shim.State(dir).Job(0), odometerFile), []byte(c.kept),
				0o600); err != nil {
				t.Fatal(err)
			}
		}
		d := open(t, dir, 1, 3, job)
		t.Cleanup(d.Close)
		h := take(t, d, sched.View{})
		h.arrivals(1)
		h.apply(start(0, 1, c.gpus...))
		if e := h.await(sched.AttemptStarted, 0); e.Rate != c.want {
			t.Errorf("%d GPUs, kept %q: rate %v, want %v", len(c.gpus), c.kept, e.Rate, c.want)
		}
	}
}

// Ensure that bars are understood as steps, and that a count of something else is no progress.
func TestBarsAsWork(t *testing.T) {
	t.Parallel()
	r := newReader()
	r.at(0, "\r  1%|1         | 10/1000 [00:05<08:15,  2.00it/s]\r")
	r.at(10, "\r  3%|3         | 30/1000 [00:15<08:05,  2.00it/s]\r")
	r.at(20, "\r  5%|5         | 50/1000 [00:25<07:55,  2.00it/s]\r")
	if w := r.a.odo.Work(); r.a.odo.Steps() != 50 || w != 25*time.Second {
		t.Errorf("step %d, work %v, want 50 and 25s", r.a.odo.Steps(), w)
	}
	r.at(20, "TRAINYARD step=5000\n") // it resumed at 4950, of which bars know nothing
	r.at(40, "TRAINYARD step=5040\n")
	if w := r.a.odo.Work(); w != 5040*time.Second/2 {
		t.Errorf("work %v, want %v", w, 5040*time.Second/2)
	}
	last := r.reported[len(r.reported)-1]
	if last.Kind != sched.Progressed || last.Value != 5040 || last.Work != 5040*time.Second/2 {
		t.Errorf("reported %+v, want 5040 steps", last)
	}
}

// Ensure that the file of progress is read as well as the output, while the job runs and after, and that steps are
// reported.
func TestFileOfProgress(t *testing.T) {
	t.Parallel()
	list, _ := jobs(t, time.Minute, `f=$TRAINYARD_RUN_DIR/progress.jsonl
		trap 'echo "{\"step\": 900, \"done\": true}" >> $f; exit 0' TERM
		i=0; while :; do i=$((i+1)); echo "{\"step\": $i, \"loss\": 2.5}" >> $f; sleep 0.05; done`)
	d := open(t, folder(t), 1, 1, list...)
	t.Cleanup(d.Close)
	h := take(t, d, sched.View{})
	h.arrivals(1)
	h.apply(start(0, 1, 0))
	if e := h.await(sched.Progressed, 0); !(e.Value > 0) || e.Work <= 0 {
		t.Errorf("reported %+v, want steps and work", e)
	}
	h.apply(stop(0, 1))
	if e := h.await(sched.AttemptEnded, 0); e.Outcome != sched.Finished || e.Value != 900 {
		t.Errorf("ended %+v, want finished with 900 steps", e)
	}
}

// Ensure that the log is not flooded: progress is reported every 10 s at most, epochs each once.
func TestTold(t *testing.T) {
	t.Parallel()
	r := newReader()
	for i := range 250 {
		r.at(float64(i)/10, fmt.Sprintf("TRAINYARD step=%d epoch=%d\n", i+1, i/100))
	}
	var epochs []float64
	progressed := 0
	for _, e := range r.reported {
		switch e.Kind {
		case sched.EpochEnded:
			epochs = append(epochs, e.Value)
		case sched.Progressed:
			progressed++
		}
	}
	if !reflect.DeepEqual(epochs, []float64{1, 2}) || progressed != 3 {
		t.Errorf("epochs %v, progress reported %d times, want 1, 2 and 3 times in 25 s", epochs, progressed)
	}
}

// FuzzProgress reads any bytes in any parts: the same as line by line, within bounds.
func FuzzProgress(f *testing.F) {
	f.Add([]byte("TRAINYARD step=120 epoch=3\nTRAINYARD done\n"), uint16(3))
	f.Add([]byte("TRAINYARD step=9223372036854775807\nTRAINYARD step=1"), uint16(1))
	f.Add([]byte("TRAINYARD step=1\r"), uint16(1))
	f.Add(bytes.Repeat([]byte("TRAINYARD step=1 "), 300), uint16(4096))
	f.Fuzz(func(t *testing.T, text []byte, size uint16) {
		parts, lines := newReader(), newReader()
		for i, b := 0, text; len(b) > 0; i++ {
			n := min(int(size)+1, len(b))
			parts.at(float64(i), string(b[:n]))
			b = b[n:]
			if w := parts.a.odo.Work(); w < 0 || w > progress.MaxWork {
				t.Fatalf("work %v", w)
			}
		}
		for rest := text; ; { // bars end their lines otherwise
			end := bytes.IndexAny(rest, "\r\n") + 1
			if end == 0 {
				break
			}
			lines.take(progress.Output, rest[:end], lines.now)
			rest = rest[end:]
		}
		if parts.facts() != lines.facts() {
			t.Fatalf("%+v, want %+v", parts.facts(), lines.facts())
		}
	})
}

// Ensure that epochs are reported where someone watches them only.
func TestEpochsWatched(t *testing.T) {
	t.Parallel()
	goOn := filepath.Join(t.TempDir(), "go")
	list, _ := jobs(t, time.Second, `echo TRAINYARD epoch=1 step=1; i=1; while [ ! -e `+goOn+` ]; do i=$((i+1)); echo TRAINYARD step=$i; sleep 0.1; done
		echo TRAINYARD epoch=2; exec sleep MARK`)
	d := open(t, folder(t), 1, 1, list...)
	t.Cleanup(d.Close)
	h := take(t, d, sched.View{})
	h.arrivals(1)
	h.apply(start(0, 1, 0))
	h.await(sched.Progressed, 0) // so the first epoch was read
	h.apply(sched.Action{Kind: sched.WatchEpochs, Job: 0, Attempt: 1, On: true})
	touch(t, goOn)
	if e := h.await(sched.EpochEnded, 0); e.Value != 2 {
		t.Errorf("epoch %v was reported, want 2", e.Value)
	}
}

// Ensure that a driver that comes back does not report epochs again that the log knows.
func TestEpochsOfAdopted(t *testing.T) {
	t.Parallel()
	r := newReader()
	a := &attempt{odo: progress.NewOdometer(1, progress.Kept{}, 0), epoch: 2, adopted: true}
	r.tail = newTail(a, progress.NewReader(progress.Auto), func(e sched.Event) { r.reported = append(r.reported, e) })
	r.at(0, "TRAINYARD epoch=1\nTRAINYARD epoch=2\nTRAINYARD epoch=3\n")
	if len(r.reported) != 1 || r.reported[0].Value != 3 {
		t.Errorf("reported %v, want epoch 3", r.reported)
	}
}

// Ensure that an epoch that ended before anybody asked, or before an attempt started, is not taken for one that ends
// now, and that what was lost and is done again ends again.
func TestEpochsOfBefore(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		epoch        int64 // of the job
		adopted      bool
		first, later string
		want         []float64
	}{
		"adopted, none said":  {0, true, "epoch=1 epoch=2", "epoch=2 epoch=3", []float64{3}},
		"resumed":             {5, false, "epoch=5", "epoch=5 epoch=6", []float64{6}},
		"resumed after a gap": {5, false, "", "epoch=6 epoch=7", []float64{6, 7}},
		"rolled back":         {5, false, "epoch=3", "epoch=4 epoch=5", []float64{4, 5}},
		"first":               {0, false, "epoch=0 epoch=1", "epoch=2", []float64{1, 2}},
	} {
		r := newReader()
		a := &attempt{d: r.a.d, odo: r.a.odo, dir: shim.RunDir(t.TempDir()), epoch: c.epoch, adopted: c.adopted}
		r.tail = newTail(a, progress.NewReader(progress.Auto),
			func(e sched.Event) { r.reported = append(r.reported, e) })
		for i, text := range []string{c.first, c.later} {
			for word := range strings.FieldsSeq(text) {
				r.at(float64(i), "TRAINYARD "+word+"\n")
			}
			r.read(nil)
		}
		var got []float64
		for _, e := range r.reported {
			got = append(got, e.Value)
		}
		if !reflect.DeepEqual(got, c.want) {
			t.Errorf("%s: epochs %v, want %v", name, got, c.want)
		}
	}
}

// Ensure that a job that says that it is done, and exits with 0, has finished, also when it was asked to stop just
// then, whoever hears of it; and that the exit code alone does not say.
func TestDoneWhileStopped(t *testing.T) {
	t.Parallel()
	for i, c := range []struct {
		script string
		want   sched.Outcome
	}{
		{`trap 'echo TRAINYARD done; exit 0' TERM`, sched.Finished},
		{`trap 'echo TRAINYARD step=1 done; exit 0' TERM`, sched.Finished},
		{`trap 'exit 0' TERM`, sched.Preempted},
		{`trap 'echo TRAINYARD done; exit 3' TERM`, sched.Preempted},
	} {
		t.Run(fmt.Sprint(i), func(t *testing.T) {
			t.Parallel()
			list, _ := jobs(t, time.Minute, c.script+`; echo ready; while :; do sleep 0.05; done`)
			dir := folder(t)
			d := open(t, dir, 1, 2, list...)
			h := take(t, d, sched.View{})
			h.arrivals(1)
			h.apply(start(0, 1, 0))
			h.await(sched.AttemptStarted, 0)
			h.outputHas(0, 1, "ready")
			h.apply(stop(0, 1))
			h.end(0, c.want)
			d.Close()
			p := &past{dir: dir, origin: d.o.Origin, list: list}
			v := known(d, sched.Job{Attempt: sched.Stopping, Up: true, Attempts: 1})
			again := take(t, p.next(t, 2), v) // as if the end had not been logged
			again.end(0, c.want)
		})
	}
}

// Ensure that what is written while no one reads, and after the last look, is read.
func TestTailOfFile(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	r := newReader()
	r.a.dir = shim.RunDir(dir)
	r.read(nil) // nothing there yet
	for i, text := range []string{"TRAINYARD st", "ep=5\n", strings.Repeat("x\n", 1<<16) + "TRAINYARD done\n"} {
		f, err := os.OpenFile(r.a.dir.Output(), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := f.WriteString(text); err != nil {
			t.Fatal(err)
		}
		_ = f.Close()
		if i < 2 {
			r.read(nil)
		}
	}
	r.finish()
	if want := (facts{5, 0, true}); r.facts() != want {
		t.Errorf("%+v, want %+v", r.facts(), want)
	}
}

// Ensure that a driver that comes back counts the work of a job in the unit that it had, although its user wants
// another width since.
func TestUnitOfChangedJob(t *testing.T) {
	t.Parallel()
	spec := &sched.JobSpec{GPUs: sched.Rigid(4)}
	c := sched.JobChange{GPUs: sched.Rigid(2)}
	for name, want := range map[string]struct {
		job  sched.Job
		rate float64 // on two GPUs
	}{
		"as it arrived": {sched.Job{Spec: spec, Asked: 4}, .5},
		"changed":       {sched.Job{Spec: spec.Changed(&c), Asked: 4}, .5},
	} {
		d := &Driver{o: Options{State: shim.State(t.TempDir()), Log: slog.New(slog.DiscardHandler)},
			view: &sched.View{Jobs: []sched.Job{want.job}},
			runs: newAttemptBook()}
		o := d.odometer(0, 0)
		if o.Begin(2, 0); o.Rate() != want.rate {
			t.Errorf("%s: rate %v on two GPUs, want %v", name, o.Rate(), want.rate)
		}
	}
}

// Ensure that a job's steps in all are reported as it says them, once a speed was measured that is its own: not that
// next to others.
func TestTotalTold(t *testing.T) {
	t.Parallel()
	for tenants, want := range map[int][3]int32{1: {1000, 900, 0}, 2: {}} {
		r := newReader()
		r.a.odo.Share(tenants)
		step := 0
		reported := func(total int) int32 {
			for range 8 {
				step++
				r.at(15*float64(step), fmt.Sprintf("TRAINYARD step=%d total=%d\n", step, total))
			}
			return r.reported[len(r.reported)-1].Code
		}
		if got := [3]int32{reported(1000), reported(900), reported(0)}; got != want {
			t.Errorf("%d tenants: %v steps in all, want %v", tenants, got, want)
		}
	}
}

// Ensure that on another width nothing is reported before it is measured there, neither as the speed of its start,
// which is said to be a guess, nor as that of its progress.
func TestGuessedRate(t *testing.T) {
	t.Parallel()
	r := newReader()
	wide := progress.Footing{Width: 4, Tenants: 1}
	r.a.odo = progress.NewOdometer(4,
		progress.Kept{Reference: 1, Paces: []progress.Pace{{Footing: wide, PerSecond: 1}}}, 0)
	for width, want := range map[int]int32{4: 0, 2: sched.GuessedRate} {
		var reported sched.Event
		a := &attempt{d: &Driver{quit: make(chan struct{}), reports: make(chan report, 1)}, odo: r.a.odo, meter: r.tail}
		a.odo.Begin(width, 0)
		a.started(stamp{})
		if reported = (<-a.d.reports).event; reported.Kind != sched.AttemptStarted || reported.Code != want ||
			reported.Rate != float64(width)/4 {
			t.Errorf("on %d GPUs: %+v, want code %d", width, reported, want)
		}
	}
	r.a.odo.Begin(2, 0)
	for i := range 20 { // nine steps in 15 s: slower than on four, and not by half
		r.at(15*float64(i), fmt.Sprintf("TRAINYARD step=%d\n", 1+i*9))
	}
	if len(r.reported) == 0 {
		t.Fatal("no progress is reported")
	}
	for _, e := range r.reported {
		if e.Kind != sched.Progressed || e.Rate < .59 || e.Rate > .61 {
			t.Errorf("%+v, want the rate that was measured, 0.6", e)
		}
	}
}
