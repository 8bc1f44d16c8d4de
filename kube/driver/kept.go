package driver

import (
	"context"
	"encoding/json"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/trainyard/trainyard/attempt/progress"
	"github.com/trainyard/trainyard/kube/api/v1alpha1"
	"github.com/trainyard/trainyard/kube/driver/observer"
)

// annotationPace is what is known of how the progress of a job is counted and how fast it was, on its TrainingJob. It is no part of its
// record: without it a job is measured anew.
const annotationPace = "trainyard.dev/pace"

// keptOf returns what earlier leaders kept of a job.
func (d *Driver) keptOf(a *attempt) (kept progress.Kept) {
	tj := new(v1alpha1.TrainingJob)
	if found, err := d.get(a.key, tj); err != nil || !found || tj.UID != a.uid || tj.Annotations[annotationPace] == "" {
		return kept
	}
	err := json.Unmarshal([]byte(tj.Annotations[annotationPace]), &kept)
	if err == nil {
		err = kept.Validate()
	}
	if err != nil {
		d.o.Log.Warn("the speed of a job is measured anew", "job", a.key, "error", fmt.Errorf("annotation %s: %w", annotationPace, err))
		return progress.Kept{}
	}
	return kept
}

// keepPace writes down what is to be known of a job later.
func (d *Driver) keepPace(a *attempt) {
	text, err := a.meter.kept()
	if err != nil {
		d.o.Log.Warn("the speed of a job cannot be kept", "job", a.key, "error", err)
		return
	}
	d.submit("pace/"+a.key.String(), func(ctx context.Context) {
		d.warn(ctx, d.annotate(ctx, a, annotationPace, string(text)), "the speed of a job cannot be kept", "job", a.key)
	})
}

// annotate has the TrainingJob of an attempt say something, and no other that has its name by now.
func (d *Driver) annotate(ctx context.Context, a *attempt, name, text string) error {
	body, err := json.Marshal(map[string]any{"metadata": map[string]any{"uid": a.uid, "annotations": map[string]string{name: text}}})
	if err != nil {
		return err
	}
	return d.crew.write(ctx, func(ctx context.Context) error {
		tj := &v1alpha1.TrainingJob{ObjectMeta: observer.MetaOf(a.key)}
		err := d.o.Client.Patch(ctx, tj, client.RawPatch(types.MergePatchType, body))
		if apierrors.IsConflict(err) && d.o.Reader.Get(ctx, a.key, tj) == nil && tj.UID != a.uid {
			return nil
		}
		return client.IgnoreNotFound(err)
	})
}

// kept returns what of the odometer is to outlive this process.
func (m *meter) kept() ([]byte, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return json.Marshal(m.odo.Kept)
}
