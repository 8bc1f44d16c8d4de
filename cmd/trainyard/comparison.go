package main

import (
	"context"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/trainyard/trainyard/cluster"
	"github.com/trainyard/trainyard/eventlog"
	"github.com/trainyard/trainyard/experiment"
	"github.com/trainyard/trainyard/metrics"
	"github.com/trainyard/trainyard/model/power"
	"github.com/trainyard/trainyard/model/speedup"
	"github.com/trainyard/trainyard/model/variability"
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
	sharing *experiment.Sharing // of jobs that share GPUs; nil = not known
	caps    experiment.CapCurves
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
	sim     experiment.Simulation
	outcome *experiment.Outcome // nil before the run
	hash    eventlog.Hash       // of the event log, if comparison.hashed
}

// replica reports whether a stand-alone replica runs instead of the engine. It knows no events and no nodes.
func (r *systemRun) replica() bool {
	p := presetNamed(r.sim.Preset)
	return p != nil && p.Replica(r.sim.System)
}

// presetNamed returns the preset of that name, or nil.
func presetNamed(name string) *experiment.PresetInfo {
	for i := range experiment.Presets {
		if p := &experiment.Presets[i]; p.Name == name {
			return p
		}
	}
	return nil
}

// comparison reads what the flags name and checks all of it before anything runs.
func (f *simulateFlags) comparison() (*comparison, error) {
	infos, settings, err := f.chosen()
	if err != nil {
		return nil, err
	}
	c := &comparison{preset: f.preset, hashed: f.json}
	if c.round, err = parseRound(f.round); err != nil {
		return nil, err
	}
	if c.cluster, err = loadCluster(f.cluster); err != nil {
		return nil, err
	}
	err = f.checkPaths(c.cluster, namesOf(infos), settings)
	if err != nil {
		return nil, err
	}
	if f.seeded {
		seeded := *c.cluster
		seeded.Failures.Seed = f.seed
		c.cluster = &seeded
	}
	if c.sharing, err = readOptional("interference", f.interference, experiment.ReadSharing); err != nil {
		return nil, err
	}
	steps, err := c.sharing.Steps(c.cluster)
	if err != nil {
		return nil, malformed(err)
	}
	if c.trace, err = readTrace(f.trace, f.format, f.unit, steps); err != nil {
		return nil, err
	}
	err = c.readEnergy(f)
	if err != nil {
		return nil, err
	}
	if c.scores, err = readScores("variability", f.variability, c.cluster); err != nil {
		return nil, err
	}
	if c.known, err = readScores("variability-known", f.known, c.cluster); err != nil {
		return nil, err
	}
	err = c.scores.SameOrder(c.known)
	if err != nil {
		return nil, malformed(err)
	}
	if c.apps, err = readApps(f.profiles); err != nil {
		return nil, err
	}
	c.budget = f.budget
	err = checkBudget(f.budget, infos)
	if err != nil {
		return nil, err
	}
	measured, err := experiment.Measured(c.trace, c.cluster, c.apps)
	if err != nil {
		return nil, usage(err)
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
	if c.caps, err = readOptional("power caps", f.caps, experiment.ReadCaps); err != nil {
		return err
	}
	if c.energy.Price, err = readOptional("energy price", f.price, power.ReadPrices); err != nil {
		return err
	}
	c.energy.Carbon, err = readOptional("carbon", f.carbon, power.ReadCarbon)
	return err
}

// chosen returns the systems asked for and the settings of each.
func (f *simulateFlags) chosen() ([]*system.Info, []map[string]string, error) {
	if err := f.complete(); err != nil {
		return nil, nil, err
	}
	infos, err := systemsNamed(f.systems)
	if err != nil {
		return nil, nil, err
	}
	settings, err := parseSets(f.sets, infos, f.preset)
	return infos, settings, err
}

// checkBudget returns an error if a budget is none, or nobody rents to it. 0 means that none is given.
func checkBudget(budget float64, infos []*system.Info) error {
	rents := func(i *system.Info) bool { return slices.Contains(i.KeyNames(), "budget") }
	switch {
	case !(budget >= 0) || math.IsInf(budget, 0):
		return usagef("--budget %v, want a number of GPUs > 0", budget)
	case budget > 0 && !slices.ContainsFunc(infos, rents):
		return usagef("--budget %v: none of %s rents to a budget, as boa does", budget, strings.Join(namesOf(infos), ", "))
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
		return usagef("simulate: missing %s; see `trainyard simulate --help`", strings.Join(missing, ", "))
	}
	for _, o := range []pathUse{{"--jobs-out", f.jobsOut}, {"--events-out", f.eventsOut}} {
		if o.path == "-" {
			return usagef("%s -: want a file; /dev/stdout is the standard output, ./- a file named -", o.what)
		}
	}
	return nil
}

// systemsNamed finds the rows of the systems and trims their names.
func systemsNamed(names []string) ([]*system.Info, error) {
	var infos []*system.Info
	for i, name := range names {
		names[i] = strings.TrimSpace(name)
		if names[i] == "" {
			return nil, usagef("--system %q has an empty name, want NAME,... such as fifo,las", strings.Join(names, ","))
		}
		info, err := system.Named(names[i])
		if err != nil {
			return nil, usage(err)
		}
		if slices.Contains(infos, info) {
			return nil, usagef("--system: %s twice, want it once", name)
		}
		infos = append(infos, info)
	}
	return infos, nil
}

// simulation puts together the run of one system, with the files its keys name, and checks the request.
func (c *comparison) simulation(info *system.Info, settings map[string]string) (experiment.Simulation, error) {
	sim := experiment.Simulation{Trace: c.trace, Cluster: c.cluster, System: info.Name, Settings: settings,
		Preset: c.preset, Round: c.round, Scores: c.scores, Known: c.known, Apps: c.apps, Budget: c.budget,
		Sharing: c.sharing, Caps: c.caps, Energy: c.energy}
	k, err := knowledgeOf(settings, c.scores)
	if err != nil {
		return sim, err
	}
	sim.Sizes, sim.Skew, sim.Classes, sim.Locality = k.Sizes, k.Skew, k.Classes, k.Locality
	if sim.Slow, err = readSlow(settings, c.cluster.MostGPUs()); err != nil {
		return sim, err
	}
	sim.NoiseSeed = c.cluster.Failures.Seed
	return sim, usage(sim.Check())
}

// runOne runs one system, with a bar on stderr if that is a terminal and the run takes long.
func (c *comparison) runOne(ctx context.Context, i int, out *outputs, stderr io.Writer) error {
	r, began := &c.runs[i], time.Now()
	label := r.sim.System
	if len(c.runs) > 1 {
		label = fmt.Sprintf("%d of %d %s", i+1, len(c.runs), label)
	}
	bar := newProgress(stderr, label, len(c.trace.Jobs))
	defer bar.close()
	events := out.eventsOf(c, i)
	r.sim.Clock = func() int64 { return int64(time.Since(began)) }
	r.sim.Sinks = bar.sinks()
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
