package local

import (
	"testing"
	"time"

	"github.com/trainyard/trainyard/driver/local/device"
	"github.com/trainyard/trainyard/sched"
)

// Ensure that what is measured of a job is of the time in which it had its GPU, and as it has it: power and use of the
// job before it, or memory that another had, are not its own, whether it is said who has how much or not.
func TestMeasuredSinceItHolds(t *testing.T) {
	t.Parallel()
	list := []device.Device{gpu("A", "h", 80)}
	v := &sched.View{Nodes: []sched.Node{{Spec: sched.NodeSpec{GPUs: 1}}}, GPUs: make([]sched.GPU, 1),
		Jobs: make([]sched.Job, 2)}
	hold := func(ids ...sched.JobID) {
		v.GPUs[0].Holders = int16(len(ids))
		for id := range v.Jobs {
			v.Jobs[id] = sched.Job{Attempts: v.Jobs[id].Attempts}
		}
		for _, id := range ids {
			j := &v.Jobs[id]
			j.GPUs, j.Attempt, j.Up, j.Attempts = []sched.GPUID{0}, sched.Running, true, max(j.Attempts, 1)
		}
	}
	silent := func(gb, watts float64) device.Reading {
		return device.Reading{UsedMiB: 1024 * gb, Use: watts / 1000, Watts: watts, Joules: device.Unknown}
	}
	listed := func(gb, watts float64) device.Reading {
		r := silent(gb, watts)
		r.Listed = true
		return r
	}
	at, g, o := time.Now(), gauge{every: 2 * time.Second}, &owners{pids: func() map[int]sched.JobID { return nil }}
	for i, c := range []struct {
		holders []sched.JobID
		reading device.Reading
		want    []sched.Event // of jobs
	}{
		{[]sched.JobID{0}, silent(25, 400), nil},
		{[]sched.JobID{0}, silent(25, 400), nil},
		{[]sched.JobID{0}, silent(25, 400), []sched.Event{{Job: 0, Value: 400, Rate: .4, MemGB: 25}}},
		{[]sched.JobID{1}, silent(25, 400), nil}, // a look of the moment before it
		{[]sched.JobID{1}, silent(9, 200), []sched.Event{{Job: 1, Value: 200, Rate: .2, MemGB: 9}}},
		{[]sched.JobID{1}, silent(10, 200), nil},
		{[]sched.JobID{1}, silent(9, 200), []sched.Event{{Job: 1, Value: 200, Rate: .2, MemGB: 10}}},
		{[]sched.JobID{0, 1}, silent(40, 300), nil},
		{[]sched.JobID{1}, silent(40, 300), nil}, // just now
		{[]sched.JobID{1}, silent(12, 200), nil},
		{[]sched.JobID{1}, silent(12, 200), []sched.Event{{Job: 1, Value: 200, Rate: .2, MemGB: 12}}},
		{[]sched.JobID{1}, listed(12, 200), nil},
		{[]sched.JobID{1}, listed(12, 200), []sched.Event{{Job: 1, Value: 200, Rate: .2}}}, // not its own
	} {
		hold(c.holders...)
		at = at.Add(time.Second)
		s := &device.Sample{At: at, Readings: map[string]device.Reading{"A": c.reading}}
		var got []sched.Event
		for _, e := range g.read(v, list, s, o) {
			if e.Job != sched.None {
				got = append(got, e)
			}
		}
		if len(got) != len(c.want) {
			t.Errorf("look %d: %+v, want %+v", i, got, c.want)
			continue
		}
		for k, w := range c.want {
			if w.Kind, w.Node = sched.Measured, sched.None; !alike(got[k], w) || got[k].Job != w.Job {
				t.Errorf("look %d: %+v, want %+v", i, got[k], w)
			}
		}
	}
}
