package worth_test

import (
	"context"
	"encoding/binary"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/trainyard/trainyard/cluster"
	"github.com/trainyard/trainyard/driver/sim"
	"github.com/trainyard/trainyard/engine"
	"github.com/trainyard/trainyard/eventlog"
	"github.com/trainyard/trainyard/memory"
	"github.com/trainyard/trainyard/metrics"
	"github.com/trainyard/trainyard/model/interference"
	"github.com/trainyard/trainyard/model/remaining"
	"github.com/trainyard/trainyard/model/speedup"
	"github.com/trainyard/trainyard/sched"
	"github.com/trainyard/trainyard/stage/place"
	"github.com/trainyard/trainyard/stage/share"
	"github.com/trainyard/trainyard/system/worth"
	"github.com/trainyard/trainyard/trace"
)

// The jobs of EaCO's tables: use of a node, power, hours.
var paper = map[string]struct {
	use, watts, hours, memory float64
}{
	"AlexNet": {.0472, 712, 34.76, .0421}, "ResNet-18": {.1117, 959, 35.13, .1463},
	"ResNet-50": {.3661, 1330, 36.01, .4392}, "VGG-16": {.4801, 1533, 36.13, .5129},
}

// sets are those of the tables: mean hours together.
var sets = []struct {
	models []string
	hours  float64
	watts  float64
}{
	{[]string{"AlexNet", "ResNet-50"}, 36.63, 1390}, {[]string{"AlexNet", "VGG-16"}, 36.51, 1506},
	{[]string{"ResNet-18", "VGG-16"}, 37.01, 1644}, {[]string{"AlexNet", "ResNet-18", "ResNet-50"}, 38.28, 1541},
	{[]string{"AlexNet", "ResNet-18", "VGG-16"}, 38.26, 1713},
}

// together is a cluster on which jobs may share nodes of 8 GPUs, which draw what the tables say.
type together struct {
	nodes   int
	kwh     float64
	timed   bool // epochs and sizes are learned
	restart time.Duration
	reborn  int // every how many decisions all is saved, made again and loaded; 0 = never
	truth   func(*trace.Job, []*trace.Job) float64
	unsaved sched.Unsaved
}

// diary is what was decided, with all figures of joins.
type diary struct {
	lines  []string
	joined []string // who joined whom
	kept   int
}

// Log notes an event.
func (d *diary) Log(v *sched.View, e *sched.Event) {
	d.lines = append(d.lines, fmt.Sprint(e.Kind, e.Time, e.Job, e.GPUs, e.Why))
	if e.Kind == sched.Decided {
		switch e.Why.Code {
		case sched.WhyTrial:
			d.joined = append(d.joined, v.Jobs[e.Job].Spec.Model+" with "+v.Jobs[e.Why.Job].Spec.Model)
		case sched.WhyKept:
			d.kept++
		}
	}
}

// reborn is a Decider that is saved, made again and loaded.
type reborn struct {
	sched.Decider
	t     *testing.T
	build func() sched.Decider
	every int
	count int
}

func (r *reborn) Decide(v *sched.View, out *sched.Desired) {
	if r.count++; r.every > 0 && r.count%r.every == 0 {
		next := r.build()
		if err := memory.Save(v, r.Decider).Load(v, next); err != nil {
			r.t.Fatal(err)
		}
		r.Decider = next
	}
	r.Decider.Decide(v, out)
}

func (w *together) run(t *testing.T, jobs []trace.Job) ([]metrics.Job, *diary) {
	t.Helper()
	c, err := cluster.Load(fmt.Sprintf("%dx8:v100", w.nodes))
	if err != nil {
		t.Fatal(err)
	}
	c.Nodes = slices.Clone(c.Nodes)
	curve := []sched.PowerPoint{{Use: 0, Watts: 650}}
	for _, p := range paper {
		curve = append(curve, sched.PowerPoint{Use: p.use, Watts: sched.Watts(p.watts)})
	}
	for _, s := range sets {
		use := 0.0
		for _, m := range s.models {
			use += paper[m].use
		}
		curve = append(curve, sched.PowerPoint{Use: use, Watts: sched.Watts(s.watts)})
	}
	curve = append(curve, sched.PowerPoint{Use: 1, Watts: 1944})
	slices.SortFunc(curve, func(a, b sched.PowerPoint) int { return int(math.Copysign(1, a.Use-b.Use)) })
	for i := range c.Nodes {
		c.Nodes[i].GPUMemGB, c.Nodes[i].IdleW, c.Nodes[i].Curve = 32, 650, sched.PowerCurve{Points: curve}
	}
	tr := &trace.Trace{Jobs: jobs}
	d, err := sim.New(tr, c, sim.Options{Runtime: sim.Runtime{Restart: w.restart, Interference: w.truth,
		EpochEnd: func(j *trace.Job, n int) time.Duration {
			if n > int(j.Spec.Epochs) {
				return math.MaxInt64
			}
			return time.Duration(float64(j.Duration) * float64(n) / float64(j.Spec.Epochs))
		}}})
	if err != nil {
		t.Fatal(err)
	}
	build := func() sched.Decider {
		h := &interference.History{}
		if err := h.Seed(known()); err != nil {
			t.Fatal(err)
		}
		restart := func(string) time.Duration { return w.restart }
		k := worth.Known{Speeds: speedup.NewLearned(4, 8), Work: remaining.Known{Remainer: tr.Oracle()},
			Restart: restart, Sets: &share.Known{Work: tr.Oracle(), Restart: restart, Timed: w.timed,
				Learner: interference.NewLearner(h)}}
		if w.timed {
			k.Work = remaining.NewSizes()
		}
		s := worth.Stages(k, worth.Params{Place: place.Count{}, Explores: true, KWh: w.kwh, Sleeps: true,
			Unsaved: w.unsaved})
		s.Unsaved = w.unsaved
		return s.Decider()
	}
	rec, log := metrics.NewRecorder(len(jobs)), &diary{}
	if err := engine.Run(context.Background(), engine.NewState(eventlog.Header{ShareLimit: 4, Types: c.Types}), d,
		&reborn{Decider: build(), t: t, build: build, every: w.reborn},
		engine.Options{Sinks: []eventlog.Sink{rec, log}}); err != nil {
		t.Fatal(err)
	}
	return rec.Jobs, log
}

// known returns the sets of the tables as measured slow-downs.
func known() (list []interference.Set) {
	for _, s := range sets {
		x := interference.Set{Place: interference.Place{GPU: "v100", Width: 8}, Models: s.models}
		for range s.models {
			x.Slow = append(x.Slow, slowOf(s.models, s.hours))
		}
		list = append(list, x)
	}
	return list
}

// slowOf returns the mean hours together over those alone.
func slowOf(models []string, hours float64) float64 {
	alone := 0.0
	for _, m := range models {
		alone += paper[m].hours / float64(len(models))
	}
	return hours / alone
}

// byTables is how jobs slow each other by the tables; sets that are not there by a fifth.
func byTables(j *trace.Job, others []*trace.Job) float64 {
	models := []string{j.Spec.Model}
	for _, o := range others {
		models = append(models, o.Spec.Model)
	}
	slices.Sort(models)
	for _, s := range sets {
		if slices.Equal(models, s.models) {
			return slowOf(s.models, s.hours)
		}
	}
	return 1 + .2*float64(len(others))
}

// ofPaper is a job of the tables that arrives at an hour.
func ofPaper(at float64, model string) trace.Job {
	p := paper[model]
	return trace.Job{Duration: sched.Seconds(p.hours * 3600), Spec: sched.JobSpec{Name: model, Model: model,
		Submit: sched.Time(sched.Seconds(at * 3600)), GPUs: sched.Rigid(8), Epochs: 90, Share: sched.ShareAllow,
		Util: float32(p.use), GPUMemGB: float32(p.memory * 32)}}
}

// Ensure that a job joins others, though nodes are free, if and only if the energy is worth the delay of all: example 9
// of docs/papers/combined.md.
func TestJoinsPay(t *testing.T) {
	for _, c := range []struct {
		jobs   []string
		below  float64 // kWh per job-hour up to which the last joins
		before int     // joins up to then
	}{
		{[]string{"AlexNet", "ResNet-50"}, 9.592, 0},
		{[]string{"VGG-16", "AlexNet", "ResNet-18"}, 4.407, 1},
	} {
		for _, kwh := range []float64{c.below * .995, c.below * 1.005} {
			w := together{nodes: 4, kwh: kwh, truth: byTables}
			var jobs []trace.Job
			for i, m := range c.jobs {
				jobs = append(jobs, ofPaper(2*float64(i), m))
			}
			want := c.before
			if kwh < c.below {
				want++
			}
			if _, log := w.run(t, jobs); len(log.joined) != want || log.kept != want {
				t.Errorf("%v at %.3f kWh: %v, %d kept, want %d joins", c.jobs, kwh, log.joined, log.kept, want)
			}
		}
	}
}

// Ensure that a job joins others where there is no room, whatever energy is worth, and waits if it may not.
func TestJoinsInsteadOfWaiting(t *testing.T) {
	for _, c := range []struct {
		name string
		with func(*trace.Job)
		want int
	}{
		{"it may", func(*trace.Job) {}, 1},
		{"it does not want to", func(j *trace.Job) { j.Spec.Share = sched.ShareNever }, 0},
		{"it would be late", func(j *trace.Job) { j.Spec.Deadline = sched.Time(37 * time.Hour) }, 0},
		{"memory is short", func(j *trace.Job) { j.Spec.GPUMemGB = 31 }, 0},
	} {
		w := together{nodes: 1, kwh: math.Inf(1), truth: byTables}
		jobs := []trace.Job{ofPaper(0, "ResNet-50"), ofPaper(2, "AlexNet")}
		c.with(&jobs[1])
		if _, log := w.run(t, jobs); len(log.joined) != c.want {
			t.Errorf("%s: %v, want %d joins", c.name, log.joined, c.want)
		}
	}
}

// Ensure that who is slowed more than was thought is left alone again, and that the pair is not tried twice.
func TestJoinUndone(t *testing.T) {
	w := together{nodes: 2, kwh: 4, truth: func(_ *trace.Job, others []*trace.Job) float64 {
		return 1 + .3*float64(len(others))
	}}
	jobs := []trace.Job{ofPaper(0, "ResNet-50"), ofPaper(2, "AlexNet")}
	ended, log := w.run(t, jobs)
	if len(log.joined) != 1 || log.kept != 0 {
		t.Errorf("%v, %d kept, want one join that is undone", log.joined, log.kept)
	}
	for i, j := range ended {
		if alone := jobs[i].Duration; j.JCT() > alone+time.Hour {
			t.Errorf("job %d takes %v, alone %v", i, j.JCT(), alone)
		}
	}
}

// crowd draws jobs of the tables, some with deadlines, some that do not share, some of more nodes or none.
func crowd(r *rand.Rand) (jobs []trace.Job) {
	models := []string{"AlexNet", "ResNet-18", "ResNet-50", "VGG-16"}
	at := 0.0
	for range 12 + r.IntN(10) {
		at += 6 * r.Float64()
		j := ofPaper(at, models[r.IntN(4)])
		j.Duration = time.Duration(float64(j.Duration) * (.1 + .4*r.Float64()))
		j.Spec.Name += fmt.Sprint(len(jobs))
		switch r.IntN(8) {
		case 0:
			j.Spec.Share = sched.ShareNever
		case 1:
			j.Spec.Deadline = j.Spec.Submit.Add(time.Duration(float64(j.Duration) * (1 + r.Float64())))
		case 2:
			j.Spec.GPUs = sched.Rigid(16)
		case 3:
			j.Spec.GPUs = sched.Range{Min: 2, Want: 4, Max: 8}
		case 4:
			j.Spec.GPUs = sched.Rigid(1 + r.IntN(8))
		}
		jobs = append(jobs, j)
	}
	return jobs
}

// Ensure that in random worlds all jobs end, that GPUs are shared, and that a twin that is saved, made again and loaded
// at each decision, or at some, decides the same.
func TestRandomCompanies(t *testing.T) {
	joins, kept := 0, 0
	for seed := range uint64(6) {
		r := rand.New(rand.NewPCG(seed, 9))
		w := together{nodes: 2 + r.IntN(3), kwh: []float64{1, 4, math.Inf(1)}[r.IntN(3)], timed: r.IntN(2) == 0,
			restart: time.Duration(r.IntN(3)) * time.Minute, unsaved: sched.Unsaved(r.IntN(2))}
		noise := .15 * float64(r.IntN(2))
		w.truth = func(j *trace.Job, others []*trace.Job) float64 {
			h := rand.New(rand.NewPCG(binary.LittleEndian.Uint64(append([]byte(j.Spec.Name), make([]byte, 8)...)),
				uint64(len(others))))
			return byTables(j, others) * math.Exp(noise*h.Float64())
		}
		jobs := crowd(r)
		ended, want := w.run(t, jobs)
		for i, j := range ended {
			if j.Outcome != sched.Finished {
				t.Fatalf("seed %d: job %d has not finished", seed, i)
			}
		}
		joins, kept = joins+len(want.joined), kept+want.kept
		w.reborn = 1 + 2*int(seed%2)
		if _, got := w.run(t, jobs); !slices.Equal(got.lines, want.lines) {
			at := 0
			for at < min(len(got.lines), len(want.lines)) && got.lines[at] == want.lines[at] {
				at++
			}
			t.Fatalf("seed %d, made again at every decision of %d: from\n%s\nwant\n%s", seed, w.reborn,
				strings.Join(got.lines[at:min(at+3, len(got.lines))], "\n"),
				strings.Join(want.lines[at:min(at+3, len(want.lines))], "\n"))
		}
	}
	if joins < 20 || kept < 4 {
		t.Errorf("%d joins, %d kept: too few to say anything", joins, kept)
	}
	t.Logf("%d joins, %d kept", joins, kept)
}

// Ensure that a gang of two nodes starts under a stream of jobs that share: while GPUs are kept for it no one joins.
func TestGangStartsUnderCompanies(t *testing.T) {
	w := together{nodes: 2, kwh: 1, truth: byTables}
	gang := ofPaper(5, "ResNet-50")
	gang.Spec.GPUs, gang.Spec.Share, gang.Duration = sched.Rigid(16), sched.ShareNever, 4*time.Hour
	jobs := []trace.Job{}
	for i := range 60 {
		j := ofPaper(float64(i), []string{"AlexNet", "ResNet-18"}[i%2])
		j.Duration /= 4
		if j.Spec.Submit > gang.Spec.Submit && (len(jobs) == 0 || jobs[len(jobs)-1].Spec.Submit <= gang.Spec.Submit) {
			jobs = append(jobs, gang)
		}
		jobs = append(jobs, j)
	}
	ended, _ := w.run(t, jobs)
	for i := range jobs {
		if jobs[i].Spec.GPUs.Want == 16 {
			if wait := ended[i].Start.Sub(ended[i].Submit).Hours(); wait > 24 {
				t.Errorf("the gang waits %.1f h", wait)
			}
		}
	}
}
