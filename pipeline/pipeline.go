package pipeline

import (
	"slices"
	"time"

	"github.com/trainyard/trainyard/internal/arena"
	"github.com/trainyard/trainyard/sched"
)

// Stages is a system as a value: the stages it is made of and how they are walked. Only Order and Place must be set.
type Stages struct {
	Order sched.Orderer
	Place sched.Placer
	Admit sched.Admitter // nil: skip what does not fit
	// Preempt lets a waiting job take the GPUs of lower-ranked ones, lowest first.
	Preempt bool
	// MinRun protects an attempt from being preempted for so long after its start.
	MinRun time.Duration
	// Guard, if set, protects attempts as well, for as long as it says. It is Learn that has it hear events.
	Guard sched.Guard
	// Quantum has order looked at again at every multiple of it while jobs run and jobs wait; 0 = at events only. Orders
	// whose keys grow while jobs run need one, else nothing would ever preempt between events.
	Quantum time.Duration
	// Round restricts decisions to multiples of it; 0 = at every event.
	Round time.Duration
	// Allocate, if set, decides by demand alone which jobs hold GPUs and how many; those that are granted nothing, or
	// another width than they have, give up what they hold, then newcomers are placed in the order of the grants.
	Allocate sched.Allocator
	// Replace has all that are not protected give up what they hold before the grants are placed: jobs move to whatever
	// the placement finds best now.
	Replace bool
	// ReplaceEvery has Replace do so only in the first round at or after each multiple of it; in the others all keep what
	// they hold. 0 = in every round.
	ReplaceEvery time.Duration
	// Move, if set, is asked before a job moves although nobody has taken its GPUs, and, with Replace, before a job takes
	// GPUs of another that would then have to move; nil = they do.
	Move sched.Mover
	// Restless has the grid of Round or Quantum hold although no job waits, while any holds GPUs: what Allocate knows of
	// jobs changes with time.
	Restless bool
	// KeepOrder breaks ties of Key by the order of the previous walk instead of JobID. Such a system always walks the
	// whole list.
	KeepOrder bool
	// Block lets a job that could not even fit an empty cluster block those behind it, where a misfit does.
	Block bool
	// UserLimit is the number of GPUs one user may hold at a time; 0 = no limit. A job over it is passed over.
	UserLimit int
	// WholePass walks all jobs, sorted, instead of the indices: the reference twin.
	WholePass bool
	// Parts are the estimators that stages share, and what provides nodes and power; see Decider.
	Parts
}

// Decider returns the system that s lists, its parts included.
func (s Stages) Decider() sched.Decider { return Compose(New(s), s.Parts) }

// Pipeline is the Decider made of Stages: order, then walk down the order, admitting, placing and preempting on a
// scratch ledger (the naive walk is wholepass.go; walk.go reaches the same decisions through indices).
type Pipeline struct {
	s        Stages
	turns    sched.Turns     // Order, if it remembers
	revis    []sched.Reviser // stages whose answers all change at times
	rev      uint64          // sum of their revisions
	reshapes bool            // one of them decides on shapes
	bound    sched.NodeBound // Place, if it binds gangs to nodes
	learn    []sched.Observer

	primed bool // jobs and ledger reflect the view
	stale  bool // the ledger does not: nodes changed, or a target was refused
	dirty  bool // something happened that may change a decision

	asked bool       // it has decided
	wake  sched.Time // and asked to be woken then

	ledger *sched.Ledger
	empty  *sched.Ledger // the same cluster with nothing booked: what can ever fit
	ghost  sched.View    // behind empty
	jobs   []entry       // by JobID
	waits  int           // jobs that wait
	groups groups
	due    arena.JobHeap // keys by the time they cease to hold
	sets   arena.Sets
	user   []int32 // GPUs held, by user id

	given  given // what was given up: GPUs, or the rank of their holder
	rising bool  // some key grows while its job runs: holders may fall behind between events

	// From Load until the first View.
	loaded, loadedDirty, loadedStale bool
	loadedList                       []sched.JobID
	loadedKeys                       map[sched.JobID]entry

	// The walk under way.
	walkNo       uint32
	list         []sched.JobID // whole pass: all jobs in order; kept between walks if KeepOrder
	asking       []sched.JobID // refresh works on it
	cursor       int           // whole pass: where the search for victims goes on in list
	heads        []int32       // groups whose best job may still fit
	headsChanged bool          // heads is to be built anew
	hopeless     []int32       // groups whose best job cannot, until somebody is evicted
	taken        []sched.JobID // placed, in walk order
	taker        []sched.JobID // by GPU: who took it in the walk takenIn; filled where somebody was evicted
	takenIn      []uint32
	takersOf     uint32        // the walk whose takers were noted
	touched      []sched.JobID // whose holdings change, in order of first change
	stamp        []uint32      // by job: the walk that last touched it
	popped       []sched.JobID // evicted for the job being placed, worst first
	poppedSets   [][]sched.GPUID
	protected    []sched.JobID
	tenants      []sched.JobID  // of the node looked at
	tenantGPUs   []int          // what they hold there
	clear        []sched.NodeID // that can be wholly freed for the job being placed
	cleared      bool           // clear is known
	aside        []sched.JobID
	lost         []sched.JobID
	retry        sched.Time // when the first protected job that was in the way loses its protection
	scratch      []sched.GPUID
	grants       []sched.Grant
	grantOf      []int32       // by job: 1 + its index in grants, as of the last walk that granted
	room         []int32       // GPUs to be granted, by type
	claims       *sched.Ledger // see claims.go
	claimed      arena.Sets    // the sets of claims
	claimsOld    bool          // nodes changed since they were laid
	replaces     bool          // all are placed anew in the walk under way
	apart        []sched.GPUID
}

// entry is what the pipeline knows of one job.
type entry struct {
	key   sched.Key  // Value is at time 0: the key now is Value + Slope*now
	due   sched.Time // when the key ceases to hold; Never
	group int32      // None when in no group
	pos   int32
	shape int32
	user  int32
	in    place
	list  bool // in Pipeline.list
}

type place uint8

const (
	away    place = iota // not eligible, or done
	waiting              // eligible, nothing booked
	holding              // has booked GPUs
)

// New returns the Decider of the stages of s that decide about jobs: without its Parts.
func New(s Stages) *Pipeline {
	p := &Pipeline{s: s, retry: sched.Never}
	p.turns, _ = s.Order.(sched.Turns)
	p.bound, _ = s.Place.(sched.NodeBound)
	for _, stage := range []any{s.Order, s.Place, s.Admit, s.Allocate} {
		if o, ok := stage.(sched.Observer); ok {
			p.learn = append(p.learn, o)
		}
		if r, ok := stage.(sched.Reviser); ok {
			p.revis = append(p.revis, r)
			if _, ok := stage.(sched.Shaper); ok {
				p.reshapes = true
			}
		}
	}
	p.heedParts()
	return p
}

// heedParts takes note of the parts whose revisions change what stages answer.
func (p *Pipeline) heedParts() {
	heed := func(part any) {
		if r, ok := part.(sched.Reviser); ok {
			p.revis = append(p.revis, r)
			p.reshapes = true
		}
	}
	for _, l := range p.s.Learn {
		heed(l)
	}
	for _, s := range p.s.Provision {
		heed(s)
	}
}

var (
	_ sched.Decider = (*Pipeline)(nil)
	_ sched.Waker   = (*Pipeline)(nil)
)

// Observe keeps ledger and indices in step with the log.
func (p *Pipeline) Observe(v *sched.View, e *sched.Event) {
	for _, o := range p.learn {
		o.Observe(v, e)
	}
	if !p.primed {
		p.loadedDirty = true
		return
	}
	switch e.Kind {
	case sched.JobArrived, sched.Released:
		p.track(v, e.Job)
		p.dirty = true
	case sched.AttemptStarted, sched.Progressed:
		p.rekey(v, e.Job)
	case sched.Ordered:
		if sched.ActionKind(e.Code) == sched.Stop {
			p.rekey(v, e.Job) // work stands still from now on
		}
	case sched.AttemptEnded, sched.StartFailed, sched.JobCommanded, sched.Rejected:
		p.follow(v, e.Job)
	case sched.JobChanged:
		p.changed(v, e.Job)
	case sched.Decided:
		p.settleIn(v, e)
	case sched.NodeJoined, sched.NodeLeft, sched.NodeChanged:
		p.nodeChanged(v, e.Node)
	case sched.Moved:
		if e.Node != sched.None {
			p.nodeChanged(v, e.Node)
		}
	case sched.GPUChanged:
		p.nodeChanged(v, v.GPUs[int(e.Value)].Node)
	case sched.EpochEnded:
		p.dirty = p.dirty || p.s.Allocate != nil // what a job is worth giving may have changed
	case sched.Refused:
		p.stale, p.dirty = true, true
	}
}

// nodeChanged follows a node that came, went or changed, and the targets that went with it.
func (p *Pipeline) nodeChanged(v *sched.View, n sched.NodeID) {
	p.dirty, p.claimsOld = true, true
	p.given.forget()
	p.lost = p.lost[:0]
	for _, id := range p.ledger.Holders() {
		if len(v.Jobs[id].Target) == 0 {
			p.lost = append(p.lost, id)
		}
	}
	slices.Sort(p.lost)
	for _, id := range p.lost {
		p.follow(v, id)
	}
	p.stale = p.stale || !p.ledger.Refresh(n)
	p.resurvey(v, n)
}

// follow brings the books of job id to what its target is after an event that may have taken it away.
func (p *Pipeline) follow(v *sched.View, id sched.JobID) {
	j, x := &v.Jobs[id], &p.jobs[id]
	lost := x.in == holding && len(j.Target) == 0
	if lost {
		p.unbook(id)
		p.dirty = true
		if p.turns != nil {
			p.turns.Lost(v, id)
		}
	}
	switch {
	case j.State == sched.Done:
		p.untrack(id)
		if p.turns != nil {
			p.turns.Left(id)
		}
	case !j.Eligible():
		p.untrack(id)
	case lost:
		p.wait(v, id)
	case x.in == away:
		p.track(v, id)
		p.dirty = true
	default:
		p.rekey(v, id)
	}
}

// changed follows a job that is asked for otherwise: of another shape, at another rank, and maybe without its target.
func (p *Pipeline) changed(v *sched.View, id sched.JobID) {
	p.dirty = true
	if x := &p.jobs[id]; x.in != away {
		p.groups.remove(p.jobs, id)
		x.shape = p.groups.shapeOf(p, v, id)
	}
	p.follow(v, id)
}

// settleIn moves a job whose target was just exchanged to the indices where it belongs now. The ledger knows already,
// unless the exchange was not this pipeline's own.
func (p *Pipeline) settleIn(v *sched.View, e *sched.Event) {
	if e.Target.At != sched.AtOnce {
		return
	}
	if !arena.SameSet(p.ledger.Set(e.Job), v.Jobs[e.Job].Target) {
		p.stale = true
		return
	}
	p.reindex(v, e.Job)
}

// track starts to look after job id, if it is eligible.
func (p *Pipeline) track(v *sched.View, id sched.JobID) {
	if int(id) >= cap(p.jobs) { // as far as the engine expects jobs
		p.jobs = slices.Grow(p.jobs, max(cap(v.Jobs)-len(p.jobs), 1))
		p.stamp = slices.Grow(p.stamp, max(cap(v.Jobs)-len(p.stamp), 1))
	}
	for int(id) >= len(p.jobs) {
		p.jobs = append(p.jobs, entry{group: sched.None, due: sched.Never})
		p.stamp = append(p.stamp, 0)
	}
	j, x := &v.Jobs[id], &p.jobs[id]
	if !j.Eligible() || x.in != away {
		return
	}
	x.user, _ = v.Users.Lookup(j.Spec.User)
	for int(x.user) >= len(p.user) {
		p.user = append(p.user, 0)
	}
	x.shape = p.groups.shapeOf(p, v, id)
	x.in = waiting
	p.waits++
	if p.whole() {
		if x.list { // it was away: it comes back at the end
			p.list = slices.DeleteFunc(p.list, func(k sched.JobID) bool { return k == id })
		}
		x.list = true
		p.list = append(p.list, id)
	}
	p.rekey(v, id)
}

// untrack forgets job id, which holds nothing.
func (p *Pipeline) untrack(id sched.JobID) {
	x := &p.jobs[id]
	if x.in == waiting {
		p.waits--
	}
	p.groups.remove(p.jobs, id)
	x.in, x.due = away, sched.Never
}

func (p *Pipeline) wait(v *sched.View, id sched.JobID) {
	p.jobs[id].in = waiting
	p.waits++
	p.rekey(v, id)
}

// book enters the set, which it copies, into the ledger.
func (p *Pipeline) book(id sched.JobID, set []sched.GPUID) {
	p.ledger.Book(id, p.sets.CopyOf(set))
	p.user[p.jobs[id].user] += int32(len(set))
}

func (p *Pipeline) unbook(id sched.JobID) {
	set := p.ledger.Release(id)
	p.given.note(p.ledger, set)
	p.user[p.jobs[id].user] -= int32(len(set))
	p.sets.Recycle(set)
}

// reindex puts job id where the ledger says it belongs, with a fresh key.
func (p *Pipeline) reindex(v *sched.View, id sched.JobID) {
	x := &p.jobs[id]
	if x.in == waiting {
		p.waits--
	}
	x.in = holding
	if len(p.ledger.Set(id)) == 0 {
		x.in = waiting
		p.waits++
	}
	p.rekey(v, id)
}

// rekey asks the order for the rank of job id and moves it to the group of its slope.
func (p *Pipeline) rekey(v *sched.View, id sched.JobID) {
	x := &p.jobs[id]
	if x.in == away {
		return
	}
	k, until := p.keyOf(v, id)
	p.groups.remove(p.jobs, id)
	old := *x
	x.key = k
	if now := v.Now.Seconds(); x.in == holding && x.key != old.key && beforeAt(&old, x, id, id, now) {
		p.dirty = true // others may now have its GPUs
		p.given.note(p.ledger, p.ledger.Set(id))
	}
	if until != x.due {
		x.due = until
		if until != sched.Never {
			p.due.Push(arena.JobAt{At: until, Job: id})
		}
	}
	if !p.whole() && (x.in == waiting || p.s.Preempt) {
		p.groups.add(p.jobs, id)
	}
}

// keyOf returns the key of job id, its value as of time 0, and until when it holds: as loaded, or as the order says now.
func (p *Pipeline) keyOf(v *sched.View, id sched.JobID) (k sched.Key, until sched.Time) {
	if saved, ok := p.loadedKeys[id]; ok {
		k, until = saved.key, saved.due
	} else {
		k, until = p.s.Order.Key(v, id)
		if k.Slope != 0 {
			k.Value = atZero(k, v.Now.Seconds())
		}
		if until != sched.Never {
			until = max(until, v.Now+1)
		}
	}
	p.rising = p.rising || k.Slope > 0
	return k, until
}

// whole reports whether walks go through the sorted list of all jobs instead of the indices.
func (p *Pipeline) whole() bool { return p.s.WholePass || p.s.KeepOrder || p.s.Allocate != nil }

// refresh asks anew for the keys that have ceased to hold, in order of time.
func (p *Pipeline) refresh(v *sched.View) {
	if rev := p.revision(); rev != p.rev {
		p.rev, p.dirty = rev, true
		p.given.forget()
		p.groups.empty(p.jobs) // cheaper than one by one
		if p.whole() {         // of many jobs that there were, few are on the list; orders remember in what order they were asked
			p.asking = append(p.asking[:0], p.list...)
			slices.Sort(p.asking)
			for _, id := range p.asking {
				p.renew(v, id)
			}
		} else {
			for id := range p.jobs {
				p.renew(v, sched.JobID(id))
			}
		}
	}
	for p.nextDue() <= v.Now {
		id := p.due.Pop().Job
		x := &p.jobs[id]
		old := x.key
		x.due = sched.Never
		p.rekey(v, id)
		p.dirty = p.dirty || x.key != old
	}
}

// renew asks for all that the stages say of job id, if it is there.
func (p *Pipeline) renew(v *sched.View, id sched.JobID) {
	x := &p.jobs[id]
	if x.in == away {
		return
	}
	if p.reshapes {
		x.shape = p.groups.shapeOf(p, v, id)
	}
	p.rekey(v, id)
}

// revision changes whenever a stage's answers may all have changed.
func (p *Pipeline) revision() uint64 {
	sum := uint64(0)
	for _, r := range p.revis {
		sum += r.Revision()
	}
	return sum
}

// nextDue returns when the next key ceases to hold, Never if none does.
func (p *Pipeline) nextDue() sched.Time {
	for len(p.due) > 0 {
		if d := p.due[0]; p.jobs[d.Job].due == d.At {
			return d.At
		}
		p.due.Pop() // it was asked since, or the job is gone
	}
	return sched.Never
}

// prime takes over what the view shows: at the start, after a Load, after a change of policy.
func (p *Pipeline) prime(v *sched.View) {
	p.ledger = sched.NewLedger(v)
	p.primed, p.stale = true, p.loadedStale
	for id := range v.Jobs {
		p.track(v, sched.JobID(id))
		if n := len(v.Jobs[id].Target); n > 0 {
			p.user[p.jobs[id].user] += int32(n)
			if p.turns != nil && !p.loaded {
				p.turns.Took(v, sched.JobID(id))
			}
			p.reindex(v, sched.JobID(id))
		}
	}
	p.survey(v)
	p.dirty, p.loadedKeys = true, nil
	if p.loaded {
		p.restoreList()
	}
}

// restoreList puts the list into the order it had when saved; jobs that came since are behind.
func (p *Pipeline) restoreList() {
	at := make(map[sched.JobID]int, len(p.loadedList))
	for i, id := range p.loadedList {
		at[id] = i - len(p.loadedList)
	}
	slices.SortStableFunc(p.list, func(a, b sched.JobID) int { return at[a] - at[b] })
	p.dirty, p.loadedList = p.loadedDirty, nil
}

// resync rebuilds the ledger from the view after nodes changed or a target was refused.
func (p *Pipeline) resync(v *sched.View) {
	p.ledger.Rebuild()
	p.stale, p.claimsOld = false, true
	p.given.forget()
	clear(p.user)
	for id := range v.Jobs {
		n := len(v.Jobs[id].Target)
		if id >= len(p.jobs) {
			break
		}
		x := &p.jobs[id]
		if x.in == away {
			continue
		}
		p.user[x.user] += int32(n)
		if n == 0 && p.turns != nil {
			p.turns.Lost(v, sched.JobID(id)) // a target may have been refused; to a job that waits it says nothing new
		}
		p.reindex(v, sched.JobID(id))
	}
	p.survey(v)
}

// survey prepares the empty cluster that says what can ever fit: nodes that are gone for good do not count, nodes that
// may come back, and GPUs that rest, do.
func (p *Pipeline) survey(v *sched.View) {
	p.ghost = sched.View{Nodes: append([]sched.Node(nil), v.Nodes...), GPUs: append([]sched.GPU(nil), v.GPUs...)}
	for g := range p.ghost.GPUs {
		p.ghost.GPUs[g].Rests = 0
	}
	for i := range p.ghost.Nodes {
		if p.ghost.Nodes[i].State != sched.NodeGone {
			p.ghost.Nodes[i].State = sched.NodeUp
		}
	}
	p.empty = sched.NewLedger(&p.ghost)
	p.groups.forgetFits()
}

// resurvey is survey after a change of node n alone.
func (p *Pipeline) resurvey(v *sched.View, n sched.NodeID) {
	if int(n) >= len(p.ghost.Nodes) {
		p.survey(v)
		return
	}
	node, is := &p.ghost.Nodes[n], &v.Nodes[n]
	if node.Generation != is.Generation { // another machine
		node.Generation, node.Spec = is.Generation, is.Spec
	}
	if node.State, node.Target = is.State, is.Target; node.State != sched.NodeGone {
		node.State = sched.NodeUp
	}
	end := node.First + sched.GPUID(node.Spec.GPUs)
	copy(p.ghost.GPUs[node.First:end], v.GPUs[node.First:end])
	for g := node.First; g < end; g++ {
		p.ghost.GPUs[g].Rests = 0
	}
	if !p.empty.Refresh(n) {
		p.survey(v)
	}
	p.groups.forgetFits()
}

// canEverFit reports whether job id would fit the cluster with nothing on it.
func (p *Pipeline) canEverFit(v *sched.View, id sched.JobID) bool {
	s := &p.groups.shapes[p.jobs[id].shape]
	if s.fits == unknown {
		p.ghost.Jobs = v.Jobs
		s.fits = no
		if p.s.Place.Fits(v, p.empty, id, p.least(v, id)) {
			s.fits = yes
		}
	}
	return s.fits == yes
}

// least returns the fewest GPUs with which job id may start.
func (p *Pipeline) least(v *sched.View, id sched.JobID) int {
	if p.s.Allocate != nil {
		return int(v.Jobs[id].Spec.GPUs.Min)
	}
	return width(v, id)
}

// width returns the GPUs that job id asks for, which is what it gets where nothing allocates.
func width(v *sched.View, id sched.JobID) int { return int(v.Jobs[id].Spec.GPUs.Want) }
