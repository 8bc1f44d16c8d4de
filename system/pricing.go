package system

import (
	"errors"
	"math"
	"time"

	"github.com/trainyard/trainyard/model/interference"
	"github.com/trainyard/trainyard/model/price"
	"github.com/trainyard/trainyard/model/remaining"
	"github.com/trainyard/trainyard/model/variability"
	"github.com/trainyard/trainyard/pipeline"
	"github.com/trainyard/trainyard/sched"
	"github.com/trainyard/trainyard/stage/allocate"
	"github.com/trainyard/trainyard/stage/place"
	"github.com/trainyard/trainyard/stage/provision"
	"github.com/trainyard/trainyard/stage/share"
	"github.com/trainyard/trainyard/system/boa"
	"github.com/trainyard/trainyard/system/key"
	"github.com/trainyard/trainyard/system/pal"
	"github.com/trainyard/trainyard/system/worth"
)

// The keys of the system that puts one price on GPUs.
var (
	keySizes = key.Choice("sizes", "learned",
		"work of jobs: learned from those that ended and run; stated = their wall times and steps alone; oracle",
		"learned", "stated", "oracle")

	keyScores = key.Switch("use", "ignore", "scores", "ignore",
		"use = GPUs that are known to differ are chosen by their PM scores and by distance, not by placement; ignore")

	keyKWh = key.Positive(maxPatience, "a number > 0, at most 1e6", "kwh_per_job_hour", formatted(worth.DefaultKWh),
		"kWh that an hour's delay of a job is worth: jobs share GPUs where that gives more than it takes; without "+
			"--interference none do")

	// keyWeighs is Priority of a system that puts no job before all others.
	keyWeighs = weighs()

	worthKeys = key.List{keyWeighs.Key, keySizes.Key, keyScores.Key, keyKWh.Key, keyCurves.Key, LR.Key, KMax.Key,
		keyBudget.Key, keyMonthBudget.Key, keyMonthCarry.Key, MonthZone.Key, keyMonthFrom.Key,
		ShareMemory.Key}
)

// weighs declares Priority without classes.
func weighs() key.Of[string] {
	k := key.New(Priority.Name, PriorityOwn,
		"priorities of jobs: own, classes = a step doubles what a job's delay weighs, and who waits weighs more with "+
			"time; ignore = they play no part",
		func(text string) (string, error) {
			if text != PriorityOwn && text != PriorityClasses && text != PriorityIgnored {
				return "", errors.New("own, classes or ignore")
			}
			return text, nil
		})
	k.Choices = []string{PriorityOwn, PriorityClasses, PriorityIgnored}
	return k
}

// worthKnows is what that system knows.
func worthKnows(k Knowledge, s *key.Settings) (known worth.Known, err error) {
	known.Restart = k.restart(s)
	switch keySizes.Get(s) {
	case "oracle":
		if k.Work == nil {
			return known, errNoWork
		}
		known.Work = remaining.Known{Remainer: k.Work}
	case "stated":
		known.Work = remaining.NewStated()
	default:
		known.Work = remaining.NewSizes()
	}
	if keyScores.Get(s) && k.Scores != nil && differ(k.Scores) {
		known.Scores = placesOf(k, s)
	}
	if k.Sets != nil {
		known.Sets = &share.Known{Work: expected{known.Work}, Restart: known.Restart, Peaks: k.Peaks,
			Timed: keySizes.Get(s) != "oracle", Learner: interference.NewLearner(&interference.History{})}
	}
	known.Speeds, err = curves(k, s, false)
	return known, err
}

// expected is the work that jobs are expected to have left.
type expected struct{ allocate.Sizes }

// Remaining returns that of job j.
func (e expected) Remaining(v *sched.View, j sched.JobID) time.Duration {
	_, mean := e.Left(v, j)
	return sched.Seconds(mean)
}

// placesOf has jobs placed by PM scores and distance, as PAL places them.
func placesOf(k Knowledge, s *key.Settings) *worth.Places {
	of := pal.Known{Scores: k.Scores, Classes: Classes.Get(s), Locality: Locality.Get(s)}
	b := of.Beliefs(pal.Options{Across: LocalityPenalty.Get(s), Tolerance: Tolerance.Standard(),
		Observe: s.Text(&Classes.Key) == ObservedClasses})
	p := &worth.Places{Place: place.PAL{Scores: b.Scores, Penalty: b.Penalty, Tolerance: b.Tolerance},
		Slowdown: b.Slowdown}
	if b.Observed != nil {
		p.Classes = b.Observed
	}
	return p
}

// differ reports whether some GPU is faster than another for some class of jobs.
func differ(s *variability.Scores) bool {
	for _, of := range s.PM {
		for _, pm := range of {
			if pm != of[0] {
				return true
			}
		}
	}
	return false
}

// byWorth is that system.
func byWorth(k worth.Known, facts Facts, s *key.Settings) (st pipeline.Stages, err error) {
	p := worth.Params{Most: int32(min(KMax.Get(s), math.MaxInt32)), Place: placer(s), Unsaved: unsaved(s),
		Explores: keyCurves.Get(s) == "learned", KWh: keyKWh.Get(s), Sleeps: Sleep.Get(s) != never,
		UserGPUs: UserLimit.Get(s), Alike: keyWeighs.Get(s) == PriorityIgnored}
	for i, name := range lrRules {
		if name == LR.Get(s) {
			p.LR = allocate.LRRule(i)
		}
	}
	if p.Rent, err = worthRents(k, facts, s); err != nil {
		return st, err
	}
	return worth.Stages(k, p), nil
}

// mostNodes returns how many nodes have at most so many GPUs, one at least; 0 = any number.
func mostNodes(gpus, perNode int) int32 {
	if gpus == 0 {
		return 0
	}
	return int32(max(gpus/max(perNode, 1), 1))
}

// worthRents returns how that system rents, nil where it has no budget.
func worthRents(k worth.Known, facts Facts, s *key.Settings) (worth.Renting, error) {
	p := boa.Params{Known: boa.Known{Curves: k.Speeds, Restart: k.Restart, PerNode: facts.PerNode,
		Boot: slowestBoot(facts.Pools)}, Budget: budgetOf(facts, s), Weight: weightOf(s, keyWeight.Standard()),
		Unsaved: unsaved(s), Rent: provision.Rent{Keep: Keep.Get(s), Most: mostNodes(MaxGPUs.Get(s), facts.PerNode)}}
	monthly(facts, s, &p)
	switch {
	case p.Budget == 0 && p.Month == price.MonthRule{}:
		return nil, nil
	case Provide.Get(s) != Provide.Default:
		return nil, errors.New("provision=reserve with a budget, want one of them: the budget says what is rented")
	}
	if err := oneType(facts); err != nil {
		return nil, err
	}
	return boa.NewRenting(p)
}
