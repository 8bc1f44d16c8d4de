package allocate

import (
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/trainyard/trainyard/internal/memo"
	"github.com/trainyard/trainyard/model/elastic"
	"github.com/trainyard/trainyard/sched"
)

// Autoscale says how many nodes are worth having by utility, and has Pollux divide the GPUs of so many alone: those of
// others become empty. Utility is what jobs make of the GPUs that there are: the sum of their speedups over one GPU,
// for each GPU.
//
// Where the mean of the last Intervals decisions has left the band around the utility requested, the number of nodes
// becomes that at which the utility of a new division is nearest to it, found by bisection, as utility falls with
// nodes. There are never fewer than the fewest GPUs of any job need, which a newcomer may raise at once; where there
// are no jobs, none are needed.
//
// Source: Qiao et al., Pollux, OSDI 2021, its simulator (specification of BOA, 3.5): a band of 0.35 to 0.65 around 0.5.
// The band around another utility and the bounds below are ours.
type Autoscale struct {
	sched.ByName

	Divide   *Divide
	Pollux   *Pollux // the Rule of Divide
	Utility  float64 // requested, 0 < Utility <= 1
	Most     int     // nodes there can be, of Pollux.PerNode GPUs, > 0; with elastic.MaxGPUs/2 in all at most
	Interval time.Duration

	nodes  int        // worth having
	seen   []float64  // utility at the last decisions, since nodes changed
	looked sched.Time // when it last looked; Never = not yet
	known  int        // jobs of the View in present, or done
	jobs   []sched.JobID
	claims []Claim
	widths []int
}

var (
	_ sched.Allocator   = (*Autoscale)(nil)
	_ sched.Provisioner = (*Autoscale)(nil)
	_ sched.Memory      = (*Autoscale)(nil)
)

// Intervals is how many decisions utility is averaged over. Source: the released simulator.
const Intervals = 15

// Low and High bound the utility at which nodes stay as they are, in parts of the one requested. Source: AdaptDL, 0.35
// and 0.65 around 0.5.
const (
	Low  = 0.35 / 0.5
	High = 0.65 / 0.5
)

// GPUs returns how many GPUs are worth having now.
func (a *Autoscale) GPUs() int32 { return int32(a.nodes * a.Pollux.PerNode) }

// Least is that of Divide.
func (a *Autoscale) Least(v *sched.View, j sched.JobID) (gpus int32, known bool) {
	return a.Divide.Least(v, j)
}

// Holds is that of Divide.
func (a *Autoscale) Holds(v *sched.View, j sched.JobID) bool { return a.Divide.Holds(v, j) }

// Allocate divides so many GPUs. Those that protected jobs hold are among them.
func (a *Autoscale) Allocate(v *sched.View, room []int32, order []sched.JobID, d *sched.Desired,
	dst []sched.Grant) []sched.Grant {
	a.look(v)
	surplus := max(int32(v.Capacity())-a.GPUs(), 0)
	for t := range room {
		cut := min(max(room[t], 0), surplus)
		room[t] -= cut
		surplus -= cut
	}
	return a.Divide.Allocate(v, room, order, d, dst)
}

// Provision looks at utility where nothing has had GPUs divided, and asks to be woken for the next look while it can
// matter: a job that can never run must not keep a simulation going for ever.
func (a *Autoscale) Provision(v *sched.View, d *sched.Desired) {
	a.look(v)
	holds := func(j sched.JobID) bool { return len(v.Jobs[j].Target) > 0 }
	if len(d.Jobs) > 0 || slices.ContainsFunc(a.jobs, holds) || a.nodes > 0 && len(a.jobs) == 0 {
		d.WakeBy(v.Now.Add(a.Interval - time.Duration(v.Now)%a.Interval))
	}
}

// look decides how many nodes there are to be, once at each multiple of the interval.
func (a *Autoscale) look(v *sched.View) {
	a.update(v)
	if time.Duration(v.Now)%a.Interval != 0 || a.looked == v.Now && a.nodes > 0 {
		return
	}
	a.looked = v.Now
	a.claim(v)
	least := a.least()
	if least == 0 || a.nodes < least {
		a.resize(v, least)
		return
	}
	gpus := min(int(a.GPUs()), v.Capacity())
	if gpus == 0 {
		return // they boot
	}
	if a.seen = append(a.seen, a.held()/float64(gpus)); len(a.seen) < Intervals {
		return
	}
	mean := 0.0
	for _, u := range a.seen {
		mean += u / Intervals
	}
	a.seen = slices.Delete(a.seen, 0, 1)
	if a.nodes > least && mean < Low*a.Utility || a.nodes < a.Most && mean > High*a.Utility {
		a.resize(v, least)
	}
}

// claim lists what jobs that may run make of GPUs.
func (a *Autoscale) claim(v *sched.View) {
	a.claims = a.claims[:0]
	for _, j := range a.jobs {
		if v.Jobs[j].Eligible() && len(a.claims) < elastic.MaxJobs {
			a.claims = append(a.claims, a.Divide.Rates.claim(v, j))
		}
	}
}

// least returns the fewest nodes on which every job could run alone that could on all; 0 if none could.
func (a *Autoscale) least() (nodes int) {
	for i := range a.claims {
		if k, ok := a.claims[i].Least(); ok && k <= a.Most*a.Pollux.PerNode {
			nodes = max(nodes, (k+a.Pollux.PerNode-1)/a.Pollux.PerNode)
		}
	}
	return nodes
}

// update brings the list of jobs that are not done up to date.
func (a *Autoscale) update(v *sched.View) {
	for ; a.known < len(v.Jobs); a.known++ {
		a.jobs = append(a.jobs, sched.JobID(a.known))
	}
	a.jobs = slices.DeleteFunc(a.jobs, func(j sched.JobID) bool { return v.Jobs[j].State == sched.Done })
}

// held is the sum of speedups of what jobs hold.
func (a *Autoscale) held() (sum float64) {
	for i := range a.claims {
		if c := &a.claims[i]; c.Held > 0 && c.Held < len(c.S) {
			sum += c.S[c.Held]
		}
	}
	return sum
}

// tried is the utility of a new division among so many nodes.
func (a *Autoscale) tried(v *sched.View, nodes int) float64 {
	gpus := nodes * a.Pollux.PerNode
	a.widths = a.Pollux.Divide(v, a.widths[:0], a.claims, gpus)
	sum := 0.0
	for i, k := range a.widths {
		if k > 0 {
			sum += a.claims[i].S[k]
		}
	}
	return sum / float64(gpus)
}

// resize sets the number of nodes to that, from least on, whose utility is nearest the one requested, the smaller of
// two; none if least is 0.
func (a *Autoscale) resize(v *sched.View, least int) {
	a.nodes, a.seen = least, a.seen[:0]
	if least == 0 {
		return
	}
	low, high := least, a.Most
	for low+1 < high {
		if middle := (low + high) / 2; a.tried(v, middle) < a.Utility {
			high = middle
		} else {
			low = middle
		}
	}
	a.nodes = low
	if math.Abs(a.tried(v, high)-a.Utility) < math.Abs(a.tried(v, low)-a.Utility) {
		a.nodes = high
	}
}

// Format names what Save writes.
func (*Autoscale) Format() string { return "autoscale/1" }

// SaveJob appends nothing.
func (a *Autoscale) SaveJob(_ sched.JobID, b []byte) []byte { return b }

// LoadJob takes nothing.
func (a *Autoscale) LoadJob(sched.JobID, []byte) error { return nil }

// SaveRest appends the number of nodes, when it was looked at, and the utilities seen.
func (a *Autoscale) SaveRest(b []byte) []byte {
	b = memo.Int(memo.Uint(b, uint64(a.nodes)), int64(a.looked))
	for _, u := range a.seen {
		b = memo.Float(b, u)
	}
	return b
}

// LoadRest takes what SaveRest wrote.
func (a *Autoscale) LoadRest(b []byte) error {
	r := memo.NewReader(b)
	nodes, looked := int(r.Uint(elastic.MaxGPUs)), sched.Time(r.Int(math.MinInt64, math.MaxInt64))
	var seen []float64
	for r.Len() > 0 && r.Err() == nil {
		u := r.Float()
		r.Want(u >= 0 && u <= elastic.MaxFactor, "utility %v, want 0 to %v", u, elastic.MaxFactor)
		seen = append(seen, u)
	}
	r.Want(len(seen) < Intervals, "%d utilities, want less than %d", len(seen), Intervals)
	if err := r.End(); err != nil {
		return fmt.Errorf("allocate: memory of the number of nodes: %w", err)
	}
	a.nodes, a.looked, a.seen = nodes, looked, seen
	return nil
}
