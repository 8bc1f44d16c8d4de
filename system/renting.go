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
	"github.com/trainyard/trainyard/system/key"
)

// The keys of the systems that rent to a budget.
var (
	keyBudget      = key.Number("budget", "", "GPUs rented on average (default: that of --budget)")
	keyInformation = key.Choice("information", "estimated",
		"estimated: arrivals are counted; perfect: rates and speeds are known; price: only what is spent is known",
		"estimated", "perfect", "price")
	keyCurves = key.Choice("curves", "learned",
		"how fast jobs go: learned from their progress, or by an oracle (default with information=perfect)", "learned",
		"oracle")
	keyWeight = key.NumberTo(1e3, "priority_weight", "2",
		"a step of a job's priority multiplies by it what the job's delay is worth; 1 = priorities play no part")
	keyCorrect = key.Switch("yes", "no", "correct", "yes",
		"plan for less or more than the budget, so that what is really spent comes to it; no: as if plans were right")
	keyRentKeep    = Keep.As("0", "seconds a node that is not needed is kept before it is let go")
	keyMaxNodes    = key.Int("max_nodes", "0", "nodes rented at most; 0 = what the pools allow")
	keyMonthBudget = key.Number("month_budget", "0",
		"information=price: GPU-hours to be rented in each calendar month, instead of budget; used up, all stops")
	keyMonthCarry = key.Number("month_carry", "0", "of them, those left that go over into the next month at most")
	keyMonthFrom  = key.New("month_from", "1970-01-01T00:00:00Z", "date and time at the start of the trace",
		parseDate)
	Seed = key.Int("seed", "0", "of the search for widths")

	// MonthZone is looked up where the world is made: the zones are in files.
	MonthZone = key.Text("month_zone", "UTC", "time zone in which months start")
)

// boaKeys are those of the systems that know a price.
var boaKeys = key.List{keyBudget.Key, keyInformation.Key, keyCurves.Key, keyWeight.Key, keyCorrect.Key,
	keyRentKeep.Key, keyMaxNodes.Key,
	keyMonthBudget.Key, keyMonthCarry.Key, MonthZone.Key, keyMonthFrom.Key}

// equalKeys are those of equal-width, which knows no price.
var equalKeys = key.List{keyBudget.Key,
	keyInformation.As("estimated", "estimated: arrivals are counted; perfect: rates and speeds are known").Key,
	keyCurves.Key, keyCorrect.Key, keyRentKeep.Key, keyMaxNodes.Key}

// ErrBudget says that a system that rents has no budget.
var ErrBudget = boa.ErrBudget

func parseDate(text string) (time.Time, error) {
	from, err := time.Parse(time.RFC3339, cmp.Or(text, "1970-01-01T00:00:00Z"))
	if err != nil {
		return from, errors.New("a date and time such as 2026-01-01T00:00:00Z")
	}
	return from, nil
}

// rentingKnows is what the systems that rent to a budget know.
func rentingKnows(k Knowledge, s *key.Settings) (known boa.Known, err error) {
	known = boa.Known{Restart: k.restart(s), PerNode: k.PerNode}
	perfect := keyInformation.Get(s) == "perfect"
	if perfect {
		if known.Mix = k.Mix; len(k.Mix) == 0 {
			return known, errors.New("information=perfect, want applications whose speeds are known: --profiles")
		}
	}
	known.Boot = slowestBoot(k.Pools)
	known.Curves, err = curves(k, s, perfect)
	return known, cmp.Or(s.Err(), err)
}

// boaParams returns what the systems that rent to a budget may spend, and how.
func boaParams(k boa.Known, facts Facts, s *key.Settings) (boa.Params, error) {
	p := boa.Params{Known: k, Budget: budgetOf(facts, s),
		Priced: keyInformation.Get(s) == "price", Fixed: !keyCorrect.Get(s),
		Weight: keyWeight.Standard(), Unsaved: unsaved(s),
		Rent: provision.Rent{Keep: keyRentKeep.Get(s), Most: int32(keyMaxNodes.Get(s))}}
	return p, oneType(facts)
}

// weightOf returns what a step of priority multiplies by, 1 where priorities are ignored.
func weightOf(s *key.Settings, weight float64) float64 {
	if Priority.Get(s) == PriorityIgnored {
		return 1
	}
	return weight
}

// slowestBoot returns how long a node boots at most.
func slowestBoot(pools []sched.PoolSpec) (boot time.Duration) {
	for i := range pools {
		boot = max(boot, pools[i].Boot)
	}
	return boot
}

// budgetOf returns the GPUs that may be rented on average, 0 = none were given.
func budgetOf(facts Facts, s *key.Settings) float64 {
	if keyBudget.Given(s) {
		return keyBudget.Get(s)
	}
	return facts.Budget
}

// oneType refuses GPUs of several types.
func oneType(facts Facts) error {
	if facts.Types > 1 {
		return fmt.Errorf("GPUs of %d types, want one: no width follows for a job that may take either; "+
			"`trainyard plan` weighs types", facts.Types)
	}
	return nil
}

// monthly fills in what may be spent by month.
func monthly(facts Facts, s *key.Settings, p *boa.Params) {
	if budget := keyMonthBudget.Get(s); budget > 0 {
		p.Epoch = keyMonthFrom.Get(s).Unix()
		p.Month = price.MonthRule{Budget: budget, Carry: keyMonthCarry.Get(s), Zone: cmp.Or(facts.Zone, time.UTC)}
	}
}

// curves returns what is known of how fast jobs go. It is learned unless the key says otherwise, or all is known.
func curves(k Knowledge, s *key.Settings, perfect bool) (speedup.Source, error) {
	oracle := keyCurves.Get(s) == "oracle" || perfect && !keyCurves.Given(s)
	if !oracle {
		if k.PerNode < 1 || k.MostGPUs < 1 {
			return nil, errors.New("speeds are to be learned, want to know how many GPUs there are")
		}
		return speedup.NewLearned(k.PerNode, k.MostGPUs), nil
	}
	if k.Speeds == nil {
		return nil, errors.New("curves=oracle, want applications whose speeds are known: --profiles")
	}
	if k.Asked != nil {
		k.Asked.Curves = true
	}
	return k.Speeds, nil
}

// renting is a system that rents to a budget. seeded says that it draws, and byPrice that it knows a price.
func renting(f func(boa.Params, sched.Placer) (pipeline.Stages, error), seeded, byPrice bool) Maker[pipeline.Stages] {
	return given(rentingKnows, func(k boa.Known, facts Facts, s *key.Settings) (st pipeline.Stages, err error) {
		place := placer(s)
		p, err := boaParams(k, facts, s)
		if seeded {
			p.Seed = uint64(Seed.Get(s))
		}
		if byPrice {
			p.Weight = weightOf(s, keyWeight.Get(s))
			monthly(facts, s, &p)
		}
		err = cmp.Or(s.Err(), err)
		if err != nil {
			return st, err
		}
		return f(p, place)
	})
}
