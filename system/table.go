package system

import (
	"maps"
	"slices"
	"time"

	"github.com/trainyard/trainyard/model/variability"
	"github.com/trainyard/trainyard/pipeline"
	"github.com/trainyard/trainyard/sched"
	"github.com/trainyard/trainyard/stage/allocate"
	"github.com/trainyard/trainyard/stage/place"
	"github.com/trainyard/trainyard/stage/watch"
	"github.com/trainyard/trainyard/system/baseline"
	"github.com/trainyard/trainyard/system/boa"
	"github.com/trainyard/trainyard/system/eaco"
	"github.com/trainyard/trainyard/system/elastic"
	"github.com/trainyard/trainyard/system/pal"
	"github.com/trainyard/trainyard/system/tiresias"
)

// table lists all systems. A policy is added by its file, a data file for its test, and a row here.
var table = []Info{
	{Name: "fifo", Line: "by arrival; the first that does not fit holds up all behind it", Assumes: "nothing",
		Source: "YARN-CS as in Gu et al., NSDI'19", Stages: plain(baseline.FIFO)},
	{Name: "fifo-skip", Line: "by arrival; those that do not fit are passed over, without reservation", Assumes: "nothing",
		Source: "best-effort backfill, released Tiresias simulator (fjf)", Stages: plain(baseline.FIFOSkip)},
	{Name: "fifo-easy", Line: "by arrival; the first that does not fit gets a reservation, others fill the gaps",
		Assumes: "work of each job", Source: "EASY backfilling, Lifka, JSSPP'95", Stages: knowing(baseline.FIFOEasy)},
	{Name: "sjf", Line: "shortest job first, not preemptive; the first that does not fit holds up all behind it",
		Assumes: "work of each job", Source: "textbook; HeliosArtifact, SC'21", Stages: knowing(baseline.SJF)},
	{Name: "srtf", Line: "shortest remaining time first, preemptive", Assumes: "remaining work of each job",
		Source: "textbook; Gu et al., NSDI'19", Stages: knowing(baseline.SRTF)},
	{Name: "srsf", Line: "shortest remaining service (time x GPUs) first, preemptive", Assumes: "remaining work of each job",
		Source: "Gu et al., NSDI'19, section 3", Stages: knowing(baseline.SRSF)},
	{Name: "fewest-gpus", Line: "narrowest job first, preemptive", Assumes: "nothing",
		Source: "released Tiresias simulator (sjf)", Stages: plain(baseline.FewestGPUs)},
	{Name: "las", Line: "least attained service first, preemptive, looked at every quantum", Assumes: "nothing",
		Source: "Gu et al., NSDI'19, continuous 2D-LAS", Stages: las,
		Keys: []Key{keyUnit, {"quantum", "300", "seconds between looks at the order while jobs wait; more than restart_overhead"}}},
	{Name: "tiresias-las", Line: "Tiresias-L: discretised 2D-LAS, placement by model profile", Assumes: "nothing",
		Source: "Gu et al., NSDI'19", Stages: tiresiasLAS, Placing: "skew", Keys: queueKeys},
	{Name: "tiresias-gittins", Line: "Tiresias-G: discretised 2D-Gittins, placement by model profile",
		Assumes: "distribution of service, given or learned from finished jobs", Source: "Gu et al., NSDI'19",
		Stages: tiresiasGittins, Placing: "skew", Keys: append([]Key{
			{"distribution", "", "file with one column headed duration: service of earlier jobs (default: learned)"},
			{"delta", "", "static Gittins quantum (default: the upper limit of each queue)"}}, queueKeys...)},
	{Name: "pal", Line: "PAL: placement by class, PM score and locality, anew every round, under any order", Assumes: "PM scores; the order's own",
		Source: "Jain et al., SC'24", Stages: placing(pal.PAL), Keys: append([]Key{
			{"tolerance", "0.05", "share by which one GPU may be slower than the fastest, to spare a node for a gang"}}, palKeys...), Common: limits, Scored: true},
	{Name: "pm-first", Line: "the fastest GPUs first, wherever they are, anew every round, under any order", Assumes: "PM scores; the order's own",
		Source: "Jain et al., SC'24", Stages: placing(pal.PMFirst), Keys: palKeys, Common: limits, Scored: true},
	{Name: "packed", Line: "few nodes, anew every round (packed, non-sticky), under any order", Assumes: "the order's own",
		Source: "Jain et al., SC'24, baseline", Stages: packing(pal.Packed), Keys: []Key{keyOrder, keyBackfill, keyReplace, keyStragglers}, Common: limits},
	{Name: "packed-sticky", Line: "few nodes; jobs that run stay (packed, sticky), under any order", Assumes: "the order's own",
		Source: "Jain et al., SC'24, baseline", Stages: packing(pal.PackedSticky), Keys: []Key{keyOrder, keyBackfill, keyStragglers}, Common: limits},
	{Name: "boa", Line: "BOA Constrictor as its authors run it: widths by one price, nodes rented to a budget", Assumes: "arrival rates and speeds by application, estimated",
		Source: "Li et al., arXiv 2602.01404", Stages: renting(boa.Published), Keys: append([]Key{{"seed", "0", "of the search for widths"}}, boaKeys...),
		Placing: "packed", Rents: true, Batches: true},
	{Name: "boa-exact", Line: "BOA Constrictor with optimal widths, restarts counted, and no waiting for a minute", Assumes: "arrival rates and speeds by application, estimated",
		Source: "Li et al., arXiv 2602.01404; the exact program is ours", Stages: renting(boa.Exact), Keys: boaKeys, Placing: "packed", Rents: true, Batches: true},
	{Name: "equal-width", Line: "the same number of GPUs for all jobs, as many as a budget pays for", Assumes: "arrival rates and speeds by application, estimated",
		Source: "baseline for boa", Stages: renting(boa.Equal), Keys: equalKeys, Placing: "packed", Rents: true, Batches: true},
	{Name: "eaco", Line: "EaCO: jobs join busy GPUs on trial where all keep their deadlines; idle nodes sleep", Assumes: "remaining work, epochs, use and memory; learns how sets slow each other",
		Source: "Haghshenas and Hashemi, arXiv 2412.08294", New: eacoSystem, Keys: eacoKeys, Common: sharingLimits, Sleeps: true},
	{Name: "fifo-packed", Line: "by arrival; the first that does not fit joins the single job beside which both do most", Assumes: "throughput of pairs, given",
		Source: "Narayanan et al., OSDI'20 (Gavel), fifo_packed, without rounds", New: paired(eaco.FIFOPacked), Keys: []Key{keyPairs}, Common: sharingLimits},
	{Name: "gandiva", Line: "by arrival; one that does not fit joins some single job, drawn at random", Assumes: "throughput of pairs, given",
		Source: "Narayanan et al., OSDI'20 (Gavel), gandiva, without rounds", New: paired(eaco.Gandiva), Keys: []Key{{"seed", "0", "of the draws"}, keyPairs}, Common: sharingLimits},
	{Name: "elastic", Line: "elastic scaling: admission by minima in order of arrival, then GPUs and batch sizes by dynamic programming", Assumes: "speeds by width and batch size, learned or known",
		Source: "Saxena et al., MASCOTS 2020; see docs/papers/elastic.md", Stages: elasticScaling, Keys: elasticKeys, Placing: "packed", Batches: true},
	{Name: "elastic-fifo", Line: "elastic FIFO: minima in order of arrival, then all grow alike", Assumes: "which widths are possible",
		Source: "heyfey/vodascheduler", Stages: dividing(elastic.FIFO), Keys: dividingKeys, Placing: "packed", Batches: true},
	{Name: "afs-l", Line: "AFS-L: GPUs one by one, short jobs first but not at any price", Assumes: "speeds by width, remaining work",
		Source: "Hwang et al., NSDI'21, as in heyfey/vodascheduler", Stages: weighing(elastic.AFSL), Keys: dividingKeys, Placing: "packed", Batches: true},
	{Name: "optimus", Line: "Optimus: minima, then GPUs one by one to the largest fall of remaining time", Assumes: "speeds by width, remaining work",
		Source: "Peng et al., EuroSys'18, as in the simulator of Pollux", Stages: weighing(elastic.Optimus), Keys: dividingKeys, Placing: "packed", Batches: true},
	{Name: "pollux", Line: "Pollux: the power mean of speedups over fair shares, restarts counted, every minute", Assumes: "speeds by width and batch size, learned or known",
		Source: "Qiao et al., OSDI'21, its search exact over numbers of GPUs", Stages: pollux, Keys: polluxKeys, Placing: "packed", Batches: true},
	{Name: "pollux-autoscale", Line: "Pollux on as many nodes as a target of utility is worth, rented", Assumes: "speeds by width and batch size, learned or known",
		Source: "Qiao et al., OSDI'21, with the autoscaling of its simulator", Stages: polluxAutoscale, Keys: scalingKeys, Placing: "packed", Rents: true, Batches: true},
}

// sharingLimits are the keys of Common of systems that share GPUs.
var sharingLimits = []string{"user_limit"}

var (
	keyOrder    = Key{"order", "fifo", "whose order of jobs, with its defaults: fifo, las, srtf, srsf, tiresias-las, tiresias-gittins"}
	keyBackfill = Key{"backfill", "off", "on: jobs behind one that does not fit run where they do, without reservation; off: it holds them up"}
	keyReplace  = Key{"replace_every", "0", "seconds between placements of all anew, looked at on the grid of rounds; 0 = every round"}
	palKeys     = []Key{keyOrder, {"move_cost", "62", "seconds a job must gain to be moved (default for real jobs: what its restart costs, as learned)"}, keyReplace, keyBackfill, keyStragglers}
	limits      = []string{"min_run", "preempt_limit", "user_limit"}

	keyStragglers = Key{"stragglers", "none", "GPUs that are slow for a while: none = unknown, watch = found out by the progress of jobs, oracle = known"}
)

// orders are the systems whose order of jobs others take.
var orders = map[string]func(Knowledge, *Settings) (pipeline.Stages, error){"fifo": plain(baseline.FIFO), "las": las,
	"srtf": knowing(baseline.SRTF), "srsf": knowing(baseline.SRSF), "tiresias-las": tiresiasLAS, "tiresias-gittins": tiresiasGittins}

// ordered returns the stages of the system whose order was asked for. Its placement is not used.
func ordered(k Knowledge, s *Settings) (pipeline.Stages, error) {
	name := s.OneOf("order", "fifo", slices.Sorted(maps.Keys(orders))...)
	return orders[name](k, s)
}

// palOptions are the keys of the systems that place the jobs of another order.
func palOptions(k Knowledge, s *Settings) pal.Options {
	o := pal.Options{MoveCost: s.Seconds("move_cost", DefaultRestart), ReplaceEvery: s.Seconds("replace_every", 0)}
	if k.Restart != nil && !s.Has("move_cost") {
		o.Restart = k.restart(s)
	}
	if s.OneOf("backfill", "off", "on", "off") == "on" {
		o.Grants = allocate.Quota{}
	}
	return o
}

// packing is a system that places the jobs of another order.
func packing(f func(pipeline.Stages, pal.Options) pipeline.Stages) func(Knowledge, *Settings) (pipeline.Stages, error) {
	return func(k Knowledge, s *Settings) (pipeline.Stages, error) {
		of, err := ordered(k, s)
		if err != nil {
			return of, err
		}
		return watching(f(of, palOptions(k, s)), k, s, nil, nil)
	}
}

// placing is a system that places the jobs of another order by what is known of the GPUs.
func placing(f func(pipeline.Stages, pal.Knowledge, pal.Options) pipeline.Stages) func(Knowledge, *Settings) (pipeline.Stages, error) {
	return func(k Knowledge, s *Settings) (pipeline.Stages, error) {
		if k.Scores == nil {
			return pipeline.Stages{}, errNoScores
		}
		of, err := ordered(k, s)
		if err != nil {
			return of, err
		}
		known := palKnowledge(k, s)
		return watching(f(of, known, palOptions(k, s)), k, s, known.Expected(k.Scores), known.Scores.Revise)
	}
}

func palKnowledge(k Knowledge, s *Settings) pal.Knowledge {
	known := pal.Knowledge{Work: k.Work, Tolerance: s.Float("tolerance", 0.05)}
	class := place.BySpec(pal.Class(k.Scores.Classes, k.Classes))
	if s.Text("classes") == ObservedClasses {
		known.Observed = place.NewObserved(k.Scores)
		class = known.Observed.Class
	}
	known.Scores = place.NewScores(variability.Rule{}.All(k.Scores), class)
	across := max(s.Float("locality_penalty", variability.PublishedAcross), 1)
	if known.Penalty = place.TwoLevel(across); k.Locality != nil {
		known.Penalty = pal.Locality(k.Locality.OrElse(across), k.Scores.Classes, class)
	}
	return known
}

// Values of the key classes of the simulated world that name no file: what jobs say of themselves, else what was published
// of their models; or told from how fast jobs run.
const (
	StatedClasses   = "stated"
	ObservedClasses = "observed"
)

// watching has a system keep its jobs from slow GPUs, as the key says. expected is what a step takes by what is known, and
// revise how the system hears of factors, nil if it knows no scores: then slow GPUs are taken away.
func watching(st pipeline.Stages, k Knowledge, s *Settings, expected func(*sched.View, sched.JobID, []sched.GPUID) float64,
	revise func(func(sched.GPUID) float64)) (pipeline.Stages, error) {
	switch s.OneOf("stragglers", "none", "none", "watch", "oracle") {
	case "watch":
		return pal.Watched(st, &watch.Stragglers{Expected: expected, Revise: revise, Weighs: revise != nil}), nil
	case "oracle":
		if k.Slow == nil {
			return st, errNoTruth
		}
		o := &watch.Oracle{Truth: k.Slow, Revise: revise}
		if revise == nil {
			o.Limit = watch.Limit
		}
		return pal.Watched(st, o), nil
	}
	return st, nil
}

var (
	keyUnit   = Key{"unit", "gpu-seconds", "what attained service counts: gpu-seconds or seconds"}
	queueKeys = []Key{
		{"thresholds", "3250,7200", "upper limits of the queues but the last, in the unit; empty = one queue"},
		{"promote_knob", "inf", "a waiting job is promoted after waiting so many times as long as it ran; 0 or inf = never"},
		keyUnit}
)

// plain is a system of a placement rule alone.
func plain(f func(sched.Placer) pipeline.Stages) func(Knowledge, *Settings) (pipeline.Stages, error) {
	return func(k Knowledge, s *Settings) (pipeline.Stages, error) { return f(s.Placer("consolidate", k)), nil }
}

// knowing is a system that knows the work of jobs.
func knowing(f func(sched.Placer, sched.Remainer) pipeline.Stages) func(Knowledge, *Settings) (pipeline.Stages, error) {
	return func(k Knowledge, s *Settings) (pipeline.Stages, error) {
		if k.Work == nil {
			return pipeline.Stages{}, errNoWork
		}
		return f(s.Placer("consolidate", k), k.Work), nil
	}
}

func las(k Knowledge, s *Settings) (pipeline.Stages, error) {
	return baseline.LAS(s.Placer("consolidate", k), inSeconds(s), s.Seconds("quantum", 5*time.Minute)), nil
}

func tiresiasLAS(k Knowledge, s *Settings) (pipeline.Stages, error) {
	return tiresias.LAS(queues(s), s.Placer("skew", k))
}

func tiresiasGittins(k Knowledge, s *Settings) (pipeline.Stages, error) {
	return tiresias.Gittins(queues(s), k.Sizes, s.Float("delta", 0), s.Placer("skew", k))
}

func queues(s *Settings) tiresias.Queues {
	return tiresias.Queues{Thresholds: s.Floats("thresholds", tiresias.DefaultThresholds), Seconds: inSeconds(s),
		Knob: s.Float("promote_knob", 0)}
}

func inSeconds(s *Settings) bool {
	return s.OneOf("unit", "gpu-seconds", "gpu-seconds", "seconds") == "seconds"
}
