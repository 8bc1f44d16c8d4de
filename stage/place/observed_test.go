package place_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/trainyard/trainyard/model/variability"
	"github.com/trainyard/trainyard/sched"
	"github.com/trainyard/trainyard/stage/place"
)

// seenScores are of six GPUs on three nodes of two, three classes.
func seenScores() *variability.Scores {
	s := &variability.Scores{Name: "s", GPUs: make([]variability.GPU, 6), Classes: []string{"A", "B", "C"},
		PM: [][]float64{
			{1, 1.1, .9, 1.3, 1, 1.2}, {1, 1.02, .99, 1, 1.05, 1.04}, {1, 1, 1, 1, 1, 1}}}
	return s
}

// event returns that job j runs on gpus as slowly as one of a class does.
func event(v *sched.View, j int, slowdown float64, gpus ...sched.GPUID) *sched.Event {
	v.Jobs[j].GPUs, v.Jobs[j].Asked = gpus, int32(len(gpus))
	return &sched.Event{Kind: sched.AttemptStarted, Job: sched.JobID(j), Rate: 1 / slowdown}
}

func jobsOf(v *sched.View, models ...string) {
	v.Jobs = nil
	for _, m := range models {
		v.Jobs = append(v.Jobs, sched.Job{Spec: &sched.JobSpec{Model: m}})
	}
}

// Ensure that the class of a model is reported once its jobs ran on enough GPUs, and not before, and that the revision
// says so.
func TestObservedTellsClass(t *testing.T) {
	v, s := view(2, 2, 2), seenScores()
	jobsOf(v, "net", "net", "other", "")
	o := place.NewObserved(s)
	for i, g := range []sched.GPUID{0, 1, 3, 5} {
		if class := o.Class(v, 0); i < variability.MinSeen && class != 0 {
			t.Fatalf("said class %d after %d GPUs", class, i)
		}
		o.Observe(v, event(v, i%2, s.PM[2][g], g))
		o.Observe(v, event(v, 3, s.PM[2][g], g))
	}
	if o.Class(v, 0) != 2 || o.Class(v, 1) != 2 || o.Class(v, 2) != 0 || o.Class(v, 3) != 0 || o.Revision() != 1 {
		t.Errorf("classes %d %d %d %d, revision %d, want 2 2 0 0, 1", o.Class(v, 0), o.Class(v, 1), o.Class(v, 2),
			o.Class(v, 3), o.Revision())
	}
}

// Ensure that what does not show the speed of one GPU is not counted: gangs on several nodes, gangs whose slowest GPU
// depends on the class, gangs of another width than rates are counted in, rates that are not known, other events.
func TestObservedLeavesOut(t *testing.T) {
	v, s := view(2, 2, 2), seenScores()
	jobsOf(v, "net")
	o := place.NewObserved(s)
	empty := o.SaveRest(nil)
	for _, e := range []*sched.Event{
		event(v, 0, 1, 0, 2),
		{Kind: sched.AttemptStarted},
		{Kind: sched.AttemptEnded, Rate: 1},
	} {
		o.Observe(v, e)
		event(v, 0, 1, 0)
	}
	narrow := event(v, 0, 2, 1) // half as wide as its work is counted in, whatever its user wants since
	v.Jobs[0].Asked = 2
	o.Observe(v, narrow)
	e := event(v, 0, 1.3, 2, 3) // 3 is the slowest for A and B, but for C they are alike
	o.Observe(v, e)
	if got := o.SaveRest(nil); !slices.Equal(got, empty) {
		t.Errorf("remembers %d bytes, want nothing", len(got))
	}
	s.PM[2][3] = 1.01
	o.Observe(v, e)
	if got := o.SaveRest(nil); slices.Equal(got, empty) {
		t.Error("a gang of which one GPU is the slowest for every class is left out")
	}
}

// Ensure that a memory that was saved and loaded goes on as if nothing had happened, along random histories, and that
// the class is never wrong where the times are right but for noise.
func TestObservedSaves(t *testing.T) {
	reported := 0
	for seed := range uint64(40) {
		r := rand.New(rand.NewPCG(seed, 3))
		v, s := view(2, 2, 2), seenScores()
		models := []string{"a", "b", "c"}
		jobsOf(v, models...)
		o := place.NewObserved(s)
		for step := range 120 {
			j, g := r.IntN(3), r.IntN(6)
			o.Observe(v, event(v, j, s.PM[j][g]*(1+.001*r.NormFloat64()), sched.GPUID(g)))
			if step%7 == 0 {
				other := place.NewObserved(s)
				saved := o.SaveRest(nil)
				if err := other.LoadRest(saved); err != nil {
					t.Fatalf("seed %d: %v", seed, err)
				}
				if again := other.SaveRest(nil); !slices.Equal(again, saved) {
					t.Fatalf("seed %d: saved again it differs", seed)
				}
				for cut := r.IntN(40); cut < len(saved); cut += 1 + r.IntN(80) {
					if err := place.NewObserved(s).LoadRest(saved[:cut]); err == nil {
						t.Fatalf("seed %d: the first %d of %d bytes were taken", seed, cut, len(saved))
					}
				}
				o = other
			}
			for j := range models {
				class := o.Class(v, sched.JobID(j))
				if class == j && j > 0 {
					reported++
				}
				if class != j && class != 0 {
					t.Fatalf("seed %d: model %s is asked to be of class %d", seed, models[j], class)
				}
			}
		}
		for j := range models {
			if class := o.Class(v, sched.JobID(j)); class != j {
				t.Errorf("seed %d: model %s is of class %d in the end", seed, models[j], class)
			}
		}
	}
	t.Logf("said right %d times", reported)
}

// Ensure that what is remembered is bounded, whatever comes.
func TestObservedIsBounded(t *testing.T) {
	sizes := make([]int, 100)
	for i := range sizes {
		sizes[i] = 1
	}
	v, s := view(sizes...), &variability.Scores{Classes: []string{"A"}, PM: [][]float64{make([]float64, 100)},
		GPUs: make([]variability.GPU, 100)}
	for g := range s.PM[0] {
		s.PM[0][g] = 1 + float64(g)/100
	}
	jobsOf(v, "m")
	o := place.NewObserved(s)
	for i := range 3000 {
		v.Jobs[0].Spec = &sched.JobSpec{Model: fmt.Sprint("m", i%1500)}
		o.Observe(v, event(v, 0, 1, sched.GPUID(i%100)))
	}
	v.Jobs[0].Spec = &sched.JobSpec{Model: "m0"}
	for i := range 3000 {
		o.Observe(v, event(v, 0, 1, sched.GPUID(i%100)))
	}
	if n := len(o.SaveRest(nil)); n > 1<<10*64+32*64 {
		t.Errorf("remembers %d bytes", n)
	}
}

func FuzzObservedLoad(f *testing.F) {
	s := seenScores()
	f.Add(place.NewObserved(s).SaveRest(nil))
	f.Fuzz(func(t *testing.T, b []byte) {
		o := place.NewObserved(s)
		if o.LoadRest(b) != nil {
			return
		}
		v := view(2, 2, 2)
		jobsOf(v, "net")
		if c := o.Class(v, 0); c < 0 || c > 2 {
			t.Errorf("class %d", c)
		}
		for g := range sched.GPUID(6) {
			o.Observe(v, event(v, 0, s.PM[1][g], g))
		}
	})
}
