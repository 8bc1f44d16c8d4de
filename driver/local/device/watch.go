package device

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/trainyard/trainyard/sched"
)

// Rule says what is concluded from samples. Use DefaultRule.
type Rule struct {
	FreeMiB   float64       // a device is free if no more memory than this is in use by no one
	Enter     time.Duration // how long a reason against a device must last before it counts: not every visitor stays
	Leave     time.Duration // how long it must be gone before the device is used again
	Patience  time.Duration // how long memory may take to become free after a job
	IdleUse   float64       // a device is idle if it is used no more than this
	IdleAfter time.Duration // and it is held idle if that lasts so long while memory is held
}

// DefaultRule is the rule for a machine as it is. The patience is that of a driver that cleans up after a process of 80
// GB, with room to spare. Contexts, display and reserved memory stay below FreeMiB, trainings do not. Someone who asks
// for his GPUs, as nvidia-smi or an import of torch do, is gone within Enter.
var DefaultRule = Rule{FreeMiB: 1024, Enter: 2 * time.Second, Leave: 5 * time.Second, Patience: 30 * time.Second,
	IdleUse: 0.02, IdleAfter: 10 * time.Minute}

// Owners say whose processes and devices are whose at the time of a sample.
type Owners struct {
	Ours func(pid int) bool     // it belongs to a job of ours
	Gone func(pid int) bool     // there is no such process, or it is a zombie
	Held func(name string) bool // a job of ours holds the device
}

// Verdict is what a device is, and why it may not be used; Why is "" if it may.
type Verdict struct {
	State sched.GPUState
	Why   string
}

// judge concludes what a device is from one reading. Memory counts only where all of it should have an owner.
func (r *Rule) judge(d *Reading, o Owners, memory bool) Verdict {
	if d.Lost != "" {
		return Verdict{sched.GPUMissing, d.Lost}
	}
	var strangers, ghosts []Process
	for _, p := range d.Processes {
		switch {
		case o.Gone(p.PID):
			ghosts = append(ghosts, p)
		case !o.Ours(p.PID):
			strangers = append(strangers, p)
		}
	}
	loose := d.Loose(o.Gone)
	switch {
	case len(strangers) > 0:
		return Verdict{sched.GPUForeign, "in use by " + processes(strangers)}
	case memory && loose > r.FreeMiB:
		return Verdict{sched.GPUStuck, fmt.Sprintf("%.1f GiB of its memory are in use by no process", loose/1024)}
	case memory && len(ghosts) > 0:
		return Verdict{sched.GPUStuck, "shows " + processes(ghosts) + ", which is gone"}
	}
	return Verdict{}
}

// processes writes a list for people.
func processes(list []Process) string {
	words := make([]string, len(list))
	for i, p := range list {
		words[i] = fmt.Sprintf("process %d", p.PID)
		if p.MiB > 0 {
			words[i] += fmt.Sprintf(" (%.1f GiB)", p.MiB/1024)
		}
	}
	return strings.Join(words, ", ")
}

// Status is what is known of a device.
type Status struct {
	Device
	Verdict

	Seen      time.Time // of the reading; zero = never
	Reading   Reading
	IdleSince time.Time // since when memory is held and nothing done; zero = that is not so
	// Trespassers are processes on it of jobs that do not hold it.
	Trespassers []Trespasser
}

// Trespasser is a process of a job on a device that the job does not hold.
type Trespasser struct {
	Job   sched.JobID
	PID   int
	Cause string // likely one, in words
}

// HeldIdle reports whether someone, perhaps a job, has held memory of the device for long without using it.
func (s *Status) HeldIdle(r *Rule) bool {
	return !s.IdleSince.IsZero() && s.Seen.Sub(s.IdleSince) >= r.IdleAfter
}

// By names the processes on the device, for people.
func (s *Status) By() string {
	if len(s.Reading.Processes) == 0 {
		return "no process that can be seen"
	}
	return processes(s.Reading.Processes)
}

// Watch says which devices may be given to jobs, by folding samples. A state changes once the reason for it has lasted,
// see Rule; at the first sample, and where a device is lost, at once. There is nothing to save: the first sample after
// a restart is as good as all before.
type Watch struct {
	Rule    Rule
	devices []watched
}

type watched struct {
	Status
	next  sched.GPUState // that another state may be coming
	since time.Time      // and since when; zero = none is
}

// NewWatch returns a watch over devices of which nothing is known: they may be used until a sample says otherwise.
func NewWatch(rule Rule, list []Device) *Watch {
	w := &Watch{Rule: rule, devices: make([]watched, len(list))}
	for i := range list {
		w.devices[i].Device, w.devices[i].Reading = list[i], Blank()
	}
	return w
}

// Join adds devices of which nothing is known after those there are.
func (w *Watch) Join(list []Device) {
	w.devices = slices.Concat(w.devices, NewWatch(w.Rule, list).devices)
}

// See folds a sample.
func (w *Watch) See(s *Sample, o Owners) {
	for i := range w.devices {
		d := &w.devices[i]
		r, there := s.Readings[d.Name]
		first := d.Seen.IsZero()
		switch {
		case there:
			d.Reading, d.Seen = r, s.At
			d.turn(w.Rule.judge(&r, o, !o.Held(d.Name)), s.At, &w.Rule, first)
			d.idle(s.At, &w.Rule)
		case !s.Partial:
			d.turn(Verdict{sched.GPUMissing, "it is not there"}, s.At, &w.Rule, first)
		}
	}
}

// turn takes a verdict: at once, or once it has lasted.
func (d *watched) turn(v Verdict, at time.Time, r *Rule, first bool) {
	lasts := r.Enter
	if v.State == sched.GPUInUse {
		lasts = r.Leave
	}
	switch {
	case v.State == d.State || first || v.State == sched.GPUMissing:
		d.Verdict, d.since = v, time.Time{}
	case d.since.IsZero() || d.next != v.State:
		d.next, d.since = v.State, at
	case at.Sub(d.since) >= lasts:
		d.Verdict, d.since = v, time.Time{}
	}
}

// idle notes since when memory is held and nothing done.
func (d *watched) idle(at time.Time, r *Rule) {
	held := d.Reading.UsedMiB > r.FreeMiB && !d.Reading.Display ||
		slices.ContainsFunc(d.Reading.Processes, func(p Process) bool {
			return p.MiB != 0
		})
	switch {
	case !held || d.Reading.Use == Unknown || d.Reading.Use > r.IdleUse:
		d.IdleSince = time.Time{}
	case d.IdleSince.IsZero():
		d.IdleSince = at
	}
}

// Set gives device i a state of which another source knows. Samples may change it, in their time.
func (w *Watch) Set(i int, v Verdict) {
	w.devices[i].Verdict, w.devices[i].since = v, time.Time{}
}

// Pending reports whether a change may be coming, so that another look should be taken soon.
func (w *Watch) Pending() bool {
	return slices.ContainsFunc(w.devices, func(d watched) bool { return !d.since.IsZero() })
}

// Of returns what is known of device i of the list.
func (w *Watch) Of(i int) Status { return w.devices[i].Status }
