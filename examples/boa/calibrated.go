package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/trainyard/trainyard/cluster"
	"github.com/trainyard/trainyard/driver/local/device"
	"github.com/trainyard/trainyard/manager"
	"github.com/trainyard/trainyard/manager/jobfile"
	"github.com/trainyard/trainyard/metrics"
	"github.com/trainyard/trainyard/model/speedup"
	"github.com/trainyard/trainyard/sched"
	"github.com/trainyard/trainyard/simulate"
	"github.com/trainyard/trainyard/system"
	"github.com/trainyard/trainyard/trace"
)

// calibrate runs a few jobs, each on slots of its own from the start, and returns what they need beyond their steps, in
// seconds: the price of a start and an end. number distinguishes those of a comparison.
func (c *comparison) calibrate(ctx context.Context, number int) (overhead float64, err error) {
	apps := c.apps()
	var jobs strings.Builder
	var alone []float64
	for i, width := range []int{1, 2, 4, 2} {
		kind := i % len(kinds)
		stages, _ := apps[kinds[kind].name].(speedup.Stages)
		seconds := stages[0].Size / stages[0].Law.At(float64(width))
		alone = append(alone, seconds)
		c.job(&jobs, fmt.Sprint("alone-", i), kind, fmt.Sprint(width), 0)
	}
	o := manager.Options{Devices: device.Slots(9), System: "fifo"}
	_, done, err := c.manage(ctx, fmt.Sprint("alone-", number), jobs.String(), o)
	if err != nil {
		return 0, fmt.Errorf("alone: %w", err)
	}
	for i := range done {
		overhead += max(done[i].jct-alone[i], 0) / float64(len(done))
	}
	return overhead, nil
}

// job writes a job of a kind.
func (c *comparison) job(b *strings.Builder, name string, kind int, gpus string, at time.Duration) {
	k := &kinds[kind]
	fmt.Fprintf(b, "  - name: %s\n    model: %s\n    gpus: %s\n    submit: %v\n", name, k.name, gpus, at)
	fmt.Fprintf(b, "    command: [%q, --steps, %d, --step-time, %v, --parallel, %v, --batch, 32, "+
		"--checkpoint-every, 0]\n", c.trainer, c.steps(kind), c.step, k.parallel)
}

// real runs the jobs.
func (c *comparison) real(ctx context.Context, name, systemName string, reserved int,
	settings map[string]string) (figures, error) {
	var jobs strings.Builder
	for i, a := range c.arrivals {
		most := c.Slots
		if reserved > 0 {
			most = reserved
		}
		asks := min(kinds[a.kind].asks, most)
		c.job(&jobs, fmt.Sprint("job-", i), a.kind, fmt.Sprintf("{min: 1, max: %d, default: %d}", most, asks), a.at)
	}
	apps := c.apps()
	o := manager.Options{Devices: device.Slots(reserved), System: systemName, Settings: settings,
		Report: 500 * time.Millisecond}
	most := reserved
	if reserved == 0 {
		o.Devices, o.Budget, most = device.Slots(c.Slots), c.Budget, c.Slots
	}
	o.Knows = system.Knowledge{Speeds: speedup.NewOracle(apps, max(reserved, 1), most), Mix: c.mix(apps)}
	result, _, err := c.manage(ctx, name, jobs.String(), o)
	if err != nil {
		return figures{}, err
	}
	return figuresOf(result), nil
}

// ended is a job that was run.
type ended struct{ jct float64 } // seconds

// manage runs a list of jobs to its end.
func (c *comparison) manage(ctx context.Context, name, jobs string, o manager.Options) (*metrics.Result, []ended,
	error) {
	dir := filepath.Join(c.dir, name)
	if err := os.Mkdir(dir, 0o700); err != nil {
		return nil, nil, err
	}
	var err error
	if o.Jobs, err = jobfile.Parse([]byte("jobs:\n"+jobs), filepath.Join(dir, "jobs.yaml")); err != nil {
		return nil, nil, err
	}
	o.Dir, o.Place, o.Unit, o.Shim = filepath.Join(dir, "state"), "CPU slots", "slot",
		[]string{"/proc/self/exe", "shim"}
	m, err := manager.Open(ctx, o)
	if err != nil {
		return nil, nil, err
	}
	if err := m.Run(ctx); err != nil {
		return nil, nil, errors.Join(err, m.Close())
	}
	result, list := m.Result()
	done := make([]ended, len(list))
	for i := range list {
		if list[i].Outcome != sched.Finished {
			return nil, nil, errors.Join(fmt.Errorf("job %s %v: see its output", list[i].Name, list[i].Outcome),
				m.Close())
		}
		done[i].jct = list[i].JCT().Seconds()
	}
	return &result, done, m.Close()
}

// simulate has the same system decide about the same jobs in simulated time.
func (c *comparison) simulate(ctx context.Context, systemName string, reserved int,
	settings map[string]string) (figures, error) {
	apps := c.apps()
	nodes, most := fmt.Sprintf("1x%d", reserved), reserved
	if reserved == 0 {
		nodes, most = fmt.Sprintf("%dx1", c.Slots), c.Slots
	}
	cl, err := cluster.Load(nodes)
	if err != nil {
		return figures{}, err
	}
	t := &trace.Trace{Format: "generated", Profiled: true}
	for i, a := range c.arrivals {
		k := &kinds[a.kind]
		t.Jobs = append(t.Jobs, trace.Job{Spec: sched.JobSpec{Name: fmt.Sprint("job-", i), Model: k.name,
			Submit: sched.Time(a.at),
			GPUs:   sched.Range{Min: 1, Want: int32(min(k.asks, most)), Max: int32(most)}}})
	}
	world := map[string]string{"restart_at_first": "yes"}
	maps.Copy(world, settings)
	s := simulate.Request{Trace: t, Cluster: cl, System: systemName, Settings: world, Budget: c.Budget, Apps: apps,
		Mix: c.mix(apps)}
	out, err := s.Run(ctx)
	if err != nil {
		return figures{}, err
	}
	return figuresOf(&out.Result), nil
}
