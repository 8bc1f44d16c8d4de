// Package probe measures how fast the GPUs, or CPU slots, of this machine are, class of application by class, and makes
// of it the table of PM scores that placement by PAL reads. It decides nothing and remembers nothing: how runs become
// scores is handled by model/variability.
package probe

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/trainyard/trainyard/driver/local/device"
	"github.com/trainyard/trainyard/model/variability"
	"github.com/trainyard/trainyard/sched"
)

// MinRuns is the fewest runs of a device that make a score: the median of three survives one that went wrong.
const MinRuns = 3

// Reading is what one run reported.
type Reading struct {
	Time float64 // for the same work, in any unit that the runs of a class share; > 0
	Kind string  // how it was measured, such as "wall time"; all runs of a class are measured alike
}

// Bench measures one device once. It returns the error of ctx if that ends before.
type Bench func(ctx context.Context, d device.Device) (Reading, error)

// Class is a class of applications and what stands for it.
type Class struct {
	Name string
	Run  Bench
}

// Options say what to measure. All but Parallel and Said must be set.
type Options struct {
	Devices  []device.Device
	Node     string // name of this machine
	Classes  []Class
	Runs     int              // of each device and class, >= MinRuns
	Parallel bool             // all devices at once: what slows them down together then shows
	Limit    time.Duration    // of one run, > 0
	Now      func() time.Time // with Parallel asked by several goroutines at once
	Reported func(Run)        // hears of each run in the order in which they end, one at a time; nil = none does
}

// Run is one measurement that was made.
type Run struct {
	Class, Device, Number int // from 0
	Reading
	At time.Time // when it ended
}

// Result is what was measured.
type Result struct {
	Classes []Measured          // in the order asked for
	Scores  *variability.Scores // GPUs in the order of the devices
}

// Measured is what was measured for one class.
type Measured struct {
	Class string
	Kind  string                 // of its readings
	Runs  []variability.Run      // in the order of rounds, then devices
	Norm  float64                // the reading that the score 1 stands for
	GPUs  []variability.Estimate // in the order of the devices
}

// Unsteady is the spread within a device from which its score says little: the runs of a steady one lie within 1 to 9
// per cent of each other in the published measurements, but for one file in twenty with up to 32.
const Unsteady = 0.10

// Spread is by how much the slowest run of a device was slower than its median, as a share of it.
func Spread(e *variability.Estimate) float64 { return e.Worst/e.Score - 1 }

// Measure runs every class on every device, round after round: a drift of the machine hits all devices alike, and every
// second round goes backwards, so that it hits none later than another on average. The first error ends it.
func Measure(ctx context.Context, o Options) (*Result, error) {
	if err := o.validate(); err != nil {
		return nil, err
	}
	runs := make([]Run, 0, o.Runs*len(o.Devices)*len(o.Classes))
	for n := range o.Runs {
		for c := range o.Classes {
			done, err := o.round(ctx, n, c)
			if err != nil {
				return nil, err
			}
			runs = append(runs, done...)
			if err := o.alike(runs); err != nil {
				return nil, err
			}
		}
	}
	return o.result(runs)
}

func (o *Options) validate() error {
	switch {
	case len(o.Devices) == 0:
		return fmt.Errorf("probe: no devices, want at least one")
	case len(o.Classes) == 0:
		return fmt.Errorf("probe: no classes, want at least one")
	case o.Runs < MinRuns:
		return fmt.Errorf("probe: %d runs, want at least %d: a single odd one must not decide", o.Runs, MinRuns)
	case o.Limit <= 0:
		return fmt.Errorf("probe: limit %v, want > 0", o.Limit)
	}
	return nil
}

// round measures all devices once for class c and returns the runs by device.
func (o *Options) round(ctx context.Context, n, c int) ([]Run, error) {
	runs := make([]Run, len(o.Devices))
	if o.Parallel {
		return runs, o.together(ctx, n, c, runs)
	}
	for i := range o.Devices {
		d := i
		if n%2 == 1 {
			d = len(o.Devices) - 1 - i
		}
		run, err := o.once(ctx, n, c, d)
		if err != nil {
			return nil, err
		}
		runs[d] = run
		if o.Reported != nil {
			o.Reported(run)
		}
	}
	return runs, nil
}

// together runs all devices at once. The first that fails ends the others.
func (o *Options) together(ctx context.Context, n, c int, runs []Run) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var all sync.WaitGroup
	var one sync.Mutex
	var failed error
	for d := range o.Devices {
		all.Go(func() {
			run, err := o.once(ctx, n, c, d)
			one.Lock()
			defer one.Unlock()
			if err != nil {
				failed = cmp.Or(failed, err)
				cancel()
				return
			}
			if runs[d] = run; o.Reported != nil {
				o.Reported(run)
			}
		})
	}
	all.Wait()
	return failed
}

// once measures device d for class c.
func (o *Options) once(ctx context.Context, n, c, d int) (Run, error) {
	run, cancel := context.WithTimeout(ctx, o.Limit)
	defer cancel()
	where := func(err error) error {
		return fmt.Errorf("probe: class %s, run %d on %s: %w", o.Classes[c].Name, n+1, o.Devices[d].Name, err)
	}
	r, err := o.Classes[c].Run(run, o.Devices[d])
	switch {
	case ctx.Err() != nil:
		return Run{}, ctx.Err()
	case run.Err() != nil:
		return Run{}, where(fmt.Errorf("no end within %v", o.Limit))
	case err != nil:
		return Run{}, where(err)
	case !(r.Time > 0) || math.IsInf(r.Time, 1):
		return Run{}, where(fmt.Errorf("%s %v, want a number > 0", r.Kind, r.Time))
	}
	return Run{c, d, n, r, o.Now()}, nil
}

// alike returns an error if not all runs of the class of the last one are measured alike: it is reported at once, not
// after hours.
func (o *Options) alike(runs []Run) error {
	class := runs[len(runs)-1].Class
	first := slices.IndexFunc(runs, func(r Run) bool { return r.Class == class })
	for i := range runs {
		if r := &runs[i]; r.Class == class && r.Kind != runs[first].Kind {
			return fmt.Errorf("probe: class %s, run %d on %s said %s, another said %s, want the same in all",
				o.Classes[class].Name,
				r.Number+1, o.Devices[r.Device].Name, r.Kind, runs[first].Kind)
		}
	}
	return nil
}

// result makes scores of runs.
func (o *Options) result(runs []Run) (*Result, error) {
	res := &Result{Classes: make([]Measured, len(o.Classes))}
	for i := range runs {
		r := &runs[i]
		m := &res.Classes[r.Class]
		if m.Kind == "" {
			m.Class, m.Kind = o.Classes[r.Class].Name, r.Kind
		}
		m.Runs = append(m.Runs, variability.Run{GPU: o.Devices[r.Device].Name, Node: o.Node, Perf: r.Time,
			At: sched.Time(r.At.UnixNano())})
	}
	names := make([]string, len(o.Devices))
	for d := range names {
		names[d] = o.Devices[d].Name
	}
	var list []variability.ClassRuns
	for i := range res.Classes {
		m := &res.Classes[i]
		est, err := variability.Measure(m.Runs, variability.ByGPU)
		if err != nil {
			return nil, err
		}
		list = append(list, variability.ClassRuns{Class: m.Class, Measured: est})
		m.Norm = est.Norm
		for _, name := range names { // the estimates are by name
			g, _ := slices.BinarySearchFunc(est.GPUs, name, func(e variability.Estimate, name string) int {
				return strings.Compare(e.GPU, name)
			})
			m.GPUs = append(m.GPUs, est.GPUs[g])
		}
	}
	joined, _, err := variability.Join("probe", list)
	if err == nil {
		res.Scores, err = joined.Select(names)
	}
	return res, err
}
