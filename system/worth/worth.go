// Package worth lists the stages of the system of that name: each GPU goes to the work to which it is worth most, at
// one price that clears the cluster. See docs/papers/combined.md.
package worth

import (
	"math"
	"time"

	"github.com/trainyard/trainyard/model/speedup"
	"github.com/trainyard/trainyard/pipeline"
	"github.com/trainyard/trainyard/sched"
	"github.com/trainyard/trainyard/stage/allocate"
	"github.com/trainyard/trainyard/stage/order"
	"github.com/trainyard/trainyard/stage/place"
	"github.com/trainyard/trainyard/stage/share"
)

// Known is what is known of jobs.
type Known struct {
	Speeds  speedup.Source                   // by width and batch size, learned or by an oracle
	Work    allocate.Sizes                   // what they have left: learned, stated or by an oracle
	Restart func(model string) time.Duration // what a restart costs
	Scores  *Places                          // how GPUs differ; nil = they are alike
	Sets    *share.Known                     // how jobs slow each other; nil = nothing is known, and no GPUs are shared
}

// Renting is how GPUs are rented to a budget.
type Renting interface {
	allocate.Renting
	Parts() pipeline.Parts // that learn, and rent
}

// Places is what follows from PM scores of GPUs.
type Places struct {
	Place    sched.Placer      // by scores and distance, instead of that of Params
	Slowdown allocate.Slowdown // what GPUs and their distance cost a job
	Classes  sched.Observer    // infers the classes of jobs from their speeds; nil = they are known
}

// Params are what a user chooses.
type Params struct {
	LR      allocate.LRRule
	Most    int32 // widest any job may be; 0: what it says itself
	Place   sched.Placer
	Unsaved sched.Unsaved // who is never stopped
	Alike   bool          // priorities of jobs play no part
	// Explores says that speeds are learned: no job is much wider than one of its kind has been.
	Explores bool
	Rent     Renting // nil = nothing is rented to a budget; else no GPUs are shared
	KWh      float64 // that an hour's delay of a job is worth, > 0; +Inf = energy is worth nothing
	Sleeps   bool    // idle nodes draw next to nothing
	UserGPUs int     // how many GPUs one user may hold; 0 = no limit
}

// Constants. docs/papers/combined.md says how they were chosen; those of prices are in stage/allocate.
const (
	quantum = 5 * time.Minute // between looks at prices while jobs wait
	horizon = time.Hour       // in which another batch size at the same width must pay for a restart
)

// limits are EaCO's, by its defaults.
var limits = share.Limits{
	Rule:     share.Rule{Use: share.DefaultThreshold, Memory: share.DefaultThreshold, Most: share.DefaultMost},
	Slow:     share.DefaultSlow,
	Patience: share.DefaultPatience,
	Alone:    1,
}

// DefaultKWh is what an hour's delay of a job is worth in energy where its user does not say.
const DefaultKWh = 2

// Stages is the system.
func Stages(k Known, p Params) pipeline.Stages {
	rates := &allocate.Rates{Curves: k.Speeds, Restart: k.Restart, LR: p.LR, Most: p.Most, Horizon: horizon,
		Unsaved: p.Unsaved}
	clear := &allocate.Clear{Constants: allocate.Chosen(), Rates: rates, Sizes: k.Work}
	if p.Alike {
		clear.Constants.MostPriority = 0
	}
	learn := []any{k.Work, k.Speeds, p.Place}
	if k.Scores != nil {
		p.Place, clear.Slowdown = k.Scores.Place, k.Scores.Slowdown
		learn = append(learn, k.Scores.Classes)
	}
	where := &place.OneType{By: p.Place, Of: clear.TypeOf}
	clear.Place = where
	company := limits
	s := pipeline.Stages{Order: order.FIFO{}, Place: where, Allocate: clear, Quantum: quantum,
		Block: true} // who could never fit has no type to bid for
	if p.Explores {
		clear.Explored = &allocate.Explored{}
		s.Learn = append(s.Learn, clear.Explored)
	}
	for _, part := range learn {
		if l, ok := part.(sched.Observer); ok {
			s.Learn = append(s.Learn, l)
		}
	}
	if k.Sets != nil && p.Rent == nil {
		clear.Shares, s.ShareLimit = true, company.Most
		company.Unsaved = p.Unsaved
		if p.Alike {
			company.Alone = math.MaxInt64
		}
		sharers := share.NewCompany(*k.Sets, company)
		if p.Alike {
			sharers.ByClass(order.Alike{})
		}
		s.Provision = append(s.Provision, &share.Joins{Company: sharers, Market: clear,
			KWh: p.KWh, Sleeps: p.Sleeps, UserGPUs: p.UserGPUs})
	}
	if p.Rent != nil {
		clear.Renting = p.Rent
		parts := p.Rent.Parts()
		s.Learn, s.Provision = append(s.Learn, parts.Learn...), parts.Provision
	}
	return s
}
