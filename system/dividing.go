package system

import (
	"errors"
	"fmt"
	"math"
	"time"

	model "github.com/trainyard/trainyard/model/elastic"
	"github.com/trainyard/trainyard/model/speedup"
	"github.com/trainyard/trainyard/pipeline"
	"github.com/trainyard/trainyard/stage/allocate"
	"github.com/trainyard/trainyard/stage/provision"
	"github.com/trainyard/trainyard/system/elastic"
	"github.com/trainyard/trainyard/system/key"
)

// The keys of the systems that resize jobs.
var (
	Batch = key.Choice("batch", "free",
		"batch size: free = the best at each width; fixed: min, max, random, best (at the width asked for), per-gpu",
		append([]string{"free"}, batchRules...)...)
	LR = key.Choice("lr", "linear", "learning rate by batch size, reported to the job: linear, sqrt, adascale, none",
		lrRules...)
	KMax    = key.Int("k_max", "0", "widest any job may be; 0 = what it says itself")
	Horizon = key.Seconds("horizon", formatted(DefaultHorizon.Seconds()),
		"seconds in which a restart must pay for itself, else a job keeps width and batch size; 0 = restarts are not "+
			"counted")
	Interval = key.Seconds("interval", "0", "seconds between decisions; 0 = whenever a job arrives, ends or changes "+
		"its speed")

	keyRound = Interval.As(formatted(elastic.PolluxRound.Seconds()),
		"seconds between decisions, more than restart_overhead")
	keyUtility = key.Positive(1, "a number > 0, at most 1", "utility", "0.5",
		"speedup of all jobs together over the GPUs there are, at which nodes are rented: > 0, at most 1")
	keyPay = key.Switch("on", "off", "pay", "off",
		"on = a job is resized only where that pays for its restart within horizon, or another needs its GPUs; off = "+
			"as published").
		Lives("on")
	keyMode = key.Choice("mode", "queue",
		"what becomes of a job whose fewest GPUs are not to be had: queue = it waits, drop = it is rejected", "queue",
		"drop")
	keyOvertake = Backfill.As("off", "mode=queue: on = those behind one that waits may start before it; off = no one "+
		"is overtaken")
	keyGoal = key.Choice("objective", "goodput",
		"sum of scaling factors of goodput, or of throughput: samples, whatever a batch size costs in epochs",
		"goodput", "throughput")
	keyFairness = key.NumberTo(1e3, "fairness", "0",
		"weight of the logarithm of each share in the sum; 0 = the plain sum, indifferent to who gets what")

	divideKeys = key.List{keyCurves.Key, Batch.Key, Seed.As("0", "of batch=random").Key, LR.Key, KMax.Key,
		Horizon.Key}
	polluxKeys   = key.Join(key.List{keyRound.Key}, divideKeys)
	scalingKeys  = key.Join(key.List{keyUtility.Key, keyRentKeep.Key, keyMaxNodes.Key}, polluxKeys)
	dividingKeys = key.Join(key.List{Interval.Key, keyPay.Key}, divideKeys)
	elasticKeys  = key.Join(key.List{Interval.Key, keyMode.Key, keyOvertake.Key, keyGoal.Key, keyFairness.Key},
		divideKeys)
)

// speeds is what the systems that resize jobs know.
func speeds(k Knowledge, s *key.Settings) (known elastic.Known, err error) {
	known.Restart = k.restart(s)
	known.Speeds, err = curves(k, s, false)
	return known, err
}

// speedsAndWork is what they know that weigh the work that is left.
func speedsAndWork(k Knowledge, s *key.Settings) (known elastic.KnownWork, err error) {
	if k.Work == nil {
		return known, errNoWork
	}
	known.Work = k.Work
	known.Known, err = speeds(k, s)
	return known, err
}

// dividing is a system that resizes jobs.
func dividing(f func(elastic.Known, elastic.Params) pipeline.Stages) Maker[pipeline.Stages] {
	return given(speeds, func(k elastic.Known, _ Facts, s *key.Settings) (st pipeline.Stages, err error) {
		p, err := divideParams(k, s)
		if err != nil {
			return st, err
		}
		p.Pays = keyPay.Get(s)
		return f(k, p), nil
	})
}

// weighing is a system that resizes jobs and weighs the work that is left.
func weighing(f func(elastic.KnownWork, elastic.Params) pipeline.Stages) Maker[pipeline.Stages] {
	return given(speedsAndWork, func(k elastic.KnownWork, _ Facts, s *key.Settings) (st pipeline.Stages, err error) {
		p, err := divideParams(k.Known, s)
		if err != nil {
			return st, err
		}
		p.Pays = keyPay.Get(s)
		return f(k, p), nil
	})
}

// pollux is the system of that name.
func pollux(k elastic.Known, facts Facts, s *key.Settings) (st pipeline.Stages, err error) {
	p, err := divideParams(k, s)
	if err != nil {
		return st, err
	}
	return elastic.Pollux(k, p, max(facts.PerNode, 1)), nil
}

// polluxAutoscale is the system of that name.
func polluxAutoscale(k elastic.Known, facts Facts, s *key.Settings) (st pipeline.Stages, err error) {
	p, err := divideParams(k, s)
	if err != nil {
		return st, err
	}
	if facts.Types > 1 {
		return st, fmt.Errorf("GPUs of %d types, want one: utility does not say which to rent", facts.Types)
	}
	if facts.Round > 0 { // it looks at utility as often as it divides
		p.Interval = facts.Round
	}
	rent := provision.Rent{Keep: keyRentKeep.Get(s), Most: int32(min(keyMaxNodes.Get(s), math.MaxInt32))}
	perNode := max(facts.PerNode, 1)
	most := max(min(facts.MostGPUs, model.MaxGPUs/2)/perNode, 1)
	if rent.Most > 0 {
		most = min(most, int(rent.Most))
	}
	return elastic.PolluxAutoscale(k, p, keyUtility.Get(s), perNode, most, rent), nil
}

// divideParams returns what the systems that resize jobs have in common.
func divideParams(k elastic.Known, s *key.Settings) (elastic.Params, error) {
	p := elastic.Params{Seed: uint64(Seed.Get(s)), Most: int32(min(KMax.Get(s), math.MaxInt32)),
		Horizon: Horizon.Get(s),
		Place:   placer(s), Interval: Interval.Get(s), Unsaved: unsaved(s)}
	batch, lr := Batch.Get(s), LR.Get(s)
	for i, name := range batchRules {
		if rule := model.BatchRule(i); name == batch {
			p.Batch = &rule
		}
	}
	for i, name := range lrRules {
		if name == lr {
			p.LR = allocate.LRRule(i)
		}
	}
	_, batched := k.Speeds.(speedup.Batched)
	switch {
	case p.Batch != nil && !batched:
		return p, fmt.Errorf("batch=%s, want free, or curves=oracle: what is learned is of the batch sizes that jobs "+
			"have", batch)
	case p.LR == allocate.LRAdaScale && !batched:
		return p, errors.New("lr=adascale, want another, or curves=oracle: gradients are not learned")
	}
	return p, nil
}

// DefaultHorizon is that of the key horizon. Ours.
const DefaultHorizon = time.Hour

// batchRules and lrRules are the rules by number.
var (
	batchRules = []string{"min", "max", "random", "best", "per-gpu"}
	lrRules    = []string{"none", "linear", "sqrt", "adascale"}
)

// elasticScaling is the system of that name.
func elasticScaling(k elastic.Known, _ Facts, s *key.Settings) (st pipeline.Stages, err error) {
	p, err := divideParams(k, s)
	if err != nil {
		return st, err
	}
	mode := model.Queue
	if keyOvertake.Get(s) {
		mode = model.Backfill
	}
	if keyMode.Get(s) == "drop" {
		if mode == model.Backfill {
			return st, errors.New("mode=drop with backfill=on, want one of them: no job waits to be overtaken")
		}
		mode = model.Drop
	}
	if keyGoal.Get(s) == "throughput" {
		o, ok := k.Speeds.(*speedup.Oracle)
		if !ok {
			return st, errors.New("objective=throughput, want goodput, or curves=oracle: what is learned is " +
				"progress, not samples")
		}
		k.Speeds = o.InSamples()
	}
	return elastic.Sum(k, p, mode, keyFairness.Get(s)), nil
}
