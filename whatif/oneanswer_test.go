package whatif_test

import (
	"math/rand/v2"
	"testing"

	"github.com/trainyard/trainyard/sched"
	"github.com/trainyard/trainyard/whatif"
	"github.com/trainyard/trainyard/whatif/whatiftest"
)

// Ensure, for random moments under many systems, that what is said of a job does not depend on which others are asked
// about, that its quantiles rise, and that it does not end before it starts.
func TestOneMomentOneAnswer(t *testing.T) {
	asked := 0
	for seed := range uint64(20) {
		for _, name := range []string{"fifo", "fifo-easy", "las", "srtf", "tiresias-las", "elastic-fifo", "eaco"} {
			w, r := whatiftest.NewWorld(seed), rand.New(rand.NewPCG(seed, 19))
			m, _ := cutAnywhere(t, w, name, r)
			if m == nil {
				continue
			}
			o := whatif.ForecastOptions{Seed: seed, Draws: 9, Others: true, World: whatif.World{Runtime: w.Runtime}}
			all := look(t, m, o)
			ordered(t, name, all)
			for _, want := range all.Jobs {
				if asked++; asked%7 != 0 {
					continue
				}
				o.Of = []sched.JobID{want.Job}
				if e := look(t, m, o).Of(want.Job); e == nil || *e != want {
					t.Fatalf("seed %d, %s, job %d: asked about alone %+v, want %+v", seed, name, want.Job, e, want)
				}
			}
		}
	}
	if asked < 200 {
		t.Errorf("%d jobs asked about: too few to mean anything", asked)
	}
}

// Ensure that a plan says of a job what is said once it is submitted at that instant.
func TestPlannedIsAsSubmitted(t *testing.T) {
	next := sched.JobSpec{Name: "next", User: "a", GPUs: sched.Rigid(2)}
	for _, system := range []string{"fifo", "fifo-easy", "tiresias-las", "las"} {
		scene := func() *whatiftest.Scene {
			s := (&whatiftest.Scene{System: system}).Node(2, 0)
			for i := range 9 {
				s.JobAt(200*float64(i), 110+float64(7*i%17), sched.JobSpec{User: "a", GPUs: sched.Rigid(2)})
			}
			return s.JobAt(1610, 150, sched.JobSpec{User: "b", GPUs: sched.Rigid(2)})
		}
		_, before := scene().Moment(t)
		_, after := scene().JobAt(1610, 100, next).Moment(t)
		id := sched.JobID(len(before.View().Jobs))
		plan := look(t, before, whatif.ForecastOptions{Others: true, Planned: []*sched.JobSpec{&next}}).Of(id)
		said := look(t, after, whatif.ForecastOptions{Others: true}).Of(id)
		if before.View().Now != after.View().Now || plan == nil || said == nil || *plan != *said {
			t.Errorf("%s: planned %+v, submitted %+v, want the same", system, plan, said)
		}
	}
}
