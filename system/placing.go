package system

import (
	"maps"
	"slices"

	"github.com/trainyard/trainyard/model/variability"
	"github.com/trainyard/trainyard/pipeline"
	"github.com/trainyard/trainyard/sched"
	"github.com/trainyard/trainyard/stage/allocate"
	"github.com/trainyard/trainyard/stage/place"
	"github.com/trainyard/trainyard/stage/watch"
	"github.com/trainyard/trainyard/system/baseline"
	"github.com/trainyard/trainyard/system/key"
	"github.com/trainyard/trainyard/system/pal"
)

// orders are the systems whose order of jobs others take.
var orders = map[string]func(Knowledge, *key.Settings) (pipeline.Stages, error){"fifo": plain(baseline.FIFO), "las": las,
	"srtf": knowing(baseline.SRTF), "srsf": knowing(baseline.SRSF), "tiresias-las": tiresiasLAS, "tiresias-gittins": tiresiasGittins}

// The keys of the systems that place the jobs of another order.
var (
	Order    = key.Choice("order", "fifo", "whose order of jobs, with its defaults: fifo, las, srtf, srsf, tiresias-las, tiresias-gittins", slices.Sorted(maps.Keys(orders))...)
	Backfill = key.Switch("on", "off", "backfill", "off",
		"on: jobs behind one that does not fit run where they do, without reservation; off: it holds them up")
	ReplaceEvery = key.Seconds("replace_every", "0", "seconds between placements of all anew, looked at on the grid of rounds; 0 = every round")
	MoveCost     = key.Seconds("move_cost", formatted(DefaultRestart.Seconds()),
		"seconds a job must gain to be moved (default for real jobs: what its restart costs, as learned)")
	Tolerance  = key.Number("tolerance", "0.05", "share by which one GPU may be slower than the fastest, to spare a node for a gang")
	Stragglers = key.Choice("stragglers", "none",
		"GPUs that are slow for a while: none = unknown, watch = found out by the progress of jobs, oracle = known", "none", "watch", "oracle")

	palKeys = key.List{Order.Key, MoveCost.Key, ReplaceEvery.Key, Backfill.Key, Stragglers.Lives("watch").Key}
)

// ordered returns the stages of the system whose order was asked for, with its defaults. Its placement is not used.
func ordered(k Knowledge, s *key.Settings) (pipeline.Stages, error) {
	of := orders[Order.Get(s)]
	if s.Err() != nil {
		return pipeline.Stages{}, s.Err()
	}
	return of(k, key.NewSettings(nil))
}

// grants says who runs.
func grants(s *key.Settings) sched.Allocator {
	if Backfill.Get(s) {
		return allocate.Quota{}
	}
	return nil
}

// packing is a system that places the jobs of another order on few nodes; again says that it does so for all of them from time to
// time.
func packing(f func(pipeline.Stages, pal.Options) pipeline.Stages, again bool) func(Knowledge, *key.Settings) (pipeline.Stages, error) {
	return func(k Knowledge, s *key.Settings) (pipeline.Stages, error) {
		of, err := ordered(k, s)
		if err != nil {
			return of, err
		}
		o := pal.Options{Grants: grants(s)}
		if again {
			o.ReplaceEvery = ReplaceEvery.Get(s)
		}
		return watching(f(of, o), k, s, nil, nil)
	}
}

// placing is a system that places the jobs of another order by what is known of the GPUs; tolerant says that it takes a slower one
// to spare a node.
func placing(f func(pipeline.Stages, pal.Knowledge, pal.Options) pipeline.Stages, tolerant bool) func(Knowledge, *key.Settings) (pipeline.Stages, error) {
	return func(k Knowledge, s *key.Settings) (pipeline.Stages, error) {
		if k.Scores == nil {
			return pipeline.Stages{}, errNoScores
		}
		of, err := ordered(k, s)
		if err != nil {
			return of, err
		}
		known := palKnowledge(k, s)
		if tolerant {
			known.Tolerance = Tolerance.Get(s)
		}
		o := pal.Options{MoveCost: MoveCost.Get(s), ReplaceEvery: ReplaceEvery.Get(s), Grants: grants(s)}
		if k.Restart != nil && !MoveCost.Given(s) {
			o.Restart = k.restart(s)
		}
		return watching(f(of, known, o), k, s, known.Expected(k.Scores), known.Scores.Revise)
	}
}

func palKnowledge(k Knowledge, s *key.Settings) pal.Knowledge {
	known := pal.Knowledge{Work: k.Work}
	class := place.BySpec(pal.Class(k.Scores.Classes, Classes.Get(s)))
	if s.Text(&Classes.Key) == ObservedClasses {
		known.Observed = place.NewObserved(k.Scores)
		class = known.Observed.Class
	}
	known.Scores = place.NewScores(variability.Rule{}.All(k.Scores), class)
	across := max(LocalityPenalty.Get(s), 1)
	known.Penalty = place.TwoLevel(across)
	if table := Locality.Get(s); table != nil {
		known.Penalty = pal.Locality(table.OrElse(across), k.Scores.Classes, class)
	}
	return known
}

// watching has a system keep its jobs from slow GPUs, as the key says. expected is what a step takes by what is known, and
// revise how the system hears of factors, nil if it knows no scores: then slow GPUs are taken away.
func watching(st pipeline.Stages, k Knowledge, s *key.Settings, expected func(*sched.View, sched.JobID, []sched.GPUID) float64,
	revise func(func(sched.GPUID) float64)) (pipeline.Stages, error) {
	switch Stragglers.Get(s) {
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
