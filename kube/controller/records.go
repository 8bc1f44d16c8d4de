package controller

import (
	"context"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/trainyard/trainyard/host"
	"github.com/trainyard/trainyard/kube/api/v1alpha1"
	driverobserver "github.com/trainyard/trainyard/kube/driver/observer"
	"github.com/trainyard/trainyard/kube/record"
	"github.com/trainyard/trainyard/sched"
)

// errRecord says that a record cannot be read.
var errRecord = errors.New("a record cannot be read")

// newer returns that no one decides because a newer version has: this one would lose what it does not know. Nothing is
// written, not even that.
func newer(err error) error {
	return fmt.Errorf("%w: %w; run that version, or have it write the schema before by --record-schema",
		host.ErrUndecided, err)
}

// quarantine has the jobs that are left out because their records cannot be read, and those records. They have no
// number, so that no one decides about them. Their claims count as those of others: what GPUs they have goes to no job.
type quarantine map[types.UID]string

// records reads all jobs that have one. Others arrive again. Where a record cannot be read its job is left out and
// reported. In modes without claims, which would keep its GPUs from others, no one decides then: who goes on without it
// starts others on them. Once that job is deleted, and none of its pods is left, it is as if it had none.
func (c *Controller) records(ctx context.Context, l *loaded) error {
	l.written, l.bad = make(map[sched.JobID]written), make(quarantine)
	var list []found // a page has all else of its jobs, which goes with it: there may be very many
	count := 0
	err := driverobserver.EachPage(ctx, c.o.Reader, func(page *v1alpha1.TrainingJobList) error {
		count += len(page.Items)
		for i := range page.Items {
			one, err := c.record(ctx, l, &page.Items[i])
			if err != nil {
				return err
			}
			list = append(list, one...)
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("controller: jobs: %w", err)
	}
	return c.checked(ctx, l, list, c.plausible(&l.policy.Status, count))
}

// found is what was read of a job.
type found struct {
	record  record.Job
	written written
}

// record reads the record of a job, if it has one that is its own; one that cannot be read is isolated.
func (c *Controller) record(ctx context.Context, l *loaded, j *v1alpha1.TrainingJob) ([]found, error) {
	if j.Status.Record == "" {
		return nil, nil
	}
	rec, err := record.Read(j.Status.Record)
	switch {
	case errors.Is(err, record.ErrNewer):
		return nil, newer(fmt.Errorf("TrainingJob %s/%s: %w", j.Namespace, j.Name, err))
	case err != nil:
		return nil, c.isolate(ctx, l, j, err)
	case refOf(rec.Job.Spec).uid != j.UID: // a copy of another job's status is not a job's own
		return nil, nil
	}
	return []found{{rec, written{j.ResourceVersion, j.Status.Progress, j.Status.Reason, j.Status.Memory,
		time.Duration(j.Status.LostSeconds) * time.Second, j.Status.Conditions}}}, nil
}

// checked has l go on with what was read, but for jobs whose records no cluster like this one could have.
func (c *Controller) checked(ctx context.Context, l *loaded, list []found, limits plausible) error {
	names := make(map[sched.JobID]string)
	for i := range list {
		rec := &list[i].record
		err := limits.check(rec)
		if other, twice := names[rec.ID]; err == nil && twice {
			err = fmt.Errorf("it is number %d, as %s", rec.ID, other)
		}
		of := refOf(rec.Job.Spec)
		if err == nil {
			names[rec.ID] = of.name.String()
			l.jobs = append(l.jobs, *rec)
			l.written[rec.ID] = list[i].written
			continue
		}
		var j v1alpha1.TrainingJob
		switch failed := c.o.Reader.Get(ctx, of.name, &j); {
		case apierrors.IsNotFound(failed) || failed == nil && j.UID != of.uid:
		case failed != nil:
			return fmt.Errorf("controller: jobs: %w", failed)
		default:
			if bad := c.isolate(ctx, l, &j, err); bad != nil {
				return bad
			}
		}
	}
	return nil
}

// plausible are bounds of what a record may say in a cluster: a number or a time far beyond all others would have
// every later one, or all memory, be used up.
type plausible struct {
	jobs    int        // numbers of jobs are below
	version uint64     // events folded are at most
	now     sched.Time // times are at most
}

// Slack of what a record may say: of one written in a batch that was cut, by a leader whose clock was ahead.
const (
	slackNumbers = 1 << 22 // where the policy does not say how many there are
	slackEvents  = 1 << 32
	slackTime    = sched.Time(24 * time.Hour)
)

// plausible returns the bounds of a cluster with so many jobs.
func (c *Controller) plausible(st *v1alpha1.SchedulerPolicyStatus, jobs int) plausible {
	p := plausible{jobs: int(st.Jobs) + jobs, version: uint64(st.Version) + slackEvents, now: sched.Time(st.Now)}
	if st.Jobs == 0 { // the policy was made again
		p.jobs = slackNumbers
	}
	if st.Origin != nil {
		p.now = max(p.now, sched.Time(c.o.Clock().Sub(st.Origin.Time)))
	}
	p.now += slackTime
	return p
}

func (p *plausible) check(r *record.Job) error {
	switch {
	case int(r.ID) >= p.jobs:
		return fmt.Errorf("it is number %d, want less than %d", r.ID, p.jobs)
	case r.Version > p.version:
		return fmt.Errorf("it is of version %d, want at most %d", r.Version, p.version)
	case r.Job.Settled > p.now:
		return fmt.Errorf("it is of time %v, want at most %v", r.Job.Settled, p.now)
	}
	return nil
}

// isolate leaves a job out, as its record cannot be read, and reports that.
func (c *Controller) isolate(ctx context.Context, l *loaded, j *v1alpha1.TrainingJob, why error) error {
	if !driverobserver.UsesClaims(l.policy.Spec.Mode) {
		var pods corev1.PodList
		if err := c.o.Reader.List(ctx, &pods, client.InNamespace(j.Namespace),
			client.MatchingLabels{v1alpha1.LabelJob: j.Name}); err != nil {
			return fmt.Errorf("controller: pods of %s/%s: %w", j.Namespace, j.Name, err)
		}
		if j.DeletionTimestamp != nil && len(pods.Items) == 0 {
			return nil
		}
		return fmt.Errorf("%w: that of TrainingJob %s/%s: %w; delete the job and its pods", errRecord, j.Namespace,
			j.Name, why)
	}
	l.bad[j.UID] = j.Status.Record
	if j.DeletionTimestamp != nil {
		return nil
	}
	text := cut(fmt.Sprintf("its record cannot be read: %v", why), mostTrouble) +
		"; no one decides about it, and its GPUs go to no other job: put status.record right, or delete the job"
	c.o.Log.Warn("the record of a job cannot be read: it is left out", "job", client.ObjectKeyFromObject(j), "why", why)
	c.o.report(note{kind: corev1.EventTypeWarning, reason: reportedUnreadable, text: text,
		about: corev1.ObjectReference{APIVersion: v1alpha1.GroupVersion.String(), Kind: "TrainingJob",
			Namespace: j.Namespace, Name: j.Name, UID: j.UID}})
	was := meta.FindStatusCondition(j.Status.Conditions, IsUnreadable)
	if c.o.Observe || was != nil && was.Status == metav1.ConditionTrue && was.Message == text {
		return nil
	}
	before := j.DeepCopy()
	j.Status.Reason = text
	meta.SetStatusCondition(&j.Status.Conditions, metav1.Condition{Type: IsUnreadable, Status: metav1.ConditionTrue,
		Reason: reportedUnreadable, Message: text,
		LastTransitionTime: metav1.NewTime(c.o.Clock().Truncate(time.Second))})
	err := c.o.Client.Status().Patch(ctx, j, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{}))
	if err != nil { // its user changes it, or it is too large: the Event says the same
		c.o.Log.Warn("a job that is left out does not say so", "job", client.ObjectKeyFromObject(j), "error", err)
	}
	return nil
}
