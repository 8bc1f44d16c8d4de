package controller

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/resourceversion"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/trainyard/trainyard/kube/api/v1alpha1"
	"github.com/trainyard/trainyard/kube/driver/writer"
	"github.com/trainyard/trainyard/kube/record"
)

// fencedWriter writes objects until it is done, or this leader is not the leader any more. It knows the versions that
// it wrote last.
type fencedWriter struct {
	ctx    context.Context
	api    client.Client // writes, and reads from the cache
	reader client.Reader // reads what the API has now
	log    *slog.Logger
	space  string                    // namespace of the ConfigMaps
	policy *v1alpha1.SchedulerPolicy // as last written
	leader int64
	held   func() error     // see Options
	fatal  func(error) bool // see Options
	blobs  map[string]blob  // by name of the ConfigMap
}

// callTime is how long a write may take.
const callTime = 20 * time.Second

// writeStatus writes the status of one job, or nothing if it is gone. It touches nothing but what is the job's own.
func (w *fencedWriter) writeStatus(ref ref, mine *saved) error {
	from := client.Reader(w.api)
	if err := w.follow(ref, mine); err != nil {
		return err
	}
	for try := 0; ; try++ {
		if mine.version == "" { // without one the write would hit whoever has the name now
			version, err := w.current(ref, from)
			if err != nil || version == "" {
				return err
			}
			mine.version = version
		}
		body, err := patch(mine.version, mine.next)
		if err != nil {
			return err
		}
		job := metadataOf(ref.name)
		err = w.call(func(ctx context.Context) error {
			return w.api.Status().Patch(ctx, job, client.RawPatch(types.MergePatchType, body))
		})
		switch {
		case err == nil:
			mine.version = job.ResourceVersion
			return nil
		case apierrors.IsNotFound(err): // removed by force: the driver will report it
			return nil
		case apierrors.IsConflict(err):
			mine.version, from = "", w.reader // what is cached may be as old as what is known
		case writer.IsTooLarge(err): // its user has made it so since it came: the others cannot wait for it
			w.log.Error("a job is too large for its status to be written; a leader that comes after this one takes "+
				"it for what it was", "job", ref.name, "error", err)
			return nil
		default:
			if final := w.pause(try, fmt.Errorf("status of %s: %w", ref.name, err)); final != nil {
				return final
			}
		}
	}
}

// follow has a job that was written be known by the version that the cache has, if that is later: its user has changed
// it, and a write on top of the other would be refused.
func (w *fencedWriter) follow(ref ref, mine *saved) error {
	var job v1alpha1.TrainingJob
	if mine.version == "" || w.api.Get(w.ctx, ref.name, &job) != nil || job.UID != ref.uid {
		return nil // it is asked for, or the write finds out
	}
	order, err := resourceversion.CompareResourceVersion(job.ResourceVersion, mine.version)
	if err != nil || order <= 0 {
		return nil
	}
	if rec, bad := record.Read(job.Status.Record); bad == nil && rec.Leader > w.leader {
		return ErrFenced
	}
	mine.version = job.ResourceVersion
	return nil
}

// current returns the version of a job that was not written yet, or that someone has changed meanwhile: its user the
// requests, which is well, or another controller the status. "" says that it is gone, which a cache is not believed.
func (w *fencedWriter) current(ref ref, from client.Reader) (string, error) {
	for try := 0; ; try++ {
		var job v1alpha1.TrainingJob
		err := from.Get(w.ctx, ref.name, &job)
		switch gone := apierrors.IsNotFound(err) || err == nil && job.UID != ref.uid; {
		case gone && from != w.reader:
			from = w.reader
			continue
		case gone:
			return "", nil
		case err == nil:
			if rec, bad := record.Read(job.Status.Record); bad == nil && rec.Leader > w.leader {
				return "", ErrFenced
			}
			return job.ResourceVersion, nil
		}
		if final := w.pause(try, fmt.Errorf("status of %s: %w", ref.name, err)); final != nil {
			return "", final
		}
	}
}

// origin is the instant that is time 0.
func (w *fencedWriter) origin() time.Time {
	if w.policy.Status.Origin == nil {
		return time.Time{}
	}
	return w.policy.Status.Origin.Time
}

// call has a write made, if this leader leads: it may come long after the try before it. One that is under way is never
// called off, since no one would know what came of it, nor would who reads next.
func (w *fencedWriter) call(write func(ctx context.Context) error) error {
	if err := cmp.Or(w.ctx.Err(), w.leads()); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(w.ctx), callTime)
	defer cancel()
	return write(ctx)
}

// leads returns an error once another may lead.
func (w *fencedWriter) leads() error {
	if err := w.held(); err != nil {
		return fmt.Errorf("%w: %w", ErrFenced, err)
	}
	return nil
}

// pause waits before another try. An error says that there is no sense in one.
func (w *fencedWriter) pause(try int, err error) error {
	if errors.Is(err, ErrFenced) || w.fatal != nil && w.fatal(err) || apierrors.IsInvalid(err) ||
		apierrors.IsForbidden(err) || apierrors.IsBadRequest(err) {
		return err
	}
	if w.ctx.Err() == nil {
		w.log.Warn("the API does not take a write; trying again", "error", err)
	}
	select {
	case <-w.ctx.Done():
		return errors.Join(w.ctx.Err(), err)
	case <-time.After(min(50*time.Millisecond<<min(try, 6), 2*time.Second)):
		return nil
	}
}

// ours returns the policy as it is now, if no one but its user has changed it. A cache would not know yet who has.
func (w *fencedWriter) ours() (*v1alpha1.SchedulerPolicy, error) {
	for try := 0; ; try++ {
		var p v1alpha1.SchedulerPolicy
		err := w.reader.Get(w.ctx, types.NamespacedName{Name: w.policy.Name}, &p)
		switch {
		case err == nil && p.Status.Leader != w.leader:
			return nil, fenced(&p, w.leader)
		case err == nil:
			return &p, nil
		}
		if final := w.pause(try, err); final != nil {
			return nil, final
		}
	}
}

// writePolicy writes the policy's status. Who finds that another has written it leads no more.
func (w *fencedWriter) writePolicy(next *v1alpha1.SchedulerPolicy) error {
	for try := 0; ; try++ {
		err := w.call(func(ctx context.Context) error { return w.api.Status().Update(ctx, next) })
		if err == nil {
			w.policy = next
			return nil
		}
		if apierrors.IsConflict(err) {
			fresh, gone := w.ours()
			if gone != nil {
				return gone
			}
			next.ResourceVersion, next.Spec = fresh.ResourceVersion, fresh.Spec
			continue
		}
		if final := w.pause(try, err); final != nil {
			return fmt.Errorf("controller: status of the policy: %w", final)
		}
	}
}

// metadataOf is what a write of a job's status answers with: all else is known.
func metadataOf(name types.NamespacedName) *metav1.PartialObjectMetadata {
	return &metav1.PartialObjectMetadata{TypeMeta: metav1.TypeMeta{APIVersion: v1alpha1.GroupVersion.String(),
		Kind: "TrainingJob"},
		ObjectMeta: metav1.ObjectMeta{Namespace: name.Namespace, Name: name.Name}}
}

// fenced says who leads.
func fenced(p *v1alpha1.SchedulerPolicy, leader int64) error {
	return fmt.Errorf("%w: number %d, this is %d", ErrFenced, p.Status.Leader, leader)
}

// patch is a merge patch that makes the status of an object st, if it still is of that version: a UID would not be
// compared. Fields of which st has nothing are taken away.
func patch(version string, st v1alpha1.TrainingJobStatus) ([]byte, error) {
	b, err := json.Marshal(st)
	if err != nil {
		return nil, err
	}
	fields := make(map[string]json.RawMessage, len(statusFields))
	if err := json.Unmarshal(b, &fields); err != nil {
		return nil, err
	}
	for _, name := range statusFields {
		if _, ok := fields[name]; !ok {
			fields[name] = json.RawMessage("null")
		}
	}
	return json.Marshal(map[string]any{"metadata": map[string]string{"resourceVersion": version}, "status": fields})
}
