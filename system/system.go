// Package system is the table of names: every scheduling system Trainyard has, what it assumes, the keys it takes and
// how it is put together.
package system

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/trainyard/trainyard/eventlog"
	"github.com/trainyard/trainyard/internal/suggest"
	"github.com/trainyard/trainyard/pipeline"
	"github.com/trainyard/trainyard/sched"
	"github.com/trainyard/trainyard/system/key"
)

// Info is one row of the table.
type Info struct {
	Name    string   // as the command line takes it
	Line    string   // what it does, in one line
	Assumes string   // information model: "nothing", "remaining work", ...
	Source  string   // paper or convention it follows
	Keys    key.List // its own; Common are taken by all
	Placing string   // its default placement; "" = that of Common
	// One of the two: a list of stages, or a Decider of its own.
	Stages Maker[pipeline.Stages]
	New    Maker[System]
	Common []string // the keys of Common that it takes; nil = all
	Rents  bool     // it decides itself how many nodes to rent: the keys of provision are not for it
	Sleeps bool     // its idle nodes sleep unless the key sleep says otherwise
	Scored bool     // it places jobs by PM scores of the GPUs
	Stays  bool     // it stops, moves and resizes no job for others
	// NoPriority says that it does not look at the priorities of jobs.
	NoPriority bool
	// Batches says that it chooses batch sizes: those that a trace of profiled applications gives are not for it.
	Batches bool
}

// System is a system ready to decide, and what must be known to run it.
type System struct {
	Decider    sched.Decider
	ShareLimit int // tenants it may give a GPU; 0 = 1
	// how often it may take GPUs away although nothing happens: a quantum or a round; 0 = never
	Every time.Duration
}

// Named returns the row called name, or an error that says which name is near.
func Named(name string) (*Info, error) {
	for i := range table {
		if table[i].Name == name {
			return &table[i], nil
		}
	}
	return nil, fmt.Errorf("system: %q is not known%s; `trainyard systems` lists all", name,
		suggest.Hint(name, Names()))
}

// Table returns all rows in the order in which they are listed.
func Table() []Info { return append([]Info(nil), table...) }

// Names returns the names of all systems in that order.
func Names() []string {
	names := make([]string, len(table))
	for i := range table {
		names[i] = table[i].Name
	}
	return names
}

// CommonKeys returns Common with the defaults they have for this system.
func (i *Info) CommonKeys() key.List {
	keys := slices.Clone(Common)
	if i.Common != nil {
		keys = slices.DeleteFunc(keys, func(k key.Key) bool { return !slices.Contains(i.Common, k.Name) })
	}
	if i.Placing != "" {
		keys.Find(Placement.Name).Default = i.Placing
	}
	if i.Stays {
		k := keys.Find(Unsaved.Name)
		k.Live, k.LiveSince = "", 0
		k.Doc = "whether jobs are stopped of which nothing shows that they save: this system stops no job for " +
			"others, so that both mean the same"
	}
	return keys
}

// Leaves returns who is stopped by his user alone under the system and the settings of h: under one that stops no job
// for others the rule decides nothing.
func Leaves(h *eventlog.Header) sched.Unsaved {
	if info, err := Named(h.System); err == nil && info.Stays {
		return sched.StopUnsaved
	}
	return sched.UnsavedOf(h.Settings)
}

// StopsAny reports whether the system of h may stop any job for others, whatever is known of it and its user says.
func StopsAny(h *eventlog.Header) bool {
	info, err := Named(h.System)
	return err == nil && !info.Stays && info.CommonKeys().Find(Unsaved.Name) != nil &&
		sched.UnsavedOf(h.Settings) == sched.StopUnsaved
}

// ProvisioningKeys returns those of Provisioning that are for this system.
func (i *Info) ProvisioningKeys() key.List {
	keys := slices.Clone(Provisioning)
	if i.Sleeps {
		sleep := keys.Find(Sleep.Name)
		sleep.Default, sleep.Live = "0", "inf" // the machine does not
	}
	if i.Rents {
		return slices.DeleteFunc(keys, func(k key.Key) bool { return k.Name != Sleep.Name && k.Name != Caps.Name })
	}
	return keys
}

// RentsUnder reports whether it rents nodes by itself under a budget, 0 = none, and settings.
func (i *Info) RentsUnder(budget float64, settings *key.Settings) bool {
	return i.Rents || i.Keys.Find(keyBudget.Name) != nil &&
		(budget > 0 || settings.Has(keyBudget.Name) || settings.Has(keyMonthBudget.Name))
}

// BudgetUnder returns how many GPUs it may rent on average under a budget, 0 = none, and settings; 0 = any number.
func (i *Info) BudgetUnder(budget float64, settings *key.Settings) float64 {
	switch {
	case !i.RentsUnder(budget, settings) || settings.Has(keyMonthBudget.Name):
		return 0
	case settings.Has(keyBudget.Name):
		return keyBudget.Get(settings)
	}
	return budget
}

// All returns the keys the system takes everywhere.
func (i *Info) All() key.List { return key.Join(i.Keys, i.CommonKeys(), i.ProvisioningKeys()) }

// KeyNames returns the names of all keys the system takes.
func (i *Info) KeyNames() []string { return i.All().Names() }

// CheckKeys returns an error about the first key of settings, in order of name, that the system does not take, or not
// there. It says which key is near.
func (i *Info) CheckKeys(settings map[string]string, where key.Use) error {
	return key.Join(i.All(), World).Check("system: "+i.Name, settings, where)
}

// Build returns the system under the given settings, common keys applied. adapt, if not nil, changes its stages; an
// error is returned if it has none.
func (i *Info) Build(k Knowledge, s *key.Settings, adapt func(*pipeline.Stages)) (System, error) {
	s.Bind(key.Join(i.All(), Beliefs), k.Scores != nil, k.Files)
	sys, err := i.build(k, s, adapt)
	if err == nil {
		err = s.Err()
	}
	if err != nil {
		return System{}, fmt.Errorf("system: %s: %w", i.Name, err)
	}
	return sys, nil
}

func (i *Info) build(k Knowledge, s *key.Settings, adapt func(*pipeline.Stages)) (System, error) {
	if i.Stays {
		_ = Unsaved.Get(s) // it decides nothing, but a wrong value is an error
	}
	i.peaks(&k, s)
	if i.Stages == nil {
		if adapt != nil {
			return System{}, errNoStages
		}
		sys, err := i.New.Make(k, s)
		if err != nil {
			return System{}, err
		}
		rules, err := i.provision(k, s, false, i.Rents)
		sys.Decider = pipeline.Compose(sys.Decider, pipeline.Parts{Learn: k.estimators(), Provision: rules})
		return sys, err
	}
	st, err := i.Stages.Make(k, s)
	if err != nil {
		return System{}, err
	}
	protect(k, s, !i.Stays, &st)
	st.UserLimit = UserLimit.Get(s)
	prioritize(s, &st)
	rules, err := i.provision(k, s, st.Allocate != nil, i.Rents || slices.ContainsFunc(st.Provision, rents))
	if err != nil {
		return System{}, err
	}
	st.Provision = append(st.Provision, rules...)
	st.Learn = append(k.estimators(), st.Learn...)
	if adapt != nil {
		adapt(&st)
	}
	return System{Decider: st.Decider(), Every: every(&st), ShareLimit: st.ShareLimit}, nil
}

var (
	errNoStages = errors.New("it decides as a whole, in no stages that rounds or a preset could change")
	errNoScores = errors.New("no PM scores of the GPUs were given; see --variability")
	errNoTruth  = errors.New("stragglers=oracle: no one knows which GPUs are slow; only simulations do, of the key " +
		"slow_gpus")
	errNoWork = errors.New("no knowledge of remaining work was given")
)

// every returns how often s may take GPUs away although nothing happens: at the quantum or round by which keys grow, or
// where all are placed again and nothing weighs whether a move is worth its restart.
func every(s *pipeline.Stages) time.Duration {
	switch {
	case s.Quantum > 0 && s.Round > 0:
		return s.Round
	case s.Round > 0 && s.Replace && s.Move == nil:
		return max(s.Round, s.ReplaceEvery)
	}
	return s.Quantum
}
