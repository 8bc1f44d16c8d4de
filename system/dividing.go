package system

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	model "github.com/trainyard/trainyard/model/elastic"
	"github.com/trainyard/trainyard/model/speedup"
	"github.com/trainyard/trainyard/pipeline"
	"github.com/trainyard/trainyard/stage/allocate"
	"github.com/trainyard/trainyard/stage/provision"
	"github.com/trainyard/trainyard/system/elastic"
)

// Keys of the systems that resize jobs.
var (
	divideKeys = []Key{
		keyCurves,
		{"batch", "free", "batch size: free = the best at each width; fixed: min, max, random, best (at the width asked for), per-gpu"},
		{"seed", "0", "of batch=random"},
		{"lr", "linear", "learning rate by batch size, told to the job: linear, sqrt, adascale, none"},
		{"k_max", "0", "widest any job may be; 0 = what it says itself"},
		{"horizon", "3600", "seconds in which a restart must pay for itself, else a job keeps width and batch size; 0 = restarts are not counted"},
	}
	keyInterval = Key{"interval", "0", "seconds between decisions; 0 = whenever a job arrives, ends or changes its speed"}
	polluxKeys  = append([]Key{{"interval", "60", "seconds between decisions, more than restart_overhead"}}, divideKeys...)
	scalingKeys = slices.Concat([]Key{{"utility", "0.5", "speedup of all jobs together over the GPUs there are, at which nodes are rented: > 0, at most 1"},
		{"keep", "0", "seconds a node that is not needed is kept before it is let go"},
		{"max_nodes", "0", "nodes rented at most; 0 = what the pools allow"}}, polluxKeys)
	dividingKeys = append([]Key{keyInterval,
		{"pay", "off", "on = a job is resized only where that pays for its restart within horizon, or another needs its GPUs; off = as published"}}, divideKeys...)
	elasticKeys = append([]Key{keyInterval,
		{"mode", "queue", "what becomes of a job whose fewest GPUs are not to be had: queue = it waits, drop = it is rejected"},
		{"backfill", "off", "mode=queue: on = those behind one that waits may start before it; off = nobody is overtaken"},
		{"objective", "goodput", "sum of scaling factors of goodput, or of throughput: samples, whatever a batch size costs in epochs"},
		{"fairness", "0", "weight of the logarithm of each share in the sum; 0 = the plain sum, indifferent to who gets what"},
	}, divideKeys...)
)

// dividing is a system that resizes jobs.
func dividing(f func(elastic.Params) pipeline.Stages) func(Knowledge, *Settings) (pipeline.Stages, error) {
	return func(k Knowledge, s *Settings) (pipeline.Stages, error) {
		p, err := divideParams(k, s)
		if err != nil {
			return pipeline.Stages{}, err
		}
		p.Pays = s.OneOf("pay", "off", "on", "off") == "on"
		return f(p), nil
	}
}

// weighing is a system that resizes jobs and knows their work.
func weighing(f func(elastic.Params) pipeline.Stages) func(Knowledge, *Settings) (pipeline.Stages, error) {
	return func(k Knowledge, s *Settings) (pipeline.Stages, error) {
		if k.Work == nil {
			return pipeline.Stages{}, errNoWork
		}
		return dividing(f)(k, s)
	}
}

// pollux is the system of that name.
func pollux(k Knowledge, s *Settings) (pipeline.Stages, error) {
	p, err := divideParams(k, s)
	if err != nil {
		return pipeline.Stages{}, err
	}
	p.Interval = s.Seconds("interval", elastic.PolluxRound)
	return elastic.Pollux(p, max(k.PerNode, 1)), nil
}

// polluxAutoscale is the system of that name.
func polluxAutoscale(k Knowledge, s *Settings) (pipeline.Stages, error) {
	p, err := divideParams(k, s)
	if err != nil {
		return pipeline.Stages{}, err
	}
	if n := k.types(); n > 1 {
		return pipeline.Stages{}, fmt.Errorf("GPUs of %d types, want one: utility does not tell which to rent", n)
	}
	if p.Interval = s.Seconds("interval", elastic.PolluxRound); k.Round > 0 { // it looks at utility as often as it divides
		p.Interval = k.Round
	}
	rent := provision.Rent{Keep: s.Seconds("keep", 0), Most: int32(min(s.Int("max_nodes", 0), math.MaxInt32))}
	perNode := max(k.PerNode, 1)
	most := max(min(k.MostGPUs, model.MaxGPUs/2)/perNode, 1)
	if rent.Most > 0 {
		most = min(most, int(rent.Most))
	}
	utility := s.Float("utility", 0.5)
	if !(utility > 0 && utility <= 1) {
		s.wrong("utility", s.Text("utility"), "a number > 0, at most 1")
	}
	return elastic.PolluxAutoscale(p, utility, perNode, most, rent), nil
}

// divideParams returns what the systems that resize jobs have in common.
func divideParams(k Knowledge, s *Settings) (elastic.Params, error) {
	r := &allocate.Rates{Work: k.Work, Seed: uint64(s.Int("seed", 0)), Restart: k.restart(s),
		Most: int32(min(s.Int("k_max", 0), math.MaxInt32)), Horizon: s.Seconds("horizon", DefaultHorizon)}
	p := elastic.Params{Rates: r, Place: s.Placer("packed", k), Interval: s.Seconds("interval", 0)}
	batch := s.OneOf("batch", "free", append([]string{"free"}, batchRules...)...)
	lr := s.OneOf("lr", "linear", lrRules...)
	var err error
	if r.Curves, err = curves(k, s, "learned"); err != nil {
		return p, err
	}
	_, told := r.Curves.(speedup.Batched)
	for i, name := range batchRules {
		if rule := model.BatchRule(i); name == batch {
			r.Batch = &rule
		}
	}
	for i, name := range lrRules {
		if name == lr {
			r.LR = allocate.LRRule(i)
		}
	}
	switch {
	case r.Batch != nil && !told:
		return p, fmt.Errorf("batch=%s, want free, or curves=oracle: what is learned is of the batch sizes that jobs have", batch)
	case r.LR == allocate.LRAdaScale && !told:
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
func elasticScaling(k Knowledge, s *Settings) (pipeline.Stages, error) {
	p, err := divideParams(k, s)
	if err != nil {
		return pipeline.Stages{}, err
	}
	mode := model.Queue
	if s.OneOf("backfill", "off", "on", "off") == "on" {
		mode = model.Backfill
	}
	if s.OneOf("mode", "queue", "queue", "drop") == "drop" {
		if mode == model.Backfill {
			return pipeline.Stages{}, errors.New("mode=drop with backfill=on, want one of them: nobody waits to be overtaken")
		}
		mode = model.Drop
	}
	if s.OneOf("objective", "goodput", "goodput", "throughput") == "throughput" {
		o, ok := p.Rates.Curves.(*speedup.Oracle)
		if !ok {
			return pipeline.Stages{}, errors.New("objective=throughput, want goodput, or curves=oracle: what is learned is progress, not samples")
		}
		p.Rates.Curves = o.InSamples()
	}
	fairness := s.number("fairness", 0, 1e3, "a number from 0 to 1000")
	return elastic.Sum(p, mode, fairness), nil
}
