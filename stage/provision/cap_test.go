package provision_test

import (
	"testing"

	"github.com/trainyard/trainyard/model/power"
	"github.com/trainyard/trainyard/sched"
	"github.com/trainyard/trainyard/stage/provision"
)

// Ensure that targets get the cap of least energy that slows them no more than allowed, that others' caps and jobs that
// give up their GPUs are left alone, and that jobs of which nothing is known go without.
func TestCap(t *testing.T) {
	curve := power.Caps{{Limit: 100, Power: 90, Speed: 0.7}, {Limit: 150, Power: 140, Speed: 0.9},
		{Limit: 250, Power: 200, Speed: 1}}
	of := func(model string) power.Caps {
		if model == "known" {
			return curve
		}
		return nil
	}
	spec := func(model string) *sched.JobSpec { return &sched.JobSpec{Model: model, GPUs: sched.Rigid(1)} }
	v := &sched.View{Jobs: []sched.Job{{Spec: spec("known")}, {Spec: spec("other")}, {Spec: spec("known")},
		{Spec: spec("known")}}}
	for _, c := range []struct {
		rule provision.Cap
		want sched.Watts
	}{
		{provision.Cap{Of: of, Slow: 1}, 0}, {provision.Cap{Of: of, Slow: 1.2}, 150},
		{provision.Cap{Of: of, Slow: 1.5}, 100},
		{provision.Cap{Of: of, Fixed: 120}, 120}, {provision.Cap{Of: of, Fixed: 50}, 100},
	} {
		var d sched.Desired
		for id := range v.Jobs[:3] {
			d.Give(sched.JobID(id), []sched.GPUID{sched.GPUID(id)}, sched.Reason{})
		}
		d.Jobs[2].Cap = 175
		d.Give(3, nil, sched.Reason{})
		c.rule.Provision(v, &d)
		if d.Jobs[0].Cap != c.want || d.Jobs[1].Cap != 0 || d.Jobs[2].Cap != 175 || d.Jobs[3].Cap != 0 {
			t.Errorf("slow %v, fixed %v: caps %v, %v, %v, %v, want %v, 0, 175, 0", c.rule.Slow, c.rule.Fixed,
				d.Jobs[0].Cap, d.Jobs[1].Cap, d.Jobs[2].Cap, d.Jobs[3].Cap, c.want)
		}
	}
}

// Ensure that a job with a deadline gets the cap that is one for all, and none chosen by energy; and that it is known
// how much longer jobs take.
func TestCapDeadline(t *testing.T) {
	curve := power.Caps{{Limit: 100, Power: 90, Speed: 0.5}, {Limit: 150, Power: 140, Speed: 0.8},
		{Limit: 250, Power: 200, Speed: 1}}
	of := func(string) power.Caps { return curve }
	for _, c := range []struct {
		rule     provision.Cap
		deadline sched.Time
		want     sched.Watts
		slow     float64
	}{
		{provision.Cap{Of: of, Slow: 1.25}, 0, 150, 1.25}, {provision.Cap{Of: of, Slow: 1.25}, 1, 0, 1},
		{provision.Cap{Of: of, Slow: 1}, 0, 0, 1},
		{provision.Cap{Of: of, Fixed: 100}, 1, 100, 2}, {provision.Cap{Of: of, Fixed: 50}, 0, 100, 2},
		{provision.Cap{Of: of, Fixed: 300}, 1, 300, 1},
		{provision.Cap{Of: func(string) power.Caps { return nil }, Fixed: 100}, 1, 0, 1},
	} {
		spec := &sched.JobSpec{GPUs: sched.Rigid(1), Deadline: c.deadline}
		var d sched.Desired
		d.Give(0, []sched.GPUID{0}, sched.Reason{})
		c.rule.Provision(&sched.View{Jobs: []sched.Job{{Spec: spec}}}, &d)
		if slow := c.rule.Slowdown(spec); d.Jobs[0].Cap != c.want || slow != c.slow {
			t.Errorf("slow %v, fixed %v, deadline %v: cap %v, slow-down %v, want %v and %v", c.rule.Slow, c.rule.Fixed,
				c.deadline, d.Jobs[0].Cap, slow, c.want, c.slow)
		}
	}
}
