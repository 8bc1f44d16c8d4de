package system

import (
	"cmp"
	"errors"
	"fmt"
	"time"

	"github.com/trainyard/trainyard/model/price"
	"github.com/trainyard/trainyard/model/speedup"
	"github.com/trainyard/trainyard/pipeline"
	"github.com/trainyard/trainyard/sched"
	"github.com/trainyard/trainyard/stage/provision"
	"github.com/trainyard/trainyard/system/boa"
)

// boaKeys are the keys of the systems that rent to a budget.
var boaKeys = []Key{
	{"budget", "", "GPUs rented on average (default: that of --budget)"},
	{"information", "estimated", "estimated: arrivals are counted; perfect: rates and speeds are known; price: only what is spent is known"},
	keyCurves,
	{"priority_weight", "2", "a step of a job's priority multiplies by it what the job's delay is worth; 1 = priorities play no part"},
	{"correct", "yes", "plan for less or more than the budget, so that what is really spent comes to it; no: as if plans were right"},
	{"keep", "0", "seconds a node that is not needed is kept before it is let go"},
	{"max_nodes", "0", "nodes rented at most; 0 = what the pools allow"},
	{"month_budget", "0", "information=price: GPU-hours to be rented in each calendar month, instead of budget; used up, all stops"},
	{"month_carry", "0", "of them, those left that go over into the next month at most"},
	{"month_zone", "UTC", "time zone in which months begin"},
	{"month_from", "1970-01-01T00:00:00Z", "date and time at the beginning of the trace"},
}

// equalKeys are those of equal-width, which knows no price.
var equalKeys = append([]Key{boaKeys[0], {"information", "estimated", "estimated: arrivals are counted; perfect: rates and speeds are known"}}, keyCurves, boaKeys[4], boaKeys[5], boaKeys[6])

var keyCurves = Key{"curves", "learned", "how fast jobs go: learned from their progress, or by an oracle (default with information=perfect)"}

// ErrBudget says that a system that rents has no budget.
var ErrBudget = boa.ErrBudget

// boaParams returns what a system that rents to a budget assumes.
func boaParams(k Knowledge, s *Settings) (boa.Params, error) {
	information := s.OneOf("information", "estimated", "estimated", "perfect", "price")
	p := boa.Params{Budget: s.Float("budget", k.Budget), Priced: information == "price", Fixed: s.OneOf("correct", "yes", "yes", "no") == "no",
		Restart: k.restart(s), PerNode: k.PerNode, Seed: uint64(s.Int("seed", 0)), Weight: s.number("priority_weight", 2, 1e3, "a number from 0 to 1000"),
		Rent: provision.Rent{Keep: s.Seconds("keep", 0), Most: int32(s.Int("max_nodes", 0))}}
	if n := k.types(); n > 1 {
		return p, fmt.Errorf("GPUs of %d types, want one: no width follows for a job that may take either; `trainyard plan` weighs types", n)
	}
	knows := "learned"
	if information == "perfect" {
		if p.Known = k.Mix; len(k.Mix) == 0 {
			return p, errors.New("information=perfect, want applications whose speeds are known: --profiles")
		}
		knows = "oracle"
	}
	for i := range k.Pools {
		p.Boot = max(p.Boot, k.Pools[i].Boot)
	}
	err := month(k, s, &p)
	if err != nil {
		return p, err
	}
	p.Curves, err = curves(k, s, knows)
	return p, err
}

// month fills in what was agreed by calendar month.
func month(k Knowledge, s *Settings, p *boa.Params) error {
	budget := s.Float("month_budget", 0)
	if budget == 0 {
		return nil
	}
	from, err := time.Parse(time.RFC3339, cmp.Or(s.Text("month_from"), "1970-01-01T00:00:00Z"))
	if err != nil {
		return fmt.Errorf("month_from=%q, want a date and time such as 2026-01-01T00:00:00Z", s.Text("month_from"))
	}
	zone := k.Zone
	if zone == nil {
		zone = time.UTC
	}
	p.Epoch = from.Unix()
	p.Month = price.MonthRule{Budget: budget, Carry: s.Float("month_carry", 0), Zone: zone}
	return nil
}

// curves returns what is known of how fast jobs go.
func curves(k Knowledge, s *Settings, def string) (speedup.Source, error) {
	if s.OneOf("curves", def, "learned", "oracle") == "learned" {
		if k.PerNode < 1 || k.MostGPUs < 1 {
			return nil, errors.New("speeds are to be learned, want to know how many GPUs there are")
		}
		return speedup.NewLearned(k.PerNode, k.MostGPUs), nil
	}
	if k.Speeds == nil {
		return nil, errors.New("curves=oracle, want applications whose speeds are known: --profiles")
	}
	return k.Speeds, nil
}

// renting is a system that rents to a budget.
func renting(f func(boa.Params, sched.Placer) (pipeline.Stages, error)) func(Knowledge, *Settings) (pipeline.Stages, error) {
	return func(k Knowledge, s *Settings) (pipeline.Stages, error) {
		place := s.Placer("packed", k)
		p, err := boaParams(k, s)
		err = cmp.Or(s.Err(), err)
		if err != nil {
			return pipeline.Stages{}, err
		}
		return f(p, place)
	}
}
