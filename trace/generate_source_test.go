package trace

import (
	"bytes"
	"errors"
	"io"
	"math"
	"reflect"
	"slices"
	"testing"
	"time"
)

// rich is a generator that uses everything.
func rich() Generator {
	g, _ := Like("philly")
	g.Jobs, g.Models = 2000, []string{"a", "b,c"}
	g.Groups = append(g.Groups, Named{`v"c`, 500})
	return g
}

// Ensure that the iterator, the trace in memory and the stream of text are the same jobs, each time they are asked for,
// and that a shorter trace is the start of a longer one.
func TestWaysToGenerateAgree(t *testing.T) {
	plain := Generator{Seed: 3, Jobs: 500, Load: .7, GPUs: 16, Mix: PhillyMix(), Models: []string{"m"}, Users: 3}
	venus, _ := Like("venus")
	venus.Jobs = 500
	for name, g := range map[string]Generator{"plain": plain, "rich": rich(), "venus": venus} {
		want := Generate(g).Jobs
		all := g.All()
		for range 2 {
			if got := slices.Collect(all); !reflect.DeepEqual(got, want) {
				t.Errorf("%s: All and Generate differ", name)
			}
		}
		var text bytes.Buffer
		if err := g.WriteCSV(&text); err != nil {
			t.Fatal(err)
		}
		read, err := Parse(bytes.NewReader(text.Bytes()), name, Options{Format: "trainyard"})
		if err != nil || !reflect.DeepEqual(read.Jobs, want) || len(read.Warnings) > 0 {
			t.Errorf("%s: what is written is not what is generated: %v", name, err)
		}
		var whole bytes.Buffer
		if err := (&Trace{Jobs: want}).Write(&whole, "trainyard", false); err != nil ||
			!bytes.Equal(whole.Bytes(), text.Bytes()) {
			t.Errorf("%s: written as it is made and afterwards, the text differs (%v)", name, err)
		}
		short := g
		short.Jobs = 100
		if !reflect.DeepEqual(Generate(short).Jobs, want[:100]) {
			t.Errorf("%s: 100 jobs are not the first of %d", name, g.Jobs)
		}
		g.Seed++
		if reflect.DeepEqual(Generate(g).Jobs, want) {
			t.Errorf("%s: two seeds give the same jobs", name)
		}
	}
}

// Ensure that groups and states, which are labels, change nothing else.
func TestLabelsChangeNothing(t *testing.T) {
	g := rich()
	want := Generate(g).Jobs
	g.Groups, g.States = nil, nil
	for i, j := range Generate(g).Jobs {
		j.Spec.Group, j.State = want[i].Spec.Group, want[i].State
		if !reflect.DeepEqual(j, want[i]) {
			t.Fatalf("job %d without groups and states is %+v, want %+v", i, j, want[i])
		}
	}
}

type failing struct{ left int }

var errFull = errors.New("full")

func (f *failing) Write(p []byte) (int, error) {
	if f.left -= len(p); f.left < 0 {
		return 0, errFull
	}
	return len(p), nil
}

func TestGeneratorWriteFails(t *testing.T) {
	g := rich()
	for _, room := range []int{0, 70_000} {
		if err := g.WriteCSV(&failing{room}); !errors.Is(err, errFull) || err.Error() != "trace: write: full" {
			t.Errorf("room for %d bytes: error %v", room, err)
		}
	}
	if err := g.WriteCSV(io.Discard); err != nil {
		t.Error(err)
	}
}

// Ensure that the rate of arrivals is that of the profile, hour by hour and day by day, or that of the load.
func TestProfileRates(t *testing.T) {
	p := Profile{PerHour: 40, Sigma: .3, Rho: .5, Bursts: &Bursts{Single: .5, Alpha: 3, Max: 20, Gap: 5, Together: .2}}
	for h := range p.Hours {
		p.Hours[h] = float64(1 + h%4)
	}
	for d := range p.Days {
		p.Days[d] = float64(1 + d)
	}
	for _, bursts := range []*Bursts{nil, p.Bursts} {
		q := p
		q.Bursts = bursts
		g := Generator{Seed: 1, Jobs: 300_000, Profile: &q, Durations: Fixed(100)}
		hours, days, last := [24]float64{}, [7]float64{}, time.Duration(0)
		for j := range g.All() {
			last = time.Duration(j.Spec.Submit)
			hours[int(last.Hours())%24]++
			days[int(last.Hours())/24%7]++
		}
		if rate := float64(g.Jobs) / last.Hours(); math.Abs(rate/40-1) > .02 {
			t.Errorf("bursts %v: %.2f jobs per hour, want 40", bursts != nil, rate)
		}
		for h, n := range hours {
			if want := float64(g.Jobs) / 24 * p.Hours[h] / 2.5; math.Abs(n/want-1) > .1 {
				t.Errorf("bursts %v: hour %d has %.0f jobs, want %.0f", bursts != nil, h, n, want)
			}
		}
		for d, n := range days {
			if want := float64(g.Jobs) / 7 * p.Days[d] / 4; math.Abs(n/want-1) > .1 {
				t.Errorf("bursts %v: day %d has %.0f jobs, want %.0f", bursts != nil, d, n, want)
			}
		}
		g.Load, g.GPUs = .5, 10 // 10 GPUs half busy with jobs of 100 s: one per 20 s
		if gap := g.MeanGap(); gap != 20 {
			t.Errorf("mean gap %v s at a load, want 20", gap)
		}
		for j := range g.All() {
			last = time.Duration(j.Spec.Submit)
		}
		if gap := last.Seconds() / float64(g.Jobs); math.Abs(gap/20-1) > .03 {
			t.Errorf("bursts %v: gaps of %.2f s at a load, want 20", bursts != nil, gap)
		}
	}
}

// Ensure that a trace made for a span or a load takes the time it should, however short it is and whatever its hours
// and bursts are like: most of 3000 jobs, of which one in 2.7 starts a burst, come within it, and they fill most of it.
func TestSpan(t *testing.T) {
	check := func(g Generator, site string, span float64) {
		t.Helper()
		inside, last := 0, 0.0
		for j := range g.All() {
			if last = time.Duration(j.Spec.Submit).Seconds(); last <= span {
				inside++
			}
		}
		if inside < 2600 || last < .75*span {
			t.Errorf("%s, seed %d: %d jobs come within %.0f s, the last after %.0f, want 3000 within", site, g.Seed,
				inside, span, last)
		}
	}
	for _, site := range Sites() {
		for seed := range uint64(10) {
			g, _ := Like(site)
			g.Seed, g.Jobs, g.Span = seed, 3000, 36*time.Hour
			check(g, site, g.Span.Seconds())
			g.Span, g.Load, g.GPUs = 0, .5, 256
			check(g, site, g.MeanWork()/(.5*256)*3000)
		}
	}
}

// Ensure that what the profile draws for each hour has its spread and its correlation.
func TestTideLevels(t *testing.T) {
	p := Profile{PerHour: 1, Sigma: 1, Rho: .7}
	for h := range p.Hours {
		p.Hours[h] = 1
	}
	for d := range p.Days {
		p.Days[d] = 1
	}
	d := newTide(p, 2, 1) // many starts an hour: each hour is seen
	d.begin()
	levels := []float64{d.level}
	for hour := d.hour; len(levels) < 30_000; hour = d.hour {
		d.now = float64(hour+1)*3600 - 1e-6
		if d.start(); d.hour > hour+1 {
			t.Fatal("an hour was passed over")
		} else if d.hour > hour {
			levels = append(levels, d.level)
		}
	}
	var sum, squares, products float64
	for i, x := range levels {
		sum, squares = sum+x, squares+x*x
		if i > 0 {
			products += x * levels[i-1]
		}
	}
	n := float64(len(levels))
	if mean, variance, lag := sum/n, squares/n, products/n; math.Abs(mean) > .05 || math.Abs(variance-1) > .05 ||
		math.Abs(lag-.7) > .03 {
		t.Errorf("mean %.3f, variance %.3f, lag %.3f, want 0, 1, 0.7", mean, variance, lag)
	}
}

// Ensure that bursts have their sizes, users and repetition: with so low a rate that hardly any overlap, they are the
// jobs less than three minutes apart.
func TestBursts(t *testing.T) {
	g, _ := Like("philly")
	g.Profile.PerHour, g.Profile.Sigma, g.Jobs, g.Repeat = .2, 0, 60_000, 0
	b := g.Profile.Bursts
	var sizes, same, near, pairs, gaps, zeros, strangers float64
	var counts [4]float64 // bursts of 1, 2, 3 jobs; all
	size := 0
	var last Job
	for j := range g.All() {
		gap := time.Duration(j.Spec.Submit - last.Spec.Submit)
		if size > 0 && gap < 3*time.Minute {
			size++
			pairs++
			gaps += gap.Seconds()
			if gap == 0 {
				zeros++
			}
			if j.Spec.User != last.Spec.User || j.Spec.Group != last.Spec.Group {
				strangers++
			}
			if j.Spec.GPUs == last.Spec.GPUs {
				same++
				if d := math.Log(j.Duration.Seconds() / last.Duration.Seconds()); math.Abs(d) <= nearly {
					near++
				}
			}
		} else {
			if size > 0 {
				sizes++
				if size < 4 {
					counts[size]++
				}
			}
			size = 1
		}
		last = j
	}
	zeta := 0.0
	for k := 2; k <= b.Max; k++ {
		zeta += math.Pow(float64(k), -b.Alpha)
	}
	check := func(what string, got, want, tolerance float64) {
		if math.Abs(got-want) > tolerance {
			t.Errorf("%s %.4f, want %.4f", what, got, want)
		}
	}
	check("pairs of other users", strangers/pairs, 0, .02)
	check("bursts of one job", counts[1]/sizes, b.Single, .01)
	check("bursts of two", counts[2]/sizes, (1-b.Single)*math.Pow(2, -b.Alpha)/zeta, .01)
	check("bursts of three", counts[3]/sizes, (1-b.Single)*math.Pow(3, -b.Alpha)/zeta, .01)
	check("gap", gaps/pairs, b.Gap, .3)
	check("gaps of nothing", zeros/pairs, b.Together+(1-b.Together)*(1-math.Exp(-.5/(b.Gap/(1-b.Together)))), .02)
	// another duration may be near by chance
	check("same width", same/pairs, b.SameGPUs, .01)
	check("near duration", near/pairs, b.SameDuration, .05)
}

func TestRepeat(t *testing.T) {
	g, _ := Like("pai")
	g.Jobs = 100_000
	var near, same float64
	var last Job
	for j := range g.All() {
		if j.Spec.GPUs == last.Spec.GPUs {
			same++
			if d := math.Log(j.Duration.Seconds() / last.Duration.Seconds()); math.Abs(d) <= nearly {
				near++
			}
		}
		last = j
	}
	n := float64(g.Jobs)
	if near/n < .3 || near/n > .34 || math.Abs(same/n-(.3+.7*.60)) > .02 {
		t.Errorf("%.3f of jobs are like the one before, %.3f as wide, want 0.3 and some by chance, 0.72", near/n,
			same/n)
	}
}

// Ensure that the first of the heap is always the first by time, ties by number, while bursts come, go on and end.
func TestHeap(t *testing.T) {
	r := stream(4, 4)
	d := &tide{}
	for step := range 20_000 {
		switch n := len(d.open); {
		case n == 0 || n < 40 && r.IntN(3) == 0:
			d.push(&burst{at: float64(r.IntN(8)), number: step})
		case r.IntN(2) == 0:
			d.open[0].at += float64(r.IntN(5))
			d.sink()
		default:
			d.pop()
		}
		for i := range d.open {
			if d.before(i, 0) {
				t.Fatalf("step %d: %+v is before the first, %+v", step, *d.open[i], *d.open[0])
			}
		}
	}
}

// Ensure that the load that a generator says is that of the jobs it writes.
func TestGeneratorOfferedLoad(t *testing.T) {
	t.Parallel()
	for seed := range uint64(5) {
		g, err := Like("philly")
		if err != nil {
			t.Fatal(err)
		}
		g.Seed, g.Jobs, g.Load, g.GPUs = seed, 300, 1.2, 128
		want := Describe(Generate(g)).OfferedLoad(128)
		if got := g.OfferedLoad(); math.Abs(got/want-1) > 1e-9 {
			t.Errorf("seed %d: %v, want %v as of the trace", seed, got, want)
		}
	}
}
