package gavel_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"

	"github.com/trainyard/trainyard/replica/gavel"
)

var (
	kindA = gavel.Kind{Model: "a", GPUs: 1}
	kindB = gavel.Kind{Model: "b", GPUs: 1}
)

// two returns jobs a and b of 720 s each alone, submitted at 0, and their throughputs alone, 1 step/s, and shared.
func two(a, b float64) ([]gavel.Job, gavel.Rates) {
	return []gavel.Job{{ID: "a", Kind: kindA, Steps: 720}, {ID: "b", Kind: kindB, Steps: 720}},
		gavel.Rates{Alone: map[gavel.Kind]float64{kindA: 1, kindB: 1},
			Shared: map[[2]gavel.Kind][2]float64{{kindA, kindB}: {a, b}, {kindB, kindA}: {b, a}}}
}

// shared reports whether the two shared a GPU under a policy.
func shared(p gavel.Policy, seed uint32, a, b float64) bool {
	jobs, rates := two(a, b)
	res := gavel.Run(jobs, gavel.Params{Policy: p, GPUs: 1, Rates: rates, Seed: seed})
	return res.Jobs[0].Shared > 0
}

// Reference: Gavel, policies/fifo.py and gandiva.py. Ensure that fifo_packed wants more than 1.5 of a pair, and that
// gandiva dissolves one below 1.
func TestThresholds(t *testing.T) {
	// The job at which filling stops is passed over: only with one more is there someone to pair.
	packed := func(a, b float64) bool {
		jobs, rates := two(a, b)
		jobs = []gavel.Job{jobs[0], {ID: "wide", Kind: gavel.Kind{Model: "w", GPUs: 2}, Steps: 720}, jobs[1]}
		rates.Alone[jobs[1].Kind] = 1
		res := gavel.Run(jobs, gavel.Params{Policy: gavel.FIFOPacked, GPUs: 2, Rates: rates})
		return res.Jobs[0].Shared > 0
	}
	if packed(.8, .7) || !packed(.8, .71) {
		t.Error("fifo_packed: want 0.80 + 0.70 alone, 0.80 + 0.71 packed")
	}
	if shared(gavel.FIFO, 0, .9, .9) || shared(gavel.FIFOPerf, 0, .9, .9) {
		t.Error("fifo shares")
	}
	jobs, rates := two(.5, .5)
	keep := gavel.Run(jobs, gavel.Params{Policy: gavel.Gandiva, GPUs: 1, Rates: rates, Reset: 1})
	if keep.Jobs[0].Run != keep.Jobs[0].Shared {
		t.Errorf("gandiva: %+v, want 0.50 + 0.50 kept", keep.Jobs[0])
	}
}

// Ensure by hand what a round is: it ends with its last job, and jobs end at their own time. a takes 100 s, b 720 s, c
// comes at 50 s.
func TestRounds(t *testing.T) {
	rates := gavel.Rates{Alone: map[gavel.Kind]float64{kindA: 1}}
	jobs := []gavel.Job{{ID: "a", Kind: kindA, Steps: 100}, {ID: "b", Kind: kindA, Steps: 720},
		{ID: "c", Kind: kindA, Steps: 10, Submit: 50}}
	res := gavel.Run(jobs, gavel.Params{Policy: gavel.FIFO, GPUs: 2, Rates: rates})
	got := ""
	for _, j := range res.Jobs {
		got += fmt.Sprintf("%s %v; ", j.ID, j.Finish)
	}
	if want := "a 100; b 720; c 370; "; got != want || res.End != 720 || res.Rounds != 2 {
		t.Errorf("%s end %v after %d rounds, want %s", got, res.End, res.Rounds, want)
	}
}

// Ensure that a job of which each GPU does less than a step per round fails after five rounds, and that what never ends
// is given up.
func TestLostRounds(t *testing.T) {
	wide := gavel.Kind{Model: "a", GPUs: 4}
	rates := gavel.Rates{Alone: map[gavel.Kind]float64{wide: 1}}
	p := gavel.Params{Policy: gavel.FIFO, GPUs: 4, Rates: rates}
	res := gavel.Run([]gavel.Job{{ID: "a", Kind: wide, Steps: 363}}, p)
	if j := res.Jobs[0]; !j.Failed || !math.IsNaN(j.Finish) || res.Rounds != 6 {
		t.Errorf("%+v after %d rounds, want it failed after 6", j, res.Rounds)
	}
	p.MaxRounds = 2
	res = gavel.Run([]gavel.Job{{ID: "a", Kind: wide, Steps: 3600}, {ID: "b", Kind: wide, Steps: 1, Submit: 1e9}}, p)
	if len(res.Jobs) != 2 || !math.IsNaN(res.Jobs[0].Finish) || res.Jobs[0].Failed || !math.IsNaN(res.Jobs[1].Finish) {
		t.Errorf("%+v, want both unfinished", res.Jobs)
	}
}

// Ensure on random traces that every job finishes, no sooner than it could alone, that fifo and fifo_perf never share,
// and that the same run gives the same result.
func TestProperties(t *testing.T) {
	everShared := 0
	for seed := range uint64(300) {
		r := rand.New(rand.NewPCG(seed, 1))
		rates := gavel.Rates{Alone: make(map[gavel.Kind]float64), Shared: make(map[[2]gavel.Kind][2]float64)}
		var kinds []gavel.Kind
		for i := range 6 {
			k := gavel.Kind{Model: fmt.Sprint(i), GPUs: []int{1, 2, 4}[i%3]}
			kinds = append(kinds, k)
			rates.Alone[k] = .5 + 20*r.Float64()
		}
		for i, a := range kinds {
			for _, b := range kinds[i:] {
				if a.GPUs == b.GPUs && r.IntN(4) > 0 {
					x := [2]float64{rates.Alone[a] * (.2 + .8*r.Float64()), rates.Alone[b] * (.2 + .8*r.Float64())}
					rates.Shared[[2]gavel.Kind{a, b}] = x
					rates.Shared[[2]gavel.Kind{b, a}] = [2]float64{x[1], x[0]}
				}
			}
		}
		var jobs []gavel.Job
		at := 0.0
		for i := range 1 + r.IntN(25) {
			at += 500 * r.Float64() * float64(r.IntN(3))
			jobs = append(jobs, gavel.Job{ID: fmt.Sprint(i), Submit: at, Kind: kinds[r.IntN(len(kinds))],
				Steps: 4 * int64(1+r.IntN(5000))})
		}
		p := gavel.Params{Policy: gavel.Policy(seed % 4), GPUs: 4 + r.IntN(5), Rates: rates, Seed: uint32(seed)}
		if err := p.Validate(jobs); err != nil {
			t.Fatal(err)
		}
		res := gavel.Run(jobs, p)
		if again := gavel.Run(jobs, p); fmt.Sprint(again) != fmt.Sprint(res) {
			t.Fatalf("seed %d: twice, two results", seed)
		}
		if len(res.Jobs) != len(jobs) {
			t.Fatalf("seed %d: %d jobs, want %d", seed, len(res.Jobs), len(jobs))
		}
		for i, j := range res.Jobs {
			alone := float64(jobs[i].Steps) / rates.Alone[jobs[i].Kind]
			if !(j.Finish-jobs[i].Submit >= alone*(1-1e-9)) && !j.Failed {
				t.Fatalf("seed %d: %v: job %d took %v, alone %v", seed, p.Policy, i, j.Finish-jobs[i].Submit, alone)
			}
			if j.Shared > 0 {
				everShared++
				if p.Policy < gavel.FIFOPacked {
					t.Fatalf("seed %d: %v shares", seed, p.Policy)
				}
			}
		}
	}
	if everShared < 100 {
		t.Errorf("%d jobs shared: too few to say anything", everShared)
	}
}

// Ensure that whatever makes no sense is refused with what is wanted.
func TestValidate(t *testing.T) {
	good := func() ([]gavel.Job, gavel.Params) {
		jobs, rates := two(.8, .8)
		return jobs, gavel.Params{GPUs: 2, Rates: rates}
	}
	for want, change := range map[string]func(j []gavel.Job, p *gavel.Params){
		"policy 9 is not known, want 0 to 3": func(_ []gavel.Job, p *gavel.Params) {
			p.Policy = 9
		},
		"0 GPUs, want 1 to 1048576": func(_ []gavel.Job, p *gavel.Params) {
			p.GPUs = 0
		},
		"round NaN s, reset 0 s, want 0 (default) to 1e9": func(_ []gavel.Job, p *gavel.Params) {
			p.Round = math.NaN()
		},
		"round 0 s, reset -1 s, want 0 (default) to 1e9": func(_ []gavel.Job, p *gavel.Params) {
			p.Reset = -1
		},
		"max rounds -1, want 0 (default) or more": func(_ []gavel.Job, p *gavel.Params) {
			p.MaxRounds = -1
		},
		`job "b": submit -1 s, want 0 (that of the job before) to 1e12`: func(j []gavel.Job, _ *gavel.Params) {
			j[1].Submit = -1
		},
		`job "a": gpus 3, want 1 to 2: a wider job never runs`: func(j []gavel.Job, _ *gavel.Params) {
			j[0].Kind.GPUs = 3
		},
		`job "a": steps 0, want 1 to 1125899906842624`: func(j []gavel.Job, _ *gavel.Params) {
			j[0].Steps = 0
		},
		`job "a": throughput of "x" on 1 GPUs is 0, want one > 0`: func(j []gavel.Job, _ *gavel.Params) {
			j[0].Kind.Model = "x"
		},
		"throughputs of [{a 1} {b 2}] are [1 1], want two >= 0 at equal width": func(_ []gavel.Job, p *gavel.Params) {
			p.Rates.Shared = map[[2]gavel.Kind][2]float64{{kindA, {Model: "b", GPUs: 2}}: {1, 1}}
		},
	} {
		jobs, p := good()
		if change(jobs, &p); p.Validate(jobs) == nil || p.Validate(jobs).Error() != "published: "+want {
			t.Errorf("%v, want %s", p.Validate(jobs), want)
		}
	}
	jobs, p := good()
	if err := p.Validate(jobs); err != nil {
		t.Error(err)
	}
	if res := gavel.Run(nil, p); !reflect.DeepEqual(res, gavel.Result{}) {
		t.Errorf("%+v of no jobs", res)
	}
	defer func() {
		if s := fmt.Sprint(recover()); !strings.Contains(s, "0 GPUs") {
			t.Errorf("panic %s", s)
		}
	}()
	gavel.Run(jobs, gavel.Params{Rates: p.Rates})
}
