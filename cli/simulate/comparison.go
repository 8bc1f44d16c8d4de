package simulate

import (
	"context"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/trainyard/trainyard/cli/inputs"
	"github.com/trainyard/trainyard/cli/term"
	"github.com/trainyard/trainyard/cluster"
	"github.com/trainyard/trainyard/eventlog"
	"github.com/trainyard/trainyard/metrics"
	"github.com/trainyard/trainyard/model/power"
	"github.com/trainyard/trainyard/model/speedup"
	"github.com/trainyard/trainyard/model/variability"
	"github.com/trainyard/trainyard/simulate"
	"github.com/trainyard/trainyard/system"
	"github.com/trainyard/trainyard/trace"
)

// comparison is several systems on one trace and one cluster.
type comparison struct {
	trace   *trace.Trace
	summary trace.Summary
	scores  *variability.Scores // of the GPUs, as they are; nil = alike
	known   *variability.Scores // as they are known; nil = as they are
	apps    map[string]speedup.App
	sharing *simulate.Sharing // of jobs that share GPUs; nil = not known
	caps    simulate.CapCurves
	energy  metrics.Energy
	budget  float64
	cluster *cluster.Cluster
	preset  string
	round   time.Duration
	runs    []systemRun
	hashed  bool // have the event logs hashed
}

// systemRun is one system of a comparison, and what came of it.
type systemRun struct {
	sim     simulate.Simulation
	outcome *simulate.Outcome // nil before the run
	hash    eventlog.Hash     // of the event log, if comparison.hashed
}

// replica reports whether a stand-alone replica runs instead of the engine. It knows no events and no nodes.
func (r *systemRun) replica() bool {
	p := inputs.PresetNamed(r.sim.Preset)
	return p != nil && p.Replica(r.sim.System)
}

// comparison reads what the flags name and checks all of it before anything runs.
func (f *simulateFlags) comparison() (*comparison, error) {
	infos, settings, err := f.chosen()
	if err != nil {
		return nil, err
	}
	c := &comparison{preset: f.preset, hashed: f.json}
	if c.round, err = inputs.ParseRound(f.round); err != nil {
		return nil, err
	}
	if c.cluster, err = inputs.LoadCluster(f.cluster); err != nil {
		return nil, err
	}
	err = f.checkPaths(c.cluster, inputs.NamesOf(infos), settings)
	if err != nil {
		return nil, err
	}
	if f.seeded {
		seeded := *c.cluster
		seeded.Failures.Seed = f.seed
		c.cluster = &seeded
	}
	if c.sharing, err = inputs.ReadOptional("interference", f.interference, simulate.ReadSharing); err != nil {
		return nil, err
	}
	steps, err := c.sharing.Steps(c.cluster)
	if err != nil {
		return nil, term.Malformed(err)
	}
	if c.trace, err = inputs.ReadTrace(f.trace, f.format, f.unit, steps); err != nil {
		return nil, err
	}
	err = c.readEnergy(f)
	if err != nil {
		return nil, err
	}
	if c.scores, err = inputs.ReadScores("variability", f.variability, c.cluster); err != nil {
		return nil, err
	}
	if c.known, err = inputs.ReadScores("variability-known", f.known, c.cluster); err != nil {
		return nil, err
	}
	err = c.scores.SameOrder(c.known)
	if err != nil {
		return nil, term.Malformed(err)
	}
	if c.apps, err = inputs.ReadApps(f.profiles); err != nil {
		return nil, err
	}
	c.budget = f.budget
	err = checkBudget(f.budget, infos)
	if err != nil {
		return nil, err
	}
	measured, err := simulate.Measured(c.trace, c.cluster, c.apps)
	if err != nil {
		return nil, term.Usage(err)
	}
	c.summary = trace.Describe(measured)
	for i, info := range infos {
		sim, err := c.simulation(info, settings[i])
		if err != nil {
			return nil, err
		}
		c.runs = append(c.runs, systemRun{sim: sim})
	}
	return c, nil
}

// readEnergy reads what is known of power caps, prices and carbon.
func (c *comparison) readEnergy(f *simulateFlags) (err error) {
	if c.caps, err = inputs.ReadOptional("power caps", f.caps, simulate.ReadCaps); err != nil {
		return err
	}
	if c.energy.Price, err = inputs.ReadOptional("energy price", f.price, power.ReadPrices); err != nil {
		return err
	}
	c.energy.Carbon, err = inputs.ReadOptional("carbon", f.carbon, power.ReadCarbon)
	return err
}

// chosen returns the systems asked for and the settings of each.
func (f *simulateFlags) chosen() ([]*system.Info, []map[string]string, error) {
	if err := f.complete(); err != nil {
		return nil, nil, err
	}
	infos, err := inputs.SystemsNamed(f.systems)
	if err != nil {
		return nil, nil, err
	}
	settings, err := inputs.ParseSets(f.sets, infos, f.preset)
	return infos, settings, err
}

// checkBudget returns an error if a budget is none, or nobody rents to it. 0 means that none is given.
func checkBudget(budget float64, infos []*system.Info) error {
	rents := func(i *system.Info) bool { return slices.Contains(i.KeyNames(), "budget") }
	switch {
	case !(budget >= 0) || math.IsInf(budget, 0):
		return term.Usagef("--budget %v, want a number of GPUs > 0", budget)
	case budget > 0 && !slices.ContainsFunc(infos, rents):
		return term.Usagef("--budget %v: none of %s rents to a budget, as boa does", budget, strings.Join(inputs.NamesOf(infos), ", "))
	}
	return nil
}

// names returns the names of the systems.
func (c *comparison) names() []string {
	names := make([]string, len(c.runs))
	for i := range c.runs {
		names[i] = c.runs[i].sim.System
	}
	return names
}

// complete reports the flags that are missing, and outputs that are no files.
func (f *simulateFlags) complete() error {
	var missing []string
	if f.trace == "" {
		missing = append(missing, "--trace FILE")
	}
	if f.cluster == "" {
		missing = append(missing, "--cluster SPEC")
	}
	if len(f.systems) == 0 {
		missing = append(missing, "--system NAME")
	}
	if len(missing) > 0 {
		return term.Usagef("simulate: missing %s; see `trainyard simulate --help`", strings.Join(missing, ", "))
	}
	for _, o := range []term.PathUse{{What: "--jobs-out", Path: f.jobsOut}, {What: "--events-out", Path: f.eventsOut}} {
		if o.Path == "-" {
			return term.Usagef("%s -: want a file; /dev/stdout is the standard output, ./- a file named -", o.What)
		}
	}
	return nil
}

// simulation puts together the run of one system, with the files its keys name, and checks the request.
func (c *comparison) simulation(info *system.Info, settings map[string]string) (simulate.Simulation, error) {
	sim := simulate.Simulation{Trace: c.trace, Cluster: c.cluster, System: info.Name, Settings: settings,
		Preset: c.preset, Round: c.round, Scores: c.scores, Known: c.known, Apps: c.apps, Budget: c.budget,
		Sharing: c.sharing, Caps: c.caps, Energy: c.energy}
	var err error
	if sim.Files, err = inputs.ReadFiles(simulate.KeysOf(info, c.preset), settings, c.scores, c.cluster.MostGPUs()); err != nil {
		return sim, err
	}
	sim.NoiseSeed = c.cluster.Failures.Seed
	return sim, term.Usage(sim.Check())
}

// runOne runs one system, with a bar on stderr if that is a terminal and the run takes long.
func (c *comparison) runOne(ctx context.Context, i int, out *outputs, stderr io.Writer) error {
	r, began := &c.runs[i], time.Now()
	label := r.sim.System
	if len(c.runs) > 1 {
		label = fmt.Sprintf("%d of %d %s", i+1, len(c.runs), label)
	}
	bar := term.NewProgress(stderr, label, len(c.trace.Jobs))
	defer bar.Close()
	events := out.eventsOf(c, i)
	r.sim.Clock = func() int64 { return int64(time.Since(began)) }
	r.sim.Sinks = bar.Sinks()
	if c.hashed {
		r.sim.Sinks = append(r.sim.Sinks, &r.hash)
	}
	outcome, err := r.sim.Run(ctx)
	if err != nil {
		return err
	}
	r.outcome = outcome
	r.outcome.Wall = time.Since(began).Seconds()
	return events.finish()
}
