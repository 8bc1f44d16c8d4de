// Package system is the table of names: every scheduling system Trainyard has, what it assumes, the keys it takes and
// how it is put together.
package system

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/trainyard/trainyard/internal/suggest"
	"github.com/trainyard/trainyard/model/dist"
	"github.com/trainyard/trainyard/model/interference"
	"github.com/trainyard/trainyard/model/power"
	"github.com/trainyard/trainyard/model/speedup"
	"github.com/trainyard/trainyard/model/variability"
	"github.com/trainyard/trainyard/pipeline"
	"github.com/trainyard/trainyard/sched"
	"github.com/trainyard/trainyard/stage/watch"
)

// Knowledge is what a system may be given beside what jobs say of themselves.
type Knowledge struct {
	Work  sched.Remainer  // remaining work of jobs, by an oracle or an estimator
	Sizes *dist.Empirical // service of earlier jobs, in the unit of the thresholds; nil = learn it from those that finish
	// Skew returns the share of a model's largest tensor in all its bytes, and whether the model is known; nil = what was
	// published of nine models.
	Skew func(model string) (float64, bool)
	// Speeds tells how fast jobs go, by an oracle; nil = nothing is known but what is learned.
	Speeds speedup.Source
	// Mix tells arrival rates and true chains of all applications of the trace, by an oracle; nil = unknown.
	Mix []speedup.Class
	// PerNode and MostGPUs are the GPUs of the largest node and of all that are owned or may be rented.
	PerNode, MostGPUs int
	// Pools are what may be rented, Budget the GPUs that may be, on average; 0 = none given.
	Pools  []sched.PoolSpec
	Budget float64
	Round  time.Duration // between decisions, instead of the system's own; 0 = that
	// Sets are what was measured of jobs that share GPUs, in places named as the types of the cluster; nil = nothing.
	Sets []interference.Set
	// Caps returns what GPUs do under power caps for jobs of a model, none where that is unknown; nil = it is of all.
	Caps  func(model string) power.Caps
	Types []string       // of the GPUs of the cluster
	Zone  *time.Location // from the key month_zone; nil = UTC
	// Scores are the PM scores of the GPUs by number, as known; nil = nothing is known of how they differ.
	Scores *variability.Scores
	// Classes says of which class of Scores models are; nil = what jobs say of themselves, and what was published.
	Classes *variability.ClassMap
	// Locality is what distance costs, as known; nil = the key locality_penalty alone.
	Locality *variability.Locality
	// Restart is what a restart of a job of a model costs, by an estimator; nil = unknown. The key restart_overhead comes first.
	Restart func(model string) time.Duration
	// Learn are the estimators behind the other fields: they hear of every event before the system does, and are saved with it.
	// Work is one of them if it is a sched.Observer.
	Learn []sched.Observer
	// Slow is the truth about GPUs that are slow for a while, for oracles; nil = unknown.
	Slow watch.Truth
}

// Info is one row of the table.
type Info struct {
	Name    string // as the command line takes it
	Line    string // what it does, in one line
	Assumes string // information model: "nothing", "remaining work", ...
	Source  string // paper or convention it follows
	Keys    []Key  // its own; Common are taken by all
	Placing string // its default placement; "" = that of Common
	// One of the two: a list of stages, or a Decider of its own.
	Stages func(k Knowledge, s *Settings) (pipeline.Stages, error)
	New    func(k Knowledge, s *Settings) (System, error)
	Common []string // the keys of Common that it takes; nil = all
	Rents  bool     // it decides itself how many nodes to rent: the keys of provision are not for it
	Sleeps bool     // its idle nodes sleep unless the key sleep says otherwise
	Scored bool     // it places jobs by PM scores of the GPUs
	// Batches says that it chooses batch sizes: those that a trace of profiled applications gives are not for it.
	Batches bool
}

// System is a system ready to decide, and what must be known to run it.
type System struct {
	Decider    sched.Decider
	ShareLimit int           // tenants it may give a GPU; 0 = 1
	Every      time.Duration // how often it may take GPUs away although nothing happens: a quantum or a round; 0 = never
}

// DefaultRestart is what a restart costs unless the key restart_overhead says otherwise. Source: Gu et al., NSDI'19, section
// 5.2.4 as quoted by Lucid's source: 13,724 s over 221 preemptions.
const DefaultRestart = 62 * time.Second

// Key is a setting a system takes.
type Key struct{ Name, Default, Doc string }

// Common are the keys that every system takes.
var Common = []Key{
	{"placement", "consolidate", "exact GPUs: count, consolidate, packed, yarn or skew"},
	{"pack_limit", "0.3", "placement skew: share of the largest tensor above which a model is consolidated, or learned"},
	{"profiles", "", "MODEL=FILE,...: logs of tensor or message sizes that tell the skew of models (default: published ones)"},
	{"min_run", "0", "seconds during which a started job cannot be preempted; auto = 300, or ten times what its restart costs if that is longer"},
	{"preempt_limit", "0", "times that a job may be stopped for others within an hour; 0 = any number"},
	{"user_limit", "0", "GPUs one user may hold at a time; 0 = no limit"},
}

// Provisioning are the keys of what provides nodes, which every system takes beside its own and Common.
var Provisioning = []Key{
	{"provision", "follow", "where nodes may be rented: follow the demand, or reserve"},
	{"reserve", "0", "provision reserve: GPUs rented at all times"},
	{"max_gpus", "0", "provision follow: GPUs wanted at most; 0 = what the pools allow"},
	{"keep", "0", "provision follow: seconds a node that is not needed is kept before it is let go"},
	{"power_cap", "off", "power caps: off, WATTS as in 150W, or the slow-down from 1 on up to which the cap of least energy is taken"},
	{"sleep", "inf", "seconds after which an idle node is put to sleep while no job waits; inf = never"},
}

// Beliefs are the keys of what restarts and distance are taken to cost by the systems that heed it. In a simulation that is
// also the truth.
var Beliefs = []Key{
	{"restart_overhead", "62", "seconds a job holds its GPUs without progress at every start but its first; or MODEL=SECONDS,...,SECONDS, the last for other models"},
	{"locality_penalty", "1", "time of an iteration of a gang on several nodes over that on one (default with --variability: 1.7)"},
	{"classes", StatedClasses, "of jobs: stated (else as published of models); FILE with model,class or with profiles; observed = told from how fast jobs run"},
	{"locality", "", "FILE with model_or_class,gpus_min,level,penalty: the same by model or class, GPUs and distance (node, rack, across); what it leaves open is locality_penalty"},
}

// types counts the GPU types that there are: those that have a name. One that is forgotten keeps its number.
func (k *Knowledge) types() (n int) {
	for _, name := range k.Types {
		if name != "" {
			n++
		}
	}
	return n
}

// estimators returns Learn, behind Work if that learns.
func (k *Knowledge) estimators() []sched.Observer {
	list := slices.Clone(k.Learn)
	if o, ok := k.Work.(sched.Observer); ok && !slices.Contains(list, o) {
		list = slices.Insert(list, 0, o)
	}
	return list
}

// restart returns what restarts are believed to cost by model: by the key, else as learned.
func (k *Knowledge) restart(s *Settings) func(model string) time.Duration {
	given := s.ByModel("restart_overhead", DefaultRestart)
	if k.Restart != nil && !s.Has("restart_overhead") {
		return k.Restart
	}
	return given.Of
}

// Named returns the row called name, or an error that says which name is near.
func Named(name string) (*Info, error) {
	for i := range table {
		if table[i].Name == name {
			return &table[i], nil
		}
	}
	return nil, fmt.Errorf("system: %q is not known%s; `trainyard systems` lists all", name, suggest.Hint(name, Names()))
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
func (i *Info) CommonKeys() []Key {
	keys := slices.Clone(Common)
	if i.Common != nil {
		keys = slices.DeleteFunc(keys, func(k Key) bool { return !slices.Contains(i.Common, k.Name) })
	}
	if i.Placing != "" {
		keys[0].Default = i.Placing
	}
	return keys
}

// ProvisioningKeys returns those of Provisioning that are for this system.
func (i *Info) ProvisioningKeys() []Key {
	keys := slices.Clone(Provisioning)
	if i.Sleeps {
		keys[slices.IndexFunc(keys, func(k Key) bool { return k.Name == "sleep" })].Default = "0"
	}
	if i.Rents {
		return slices.DeleteFunc(keys, func(k Key) bool { return k.Name != "sleep" && k.Name != "power_cap" })
	}
	return keys
}

// KeyNames returns the names of all keys the system takes.
func (i *Info) KeyNames() []string {
	var names []string
	for _, k := range slices.Concat(i.Keys, i.CommonKeys(), i.ProvisioningKeys()) {
		names = append(names, k.Name)
	}
	return names
}

// CheckKeys returns an error about the first key of settings, in order of name, that neither the system takes nor is one of
// more. It says which key is near.
func (i *Info) CheckKeys(settings map[string]string, more ...Key) error {
	names := i.KeyNames()
	for _, k := range more {
		names = append(names, k.Name)
	}
	for _, key := range slices.Sorted(maps.Keys(settings)) {
		if !slices.Contains(names, key) {
			return fmt.Errorf("system: %s takes no key %q%s; it takes %s", i.Name, key, suggest.Hint(key, names), strings.Join(names, ", "))
		}
	}
	return nil
}

// Build returns the system under the given settings, common keys applied. adapt, if not nil, changes its stages; an error
// is returned if it has none.
func (i *Info) Build(k Knowledge, s *Settings, adapt func(*pipeline.Stages)) (System, error) {
	sys, err := i.build(k, s, adapt)
	if err == nil {
		err = s.Err()
	}
	if err != nil {
		return System{}, fmt.Errorf("system: %s: %w", i.Name, err)
	}
	return sys, nil
}

func (i *Info) build(k Knowledge, s *Settings, adapt func(*pipeline.Stages)) (System, error) {
	if i.Stages == nil {
		if adapt != nil {
			return System{}, errNoStages
		}
		sys, err := i.New(k, s)
		if err != nil {
			return System{}, err
		}
		rules, err := i.provision(k, s, false)
		sys.Decider = pipeline.Compose(sys.Decider, pipeline.Parts{Learn: k.estimators(), Provision: rules})
		return sys, err
	}
	st, err := i.Stages(k, s)
	if err != nil {
		return System{}, err
	}
	s.protect(k, &st)
	st.UserLimit = s.Int("user_limit", 0)
	rules, err := i.provision(k, s, st.Allocate != nil)
	if err != nil {
		return System{}, err
	}
	st.Provision = append(st.Provision, rules...)
	st.Learn = append(k.estimators(), st.Learn...)
	if adapt != nil {
		adapt(&st)
	}
	return System{Decider: st.Decider(), Every: every(&st)}, nil
}

// every returns how often s may take GPUs away although nothing happens: at the quantum or round by which keys grow, or where
// all are placed anew and nothing weighs whether a move is worth its restart.
func every(s *pipeline.Stages) time.Duration {
	switch {
	case s.Quantum > 0 && s.Round > 0:
		return s.Round
	case s.Round > 0 && s.Replace && s.Move == nil:
		return max(s.Round, s.ReplaceEvery)
	}
	return s.Quantum
}
