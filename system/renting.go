package system

import (
	"errors"

	"github.com/trainyard/trainyard/engine"
	"github.com/trainyard/trainyard/model/speedup"
	"github.com/trainyard/trainyard/sched"
	"github.com/trainyard/trainyard/system/boa"
)

// boaKeys are the keys of the systems that rent to a budget.
var boaKeys = []Key{
	{"budget", "", "GPUs rented on average (default: that of --budget)"},
	{"information", "estimated", "estimated: arrivals are counted; perfect: rates and speeds are known; price: only what is spent is known"},
	keyCurves,
	{"keep", "0", "seconds a node that is not needed is kept before it is let go"},
	{"max_nodes", "0", "nodes rented at most; 0 = what the pools allow"},
}

var keyCurves = Key{"curves", "learned", "how fast jobs go: learned from their progress, or by an oracle (default with information=perfect)"}

// boaParams returns what a system that rents to a budget assumes.
func boaParams(k Knowledge, s *Settings) (boa.Params, error) {
	information := s.OneOf("information", "estimated", "estimated", "perfect", "price")
	restart := s.ByModel("restart_overhead", DefaultRestart)
	p := boa.Params{Budget: s.Float("budget", k.Budget), Priced: information == "price", Restart: restart.Of, Seed: uint64(s.Int("seed", 0)),
		Keep: s.Seconds("keep", 0), Most: int32(s.Int("max_nodes", 0))}
	knows := "learned"
	if information == "perfect" {
		if p.Known = k.Mix; len(k.Mix) == 0 {
			return p, errors.New("information=perfect, want applications whose speeds are known: --profiles")
		}
		knows = "oracle"
	}
	var err error
	p.Curves, err = curves(k, s, knows)
	return p, err
}

// curves returns what is known of how fast jobs go.
func curves(k Knowledge, s *Settings, def string) (speedup.Source, error) {
	if s.OneOf("curves", def, "learned", "oracle") == "learned" {
		return speedup.NewLearned(k.PerNode, k.MostGPUs), nil
	}
	if k.Speeds == nil {
		return nil, errors.New("curves=oracle, want applications whose speeds are known: --profiles")
	}
	return k.Speeds, nil
}

// renting is a system that rents to a budget.
func renting(f func(boa.Params, sched.Placer) (engine.Stages, error)) func(Knowledge, *Settings) (engine.Stages, error) {
	return func(k Knowledge, s *Settings) (engine.Stages, error) {
		p, err := boaParams(k, s)
		if err == nil {
			err = s.Err()
		}
		if err != nil {
			return engine.Stages{}, err
		}
		return f(p, s.Placer("packed", k))
	}
}
