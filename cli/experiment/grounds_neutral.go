package experiment

import (
	"fmt"
	"math/rand/v2"

	"github.com/trainyard/trainyard/cluster"
	"github.com/trainyard/trainyard/model/power"
	"github.com/trainyard/trainyard/model/speedup"
	"github.com/trainyard/trainyard/sched"
	"github.com/trainyard/trainyard/simulate"
	"github.com/trainyard/trainyard/trace"
)

// The neutral ground: GPUs of two types of which the second is half as fast, and nodes of it to rent.
const (
	neutralCluster = "6x4:v100+6x4:t4"
	neutralSlow    = .5 // speed of the second type
	neutralRented  = 4  // nodes that may be rented
	neutralJobs    = 300
	neutralLoad    = .8 // hours of one GPU of the first type that arrive, over those owned
)

// slower is an application at neutralSlow of the speed of another.
type slower struct{ speedup.App }

// Speed is that share of the other's.
func (s slower) Speed(phase int, w speedup.Way) float64 { return neutralSlow * s.App.Speed(phase, w) }

// Best is the other's, at that share of its speed.
func (s slower) Best(phase, gpus, nodes int, limits sched.BatchRange) (speedup.Way, float64) {
	w, speed := s.App.Best(phase, gpus, nodes, limits)
	return w, neutralSlow * speed
}

// neutralGround has all at once but for company, of which there are tables for one type of GPU alone: elastic and rigid
// jobs, GPUs that differ by type and by score, and nodes to rent by demand. Jobs come as in recorded traces.
func neutralGround(data string) (rows []groundRow) {
	home := append([]contender{{"tiresias-las", "tiresias-las", nil}, palUnder("tiresias-las", "on")}, elasticHome...)
	for _, d := range []struct{ name, path, best string }{
		{"Philly", "traces/philly/philly_gpu_jobs.csv.gz", "pal under tiresias-las, backfill"},
		{"Venus", "traces/venus/venus_gpu_jobs.csv.gz", "pal under tiresias-las, backfill"},
		{"Acme", "traces/acme/kalos_completed_319.csv", "pal under tiresias-las, backfill"},
	} {
		rows = append(rows, groundRow{Name: "all at once, arrivals of " + d.name, Home: home, Best: d.best, Bar: .10,
			Worlds: func(deciding bool, n int) ([]world, error) {
				full, err := inData(data, d.path)
				if err != nil {
					return nil, err
				}
				arrivals, err := recordedArrivals(full, neutralJobs, 0)
				if err != nil {
					return nil, err
				}
				return neutralWorlds(data, arrivals, halfSeeds(deciding, n))
			}})
	}
	return rows
}

// neutralWorlds are those of seeds.
func neutralWorlds(data string, arrivals func(uint64) []sched.Time, seeds []uint64) (list []world, err error) {
	apps, _, err := elasticApps(data)
	if err != nil {
		return nil, err
	}
	slow := make(map[string]speedup.App)
	for name, app := range apps {
		slow[name] = slower{app}
	}
	c, err := neutralNodes()
	if err != nil {
		return nil, err
	}
	medians, err := palMedians(data + "/pal/variability")
	if err != nil {
		return nil, err
	}
	for _, seed := range seeds {
		list = append(list, world{Name: fmt.Sprint("seed ", seed), Common: common("sleep", "0"),
			Request: simulate.Request{Trace: neutralTrace(seed, arrivals(seed)), Cluster: c,
				Scores: drawMedians(seed, c.MostGPUs(), medians),
				Apps:   apps, Recorded: simulate.Recorded{Apps: map[string]map[string]speedup.App{"t4": slow}}}})
	}
	return list, nil
}

// neutralNodes are nodes that draw power, and a pool of more.
func neutralNodes() (*cluster.Cluster, error) {
	c, err := cluster.Load(neutralCluster)
	if err != nil {
		return nil, err
	}
	for i := range c.Nodes {
		c.Nodes[i].IdleW, c.Nodes[i].Curve = power.FittedIdleW,
			sched.PowerCurve{Scale: power.FittedScaleW, Exponent: power.FittedExponent}
	}
	kind := c.Nodes[len(c.Nodes)-1]
	kind.Name, kind.DollarsHr = "", 4
	c.Pools = append(c.Pools, cluster.Pool{Node: kind, PoolSpec: sched.PoolSpec{Name: "more", Type: kind.Type,
		GPUs: kind.GPUs, Price: kind.DollarsHr, Max: neutralRented}})
	return c, nil
}

// neutralTrace gives each arrival one of our kinds, every other of a fixed width, and scales time so that the load is
// neutralLoad.
func neutralTrace(seed uint64, arrivals []sched.Time) *trace.Trace {
	r := rand.New(rand.NewPCG(seed, 24))
	t := &trace.Trace{Format: "generated", Profiled: true}
	hours := 0.0
	for i := range arrivals {
		k, of := &elasticKinds[r.IntN(len(elasticKinds))], elasticHours[r.IntN(len(elasticHours))]
		j := trace.Job{Spec: sched.JobSpec{Name: fmt.Sprint(i), Model: nameOf(k, of),
			GPUs: sched.Range{Min: 1, Want: 1, Max: widestElastic}}}
		if i%2 == 1 {
			j.Spec.GPUs = sched.Rigid(1 << r.IntN(3))
		}
		hours += of
		t.Jobs = append(t.Jobs, j)
	}
	span := (arrivals[len(arrivals)-1] - arrivals[0]).Seconds()
	scale := 3600 * hours / (48 * neutralLoad) / max(span, 1)
	for i := range arrivals {
		t.Jobs[i].Spec.Submit = sched.Time(0).Add(sched.Seconds((arrivals[i] - arrivals[0]).Seconds() * scale))
	}
	return t
}
