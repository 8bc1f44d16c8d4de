package system

import (
	"slices"
	"time"

	"github.com/trainyard/trainyard/model/footprint"
	"github.com/trainyard/trainyard/model/interference"
	"github.com/trainyard/trainyard/model/power"
	"github.com/trainyard/trainyard/model/speedup"
	"github.com/trainyard/trainyard/model/variability"
	"github.com/trainyard/trainyard/sched"
	"github.com/trainyard/trainyard/stage/watch"
	"github.com/trainyard/trainyard/system/key"
)

// Knowledge is all that is known where a world is made, in addition to what jobs say of themselves. A system is given
// the part that its family may know, see Maker.
type Knowledge struct {
	Work   sched.Remainer // remaining work of jobs, by an oracle or an estimator
	Files  key.Contents   // of the files that keys name
	Speeds speedup.Source // how fast jobs go, by an oracle; nil: only what is learned
	Asked  *Asked         // notes which oracles are used; nil: no one wants to know
	// arrival rates and true chains of all applications of the trace, by an oracle; nil: unknown
	Mix []speedup.Class
	// measured of jobs that share GPUs, in places named as the types of the cluster; nil: none
	Sets []interference.Set

	// Caps returns what GPUs do under power caps for jobs of a model, none where that is unknown; nil: it is unknown of
	// all.
	Caps func(model string) power.Caps
	// Scores are the PM scores of the GPUs by number, as known; nil: nothing is known of how they differ.
	Scores *variability.Scores
	// Restart is what a restart of a job of a model costs, by an estimator; nil: unknown. The key restart_overhead
	// comes first.
	Restart func(model string) time.Duration
	// Peaks are how much device memory jobs have at most, learned, where the key share_memory asks for it; nil: nothing
	// but what is stated is known.
	Peaks *footprint.Peaks
	// Slow is the truth about GPUs that are slow for a while, for oracles; nil: unknown.
	Slow watch.Truth
	// Learn are the estimators behind the other fields: they are given every event before the system is, and saved with
	// it. Work is one of them if it is a sched.Observer.
	Learn []sched.Observer

	// PerNode and MostGPUs are the GPUs of the largest node and of all that are owned or may be rented.
	PerNode, MostGPUs int
	Types             []string         // of the GPUs of the cluster
	Pools             []sched.PoolSpec // what may be rented
	Budget            float64          // GPUs that may be rented on average; 0: none given
	Round             time.Duration    // between decisions, instead of the system's own; 0: that
	Zone              *time.Location   // from the key month_zone; nil: UTC
}

// Asked is what a system uses of oracles, noted as it is built.
type Asked struct{ Curves bool }

// Facts are of the cluster and of the request, and known to every system.
type Facts struct {
	PerNode, MostGPUs int // GPUs of the largest node and of all that are owned or may be rented
	Types             int // of GPUs, those that have a name
	Pools             []sched.PoolSpec
	Budget            float64        // GPUs that may be rented on average; 0: none given
	Round             time.Duration  // between decisions, instead of the system's own; 0: that
	Zone              *time.Location // of calendar months
}

// facts are those of k.
func (k *Knowledge) facts() Facts {
	return Facts{PerNode: k.PerNode, MostGPUs: k.MostGPUs, Types: k.types(), Pools: k.Pools, Budget: k.Budget,
		Round: k.Round, Zone: k.Zone}
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
func (k *Knowledge) restart(s *key.Settings) func(model string) time.Duration {
	given := RestartOverhead.Get(s)
	if k.Restart != nil && !RestartOverhead.Given(s) {
		return k.Restart
	}
	return given.Of
}
