package trace

import (
	"fmt"
	"math"
	"reflect"
	"strings"
	"testing"
	"time"
)

var laws = []Law{
	Fixed(600),
	Pareto{Shape: .6, Min: 120, Max: 7200},
	Pareto{Shape: 1, Min: 1, Max: 1e4},
	Pareto{Shape: 1 + 1e-9, Min: 1, Max: 1e4},
	Pareto{Shape: 2.5, Min: 10, Max: 1e6},
	Pareto{Shape: 2, Min: 5, Max: 5},
	Lognormal{Parts: []Part{{1, 5, 1}}},
	Lognormal{Parts: []Part{{1, 5, 0}}},
	Lognormal{Parts: []Part{{.3, 4, .2}, {.7, 7.5, 2.6}}, Max: 172800},
	Philly(),
}

// Ensure that the closed form of each law's mean is that of its draws, to five standard errors.
func TestLawMeans(t *testing.T) {
	for i, law := range laws {
		if err := law.Validate(); err != nil {
			t.Errorf("law %d: %v", i, err)
		}
		r, n, sum, squares := stream(7, uint64(i)), 400_000, 0.0, 0.0
		for range n {
			x := law.Draw(r)
			sum, squares = sum+x, squares+x*x
		}
		mean := sum / float64(n)
		bound := 5*math.Sqrt(max(0, squares/float64(n)-mean*mean)/float64(n)) + 1e-9*mean
		if math.Abs(law.Mean()-mean) > bound {
			t.Errorf("law %d %+v: mean %v, draws have %v +- %v", i, law, law.Mean(), mean, bound)
		}
	}
	if a, b := laws[2].Mean(), laws[3].Mean(); math.Abs(a/b-1) > 1e-6 {
		t.Errorf("mean jumps from %v to %v next to shape 1", a, b)
	}
}

// Ensure that what lies above a point, in probability and expectation, is what the draws have there, to five standard
// errors, and that all of it is the mean.
func TestLawAbove(t *testing.T) {
	for i, law := range laws {
		if share, mean := law.Above(0); share != 1 || math.Abs(mean/law.Mean()-1) > 1e-12 {
			t.Errorf("law %d: %v of %v above 0, want all of %v", i, share, mean, law.Mean())
		}
		if share, mean := law.Above(MaxTime.Seconds()); share != 0 || mean != 0 {
			t.Errorf("law %d: %v of %v above the longest time, want none", i, share, mean)
		}
		r, n := stream(8, uint64(i)), 200_000
		draws := make([]float64, n)
		for k := range draws {
			draws[k] = law.Draw(r)
		}
		for _, x := range []float64{3, 60, 600.5, 5000, 170000} {
			count, sum, squares := 0.0, 0.0, 0.0
			for _, d := range draws {
				if d > x {
					count, sum, squares = count+1, sum+d, squares+d*d
				}
			}
			share, mean := law.Above(x)
			if share*float64(n) < 20 && count < 40 { // too few to say more
				continue
			}
			got := sum / float64(n)
			bound := 5*math.Sqrt((squares/float64(n)-got*got)/float64(n)) + 1e-9*mean
			if math.Abs(share-count/float64(n)) > 5*math.Sqrt(share*(1-share)/float64(n))+1e-12 ||
				math.Abs(mean-got) > bound {
				t.Errorf("law %d: %v and %v above %v, draws have %v and %v +- %v", i, share, mean, x, count/float64(n),
					got, bound)
			}
		}
	}
}

// Ensure that generated traces offer the load asked for: the mean over 40 seeds is within four of its standard errors.
func TestGeneratedLoad(t *testing.T) {
	g := Generator{Jobs: 2000, Load: .9, GPUs: 64, Durations: Pareto{Shape: .6, Min: 120, Max: 7200},
		Mix: []Width{{GPUs: 1, Share: 3}, {GPUs: 4, Share: 1}, {GPUs: 8, Share: 1, Durations: Fixed(5000)}}}
	var sum, squares float64
	const seeds = 40
	for seed := range uint64(seeds) {
		g.Seed = seed
		// n jobs have n-1 gaps between them
		load := Describe(Generate(g)).OfferedLoad(g.GPUs) * float64(g.Jobs-1) / float64(g.Jobs)
		sum, squares = sum+load, squares+load*load
	}
	mean := sum / seeds
	spread := math.Sqrt((squares/seeds - mean*mean) / seeds)
	if math.Abs(mean-g.Load) > 4*spread || spread > .01 {
		t.Errorf("mean load %.4f +- %.4f over %d seeds, want %v", mean, spread, seeds, g.Load)
	}
}

// Ensure that copies make up what chance leaves of the probability of the same width, and are never fewer than near
// copies.
func TestCopying(t *testing.T) {
	for _, c := range []struct{ sameGPUs, sameDuration, chance, want float64 }{
		{.93, .36, .76, .17 / .24}, {.93, .36, 0, .93}, {1, 0, .5, 1}, {.5, .36, .5, .36}, {.2, .36, 1, .36},
		{.5, .9, .25, .9}, {1, 0, 1, 0},
	} {
		b := Bursts{SameGPUs: c.sameGPUs, SameDuration: c.sameDuration}
		if got := b.copying(c.chance); math.Abs(got-c.want) > 1e-12 {
			t.Errorf("%+v: %v", c, got)
		}
	}
	if got := newPicker(3, func(i int) float64 { return []float64{2, 1, 1}[i] }).twice(); math.Abs(got-.375) > 1e-12 {
		t.Errorf("two draws are the same with probability %v, want 0.375", got)
	}
}

func TestGenerate(t *testing.T) {
	g := Generator{Seed: 5, Jobs: 3000, Load: .8, GPUs: 100, Mix: PhillyMix(), Models: []string{"a", "b"}, Users: 3,
		Quantum: time.Second}
	got := Generate(g)
	checkPromises(t, got)
	roundTrip(t, got)
	if !reflect.DeepEqual(got, Generate(g)) {
		t.Error("the same generator gives two traces")
	}
	if g.Seed++; reflect.DeepEqual(got.Jobs, Generate(g).Jobs) {
		t.Error("two seeds give the same jobs")
	}
	for i, j := range got.Jobs {
		if j.Duration%time.Second != 0 || j.Spec.Submit%1e9 != 0 {
			t.Fatalf("job %d: submit %v, duration %v, want whole seconds", i, j.Spec.Submit, j.Duration)
		}
	}
	s := Describe(got)
	if len(s.Models) != 2 || len(s.Users) != 3 || s.Users[0].Name != "u0" {
		t.Errorf("models %v, users %v, want two and three, u0 first", s.Models, s.Users)
	}
	// 11/6 users' shares 1 : 1/2 : 1/3
	if want := 3000 * 6 / 11.; math.Abs(float64(s.Users[0].Jobs)-want) > 5*math.Sqrt(want) {
		t.Errorf("u0 has %d jobs, want about %.0f", s.Users[0].Jobs, want)
	}
}

// venusWith is the profile of Venus, changed.
func venusWith(change func(*Profile)) *Profile {
	p := Profile{PerHour: 28.8, Sigma: .75, Rho: .7, Hours: venusHours, Days: venusDays}
	change(&p)
	return &p
}

func TestGeneratorValidate(t *testing.T) {
	good := Generator{Jobs: 10, Load: 1, GPUs: 1}
	for _, c := range []struct {
		change func(*Generator)
		want   string
	}{
		{func(g *Generator) { g.Jobs = 0 }, "jobs 0, want 1 to 16777216"},
		{func(g *Generator) { g.GPUs = -1 }, "gpus -1, want 1 to 1000000"},
		{func(g *Generator) { g.Load = math.NaN() }, "load NaN, want > 0"},
		{func(g *Generator) { g.Users = -1 }, "users -1, want 0 to 16777216"},
		{func(g *Generator) { g.Quantum = -1 }, "quantum -1ns, want >= 0"},
		{func(g *Generator) { g.Mix = []Width{{GPUs: 0, Share: 1}} }, "mix 0 is 0 GPUs with share 1, want 1 to " +
			"1000000 GPUs and a share > 0"},
		{func(g *Generator) { g.Mix = []Width{{GPUs: 1}} }, "mix 0 is 1 GPUs with share 0, want 1 to 1000000 GPUs " +
			"and a share > 0"},
		{func(g *Generator) { g.Durations = Fixed(-1) }, "mix 0: fixed duration -1 s, want 0 to 3.15576e+09"},
		{func(g *Generator) { g.Durations = Fixed(0) }, "mean work 0 GPU-seconds, want > 0"},
		{func(g *Generator) { g.Durations = Pareto{} }, "mix 0: pareto shape 0, want > 0"},
		{func(g *Generator) { g.Durations = Pareto{1, 2, 1} }, "mix 0: pareto bounds 2..1 s, want 0 < min <= max <= " +
			"3.15576e+09"},
		{func(g *Generator) { g.Durations = Lognormal{} }, "mix 0: lognormal with 0 parts, want > 0"},
		{func(g *Generator) { g.Durations = Lognormal{Parts: []Part{{1, 1, -1}}} },
			"mix 0: lognormal part 0 is weight 1, mu 1, sigma -1, want weight > 0, sigma 0 to 10"},
		{func(g *Generator) { g.Durations = Lognormal{Parts: []Part{{1, 1, 1}}, Max: -1} },
			"mix 0: lognormal max -1 s, want 0 to 3.15576e+09"},
		{func(g *Generator) { g.Load = 1e-9 }, "10 jobs at load 1e-09 arrive over"},
		{func(g *Generator) { g.Load = 0 }, "load 0, want > 0"},
		{func(g *Generator) { g.Repeat = 2 }, "repeat 2, want 0 to 1"},
		{func(g *Generator) { g.UserLaw.S = -1 }, "user law with S -1, Q 0, want S from 0 to 100, Q from 0 to 1e9"},
		{func(g *Generator) { g.Span = time.Hour }, "span 1h0m0s, want 1s to 876600h0m0s, with a profile and without " +
			"a load"},
		{func(g *Generator) { g.Models = []string{"a", "b\n"} }, `model 1 is "b\n", ` + wantWord},
		{func(g *Generator) { g.Groups = []Named{{"a", 0}} },
			`group 0 is "a" with weight 0, want a name and a weight > 0`},
		{func(g *Generator) { g.Groups = []Named{{"a\n", 1}} },
			`group 0 is "a\n" with weight 1, want a name and a weight > 0`},
		{func(g *Generator) { g.States = []State{{"a", 0, 1}} },
			`state 0 is "a" with shares 0, 1, want a name, a share of jobs above 0 to 1, of GPU time 0 to 1`},
		{func(g *Generator) { g.States = []State{{"a", .5, .5}, {"b", .4, .5}} }, "shares of states add up to 0.9 of " +
			"jobs, 1 of GPU time, want 1"},
		{func(g *Generator) { g.States = []State{{"a", .99, .01}, {"b", .01, .99}} },
			`state 0 is "a" with shares 0.99 of jobs, 0.01 of GPU time, which these durations cannot have: `},
		{func(g *Generator) {
			g.Durations, g.States = Fixed(60), []State{{"a", .6, .4}, {"b", .4, .6}}
		}, `state 0 is "a" with shares 0.6 of jobs, 0.4 of GPU time, which these durations cannot have: `},
		{func(g *Generator) { g.Profile = &Profile{} }, "profile with 0 jobs per hour, want > 0"},
		{func(g *Generator) { g.Profile = &Profile{PerHour: 1} }, "profile of hour 0 is 0, want > 0"},
		{func(g *Generator) { g.Profile = &Profile{PerHour: 1, Hours: venusHours} }, "profile of day 0 is 0, want > 0"},
		{func(g *Generator) { g.Profile = venusWith(func(p *Profile) { p.Rho = 1 }) },
			"profile with sigma 0.75, rho 1, want sigma 0 to 5, rho from 0 to below 1"},
		{func(g *Generator) { g.Profile = venusWith(func(p *Profile) { p.Bursts = &Bursts{Single: 2} }) },
			"bursts with shares 2, 0, 0, want 0 to 1"},
		{func(g *Generator) { g.Profile = venusWith(func(p *Profile) { p.Bursts = &Bursts{Alpha: 2, Max: 1} }) },
			"bursts of sizes up to 1 with alpha 2, want 2 to 1000000, alpha > 0"},
		{func(g *Generator) { g.Profile = venusWith(func(p *Profile) { p.Bursts = &Bursts{Alpha: 2, Max: 9} }) },
			"bursts with gaps of 0 s, a share of 0 being 0, want > 0 and a share from 0 to below 1"},
		{func(g *Generator) { g.Load, g.Profile = 0, venusWith(func(p *Profile) { p.PerHour = 1e-9 }) },
			"10 jobs arrive over 3.6e+13 s, want at most 1.57788e+09: a higher rate or fewer jobs"},
	} {
		g := good
		c.change(&g)
		if err := g.Validate(); err == nil || !strings.HasPrefix(err.Error(), c.want) {
			t.Errorf("error %v, want %s", err, c.want)
		}
	}
	defer func() {
		if got := recover(); fmt.Sprint(got) != "trace: generate: jobs 0, want 1 to 16777216" {
			t.Errorf("panic %v", got)
		}
	}()
	Generate(Generator{})
}

// Ensure that the testbed workload has the mix, bounds and gap that its comment promises.
func TestTestbed(t *testing.T) {
	var gaps float64
	for seed := range uint64(20) {
		got := Testbed(seed)
		checkPromises(t, got)
		s := Describe(got)
		if len(got.Jobs) != 480 || s.MeanGPUs != 4 || len(s.Widths) != len(testbedWidths) || len(s.Models) != 10 ||
			s.Models[9].Jobs != 48 {
			t.Errorf("seed %d: %+v", seed, s)
		}
		for i, w := range s.Widths {
			if w.GPUs != testbedWidths[i].gpus || w.Jobs != testbedWidths[i].jobs {
				t.Errorf("seed %d: %d jobs of %d GPUs, want %v", seed, w.Jobs, w.GPUs, testbedWidths[i])
			}
		}
		if s.Duration.Min < 2*time.Minute || s.Duration.Max > 2*time.Hour || s.First != 0 {
			t.Errorf("seed %d: durations %v to %v from %v, want 2m to 2h from 0", seed, s.Duration.Min, s.Duration.Max,
				s.First)
		}
		gaps += s.Span.Seconds() / 479 / 20
	}
	if math.Abs(gaps-30) > 1.5 {
		t.Errorf("mean gap %.2f s, want 30", gaps)
	}
	if !reflect.DeepEqual(Testbed(1), Testbed(1)) || reflect.DeepEqual(Testbed(1), Testbed(2)) {
		t.Error("a seed does not give its own trace each time")
	}
}

func TestDescribeGuardsSmallTraces(t *testing.T) {
	if s := Describe(new(Trace)); !reflect.DeepEqual(s, Summary{}) {
		t.Errorf("no jobs give %+v, want nothing", s)
	}
	one := Describe(&Trace{Jobs: []Job{job("a", 5, 2, 10)}})
	if one.OfferedLoad(4) != 0 || one.GPUTime != 20 || one.Duration.P99 != 10*time.Second || one.Span != 0 {
		t.Errorf("one job gives %+v with load %v, want 20 GPU-seconds and no load", one, one.OfferedLoad(4))
	}
	two := Describe(&Trace{Jobs: []Job{job("a", 5, 2, 10), job("b", 15, 1, 20)}})
	if got := two.OfferedLoad(8); got != .5 || two.OfferedLoad(0) != 0 {
		t.Errorf("40 GPU-seconds in 10 s on 8 GPUs give load %v, want 0.5", got)
	}
	if s := Describe(&Trace{Jobs: []Job{job("a", 0, 2, 0)}}); s.Widths[0].TimeShare != 0 {
		t.Errorf("no GPU time has a share of %v", s.Widths[0].TimeShare)
	}
}
