package whatif_test

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/trainyard/trainyard/cluster"
	"github.com/trainyard/trainyard/driver/sim"
	"github.com/trainyard/trainyard/engine"
	"github.com/trainyard/trainyard/manager/whatif"
	"github.com/trainyard/trainyard/model/dist"
	"github.com/trainyard/trainyard/model/remaining"
	"github.com/trainyard/trainyard/sched"
	"github.com/trainyard/trainyard/system"
	"github.com/trainyard/trainyard/trace"
)

var forecastSeeds = flag.Int("forecast-seeds", 12, "")

func siteLike(t testing.TB, site string, seed uint64, jobs int) (*world, trace.Generator) {
	t.Helper()
	g, err := trace.Like(site)
	if err != nil {
		t.Fatal(err)
	}
	g.Seed, g.Jobs, g.Load, g.GPUs = seed, jobs, .8+.1*float64(seed%6), 32
	if os.Getenv("NOREPEAT") != "" {
		g.Repeat = 0
		g.Profile = nil
	}
	g.Mix = slices.DeleteFunc(g.Mix, func(w trace.Width) bool { return w.GPUs > 16 })
	w := newWorld(1)
	w.runtime, w.sleep, w.trace = sim.Runtime{}, "", trace.Generate(g)
	for i := range w.trace.Jobs {
		w.trace.Jobs[i].Spec.Name = ""
	}
	w.cluster = &cluster.Cluster{Name: site}
	for i := range 4 {
		w.cluster.Nodes = append(w.cluster.Nodes, sched.NodeSpec{Name: fmt.Sprint("n", i), GPUs: 8, Pool: sched.None})
	}
	w.header = engine.Header{GPUs: 32}
	w.scores = scoresOf(32, rand.New(rand.NewPCG(1, 1)))
	return w, g
}

func managed(w *world, name string) (whatif.System, int) {
	info, err := system.Named(name)
	if err != nil {
		panic(err)
	}
	build := func() (system.System, error) {
		k := system.Knowledge{Work: remaining.New(), Types: w.cluster.Types, PerNode: 8, MostGPUs: 32, Scores: w.scores}
		return info.Build(k, system.NewSettings(map[string]string{}), nil)
	}
	s, err := build()
	if err != nil {
		panic(err)
	}
	return func() (sched.Decider, error) { s, err := build(); return s.Decider, err }, max(s.ShareLimit, 1)
}

type nextStarts struct {
	cut   *cutter
	start map[sched.JobID]sched.Time
}

func (x *nextStarts) Log(v *sched.View, e *sched.Event) {
	if e.Kind == sched.AttemptStarted && x.cut.moment != nil {
		if _, ok := x.start[e.Job]; !ok {
			x.start[e.Job] = e.Time
		}
	}
}

func TestCalibration(t *testing.T) {
	sites, systems := trace.Sites(), []string{"fifo", "fifo-skip", "fifo-easy", "las", "tiresias-las", "srtf"}
	if s := os.Getenv("SITES"); s != "" {
		sites = strings.Split(s, ",")
	}
	if s := os.Getenv("SYSTEMS"); s != "" {
		systems = strings.Split(s, ",")
	}
	kind := os.Getenv("WORK")
	T := [5]float64{}
	for _, site := range sites {
		for _, name := range systems {
			bins := [5]float64{}
			began := time.Now()
			open := 0
			var bases [8]int
			for seed := range uint64(*forecastSeeds) {
				r := rand.New(rand.NewPCG(seed, 18))
				jobs := 150 + r.IntN(600)
				w, g := siteLike(t, site, seed, jobs)
				fresh, limit := managed(w, name)
				w.header.ShareLimit = limit
				c := &cutter{w: w, fresh: fresh}
				x := &nextStarts{cut: c, start: map[sched.JobID]sched.Time{}}
				c.at = w.trace.Jobs[int(float64(jobs)*(.05+.6*r.Float64()))].Spec.Submit.Add(1)
				c.dec, _ = fresh()
				if err := engine.Run(t.Context(), engine.NewState(w.header), w.driver(t), c.dec, engine.Options{Sinks: []engine.Sink{c, x}}); err != nil {
					t.Fatal(err)
				}
				m := c.moment
				if m == nil {
					continue
				}
				var waiting []sched.JobID
				for j := range m.View().Jobs {
					if jj := m.View().Job(sched.JobID(j)); jj.State == sched.Waiting && !jj.HoldsDevices() && len(jj.Target) == 0 {
						waiting = append(waiting, sched.JobID(j))
					}
				}
				if len(waiting) == 0 {
					continue
				}
				var work *whatif.Work
				switch kind {
				case "oracle":
					work = &whatif.Work{Class: byWidth, Earlier: map[string]*dist.Empirical{}}
					rr := rand.New(rand.NewPCG(seed, 1))
					for _, wd := range g.Mix {
						var s []float64
						for range 3000 {
							s = append(s, wd.Durations.Draw(rr))
						}
						work.Earlier[fmt.Sprint(wd.GPUs)], _ = dist.NewEmpirical(s)
					}
				case "width":
					work = whatif.Learn(m.View(), byWidth)
				default:
					work = whatif.Learn(m.View(), whatif.Alike)
				}
				j := waiting[r.IntN(len(waiting))]
				f, err := m.Forecast(t.Context(), work, whatif.ForecastOptions{Seed: seed, Draws: 20, Others: os.Getenv("NOOTHERS") == "", Of: []sched.JobID{j}})
				if err != nil {
					t.Fatal(err)
				}
				at, e := x.start[j], f.Of(j)
				bases[e.Basis]++
				if e.Start.P90 == sched.Never {
					open++
				}
				if os.Getenv("SHOW") != "" {
					h := func(x sched.Time) float64 { return x.Sub(f.At).Hours() }
					jb := m.View().Job(j)
					t.Logf("seed %d job %d of %d waiting %d gpus %d attempts %d svc %.0f span %.1f d: truth %.2f h in %.2f %.2f %.2f, work %v", seed, j, len(m.View().Jobs), len(waiting), jb.Spec.GPUs.Want, jb.Attempts, jb.Service,
						h(0)/-24, h(at), h(e.Start.P10), h(e.Start.P50), h(e.Start.P90), w.trace.Jobs[j].Duration)
				}
				switch {
				case at < e.Start.P10:
					bins[0]++
				case at < e.Start.P50:
					bins[1]++
				case at <= e.Start.P90:
					bins[2]++
				default:
					bins[3]++
				}
				bins[4]++

			}
			for i := range T {
				T[i] += bins[i]
			}
			t.Logf("%-8s %-14s n=%3v inside %.3f  early %.3f low %.3f high %.3f late %.3f  open %d %v (%v)", site, name, bins[4], (bins[1]+bins[2])/bins[4], bins[0]/bins[4], bins[1]/bins[4], bins[2]/bins[4], bins[3]/bins[4], open, bases, time.Since(began).Round(time.Millisecond))
		}
	}
	t.Logf("ALL n=%v inside %.3f early %.3f low %.3f high %.3f late %.3f", T[4], (T[1]+T[2])/T[4], T[0]/T[4], T[1]/T[4], T[2]/T[4], T[3]/T[4])
}
