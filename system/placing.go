package system

import (
	"maps"
	"slices"

	"github.com/trainyard/trainyard/pipeline"
	"github.com/trainyard/trainyard/sched"
	"github.com/trainyard/trainyard/stage/allocate"
	"github.com/trainyard/trainyard/stage/watch"
	"github.com/trainyard/trainyard/system/baseline"
	"github.com/trainyard/trainyard/system/key"
	"github.com/trainyard/trainyard/system/pal"
)

// orders are the systems whose order of jobs others take.
var orders = map[string]Maker[pipeline.Stages]{"fifo": plain(baseline.FIFO), "las": unaware(las),
	"srtf": knowing(baseline.SRTF), "srsf": knowing(baseline.SRSF), "tiresias-las": unaware(tiresiasLAS),
	"tiresias-gittins": given(sizes, tiresiasGittins)}

// The keys of the systems that place the jobs of another order.
var (
	Order = key.Choice("order", "fifo", "whose order of jobs, with its defaults: fifo, las, srtf, srsf, "+
		"tiresias-las, tiresias-gittins", slices.Sorted(maps.Keys(orders))...)
	Backfill = key.Switch("on", "off", "backfill", "off",
		"on: jobs behind one that does not fit run where they do, without reservation; off: it holds them up")
	keyRounds = Interval.As(formatted(pal.FirstRound.Seconds()),
		"seconds between rounds, in which jobs are placed; 0 = whenever one arrives or ends")
	ReplaceEvery = key.Seconds("replace_every", "0",
		"seconds between placements of all again, looked at on the grid of rounds; 0 = every round")
	MoveCost = key.Seconds("move_cost", formatted(DefaultRestart.Seconds()),
		"seconds a job must gain to be moved (default for real jobs: what its restart costs, as learned)")
	Tolerance = key.Number("tolerance", "0.05",
		"share by which one GPU may be slower than the fastest, to spare a node for a gang")
	Stragglers = key.Choice("stragglers", "none",
		"GPUs that are slow for a while: none = unknown, watch = found out by the progress of jobs, oracle = known",
		"none", "watch", "oracle")

	palKeys = key.List{Order.Key, MoveCost.Key, keyRounds.Key, ReplaceEvery.Key, Backfill.Key,
		Stragglers.Lives("watch").Key}
)

// ordered returns the stages of the system whose order was asked for, with its defaults. Its placement is not used.
func ordered(work sched.Remainer, s *key.Settings) (pipeline.Stages, error) {
	of := orders[Order.Get(s)]
	if s.Err() != nil {
		return pipeline.Stages{}, s.Err()
	}
	return of.Make(Knowledge{Work: work}, key.NewSettings(nil))
}

// grants says who runs.
func grants(s *key.Settings) sched.Allocator {
	if Backfill.Get(s) {
		return allocate.Quota{}
	}
	return nil
}

// orderAndSlow is what the systems know that pack: what the order knows, and which GPUs are slow.
type orderAndSlow struct {
	Work sched.Remainer
	Slow watch.Truth
}

func packingKnows(k Knowledge, _ *key.Settings) (orderAndSlow, error) {
	return orderAndSlow{k.Work, k.Slow}, nil
}

// packing is a system that places the jobs of another order on few nodes; again says that it does so for all of them
// from time to time.
func packing(f func(pipeline.Stages, pal.Options) pipeline.Stages, again bool) Maker[pipeline.Stages] {
	return given(packingKnows, func(k orderAndSlow, _ Facts, s *key.Settings) (pipeline.Stages, error) {
		of, err := ordered(k.Work, s)
		if err != nil {
			return of, err
		}
		o := pal.Options{Grants: grants(s)}
		if again {
			o.ReplaceEvery = ReplaceEvery.Get(s)
		}
		st := f(of, o)
		st.Round = keyRounds.Get(s)
		return watching(st, k.Slow, s, nil)
	})
}

// placingKnows is what PAL and PM-First know.
func placingKnows(k Knowledge, s *key.Settings) (pal.Known, error) {
	if k.Scores == nil {
		return pal.Known{}, errNoScores
	}
	known := pal.Known{Work: k.Work, Scores: k.Scores, Classes: Classes.Get(s), Locality: Locality.Get(s), Slow: k.Slow}
	if k.Restart != nil && !MoveCost.Given(s) {
		known.Restart = k.restart(s)
	}
	return known, nil
}

// placing is a system that places the jobs of another order by what is known of the GPUs; tolerant says that it takes a
// slower one to spare a node.
func placing(f func(pipeline.Stages, pal.Beliefs, pal.Options) pipeline.Stages, tolerant bool) Maker[pipeline.Stages] {
	return given(placingKnows, func(k pal.Known, _ Facts, s *key.Settings) (pipeline.Stages, error) {
		of, err := ordered(k.Work, s)
		if err != nil {
			return of, err
		}
		o := pal.Options{MoveCost: MoveCost.Get(s), ReplaceEvery: ReplaceEvery.Get(s), Grants: grants(s),
			Across: LocalityPenalty.Get(s), Observe: s.Text(&Classes.Key) == ObservedClasses}
		if tolerant {
			o.Tolerance = Tolerance.Get(s)
		}
		b := k.Beliefs(o)
		st := f(of, b, o)
		st.Round = keyRounds.Get(s)
		return watching(st, k.Slow, s, &b)
	})
}

// watching has a system keep its jobs from slow GPUs, as the key says. Where it knows no scores, b is nil and slow GPUs
// are taken away.
func watching(st pipeline.Stages, slow watch.Truth, s *key.Settings, b *pal.Beliefs) (pipeline.Stages, error) {
	switch Stragglers.Get(s) {
	case "watch":
		w := &watch.Stragglers{}
		if b != nil {
			w.Expected, w.Revise, w.Weighs = b.Expected, b.Scores.Revise, true
		}
		return pal.Watched(st, w), nil
	case "oracle":
		if slow == nil {
			return st, errNoTruth
		}
		o := &watch.Oracle{Truth: slow}
		if b == nil {
			o.Limit = watch.Limit
		} else {
			o.Revise = b.Scores.Revise
		}
		return pal.Watched(st, o), nil
	}
	return st, nil
}
