package freeze

import "slices"

// variant is a set-up in which systems are frozen, one run each.
type variant struct {
	name    string
	systems []string
	args    []string
	budget  string // GPUs, for those systems that rent
	small   bool   // it runs in the fast lane as well, with -short
	noLog   bool   // the preset's own simulator writes no event log
}

// Groups of systems by what they need to know.
var (
	simple = []string{"fifo", "fifo-skip", "fifo-easy", "sjf", "srtf", "srsf", "fewest-gpus", "las",
		"tiresias-las", "tiresias-gittins", "packed", "packed-sticky"}
	sharing = []string{"eaco", "fifo-packed", "gandiva"}
	elastic = []string{"elastic", "elastic-fifo", "afs-l", "optimus", "pollux", "pollux-autoscale"}
	scored  = []string{"pal", "pm-first"}
	renting = []string{"boa", "boa-exact", "equal-width"}

	unscored = slices.Concat(simple, sharing, elastic)
	all      = slices.Concat(unscored, scored, renting)
)

// sets returns the arguments of --set for each key.
func sets(keys ...string) (args []string) {
	for _, k := range keys {
		args = append(args, "--set", "*."+k)
	}
	return args
}

func with(args []string, keys ...string) []string { return slices.Concat(args, sets(keys...)) }

func of(trace, cluster string, args ...string) []string {
	return append([]string{"--trace", trace, "--cluster", cluster}, args...)
}

// variants are what TestResults runs. The traces: testbed.csv of the examples; philly.csv, drawn by `trainyard trace
// generate --like philly --jobs 150 --seed 7 --days 2`; mixed.csv (80 jobs), with all that a submitter may say;
// elastic.csv (40 jobs), whose speeds are those of tables/. The others are for what needs models of its own.
func variants() []variant {
	scores := []string{"--variability", "scores24.csv"}
	tables := []string{"--profiles", "tables"}
	shared := []string{"--interference", "interference.csv"}
	return []variant{
		{name: "mixed", small: true, systems: slices.Concat(unscored, scored),
			args: of("mixed.csv", "6x4", scores...)},
		{name: "mixed-plain", small: true, systems: unscored, args: of("mixed.csv", "6x4")},
		{name: "mixed-racks", systems: simple[:10],
			args: with(of("mixed.csv", "racks.yaml"),
				"placement=yarn", "restart_overhead=AlexNet=20,45", "spread_penalty=2")},
		{name: "mixed-limits", systems: slices.Concat(simple, elastic),
			args: with(of("mixed.csv", "6x4"), "min_run=auto", "preempt_limit=2", "user_limit=10")},
		{name: "mixed-delays", systems: unscored,
			args: with(of("mixed.csv", "6x4"), "start_delay=5", "stop_delay=9", "restart_at_first=yes")},
		{name: "mixed-rounds", systems: slices.Concat(simple, elastic),
			args: of("mixed.csv", "6x4", "--round", "300")},
		{name: "mixed-learned", systems: []string{"las", "tiresias-las"},
			args: with(of("mixed.csv", "6x4"), "placement=skew", "pack_limit=learned")},
		{name: "mixed-reports", systems: unscored,
			args: with(of("mixed.csv", "6x4"), "report_interval=120", "report_noise=0.02")},
		{name: "mixed-failing", small: true, systems: unscored, args: of("mixed.csv", "failing.yaml")},
		{name: "mixed-failing-seed", systems: unscored,
			args: with(of("mixed.csv", "failing.yaml", "--seed", "5"), "checkpoint_interval=0")},
		{name: "mixed-pools", small: true, systems: slices.Concat(simple, sharing),
			args: with(of("mixed.csv", "pools.yaml"), "keep=300")},
		{name: "mixed-reserve", systems: simple,
			args: with(of("mixed.csv", "pools.yaml"), "provision=reserve", "reserve=24")},
		{name: "mixed-sleep", systems: unscored,
			args: with(of("mixed.csv", "energy.yaml", "--energy-price", "price.csv", "--carbon", "carbon.csv"),
				"sleep=300")},
		{name: "mixed-caps", systems: simple,
			args: with(of("mixed.csv", "energy.yaml", "--power-caps", "caps.csv"), "power_cap=150W")},
		{name: "mixed-shared", small: true, systems: sharing,
			args: with(of("mixed.csv", "octets.yaml", shared...), "history=tables")},
		{name: "mixed-shared-learned", systems: sharing,
			args: with(of("mixed.csv", "octets.yaml", shared...),
				"history=learned", "interference_noise=0.1", "interference_seed=4")},
		{name: "mixed-shared-failing", systems: sharing,
			args: with(of("mixed.csv", "failing.yaml", shared...), "sleep=60")},
		{name: "mixed-scores", small: true, systems: slices.Concat(scored, []string{"packed", "packed-sticky"}),
			args: with(of("mixed.csv", "racks.yaml", scores...),
				"locality=locality.csv", "classes=classes.csv", "slow_gpus=slow.csv")},
		{name: "mixed-scores-observed", systems: scored, args: with(of("mixed.csv", "racks.yaml", scores...),
			"classes=observed", "stragglers=watch", "report_interval=60", "report_noise=0.02", "slow_gpus=slow.csv")},
		{name: "mixed-scores-oracle", systems: scored,
			args: with(of("mixed.csv", "racks.yaml", scores...),
				"stragglers=oracle", "slow_gpus=slow.csv", "backfill=on")},
		{name: "typed", small: true, systems: slices.Concat(simple, sharing, elastic[:5]),
			args: of("typed.csv", "types.yaml")},
		{name: "elastic", budget: "14", small: true, systems: slices.Concat(unscored, renting),
			args: of("elastic.csv", "racks.yaml", tables...)},
		{name: "elastic-oracle", small: true, systems: elastic,
			args: with(of("elastic.csv", "racks.yaml", tables...), "curves=oracle")},
		{name: "elastic-batch", systems: []string{"elastic"},
			args: with(of("elastic.csv", "racks.yaml", tables...),
				"curves=oracle", "batch=max", "objective=throughput")},
		{name: "elastic-failing", budget: "14", systems: slices.Concat(elastic, renting),
			args: of("elastic.csv", "failing.yaml", tables...)},
		{name: "elastic-rented", budget: "14", small: true, systems: append(slices.Clone(renting), "pollux-autoscale"),
			args: of("elastic.csv", "rented.yaml", tables...)},
		{name: "elastic-perfect", budget: "24", systems: renting,
			args: with(of("elastic.csv", "rented.yaml", tables...), "information=perfect")},
		{name: "elastic-price", budget: "14", systems: []string{"boa"},
			args: with(of("elastic.csv", "rented.yaml", tables...), "information=price")},
		{name: "elastic-month", systems: []string{"boa"},
			args: with(of("elastic.csv", "rented.yaml", tables...),
				"information=price", "month_budget=100", "month_carry=20")},
		{name: "philly", systems: unscored, args: of("philly.csv", "6x4")},
		{name: "philly-pools", systems: simple, args: of("philly.csv", "pools.yaml")},
		{name: "testbed", systems: unscored, args: of("testbed.csv", "15x4")},
		{name: "testbed-scores", budget: "50", systems: all,
			args: of("testbed.csv", "15x4", "--variability", "scores60.csv")},
		{name: "testbed-distribution", systems: []string{"tiresias-gittins"},
			args: with(of("testbed.csv", "15x4"), "distribution=distribution.csv", "delta=3250", "promote_knob=8")},
		{name: "preset-tiresias", noLog: true,
			systems: []string{"fifo", "fifo-skip", "srtf", "srsf", "fewest-gpus", "tiresias-las"},
			args:    of("testbed.csv", "15x4", "--preset", "tiresias")},
		{name: "preset-tiresias-gittins", noLog: true, systems: []string{"tiresias-gittins"},
			args: with(of("testbed.csv", "15x4", "--preset", "tiresias"), "distribution=distribution.csv")},
		{name: "preset-helios", systems: []string{"fifo", "sjf", "srtf"},
			args: of("testbed.csv", "8x8", "--preset", "helios")},
		{name: "preset-muri", noLog: true, systems: []string{"srtf", "srsf", "tiresias-las"},
			args: of("muri.csv", "4x8", "--preset", "muri")},
		{name: "preset-blox-pal", noLog: true, systems: []string{"pal", "pm-first", "packed", "packed-sticky"},
			args: of("blox.csv", "15x4", "--preset", "blox-pal", "--variability", "scores60.csv")},
		{name: "preset-gavel", noLog: true, systems: []string{"fifo", "fifo-packed", "gandiva"},
			args: of("gavel.trace", "3x4:v100", "--preset", "gavel", "--interference", "gavel.json")},
		{name: "gavel", systems: sharing,
			args: with(of("gavel.trace", "3x4:v100", "--interference", "gavel.json"), "history=tables")},
	}
}

// dataVariants are what TestResultsOnData runs, on shared data, which lies in the folder data.
func dataVariants() []variant {
	measured := []string{"--profiles", "data/pollux/osdi21/traces"}
	throughputs := []string{"--interference", "data/colocation/gavel/simulation_throughputs.json"}
	return []variant{
		{name: "data-gavel", noLog: true, systems: []string{"fifo", "fifo-packed", "gandiva"},
			args: of("data/colocation/gavel/max_min_fairness.trace", "9x4:v100",
				append(throughputs, "--preset", "gavel")...)},
		{name: "data-pollux", noLog: true, systems: []string{"pollux", "optimus", "tiresias-las"},
			args: of("pollux.csv", "4x4", append(measured, "--preset", "pollux")...)},
		{name: "data-measured", systems: elastic, args: of("pollux.csv", "4x4", measured...)},
		{name: "data-renting", budget: "40", systems: renting,
			args: of("data/pollux/osdi21/workloads/workload-1.csv", "16x4", measured...)},
	}
}

// withOthers adds a variant of the systems that are in none: a new system needs no more than its rows.
func withOthers(list []variant, known []string) []variant {
	others := slices.DeleteFunc(slices.Clone(known), func(name string) bool {
		return slices.ContainsFunc(list, func(v variant) bool { return slices.Contains(v.systems, name) })
	})
	if len(others) == 0 {
		return list
	}
	return append(list, variant{name: "mixed-others", small: true, systems: others,
		args: of("mixed.csv", "6x4", "--variability", "scores24.csv")})
}
