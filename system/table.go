package system

import (
	"github.com/trainyard/trainyard/stage/order"
	"github.com/trainyard/trainyard/system/baseline"
	"github.com/trainyard/trainyard/system/boa"
	"github.com/trainyard/trainyard/system/eaco"
	"github.com/trainyard/trainyard/system/elastic"
	"github.com/trainyard/trainyard/system/key"
	"github.com/trainyard/trainyard/system/pal"
)

// Default is the system that decides where no other is named; the policy of a cluster has the same default.
const Default = "tiresias-las"

// table lists all systems. A policy is added by its file, a name and a data file for its test, and a row here.
var table = []Info{
	{
		Name: "fifo", Line: "by arrival; the first that does not fit holds up all behind it",
		Assumes: "nothing", Source: "YARN-CS as in Gu et al., NSDI'19",
		Stages: plain(baseline.FIFO), Common: steady, Stays: true,
	},
	{
		Name: "fifo-skip", Line: "by arrival; those that do not fit are passed over, without reservation",
		Assumes: "nothing", Source: "best-effort backfill, released Tiresias simulator (fjf)",
		Stages: plain(baseline.FIFOSkip), Common: steady, Stays: true,
	},
	{
		Name: "fifo-easy", Line: "by arrival; the first that does not fit gets a reservation, others fill the gaps",
		Assumes: "work of each job", Source: "EASY backfilling, Lifka, JSSPP'95",
		Stages: knowing(baseline.FIFOEasy), Common: steady, Stays: true,
	},
	{
		Name: "sjf", Line: "shortest job first, not preemptive; the first that does not fit holds up all behind it",
		Assumes: "work of each job", Source: "textbook; HeliosArtifact, SC'21",
		Stages: knowing(baseline.SJF), Common: steady, Stays: true, NoPriority: true,
	},
	{
		Name: "srtf", Line: "shortest remaining time first, preemptive",
		Assumes: "remaining work of each job", Source: "textbook; Gu et al., NSDI'19",
		Stages: knowing(baseline.SRTF), NoPriority: true,
	},
	{
		Name: "srsf", Line: "shortest remaining service (time x GPUs) first, preemptive",
		Assumes: "remaining work of each job", Source: "Gu et al., NSDI'19, section 3",
		Stages: knowing(baseline.SRSF), NoPriority: true,
	},
	{
		Name: "fewest-gpus", Line: "narrowest job first, preemptive",
		Assumes: "nothing", Source: "released Tiresias simulator (sjf)",
		Stages: plain(baseline.Preempting(order.FewestGPUs{})), NoPriority: true,
	},
	{
		Name: "las", Line: "least attained service first, preemptive, looked at every quantum",
		Assumes: "nothing", Source: "Gu et al., NSDI'19, continuous 2D-LAS",
		Stages: unaware(las), Keys: key.List{Unit.Key, keyQuantum.Key}, NoPriority: true,
	},
	{
		Name: "tiresias-las", Line: "Tiresias-L: discretised 2D-LAS, placement by model profile",
		Assumes: "nothing", Source: "Gu et al., NSDI'19",
		Stages: unaware(tiresiasLAS), Keys: queueKeys, Placing: "skew", NoPriority: true,
	},
	{
		Name: "tiresias-gittins", Line: "Tiresias-G: discretised 2D-Gittins, placement by model profile",
		Assumes: "distribution of service, given or learned from finished jobs", Source: "Gu et al., NSDI'19",
		Stages: given(sizes, tiresiasGittins), Keys: key.Join(key.List{Distribution.Key, Delta.Key}, queueKeys),
		Placing: "skew", NoPriority: true,
	},
	{
		Name: "pal", Line: "PAL: placement by class, PM score and locality, chosen again every round, under any order",
		Assumes: "PM scores; the order's own", Source: "Jain et al., SC'24",
		Stages: placing(pal.PAL, true), Keys: key.Join(key.List{Tolerance.Key}, palKeys), Common: limits,
		Scored: true,
	},
	{
		Name: "pm-first", Line: "the fastest GPUs first, wherever they are, chosen again every round, under any order",
		Assumes: "PM scores; the order's own", Source: "Jain et al., SC'24",
		Stages: placing(pal.PMFirst, false), Keys: palKeys, Common: limits, Scored: true,
	},
	{
		Name: "packed", Line: "few nodes, chosen again every round (packed, non-sticky), under any order",
		Assumes: "the order's own", Source: "Jain et al., SC'24, baseline",
		Stages: packing(pal.Packed, true), Keys: key.List{Order.Key, Backfill.Key, keyRounds.Key, ReplaceEvery.Key,
			Stragglers.Key},
		Common: limits,
	},
	{
		Name: "packed-sticky", Line: "few nodes; jobs that run stay (packed, sticky), under any order",
		Assumes: "the order's own", Source: "Jain et al., SC'24, baseline",
		Stages: packing(pal.PackedSticky, false),
		Keys:   key.List{Order.Key, Backfill.Key, keyRounds.Key, Stragglers.Key},
		Common: limits,
	},
	{
		Name: "boa", Line: "BOA Constrictor as its authors run it: widths by one price, nodes rented to a budget",
		Assumes: "arrival rates and speeds by application, estimated", Source: "Li et al., arXiv 2602.01404",
		Stages: renting(boa.Published, true, true),
		Keys:   key.Join(key.List{Seed.As("0", "of the search for widths").Key}, boaKeys), Placing: "packed",
		Rents: true, Batches: true,
	},
	{
		Name:    "boa-exact",
		Line:    "BOA Constrictor with optimal widths, restarts counted, and no waiting for a minute",
		Assumes: "arrival rates and speeds by application, estimated",
		Source:  "Li et al., arXiv 2602.01404; the exact program is ours",
		Stages:  renting(boa.Exact, false, true), Keys: boaKeys, Placing: "packed", Rents: true, Batches: true,
	},
	{
		Name: "equal-width", Line: "the same number of GPUs for all jobs, as many as a budget pays for",
		Assumes: "arrival rates and speeds by application, estimated", Source: "baseline for boa",
		Stages: renting(boa.Equal, false, false), Keys: equalKeys, Placing: "packed", Rents: true, Batches: true,
	},
	{
		Name: "eaco", Line: "EaCO: jobs join busy GPUs on trial where all keep their deadlines; idle nodes sleep",
		Assumes: "remaining work, epochs, use and memory; learns how sets slow each other",
		Source:  "Haghshenas and Hashemi, arXiv 2412.08294",
		New:     given(sharing(keyHistory, false), eacoSystem), Keys: eacoKeys, Common: sharingLimits, Sleeps: true,
	},
	{
		Name:    "fifo-packed",
		Line:    "by arrival; the first that does not fit joins the single job next to which both do most",
		Assumes: "throughput of pairs, given",
		Source:  "Narayanan et al., OSDI'20 (Gavel), fifo_packed, without rounds",
		New:     paired(eaco.FIFOPacked, false), Keys: pairKeys, Common: pairLimits, Stays: true,
	},
	{
		Name: "gandiva", Line: "by arrival; one that does not fit joins some single job, drawn at random",
		Assumes: "throughput of pairs, given", Source: "Narayanan et al., OSDI'20 (Gavel), gandiva, without rounds",
		New: paired(eaco.Gandiva, true), Keys: append(key.List{Seed.As("0", "of the draws").Key}, pairKeys...),
		Common: pairLimits, Stays: true,
	},
	{
		Name: "elastic",
		Line: "elastic scaling: admission by minima in order of arrival, then GPUs and batch sizes by dynamic " +
			"programming",
		Assumes: "speeds by width and batch size, learned or known",
		Source:  "Saxena et al., MASCOTS 2020; see docs/papers/elastic.md",
		Stages:  given(speeds, elasticScaling), Keys: elasticKeys, Placing: "packed", Batches: true,
	},
	{
		Name: "elastic-fifo", Line: "elastic FIFO: minima in order of arrival, then all grow alike",
		Assumes: "which widths are possible", Source: "heyfey/vodascheduler",
		Stages: dividing(elastic.FIFO), Keys: dividingKeys, Placing: "packed", Batches: true,
	},
	{
		Name: "afs-l", Line: "AFS-L: GPUs one by one, short jobs first but not at any price",
		Assumes: "speeds by width, remaining work", Source: "Hwang et al., NSDI'21, as in heyfey/vodascheduler",
		Stages: weighing(elastic.AFSL), Keys: dividingKeys, Placing: "packed", Batches: true,
	},
	{
		Name: "optimus", Line: "Optimus: minima, then GPUs one by one to the largest fall of remaining time",
		Assumes: "speeds by width, remaining work", Source: "Peng et al., EuroSys'18, as in the simulator of Pollux",
		Stages: weighing(elastic.Optimus), Keys: dividingKeys, Placing: "packed", Batches: true,
	},
	{
		Name: "pollux", Line: "Pollux: the power mean of speedups over fair shares, restarts counted, every minute",
		Assumes: "speeds by width and batch size, learned or known",
		Source:  "Qiao et al., OSDI'21, its search exact over numbers of GPUs",
		Stages:  given(speeds, pollux), Keys: polluxKeys, Placing: "packed", Batches: true,
	},
	{
		Name: "pollux-autoscale", Line: "Pollux on as many nodes as a target of utility is worth, rented",
		Assumes: "speeds by width and batch size, learned or known",
		Source:  "Qiao et al., OSDI'21, with the autoscaling of its simulator",
		Stages:  given(speeds, polluxAutoscale), Keys: scalingKeys, Placing: "packed", Rents: true, Batches: true,
	},
	{
		Name: "worth",
		Line: "each GPU to the work to which it is worth most, at one price that clears the cluster",
		Assumes: "speeds by width and batch size, remaining work: learned, stated or known; PM scores with " +
			"scores=use; learns how sets slow each other with --interference",
		Source: "ours; see docs/papers/combined.md",
		Stages: given(worthKnows, byWorth), Keys: worthKeys, Placing: "skew", Batches: true,
		Common: unclassed,
	},
}

// sharingLimits are the keys of Common of EaCO, pairLimits of systems that pair jobs, which stop none.
var (
	sharingLimits = []string{Unsaved.Name, UserLimit.Name, Priority.Name, PriorityAge.Name}
	pairLimits    = []string{Unsaved.Name, UserLimit.Name, Priority.Name, PriorityAge.Name}
)

// steady are those of systems that stop no job for others.
var steady = []string{Placement.Name, PackLimit.Name, Profiles.Name, MinRun.Name, PreemptLimit.Name, Unsaved.Name,
	UserLimit.Name, Priority.Name, PriorityAge.Name}

// unclassed are those of a system that weighs priorities, by a key of its own.
var unclassed = []string{Placement.Name, PackLimit.Name, Profiles.Name, MinRun.Name, PreemptLimit.Name, Unsaved.Name,
	LossRail.Name, KeepFree.Name, UserLimit.Name}

// limits are those of systems that place jobs by their own rule.
var limits = []string{MinRun.Name, PreemptLimit.Name, Unsaved.Name, LossRail.Name, KeepFree.Name,
	UserLimit.Name, Priority.Name, PriorityAge.Name, PriorityPreempts.Name}
