package progress

import (
	"encoding/json"
	"math"
	"testing"
	"time"
)

// ride is an odometer with a made-up job on it, which makes steps at a speed of its own.
type ride struct {
	*testing.T
	o    *Odometer
	now  time.Time
	step float64
}

func newRide(t *testing.T, want int) *ride {
	t.Helper()
	return &ride{T: t, o: NewOdometer(want, Kept{}, 0), now: time.Unix(1e9, 0)}
}

// begin starts the next attempt; its first step comes at once, with no time spent.
func (r *ride) begin(width, batch int) {
	r.o.Begin(width, batch)
	r.o.See(r.now, &Reading{Has: Step, Step: int64(r.step)})
}

// drive has the job make so many steps a second, reported every second. Each step is each samples if that is > 0.
func (r *ride) drive(seconds int, perSecond float64, each int64) {
	for range seconds {
		r.now = r.now.Add(time.Second)
		r.step += perSecond
		m := &Reading{Has: Step, Step: int64(r.step)}
		if each > 0 {
			m.Has, m.Samples = Step|Samples, int64(r.step)*each
		}
		r.o.See(r.now, m)
	}
	r.o.Measure()
}

// again is a manager that knows what was kept and what the log knows.
func (r *ride) again() {
	r.Helper()
	b, err := json.Marshal(r.o.Kept)
	var kept Kept
	if err == nil {
		err = json.Unmarshal(b, &kept)
	}
	if err != nil {
		r.Fatal(err)
	}
	r.o = NewOdometer(r.o.want, kept, r.o.Work())
}

// shows checks rate and work, in seconds, within 2 %.
func (r *ride) shows(when string, rate, work float64) {
	r.Helper()
	near := func(a, b float64) bool { return math.Abs(a-b) <= 0.02*math.Abs(b) }
	if got := r.o.Rate(); !near(got, rate) {
		r.Errorf("%s: rate %v, want %v", when, got, rate)
	}
	if got := r.o.Work().Seconds(); !near(got, work) {
		r.Errorf("%s: work %v s, want %v", when, got, work)
	}
}

// Ensure that a job twice as wide is predicted to be twice as fast, and is then as fast as it is measured, be its
// scaling perfect or poor; that it returns to what was measured where it returns; and that work means the same
// throughout.
func TestWidths(t *testing.T) {
	t.Parallel()
	for scaling, speed := range map[string]float64{"perfect": 20, "poor": 12, "worse than one": 8} {
		r := newRide(t, 2)
		r.begin(2, 0)
		r.shows(scaling+", nothing known", 1, 0)
		r.drive(100, 10, 0)
		r.shows(scaling+", measured at 2", 1, 100)
		r.begin(4, 0)
		r.shows(scaling+", predicted at 4", 2, 100)
		r.drive(100, speed, 0)
		r.shows(scaling+", measured at 4", speed/10, 100+10*speed)
		r.begin(1, 0)
		r.shows(scaling+", predicted at 1", speed/40, 100+10*speed)
		r.begin(2, 0)
		r.shows(scaling+", known at 2", 1, 100+10*speed)
	}
}

// Ensure that the reference is the first speed measured, scaled to the asked width, whatever is measured there later.
func TestReference(t *testing.T) {
	t.Parallel()
	r := newRide(t, 4)
	r.begin(1, 0)
	r.shows("nothing known", 0.25, 0)
	r.drive(8, 10, 0) // too short to be measured: the mean stands in, scaled alike
	r.shows("at first", 0.25, 2)
	r.drive(92, 10, 0)
	r.shows("measured at 1", 0.25, 25)
	r.begin(4, 0)
	r.drive(100, 30, 0)
	r.shows("measured at 4", 0.75, 100)
	if r.o.Reference != 40 {
		t.Errorf("reference %v, want 40 steps a second", r.o.Reference)
	}
}

// Ensure that progress is counted in samples where the batch size changes, be they reported or steps times the batch
// size, so that fewer and larger steps are no slowdown; also if the job goes back to a step of the batch size before.
func TestBatches(t *testing.T) {
	t.Parallel()
	for reported, unit := range map[string]int64{"said": 1, "steps": 0} {
		r := newRide(t, 1)
		r.o.Begin(1, 64)
		if unit == 0 {
			r.begin(1, 64)
		}
		r.drive(100, 10, 64*unit)
		r.shows(reported+", batch 64", 1, 100)
		r.o.Begin(1, 256)
		r.shows(reported+", predicted at 256", 1, 100)
		if unit > 0 {
			continue // samples of a job are its own count
		}
		r.begin(1, 256)
		r.drive(100, 5, 0)
		r.shows(reported+", batch 256", 2, 300)
		r.step = 500 // of the batches of 64
		r.begin(1, 256)
		r.shows(reported+", rolled back", 2, 50)
		r.drive(100, 5, 0)
		r.shows(reported+", done again", 2, 250)
	}
}

// Ensure that samples that a job says count, not its steps, whatever its batch size does.
func TestSamples(t *testing.T) {
	t.Parallel()
	o := NewOdometer(1, Kept{}, 0)
	o.Begin(1, 0)
	now, samples := time.Unix(1e9, 0), int64(0)
	for i := range 200 {
		now = now.Add(time.Second)
		samples += 640
		if i >= 100 { // steps become larger and slower; the samples go on
			o.See(now, &Reading{Has: Step | Samples, Step: int64(1000 + i), Samples: samples})
		} else {
			o.See(now, &Reading{Has: Step | Samples, Step: int64(10 * i), Samples: samples})
		}
		if i%10 == 9 {
			o.Measure()
		}
	}
	if math.Abs(o.Rate()-1) > 1e-9 || math.Abs(o.Work().Seconds()-200) > 1e-6 || o.Steps() != 1199 {
		t.Errorf("rate %v, work %v, step %d, want 1, 200 s, 1199", o.Rate(), o.Work(), o.Steps())
	}
}

// Ensure that a job which starts to report samples, or whose batch size starts to be decided, keeps its work and its
// rate.
func TestOtherCount(t *testing.T) {
	t.Parallel()
	r := newRide(t, 1)
	r.begin(1, 0)
	r.drive(100, 10, 0)
	r.drive(1, 10, 32)
	r.shows("samples", 1, 101)
	r.drive(100, 5, 32)
	r.shows("slower", 0.5, 151)

	r = newRide(t, 1)
	r.begin(1, 0)
	r.drive(100, 10, 0)
	r.begin(1, 48)
	r.shows("batch decided", 1, 100)
	r.drive(100, 10, 0)
	r.shows("and measured", 1, 200)
}

// Ensure that work and rates mean after a restart of the manager what they did before, at whatever moment it comes.
func TestOdometerAgain(t *testing.T) {
	t.Parallel()
	for first := range 60 {
		r := newRide(t, 2)
		r.begin(2, 0)
		r.drive(first, 10, 0)
		known := r.o.Reference > 0
		before := r.o.Work()
		r.again()
		if r.o.Work() != before {
			t.Fatalf("after %d s: work %v, then %v", first, before, r.o.Work())
		}
		r.begin(2, 0)
		r.drive(100, 10, 0)
		r.shows("goes on", 1, float64(first+100))
		r.again()
		r.begin(4, 0)
		r.shows("wider", 2, float64(first+100))
		if known && r.o.Reference != 10 {
			t.Errorf("reference %v, want 10 steps a second", r.o.Reference)
		}
	}
}

// Ensure that what was lost in a crash is work no more, and that doing it again is no other speed.
func TestRollback(t *testing.T) {
	t.Parallel()
	r := newRide(t, 1)
	r.begin(1, 0)
	r.drive(100, 10, 0)
	r.step = 400
	r.begin(1, 0)
	r.shows("back", 1, 40)
	r.drive(100, 10, 0)
	r.shows("again", 1, 140)
	r.step = 0
	r.begin(1, 0)
	r.shows("from the start", 1, 0)
}

// Ensure that another number of tenants is measured on its own, and that both are remembered.
func TestTenants(t *testing.T) {
	t.Parallel()
	r := newRide(t, 1)
	r.begin(1, 0)
	r.drive(100, 10, 0)
	r.o.Share(2)
	r.shows("not measured next to another yet", 1, 100)
	r.drive(10, 6, 0)
	if r.o.Rate() != 1 {
		t.Errorf("rate %v from a window that is too short", r.o.Rate())
	}
	r.drive(90, 6, 0)
	r.shows("next to another", 0.6, 160)
	r.o.Share(1)
	r.shows("alone again", 1, 160)
}

// Ensure that pauses, for checkpoints say, do not make a job slow: a rate is that of the training proper.
func TestPauses(t *testing.T) {
	t.Parallel()
	r := newRide(t, 1)
	r.begin(1, 0)
	for range 10 {
		r.drive(50, 10, 0)
		r.now = r.now.Add(10 * time.Second)
	}
	r.drive(50, 10, 0)
	if rate := r.o.Rate(); math.Abs(rate-1) > 0.02 {
		t.Errorf("rate %v, want 1", rate)
	}
}

// FuzzOdometer has a job report anything: work and rate stay within bounds.
func FuzzOdometer(f *testing.F) {
	f.Add([]byte("\x01\x02\x03\x04\xff\x80\x00\x10"), int64(math.MaxInt64))
	f.Fuzz(func(t *testing.T, deeds []byte, big int64) {
		o, now := NewOdometer(2, Kept{}, time.Second), time.Unix(0, 0)
		for i, b := range deeds {
			now = now.Add(time.Duration(b) * 100 * time.Millisecond)
			n := int64(b) * int64(i)
			if b%5 == 0 {
				n = max(big, 0)
			}
			switch b % 8 {
			case 0:
				o.Begin(int(b%4), int(n%1000))
			case 1:
				o.Share(int(b % 3))
			case 2:
				o.See(now, &Reading{Has: Samples, Samples: n})
			case 3:
				o.See(now, &Reading{Has: Step, Step: n, Again: true})
			case 4:
				o.Measure()
				o = NewOdometer(2, o.Kept, o.Work())
			default:
				o.See(now, &Reading{Has: Step, Step: n})
			}
			o.Measure()
			if w, r := o.Work(), o.Rate(); w < 0 || w > MaxWork || !(r >= leastRate && r <= mostRate) {
				t.Fatalf("deed %d: work %v, rate %v", i, w, r)
			}
			if _, err := json.Marshal(o.Kept); err != nil {
				t.Fatalf("deed %d: %v", i, err)
			}
		}
	})
}

// Ensure that what is kept can be read again, and that what no one measured is refused with a word that helps.
func TestKeptValidate(t *testing.T) {
	good := func() Kept {
		return Kept{Reference: 2, Batch: 64, Marks: []Mark{{0, 0, 1}, {10, 10, 64}},
			Paces: []Pace{{Footing{2, 64, 1}, 3}}}
	}
	for _, k := range []Kept{{}, good()} {
		if err := k.Validate(); err != nil {
			t.Errorf("%+v: %v", k, err)
		}
	}
	for want, spoil := range map[string]func(*Kept){
		"reference -1, batch 64, want them >= 0":  func(k *Kept) { k.Reference = -1 },
		"reference NaN, batch 64, want them >= 0": func(k *Kept) { k.Reference = math.NaN() },
		"reference 2, batch -1, want them >= 0":   func(k *Kept) { k.Batch = -1 },
		"33 paces, want at most 32":               func(k *Kept) { k.Paces = make([]Pace, 33) },
		"mark 0: {Step:1 Count:0 PerStep:1}, want steps that rise from 0, counts >= 0, more than 0 for each step": func(
			k *Kept) {
			k.Marks[0].Step = 1
		},
		"mark 1: {Step:-1 Count:10 PerStep:64}, want steps that rise from 0, counts >= 0, " +
			"more than 0 for each step": func(k *Kept) {
			k.Marks[1].Step = -1
		},
		"mark 1: {Step:10 Count:10 PerStep:0}, want steps that rise from 0, counts >= 0, " +
			"more than 0 for each step": func(k *Kept) {
			k.Marks[1].PerStep = 0
		},
		"pace 0: {Footing:{Width:0 Batch:64 Tenants:1} PerSecond:3}, want all > 0, the batch >= 0": func(k *Kept) {
			k.Paces[0].Width = 0
		},
		"pace 0: {Footing:{Width:2 Batch:64 Tenants:1} PerSecond:+Inf}, want all > 0, the batch >= 0": func(k *Kept) {
			k.Paces[0].PerSecond = math.Inf(1)
		},
	} {
		k := good()
		if spoil(&k); k.Validate() == nil || k.Validate().Error() != want {
			t.Errorf("%v, want %s", k.Validate(), want)
		}
	}
}
