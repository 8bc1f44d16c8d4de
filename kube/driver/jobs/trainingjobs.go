package jobs

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"github.com/trainyard/trainyard/kube/api/v1alpha1"
	"github.com/trainyard/trainyard/kube/driver/observer"
	"github.com/trainyard/trainyard/kube/record"
	"github.com/trainyard/trainyard/sched"
)

// Options say what Jobs work with.
type Options struct {
	Origin time.Time // the instant that is time 0
	Types  Types
	Event  func(about client.Object, reason, text string) // reports to people what happened to an object
	// KeepJobs has a job arrive once it has our finalizer, so that it cannot go before its pods: where no claims say
	// which devices these have, a leader that comes later knows of them by the record of the job alone.
	KeepJobs bool
	// Admit says whether a job that waits may be given GPUs, as far as the API server takes its objects. nil: all may.
	Admit func(tj *v1alpha1.TrainingJob) Admission
	// Limits bound what jobs may ask for; nil: nothing does.
	Limits *v1alpha1.Limits
	// Bad are the records of jobs that cannot be read, by the UID of the job, which do not arrive. Mended is called
	// once one of them is another.
	Bad    map[types.UID]string
	Mended func(job string)
	// Annotations of TrainingJobs that bear our name and are known.
	Annotations []string
	// Hold notes why a job is held, before that is reported to the engine; nil: no one asks.
	Hold func(id sched.JobID, why string)
}

// Admission says whether a job that waits may be given GPUs.
type Admission struct {
	Unknown bool   // that is to be seen: the job is looked at again then
	Never   string // why no attempt of it can ever be made
	Hold    string // why it has to wait, whatever is free
}

// admit returns whether a job may be given GPUs.
func (js *Jobs) admit(tj *v1alpha1.TrainingJob) Admission {
	if js.o.Admit == nil || Possible(tj) != nil { // the latter is reported as it arrives
		return Admission{}
	}
	return js.o.Admit(tj)
}

// hold notes why a job is held.
func (js *Jobs) hold(id sched.JobID, why string) {
	if js.o.Hold != nil {
		js.o.Hold(id, why)
	}
}

// Jobs are the TrainingJobs of a cluster. They belong to one goroutine.
type Jobs struct {
	o       Options
	ids     map[types.NamespacedName]sched.JobID // of the jobs that arrived, the latest of a name
	counted int                                  // jobs of the View that ids knows
	// jobs that do not arrive, as their users were informed, and are there
	turnedAway map[types.NamespacedName]types.UID
	arrivals   []*v1alpha1.TrainingJob // of the look under way
	crowd      map[string]int          // jobs of each namespace that are not done; nil: they are not counted yet
}

// New returns jobs of which none is known yet.
func New(o Options) *Jobs {
	return &Jobs{
		o: o, ids: make(map[types.NamespacedName]sched.JobID),
		turnedAway: make(map[types.NamespacedName]types.UID),
	}
}

// Learn takes note of the numbers that the engine gave jobs.
func (js *Jobs) Learn(v *sched.View) {
	for ; js.counted < len(v.Jobs); js.counted++ {
		if s := v.Jobs[js.counted].Spec; s.Task != "" {
			js.ids[types.NamespacedName{Namespace: s.User, Name: s.Name}] = sched.JobID(js.counted)
		}
	}
}

// ID returns the number of the latest job of a name that arrived.
func (js *Jobs) ID(key types.NamespacedName) (id sched.JobID, known bool) {
	id, known = js.ids[key]
	return id, known
}

// Live returns the keys of the jobs that are not done.
func (js *Jobs) Live(v *sched.View) (keys []observer.Key) {
	for key, id := range js.ids {
		if v.Jobs[id].State != sched.Done {
			keys = append(keys, observer.KeyOfJob(key))
		}
	}
	return keys
}

// IsStray reports whether an object is what is left of an attempt that is over, of a job that is known: it has the UID
// of that job, the number of the attempt, and a name that the attempt gave. What belongs to earlier jobs goes with
// them.
func (js *Jobs) IsStray(v *sched.View, o client.Object) bool {
	labels := o.GetLabels()
	name, number := labels[v1alpha1.LabelJob], labels[v1alpha1.LabelAttempt]
	id, known := js.ids[types.NamespacedName{Namespace: o.GetNamespace(), Name: name}]
	if !known {
		return false
	}
	j, base := &v.Jobs[id], name+"-"+number
	attempt, err := strconv.ParseInt(number, 10, 32)
	return err == nil && observer.IsOf(o, types.UID(j.Spec.Task)) &&
		(o.GetName() == base || strings.HasPrefix(o.GetName(), base+"-")) &&
		(attempt < int64(j.Attempts) || attempt == int64(j.Attempts) && !j.HoldsDevices())
}

// OwnersOf returns the numbers of the jobs that own an object, by their names and UIDs.
func (js *Jobs) OwnersOf(v *sched.View, o client.Object) (ids []sched.JobID) {
	for _, r := range o.GetOwnerReferences() {
		id, known := js.ids[types.NamespacedName{Namespace: o.GetNamespace(), Name: r.Name}]
		if known && observer.IsJob(r) && string(r.UID) == v.Jobs[id].Spec.Task {
			ids = append(ids, id)
		}
	}
	return ids
}

// Read is a TrainingJob as a look found it.
type Read struct {
	Job   *v1alpha1.TrainingJob // nil: it is gone
	ID    sched.JobID           // its number in the View
	Known bool                  // it has one
}

// Read reads the TrainingJob of a name. It asks the API server itself for one that is to go on and that the cache
// lacks. The result is that of the View's job where this is to go before another of its name arrives, although its
// object is gone.
func (js *Jobs) Read(ctx context.Context, api observer.API, v *sched.View, key types.NamespacedName) (Read, error) {
	tj := new(v1alpha1.TrainingJob)
	found, err := api.Get(ctx, key, tj)
	if err != nil {
		return Read{}, err
	}
	id, known := js.ids[key]
	if known && isMissing(&v.Jobs[id], tj, found) || found && lacks(v, id, known, tj) {
		tj = new(v1alpha1.TrainingJob)
		if found, err = api.Ask(ctx, key, tj); err != nil {
			return Read{}, err
		}
	}
	r := Read{Job: tj, ID: id, Known: known}
	switch {
	case !found:
		delete(js.turnedAway, key)
		r.Job = nil
	case known && v.Jobs[id].Spec.Task != string(tj.UID):
		if r.Known = v.Jobs[id].State != sched.Done; r.Known {
			r.Job = nil
		}
	}
	return r, nil
}

// isMissing reports whether a job that is to go on is not what the cache has by its name, if it has anything.
func isMissing(j *sched.Job, tj *v1alpha1.TrainingJob, found bool) bool {
	return j.State != sched.Done && !j.Cancel && (!found || string(tj.UID) != j.Spec.Task)
}

// lacks reports whether the cache left out of a job what is needed of it: one that goes on bears marks of one that is
// done, or one that is to arrive of one that has arrived.
func lacks(v *sched.View, id sched.JobID, known bool, tj *v1alpha1.TrainingJob) bool {
	if tj.Spec.Cut == nil || tj.DeletionTimestamp != nil {
		return false
	}
	if known && v.Jobs[id].Spec.Task == string(tj.UID) {
		return tj.Spec.Cut.Bare && v.Jobs[id].State != sched.Done
	}
	return !tj.Spec.Cut.Bare
}

// Finalizer is what is to become of our finalizer on a job.
type Finalizer int8

// What is to become of a finalizer.
const (
	Leave Finalizer = iota
	Set
	Clear
)

// Meet lets a job arrive that is not known, and returns what is to become of its finalizer.
func (js *Jobs) Meet(tj *v1alpha1.TrainingJob) Finalizer {
	switch {
	case tj.DeletionTimestamp != nil:
		return Clear
	case js.isBad(tj):
	// its record is gone, or there was none
	case hasEnded(tj) || js.turnedAway[client.ObjectKeyFromObject(tj)] == tj.UID:
	case js.o.KeepJobs && !controllerutil.ContainsFinalizer(tj, v1alpha1.Finalizer):
		return Set
	case js.admit(tj).Unknown:
	default:
		js.arrivals = append(js.arrivals, tj)
	}
	return Leave
}

// isBad reports whether the record of a job cannot be read, by which it arrived before: it does not arrive again.
func (js *Jobs) isBad(tj *v1alpha1.TrainingJob) bool {
	was, bad := js.o.Bad[tj.UID]
	if bad && was != tj.Status.Record {
		js.o.Mended(client.ObjectKeyFromObject(tj).String())
	}
	return bad
}

// hasEnded reports whether the status says that this job is over. The record of an earlier job of its name says nothing
// of it.
func hasEnded(tj *v1alpha1.TrainingJob) bool {
	if tj.Status.Phase != v1alpha1.Succeeded && tj.Status.Phase != v1alpha1.Failed {
		return false
	}
	rec, err := record.Read(tj.Status.Record)
	return err != nil || rec.Job.Spec.Task == string(tj.UID)
}

// unknownType is the reason of Events about types of GPUs that the cluster does not have.
const unknownType = "UnknownType"

// overLimit is the reason of Events about jobs that ask for more than the limits of the policy.
const overLimit = "OverLimit"

// Refusal is a job that does not arrive, and why.
type Refusal struct {
	Job    *v1alpha1.TrainingJob
	Why    string
	Waits  bool   // it may arrive later
	Reason string // of the Event about it
}

// Arrive reports the jobs that are new since the last call, in the order in which they were made, and returns those
// that cannot arrive and whose status does not say so. now is the time of the look.
func (js *Jobs) Arrive(ctx context.Context, v *sched.View, now sched.Time) (f observer.Found, refused []Refusal) {
	list := js.arrivals
	js.arrivals, js.crowd = nil, nil
	arriving := make(map[string]int)
	slices.SortFunc(list, func(a, b *v1alpha1.TrainingJob) int {
		return cmp.Or(a.CreationTimestamp.Compare(b.CreationTimestamp.Time),
			strings.Compare(a.Namespace+"/"+a.Name, b.Namespace+"/"+b.Name))
	})
	id := sched.JobID(len(v.Jobs))
	for _, tj := range list {
		spec, err := Spec(tj, js.o.Origin, js.o.Types)
		if err != nil && ctx.Err() != nil {
			return f, refused // a driver that starts again may know better
		}
		if err != nil {
			refused = append(refused, js.turnAway(tj, err)...)
			continue
		}
		if most := cmp.Or(js.overLimit(tj), js.overCount(v, tj.Namespace, arriving)); most != nil {
			refused = append(refused, js.turnAway(tj, most)...)
			continue
		}
		a := js.admit(tj)
		if a.Never != "" {
			refused = append(refused, js.turnAway(tj, errors.New(a.Never))...)
			continue
		}
		js.warn(tj)
		spec.Submit = min(spec.Submit, now)
		f.Report(sched.Event{Kind: sched.JobArrived, Spec: spec})
		if a.Hold != "" {
			js.hold(id, a.Hold)
		}
		if tj.Spec.Suspend || a.Hold != "" {
			f.Report(sched.Event{Kind: sched.JobCommanded, Job: id, Code: int32(sched.PauseJob)})
		}
		id++
		arriving[tj.Namespace]++
		f.LookAgain(observer.KeyOfJob(client.ObjectKeyFromObject(tj)))
	}
	return f, refused
}

// warn reports what a job that arrives will not have.
func (js *Jobs) warn(tj *v1alpha1.TrainingJob) {
	if _, others, why := known(tj.Spec.GPUTypes, js.o.Types); why != nil {
		text := fmt.Sprintf("it goes without GPUs of type %s: %v", strings.Join(others, ", "), why)
		js.o.Event(tj, unknownType, text)
	}
	if why := notKept(tj); why != "" {
		js.o.Event(tj, "CheckpointNotKept", why)
	}
	if list := js.ignored(tj); len(list) > 0 {
		js.o.Event(tj, "Ignored", strings.Join(list, "; "))
	}
}

// turnAway reports what is in the way of a job that does not arrive. One of which a GPU of its type may join later
// waits: a driver that starts again with that type lets it arrive then. It returns nothing where the status says all
// that already.
func (js *Jobs) turnAway(tj *v1alpha1.TrainingJob, why error) []Refusal {
	js.turnedAway[client.ObjectKeyFromObject(tj)] = tj.UID
	r := Refusal{Job: tj, Why: why.Error(), Waits: errors.Is(why, errNoType), Reason: "Invalid"}
	if errors.Is(why, errOverLimit) {
		r.Reason = overLimit
	}
	if r.Waits {
		r.Reason = unknownType
		if tj.Status.Reason == r.Why {
			return nil
		}
	}
	js.o.Event(tj, r.Reason, r.Why)
	return []Refusal{r}
}

// Find returns the TrainingJob of a UID, whole, to make an attempt of it. The error says why there can be none.
func Find(ctx context.Context, api observer.API, key types.NamespacedName, uid types.UID,
) (*v1alpha1.TrainingJob, error) {
	tj := new(v1alpha1.TrainingJob)
	found, err := api.Get(ctx, key, tj)
	if err == nil && (!found || tj.UID != uid || tj.Spec.Cut != nil) {
		tj = new(v1alpha1.TrainingJob)
		found, err = api.Ask(ctx, key, tj)
	}
	if err == nil && (!found || tj.UID != uid) {
		err = fmt.Errorf("TrainingJob %s is gone", key)
	}
	if err == nil {
		err = Possible(tj)
	}
	return tj, err
}
