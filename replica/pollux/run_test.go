package pollux

import (
	"fmt"
	"math"
	"reflect"
	"slices"
	"testing"
)

// even is an application whose steps take as long on any placement, and whose updates are all worth one.
type even struct {
	step  float64
	sizes []float64
}

func (e even) Placed([]int, int) (step, sync float64, ok bool) { return e.step, e.step / 4, e.step > 0 }

func (e even) Sizes() []float64 { return e.sizes }

func (e even) Gradient(int, int) (sqr, variance float64) { return 1, 0 }

func (e even) Updates(epoch, _ int) float64 {
	sum := 0.0
	for _, s := range e.sizes[:epoch+1] {
		sum += s
	}
	return sum
}

func (e even) app() *App {
	return &App{Name: "even", Start: 8, Max: 64, MinPerGPU: 4, MaxPerGPU: 64, Steps: e, Statistics: e}
}

// Ensure that time passes as released: jobs are seen at the next minute, every start takes 30 s, the rest of an epoch
// is rounded to seconds.
func TestClock(t *testing.T) {
	app := even{1, []float64{20.4, 25}}.app()
	jobs := []Job{{Name: "a", App: app, Submit: 10, GPUs: 2, Batch: 8}}
	res, err := Run(jobs, Params{})
	if err != nil {
		t.Fatal(err)
	}
	// From 60 s on: 30 s of restart, 20 s for the first epoch, 10 s of the second; then 15 s.
	want := Outcome{Name: "a", Start: 60, Finish: 135, Waited: 80, GPUSeconds: 150}
	if got := res.Jobs[0]; got != want || res.Rounds != 3 || res.NodeSeconds != 3*60*16 {
		t.Errorf("%+v after %d rounds and %d node-seconds, want %+v after 3 and 2880", got, res.Rounds, res.NodeSeconds,
			want)
	}
	if got := res.MeanJCT(jobs); got != 125 {
		t.Errorf("mean %v s, want 125", got)
	}
}

// Ensure that two queues by attained service are kept: a job that has had 16 GPU-hours gives way to a newcomer.
func TestTiresiasQueues(t *testing.T) {
	app := even{1, []float64{20000}}.app()
	jobs := []Job{
		{Name: "long", App: app, GPUs: 8, Batch: 8}, {Name: "passed over", App: app, Submit: 60, GPUs: 8, Batch: 8},
		{Name: "fits", App: app, Submit: 60, GPUs: 4, Batch: 8},
	}
	res, err := Run(jobs, Params{Nodes: 3})
	if err != nil {
		t.Fatal(err)
	}
	// The first is in the second queue when it has run for 7200 s, since 60 s; the other wide one then takes its place,
	// and is itself demoted behind it 7200 s later. After that the first goes on, for the rest.
	if res.Jobs[0].Restarts != 1 || res.Jobs[1].Start != 60+7200 || res.Jobs[2].Start != 60 ||
		res.Jobs[2].Restarts != 0 {
		t.Errorf("%+v", res.Jobs)
	}
}

// Ensure that GPUs come from the node with most free ones, and spill on.
func TestTake(t *testing.T) {
	free := []int{1, 3, 4, 4}
	for _, c := range []struct {
		gpus int
		want []share
	}{{2, []share{{2, 2}}}, {6, []share{{3, 4}, {1, 2}}}, {4, []share{{2, 2}, {0, 1}, {1, 1}}}} {
		if got := take(free, c.gpus); !slices.Equal(got, c.want) {
			t.Errorf("%d GPUs: %v, want %v", c.gpus, got, c.want)
		}
	}
}

// Ensure that gangs on several nodes that meet are slowed down, and others are not.
func TestInterference(t *testing.T) {
	app := even{1, []float64{300}}.app()
	jobs := []Job{{Name: "a", App: app, GPUs: 3, Batch: 16}, {Name: "b", App: app, GPUs: 3, Batch: 16}}
	for _, c := range []struct {
		per    int
		finish int64
	}{{2, 60 + 30 + 600}, {3, 60 + 30 + 300}} {
		res, err := Run(jobs, Params{Nodes: 3, GPUsPerNode: c.per, Interference: 0.5})
		if err != nil {
			t.Fatal(err)
		}
		if got := res.Jobs[1].Finish; got != c.finish {
			t.Errorf("%d GPUs on a node: %d, want %d", c.per, got, c.finish)
		}
	}
}

// shrinking is an application that scales: a step takes as long as the samples on a GPU, and a little for each GPU.
type shrinking struct{ even }

func (s shrinking) Placed(placement []int, perGPU int) (step, sync float64, ok bool) {
	gpus := 0
	for _, g := range placement {
		gpus += g
	}
	sync = 0.01 * float64(gpus-1)
	if len(placement) > 1 {
		sync *= 2
	}
	return 0.05*float64(perGPU) + sync, sync, true
}

func (s shrinking) app() *App {
	a := s.even.app()
	a.Steps = s
	return a
}

// Ensure that Pollux ends, repeats itself for a seed, keeps gangs on several nodes apart, and that with one GPU for an
// application it stays there.
func TestPolluxRun(t *testing.T) {
	app := shrinking{even{1, []float64{200, 200, 200}}}.app()
	one := *app
	one.OneGPU = true
	var jobs []Job
	for i := range 12 {
		jobs = append(jobs, Job{Name: fmt.Sprint(i), App: app, Submit: int64(40 * i)})
	}
	jobs[5].App = &one
	p := Params{Policy: Pollux, Nodes: 3, Seed: 7, Search: Search{20, 15}}
	first, err := Run(jobs, p)
	if err != nil {
		t.Fatal(err)
	}
	again, _ := Run(jobs, p)
	if !reflect.DeepEqual(first, again) {
		t.Error("two runs with one seed differ")
	}
	for _, o := range first.Jobs {
		if o.Finish < 0 {
			t.Errorf("job %s does not finish", o.Name)
		}
	}
	if o := first.Jobs[5]; o.GPUSeconds > o.Finish-o.Start {
		t.Errorf("the job for one GPU had more: %+v", o)
	}
}

// Ensure that a cluster whose jobs gain nothing by more GPUs shrinks after as many rounds as utility is averaged over,
// and that one whose jobs scale does not.
func TestScaling(t *testing.T) {
	for _, c := range []struct {
		app    *App
		shrink bool
	}{{even{1, []float64{4000}}.app(), true}, {shrinking{even{1, []float64{4000}}}.app(), false}} {
		jobs := []Job{{Name: "a", App: c.app}, {Name: "b", App: c.app}}
		p := Params{Policy: Pollux, Nodes: 8, GPUsPerNode: 1, Search: Search{20, 15}, Scale: DefaultScaling(1, 8)}
		res, err := Run(jobs, p)
		if err != nil {
			t.Fatal(err)
		}
		whole := int64(res.Rounds) * 60 * 8
		if least := int64(ScalingIntervals * 60 * 8); (res.NodeSeconds < whole) != c.shrink || res.NodeSeconds < least {
			t.Errorf("shrinks: %v; %d node-seconds of %d", c.shrink, res.NodeSeconds, whole)
		}
	}
}

// Ensure that what cannot be played is refused, with what was wanted.
func TestValidate(t *testing.T) {
	good := Job{Name: "a", App: even{1, []float64{1}}.app(), GPUs: 1, Batch: 8}
	bad := *good.App
	bad.MinPerGPU = 0
	for _, c := range []struct {
		change func(p *Params, j *Job)
		want   string
	}{
		{func(*Params, *Job) {}, ""},
		{func(p *Params, _ *Job) { p.Policy = 9 }, "published: unknown policy 9"},
		{func(p *Params, _ *Job) { p.GPUsPerNode = 99 }, "published: 16 nodes of 99 GPUs, want 1..1024 of 1..16"},
		{func(p *Params, _ *Job) { p.Interval = -1 }, "published: interval -1 s, want 1..1048576"},
		{func(p *Params, _ *Job) { p.Interference = math.NaN() }, "published: interference NaN, want 0 <= x < 1"},
		{func(p *Params, _ *Job) { p.Search.Generations = 1 }, "published: population 0, 1 generations, want at " +
			"least 2 and 1"},
		{func(p *Params, _ *Job) { p.Scale = DefaultScaling(1, 8) }, "published: 16 nodes scaled in 1..8, want 1 <= " +
			"min <= nodes <= max <= 1024"},
		{func(p *Params, _ *Job) { p.Scale = DefaultScaling(1, 16) }, "published: tiresias does not scale the " +
			"cluster, want pollux"},
		{func(_ *Params, j *Job) { j.App = nil }, "published: job a: no application"},
		{func(_ *Params, j *Job) { j.Submit = -1 }, "published: job a: submit -1, want 0..1099511627776"},
		{func(_ *Params, j *Job) { j.GPUs = 65 }, "published: job a: gpus 65, want 1..64"},
		{func(_ *Params, j *Job) { j.Batch = 7 }, "published: job a: batch 7, want 8..64"},
		{func(_ *Params, j *Job) { j.App = &bad }, "published: application even: batch 8..64, per GPU 0..64, want 1 " +
			"<= min <= max, min per GPU <= max"},
		{func(_ *Params, j *Job) { j.App = even{0, []float64{1}}.app() }, "published: job a: no time of a step of " +
			"even on [1] GPUs with 8 samples each"},
	} {
		p, j := Params{}, good
		c.change(&p, &j)
		got := ""
		if _, err := Run([]Job{j}, p); err != nil {
			got = err.Error()
		}
		if got != c.want {
			t.Errorf("%q, want %q", got, c.want)
		}
	}
}

// DefaultScaling returns the band of AdaptDL for a cluster of so many nodes.
func DefaultScaling(least, most int) *Scaling {
	return &Scaling{Min: least, Max: most, Low: 0.35, High: 0.65}
}
