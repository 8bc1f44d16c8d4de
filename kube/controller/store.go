package controller

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/trainyard/trainyard/eventlog"
	"github.com/trainyard/trainyard/explain"
	"github.com/trainyard/trainyard/explain/text"
	"github.com/trainyard/trainyard/kube/api/v1alpha1"
	"github.com/trainyard/trainyard/kube/record"
	"github.com/trainyard/trainyard/memory"
	"github.com/trainyard/trainyard/pipeline"
	"github.com/trainyard/trainyard/sched"
)

// ErrFenced says that another controller leads.
var ErrFenced = errors.New("another controller leads")

// Names of the ConfigMaps in the controller's namespace, and of what they hold.
const (
	ClusterMap = "trainyard-cluster"
	MemoryMap  = "trainyard-memory"
	blobKey    = "blob"
)

// Writers is how many objects of a batch are written at a time.
const Writers = 16

// store is a sink that makes each batch durable. The order of its writes is what makes a batch that was cut short
// harmless: jobs that give GPUs up come before those that take some, the version comes last, and orders are given after
// it.
type store struct {
	fencedWriter

	v      *sched.View
	dec    sched.Decider
	mode   v1alpha1.Mode
	schema int // of records
	clock  func() time.Time

	jobs     map[sched.JobID]*saved // but for those that are forgotten
	live     []sched.JobID          // those that are not done, by rising number, ...
	over     int                    // ... and so many that are
	tally    tally
	touched  []sched.JobID
	named    []sched.JobID // by events of the batch
	cluster  bool          // nodes or GPUs changed
	shards   shards
	memory   remembered
	maxBlob  int        // bytes of one ConfigMap
	batch    bool       // an event came, ...
	happened bool       // ... and it was more than the time
	pools    []reported // by PoolID
	remarks  []remark   // of the policy's message
	news     news
	rounds   rounds
}

// saved is what the API has of one job.
type saved struct {
	version    string        // resourceVersion; "" = not known, or gone
	memory     []byte        // of one that is not done
	held       []sched.GPUID // by its attempt, as written
	target     []sched.GPUID // as written
	touched    bool
	said       string // what the job reported of its progress last
	work       pace
	lost       time.Duration // run time whose work was not saved
	trouble    string        // what went wrong last, since no attempt was up
	delay      string        // what keeps its attempt from starting
	hold       string        // why it is held, though its user does not want that
	lasting    string        // reason of a job that was done before this leader
	wait       wait          // as reported last
	shown      shown         // as written last
	conditions []metav1.Condition
	next       v1alpha1.TrainingJobStatus // to be written; empty once it is
}

var (
	_ eventlog.Sink    = (*store)(nil)
	_ eventlog.Batcher = (*store)(nil)
)

// Log notes what an event touches, and reports it.
func (s *store) Log(v *sched.View, e *sched.Event) {
	s.batch, s.happened = true, s.happened || e.Kind != sched.Ticked
	defer s.measure(v, e)
	s.tally.note(v, e)
	if names(e) {
		s.named = append(s.named, e.Job)
	}
	if e.Kind.Form().Life && e.Job != sched.None {
		s.touch(e.Job)
	}
	s.cluster = s.shards.note(v, e) || s.cluster
	switch e.Kind {
	case sched.Progressed, sched.EpochEnded:
		s.jobs[e.Job].said = progress(e)
	case sched.JobArrived:
		s.live = append(s.live, e.Job)
	case sched.AttemptEnded:
		s.jobs[e.Job].said = lastSaid(s.jobs[e.Job].said, e)
	}
	switch {
	case e.Kind != sched.Moved || len(e.GPUs) == 0:
	case e.Code == sched.RestGPU:
		s.log.Warn("GPUs of a node are given to no one for a while", "node", v.Nodes[e.Node].Spec.Name, "gpus",
			len(e.GPUs), "for", e.WorkFrom.Sub(e.Time), "why", e.Text)
	case e.Code == sched.QuarantineGPU:
		s.log.Warn("a GPU is given to no one any more, until its node is cordoned and uncordoned", "gpu",
			record.GPUName(v, e.GPUs[0]), "why", e.Text)
	}
	s.notice(e)
	s.story(e)
}

func (s *store) touch(id sched.JobID) {
	if s.jobs[id] == nil {
		s.jobs[id] = new(saved)
	}
	if !s.jobs[id].touched {
		s.jobs[id].touched = true
		s.touched = append(s.touched, id)
	}
}

// BeginBatch does nothing: what is not written yet stays noted.
func (s *store) BeginBatch() {}

// EndBatch writes what the batch changed. It returns once all of it is durable, or this controller does not lead any
// more.
func (s *store) EndBatch() error {
	if !s.batch {
		// no one has heard of them yet, and perhaps nothing happens for long
		if len(s.pools) < len(s.v.Pools) && s.leads() == nil {
			s.writePools()
		}
		return nil
	}
	if err := s.leads(); err != nil {
		return err
	}
	rest := s.remember()
	s.retell()
	if s.isIdle(rest) {
		s.writePools()
		s.batch = false
		return nil
	}
	s.tally.settle(s.v)
	s.touchTenants()
	s.prepare()
	gives, takes := s.split()
	for _, phase := range [][]sched.JobID{gives, takes} {
		if err := s.writeJobs(phase); err != nil {
			return err
		}
	}
	if err := s.writeCluster(); err != nil {
		return err
	}
	if err := s.writeMemory(rest); err != nil {
		return err
	}
	if err := s.commit(); err != nil {
		return err
	}
	s.news.spread()
	s.writePools()
	s.touched, s.batch, s.happened = s.touched[:0], false, false
	s.forgetDone()
	return nil
}

// isIdle reports whether a batch has changed nothing but the time; rest is what the system remembers in addition to
// jobs.
func (s *store) isIdle(rest []byte) bool {
	return !s.happened && len(s.touched)+len(s.news.notes) == 0 && bytes.Equal(s.memory.rest, rest) &&
		message(s.remarks) == s.policy.Status.Message
}

// remember touches the jobs of which the system remembers something else than before, and returns the rest of its
// memory. It asks for those that events named and those that the system names, or for all where that cannot say; never
// for jobs that were done before: over the months there come to be many more of them than of others.
func (s *store) remember() []byte {
	list, known := memory.Changed(s.named, []sched.Memory{s.dec})
	if s.named = list[:0]; !known {
		list = s.live
	}
	for _, id := range list {
		if s.v.Jobs[id].State == sched.Done {
			continue
		}
		b := memory.SaveJob(s.dec, id)
		if mine := s.jobs[id]; mine == nil || !bytes.Equal(mine.memory, b) {
			s.touch(id)
			s.jobs[id].memory = b
		}
	}
	for _, id := range s.touched {
		if s.v.Jobs[id].State == sched.Done {
			s.jobs[id].memory = memory.SaveJob(s.dec, id)
		}
	}
	return memory.SaveRest(s.dec)
}

// forgetDone takes jobs that are done off the list of those that are not, once they are half of it.
func (s *store) forgetDone() {
	s.over = len(s.live) - s.tally.jobs[sched.Held] - s.tally.jobs[sched.Waiting] - s.tally.jobs[sched.Active]
	if 2*s.over > len(s.live) {
		s.live = slices.DeleteFunc(s.live, func(id sched.JobID) bool { return s.v.Jobs[id].State == sched.Done })
		s.over = 0
	}
}

// touchTenants touches those who share a GPU with a job that came to it or left it.
func (s *store) touchTenants() {
	if len(s.tally.tenants) == 0 {
		return
	}
	for _, id := range s.touched[:len(s.touched):len(s.touched)] {
		now, was := s.v.Jobs[id].GPUs, s.jobs[id].held
		if slices.Equal(now, was) {
			continue
		}
		for _, g := range slices.Concat(now, was) {
			for _, other := range s.tally.tenants[g] {
				s.touch(other)
			}
		}
	}
}

// split parts the touched jobs: those that give up a GPU come first, so that no moment of the API has two jobs on one.
func (s *store) split() (gives, takes []sched.JobID) {
	slices.Sort(s.touched)
	for _, id := range s.touched {
		j, old := &s.v.Jobs[id], s.jobs[id]
		if lacks(j.GPUs, old.held) || lacks(j.Target, old.target) {
			gives = append(gives, id)
		} else {
			takes = append(takes, id)
		}
		old.held, old.target = slices.Clone(j.GPUs), slices.Clone(j.Target)
	}
	return gives, takes
}

// lacks reports whether set has not all of old.
func lacks(set, old []sched.GPUID) bool {
	return slices.ContainsFunc(old, func(g sched.GPUID) bool { return !slices.Contains(set, g) })
}

// fullReasons is up to how many jobs of a batch have their reason looked for in the order of the system, which costs
// more the more jobs there are.
const fullReasons = 32

// prepare makes what is to be written of the touched jobs, where the View stands still.
func (s *store) prepare() {
	brief, full := pipeline.NewBrief(s.v, s.dec), len(s.touched) <= fullReasons
	for _, id := range s.touched {
		why := brief.Why(id)
		if full {
			why = brief.Counted(id)
		}
		mine, rec := s.jobs[id], record.Of(s.v, id, s.leader)
		mine.next = record.Extract(s.v, id, s.mode, s.tally.tenants)
		mine.next.Reason = s.reason(id, why)
		mine.shown = shown{mine.next.Reason, s.gistOf(brief, id), s.v.Now, s.v.Now}
		s.queue(id, why.Code, full, mine.next.Reason)
		if mine.next.LostSeconds = int64(mine.lost.Seconds()); mine.next.LostSeconds > 0 {
			mine.next.Lost = mine.lost.Truncate(time.Second).String()
		}
		mine.next.Record, mine.next.Memory, mine.next.Progress = rec.In(s.schema), mine.memory, mine.said
		mine.conditions = conditions(mine.conditions, &mine.next, s.clock())
		mine.next.Conditions = mine.conditions
	}
	s.rounds.writes += len(s.touched)
}

// reason is why a job is where it is, for people.
func (s *store) reason(id sched.JobID, why explain.Waiting) string {
	j, mine := &s.v.Jobs[id], s.jobs[id]
	if mine.lasting != "" { // what it says of its end is kept nowhere else
		return mine.lasting
	}
	if said := s.silent(j); said != "" {
		return said
	}
	said := sentences(s.v, s.origin()).Sentence(id, &why)
	if j.Attempt == sched.Stopping && len(j.Target) == 0 && !j.Cancel && !j.Paused {
		said = "is being stopped: " + s.preemptor(id, j.GPUs)
	}
	if held := s.whyHeld(id); held != "" {
		return held
	}
	return explained(said, j, mine.trouble, mine.delay)
}

// sentences says how jobs of v stand. A zero origin does for sentences without times.
func sentences(v *sched.View, origin time.Time) *text.Renderer {
	return &text.Renderer{Vocabulary: text.Cluster(), View: v, Origin: origin}
}

// writeJobs writes the statuses of jobs, several at a time.
func (s *store) writeJobs(ids []sched.JobID) error {
	if len(ids) == 0 {
		return nil
	}
	work := make(chan sched.JobID)
	failed := make(chan error, Writers)
	var group sync.WaitGroup
	for range min(Writers, len(ids)) {
		group.Go(func() {
			for id := range work {
				if err := s.writeJob(id); err != nil {
					failed <- err
					for range work { // the others are not tried any more
					}
					return
				}
			}
		})
	}
	for _, id := range ids {
		work <- id
	}
	close(work)
	group.Wait()
	close(failed)
	return <-failed
}

// writeJob writes the status of one job, and lets go of what no one asks for again.
func (s *store) writeJob(id sched.JobID) error {
	object, mine := refOf(s.v.Jobs[id].Spec), s.jobs[id]
	mine.touched = false
	if object.uid != "" { // else it is forgotten
		if err := s.writeStatus(object, mine); err != nil {
			return fmt.Errorf("controller: %w", err)
		}
	}
	mine.next = v1alpha1.TrainingJobStatus{}
	if s.v.Jobs[id].State == sched.Done {
		mine.memory, mine.shown = nil, shown{}
	}
	return nil
}

// ref names a TrainingJob for good: one that was deleted and made again under its name is another.
type ref struct {
	name types.NamespacedName
	uid  types.UID // "" = the job is done and forgotten
}

// refOf says of which object a job is: the driver puts the UID where other drivers have what is to be run.
func refOf(s *sched.JobSpec) ref {
	return ref{types.NamespacedName{Namespace: s.User, Name: s.Name}, types.UID(s.Task)}
}

// commit writes the version last: the batch is complete.
func (s *store) commit() error {
	next := s.policy.DeepCopy()
	st := &next.Status
	st.Schema = int32(s.schema)
	st.Leader, st.Version, st.Now, st.Jobs = s.leader, int64(s.v.Version), int64(s.v.Now), int32(len(s.v.Jobs))
	st.GPUs, st.Running, st.Waiting = s.tally.figures()
	st.Message = message(s.remarks)
	return s.writePolicy(next)
}

// progress says what a job reported of how far it is.
func progress(e *sched.Event) string {
	switch {
	case e.Kind == sched.EpochEnded:
		return fmt.Sprintf("epoch %.0f", e.Value)
	case e.Code > 0:
		return fmt.Sprintf("step %.0f of %d", e.Value, e.Code)
	case e.Value > 0:
		return fmt.Sprintf("step %.0f", e.Value)
	}
	return ""
}

// lastSaid is how far a job was at the end of an attempt, which may have come before it was time to report that.
func lastSaid(said string, e *sched.Event) string {
	if e.Value <= 0 || strings.HasPrefix(said, "epoch") {
		return said
	}
	if _, all, known := strings.Cut(said, " of "); known {
		return fmt.Sprintf("step %.0f of %s", e.Value, all)
	}
	return fmt.Sprintf("step %.0f", e.Value)
}
