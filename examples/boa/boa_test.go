package main

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"strings"
	"testing"

	"github.com/trainyard/trainyard/driver/local/shim"
)

// TestMain makes this binary a shim where the driver starts it as one.
func TestMain(m *testing.M) {
	if len(os.Args) == 3 && os.Args[1] == "shim" {
		os.Exit(shim.Main(shim.RunDir(os.Args[2])))
	}
	os.Exit(m.Run())
}

// Ensure that all three runs come to their end, real and simulated, that BOA rents fewer slots than there are, and
// others all they have. How near the simulation comes depends on what else the machine does, and is not checked.
func TestCompare(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	if err := run(t.Context(), []string{"--jobs", "4", "--size", "1", "--step-time", "50ms", "--json"},
		&out); err != nil {
		t.Fatal(err)
	}
	var all report
	if err := json.Unmarshal(out.Bytes(), &all); err != nil {
		t.Fatal(err)
	}
	if len(all.Runs) != 1 || len(all.Sums) != 3 || len(all.Runs[0].Rows) != 3 || all.Runs[0].Rows[0].Name != "boa" {
		t.Fatalf("%+v, want one run of three rows, boa first", all)
	}
	c := &all.Runs[0]
	for i, r := range c.Rows {
		if !(r.Overhead >= 0) {
			t.Errorf("%s: a start and an end cost %v", r.Name, r.Overhead)
		}
		for _, f := range []figures{r.Real, r.Simulated} {
			if !(f.JCT > 0 && f.Makespan >= f.JCT && f.SlotSeconds > 0) || i == 0 && f.Slots >= float64(c.Slots) {
				t.Errorf("%s: %+v", r.Name, f)
			}
		}
		if want := r.Simulated.Slots; i > 0 && (r.Real.Slots < want-1e-6 || r.Real.Slots > want+1e-6) {
			t.Errorf("%s: %v slots, simulated %v, want them alike: they are reserved", r.Name, r.Real.Slots, want)
		}
	}
}

// Ensure that jobs are drawn alike for a seed, as many of each kind, in order of arrival.
func TestDraw(t *testing.T) {
	draw := func(seed uint64) []arrival {
		c := comparison{Budget: 4, Load: .5, Slots: 12, Seed: seed, jobs: 20, size: 12, step: 250e6}
		c.draw()
		return c.arrivals
	}
	a, b, other := draw(1), draw(1), draw(2)
	wide, same := 0, 0
	for i := range a {
		if a[i] != b[i] || i > 0 && a[i].at < a[i-1].at {
			t.Errorf("arrival %d: %v and %v after %v", i, a[i], b[i], a[max(i-1, 0)])
		}
		if a[i].kind == 0 {
			wide++
		}
		if a[i] == other[i] {
			same++
		}
	}
	if wide != 10 || same == len(a) {
		t.Errorf("%d of 20 are wide, %d as with another seed", wide, same)
	}
}

// Ensure that wrong flags are refused.
func TestFlags(t *testing.T) {
	t.Parallel()
	for args, want := range map[string]string{"--jobs 0": "--jobs 0", "--load 1": "a load below 1",
		"--budget NaN": "--budget NaN", "--step-time 0s": "--step-time 0s", "--seeds 0": "--seeds 0"} {
		if err := run(context.Background(), strings.Fields(args), nil); err == nil ||
			!strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", args, err, want)
		}
	}
}

// Ensure that figures of several seeds are summed up by mean and interval: of 1, 2 and 3 with deviation 1, t = 4.30.
func TestInterval(t *testing.T) {
	t.Parallel()
	if i := intervalOf([]float64{1, 2, 3}); i.Mean != 2 || i.Half < 2.48 || i.Half > 2.49 {
		t.Errorf("%+v, want 2 ± 2.48", i)
	}
	if i := intervalOf([]float64{7}); i != (interval{Mean: 7}) || i.text(1, "%.1f", "") != "7.0" {
		t.Errorf("%+v, want 7 and nothing more", i)
	}
}
