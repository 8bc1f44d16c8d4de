package attempts

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/trainyard/trainyard/attempt/progress"
	"github.com/trainyard/trainyard/kube/api/v1alpha1"
	"github.com/trainyard/trainyard/kube/driver/observer"
	"github.com/trainyard/trainyard/kube/driver/writer"
)

// keptPace returns what earlier leaders kept of the speed of a job.
func (as *Attempts) keptPace(ctx context.Context, api observer.API, a *live) (kept progress.Kept) {
	tj := new(v1alpha1.TrainingJob)
	found, err := api.Get(ctx, a.Key, tj)
	text := tj.Annotations[writer.AnnotationPace]
	if err != nil || !found || tj.UID != a.UID || text == "" {
		return kept
	}
	err = json.Unmarshal([]byte(text), &kept)
	if err == nil {
		err = kept.Validate()
	}
	if err != nil {
		err = fmt.Errorf("annotation %s: %w", writer.AnnotationPace, err)
		as.o.Log.Warn("the speed of a job is measured again", "job", a.Key, "error", err)
		return progress.Kept{}
	}
	return kept
}

// Pace is how fast the job of an attempt is, as it is kept for later.
type Pace struct {
	*writer.Attempt
	Text string
}

// pace returns what is to be known of the speed of a job later, nil if it cannot be said.
func (as *Attempts) pace(a *live) *Pace {
	text, err := a.meter.kept()
	if err != nil {
		as.o.Log.Warn("the speed of a job cannot be kept", "job", a.Key, "error", err)
		return nil
	}
	return &Pace{a.Attempt, string(text)}
}

// kept returns what of the odometer is to outlive this process.
func (m *meter) kept() ([]byte, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return json.Marshal(m.odo.Kept)
}
