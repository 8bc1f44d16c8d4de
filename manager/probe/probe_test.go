package probe_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/trainyard/trainyard/driver/local/device"
	"github.com/trainyard/trainyard/manager/probe"
	"github.com/trainyard/trainyard/model/variability"
)

// options measure three slots; times says how long run n of class c takes on device d.
func options(runs int, classes ...probe.Bench) probe.Options {
	devices, _ := device.Slots(3).List(context.Background())
	var ticks atomic.Int64
	o := probe.Options{Devices: devices, Node: "here", Runs: runs, Limit: time.Minute, Now: func() time.Time {
		return time.Unix(1000+ticks.Add(1), 0)
	}}
	for i, b := range classes {
		o.Classes = append(o.Classes, probe.Class{Name: string(rune('A' + i)), Run: b})
	}
	return o
}

func steady(times map[string]float64) probe.Bench {
	return func(_ context.Context, d device.Device) (probe.Reading, error) {
		return probe.Reading{Time: times[d.Name], Kind: "said"}, nil
	}
}

// Ensure that the slow device of each class is found, although one run of a good one went wrong, that scores are over
// the median device, and that a table of them can be read back.
func TestFindsSlowDevice(t *testing.T) {
	n := 0
	odd := func(_ context.Context, d device.Device) (probe.Reading, error) {
		x := 7.0
		if n++; n == 5 {
			x = 70 // slot-1, in the second round
		}
		if d.Name == "slot-2" {
			x = 14
		}
		return probe.Reading{Time: x, Kind: "said"}, nil
	}
	r, err := probe.Measure(context.Background(),
		options(5, odd, steady(map[string]float64{"slot-0": .3, "slot-1": .2, "slot-2": .2})))
	if err != nil {
		t.Fatal(err)
	}
	if got := r.Scores.PM; !slices.Equal(got[0], []float64{1, 1, 2}) || got[1][0] < 1.5-1e-12 ||
		got[1][0] > 1.5+1e-12 || got[1][1] != 1 {
		t.Errorf("scores %v", got)
	}
	var table bytes.Buffer
	if err = r.Scores.WriteCSV(&table); err != nil {
		t.Fatal(err)
	}
	again, err := variability.ReadScores(&table, "scores.csv")
	if err != nil || again.GPUs[2] != (variability.GPU{Name: "slot-2", Node: "here"}) ||
		!slices.Equal(again.Classes, []string{"A", "B"}) {
		t.Errorf("read back %+v, %v", again, err)
	}
	if spread := probe.Spread(&r.Classes[0].GPUs[1]); spread != 9 {
		t.Errorf("spread %v, want 9", spread)
	}
}

// Ensure that devices take turns, every second round backwards, class by class.
func TestTakesTurns(t *testing.T) {
	var order []string
	note := func(name string) probe.Bench {
		return func(_ context.Context, d device.Device) (probe.Reading, error) {
			order = append(order, name+strings.TrimPrefix(d.Name, "slot-"))
			return probe.Reading{Time: 1, Kind: "said"}, nil
		}
	}
	o := options(3, note("a"), note("b"))
	var reported []int
	o.Reported = func(r probe.Run) { reported = append(reported, r.Device) }
	if _, err := probe.Measure(context.Background(), o); err != nil {
		t.Fatal(err)
	}
	if got, want := strings.Join(order, " "), "a0 a1 a2 b0 b1 b2 a2 a1 a0 b2 b1 b0 a0 a1 a2 b0 b1 b2"; got != want {
		t.Errorf("order %s, want %s", got, want)
	}
	if len(reported) != 18 || reported[6] != 2 {
		t.Errorf("reported %v", reported)
	}
}

// Ensure that a drift that slows every run by the same more hits no device harder than another by more than a step.
func TestDriftHitsAllAlike(t *testing.T) {
	n := 0.0
	drift := func(context.Context, device.Device) (probe.Reading, error) {
		n++
		return probe.Reading{Time: 100 + n, Kind: "said"}, nil
	}
	r, err := probe.Measure(context.Background(), options(4, drift))
	if err != nil {
		t.Fatal(err)
	}
	for g, pm := range r.Scores.PM[0] {
		if math.Abs(pm-1) > 1e-12 {
			t.Errorf("GPU %d: score %v, want 1", g, pm)
		}
	}
}

// Ensure that --parallel runs all devices at once, and round after round.
func TestParallel(t *testing.T) {
	var all sync.WaitGroup
	all.Add(3)
	meet := func(ctx context.Context, _ device.Device) (probe.Reading, error) {
		all.Done()
		all.Wait() // for all three
		return probe.Reading{Time: 1, Kind: "said"}, nil
	}
	turn := 0
	o := options(3, meet)
	o.Parallel = true
	o.Reported = func(probe.Run) {
		if turn++; turn%3 == 0 {
			all.Add(3)
		}
	}
	if r, err := probe.Measure(context.Background(), o); err != nil || len(r.Classes[0].Runs) != 9 {
		t.Errorf("%+v, %v", r, err)
	}
}

func TestRefuses(t *testing.T) {
	good := steady(map[string]float64{"slot-0": 1, "slot-1": 1, "slot-2": 1})
	fail := func(context.Context, device.Device) (probe.Reading, error) {
		return probe.Reading{}, errors.New("no memory")
	}
	n := 0
	mixed := func(context.Context, device.Device) (probe.Reading, error) {
		n++
		return probe.Reading{Time: 1, Kind: fmt.Sprint("kind ", n/5)}, nil
	}
	few, none := options(2, good), options(3, good)
	none.Devices = nil
	for _, c := range []struct {
		o    probe.Options
		want string
	}{
		{few, "probe: 2 runs, want at least 3: a single odd one must not decide"},
		{none, "probe: no devices, want at least one"},
		{options(3), "probe: no classes, want at least one"},
		{options(3, good, fail), "probe: class B, run 1 on slot-0: no memory"},
		{options(3, steady(nil)), "probe: class A, run 1 on slot-0: said 0, want a number > 0"},
		{options(3, mixed), "probe: class A, run 2 on slot-0 said kind 1, another said kind 0, want the same in all"},
	} {
		if _, err := probe.Measure(context.Background(), c.o); err == nil || err.Error() != c.want {
			t.Errorf("%v\nwant %s", err, c.want)
		}
	}
}

// Ensure that a command sees its device, and that what it prints last counts, else its wall time.
func TestCommand(t *testing.T) {
	d := device.Device{Name: "slot-1"}
	for _, c := range []struct {
		command string
		want    float64 // 0 = wall time
		wrong   string
	}{
		{`echo seconds=3; echo "epoch 2: seconds=1.5 loss=2"`, 1.5, ""},
		{`echo iterations_per_s=4`, .25, ""},
		{`test "$TRAINYARD_DEVICES$CUDA_VISIBLE_DEVICES" = slot-1 && test $TRAINYARD_NUM_GPUS = 1 && echo seconds=2`, 2,
			""},
		{`true`, 0, ""},
		{`echo milliseconds=3`, 0, ""},
		{`echo seconds=nan`, 0, `it printed "seconds=nan", want seconds= and a number > 0`},
		{`echo seconds=-1`, 0, `it printed "seconds=-1", want seconds= and a number > 0`},
		{`echo iterations_per_s=0`, 0, `it printed "iterations_per_s=0", want iterations_per_s= and a number > 0`},
		{`echo first >&2; echo out of memory >&2; exit 3`, 0, `exit status 3: out of memory`},
		{`exit 4`, 0, `exit status 4`},
	} {
		r, err := probe.Command(c.command, device.Slots(2))(t.Context(), d)
		switch {
		case c.wrong != "":
			if err == nil || err.Error() != c.wrong {
				t.Errorf("%s: %v, want %s", c.command, err, c.wrong)
			}
		case err != nil || c.want == 0 && r.Kind != "wall time" || c.want != 0 && r.Time != c.want:
			t.Errorf("%s: %+v, %v, want %v", c.command, r, err, c.want)
		}
	}
}

// Ensure that a command that takes too long, or is interrupted, ends with all that it started.
func TestCommandEnds(t *testing.T) {
	for _, limit := range []time.Duration{100 * time.Millisecond, time.Hour} {
		file := filepath.Join(t.TempDir(), "pid")
		ctx, cancel := context.WithCancel(context.Background())
		o := options(3, probe.Command(fmt.Sprintf("sleep 600 >/dev/null 2>&1 & echo $! >%s.new; mv %s.new %s; wait",
			file, file, file), device.Slots(3)))
		o.Limit = limit
		if limit == time.Hour {
			go func() {
				for _, err := os.Stat(file); err != nil; _, err = os.Stat(file) {
					time.Sleep(time.Millisecond)
				}
				cancel()
			}()
		}
		_, err := probe.Measure(ctx, o)
		if limit < time.Hour && (err == nil || err.Error() != "probe: class A, run 1 on slot-0: no end within 100ms") ||
			limit == time.Hour && !errors.Is(err, context.Canceled) {
			t.Errorf("limit %v: %v", limit, err)
		}
		cancel()
		text, err := os.ReadFile(file)
		if err != nil {
			continue // the limit came before the shell had got so far
		}
		pid, _ := strconv.Atoi(strings.TrimSpace(string(text)))
		for began := time.Now(); syscall.Kill(pid, 0) == nil; time.Sleep(10 * time.Millisecond) {
			if stat, _ := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid)); bytes.Contains(stat, []byte(") Z ")) {
				break // dead, but no one has asked for it yet
			}
			if time.Since(began) > time.Minute {
				t.Fatalf("limit %v: process %d is still there", limit, pid)
			}
		}
	}
}

func TestCPU(t *testing.T) {
	if r, err := probe.CPU(t.Context(), device.Device{}); err != nil || !(r.Time > 0) {
		t.Errorf("%+v, %v", r, err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := probe.CPU(ctx, device.Device{}); !errors.Is(err, context.Canceled) {
		t.Errorf("%v, want canceled", err)
	}
}

// Ensure that runs are written as the reader of published measurements takes them, and make the same scores.
func TestWriteRuns(t *testing.T) {
	r, err := probe.Measure(context.Background(),
		options(3, steady(map[string]float64{"slot-0": .3, "slot-1": .1, "slot-2": .2})))
	if err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	if err = r.Classes[0].WriteRuns(&b); err != nil {
		t.Fatal(err)
	}
	runs, err := variability.ReadRuns(&b, "raw.csv", variability.ByUUID)
	if err != nil || len(runs) != 9 || runs[0].Node != "here-0" || runs[0].At != r.Classes[0].Runs[0].At {
		t.Fatalf("%+v, %v", runs, err)
	}
	m, err := variability.Measure(runs, variability.ByGPU)
	if err != nil {
		t.Fatal(err)
	}
	for g := range m.GPUs {
		if want := &r.Classes[0].GPUs[g]; m.GPUs[g].Score != want.Score || m.GPUs[g].Count != 3 ||
			m.GPUs[g].Newest != want.Newest {
			t.Errorf("GPU %d: %+v, want %+v", g, m.GPUs[g], *want)
		}
	}
}
