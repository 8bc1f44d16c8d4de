package serve

import (
	"context"
	"path/filepath"
	"testing"

	"github.com/trainyard/trainyard/cli/term"
	"github.com/trainyard/trainyard/driver/local/device"
)

// gpus are made-up GPUs with locks in a folder of the test.
type gpus struct {
	device.Slots
	locks string
	users []device.Process // of slot-1
}

func (g gpus) Locks() string { return g.locks }

func (g gpus) Sample(context.Context) (*device.Sample, error) {
	return &device.Sample{Readings: map[string]device.Reading{"slot-1": {Listed: true, Processes: g.users}}}, nil
}

// Ensure that a GPU that a job holds, or that someone computes on, is not measured, and that one is free again
// afterwards.
func TestHold(t *testing.T) {
	g := gpus{Slots: 2, locks: filepath.Join(t.TempDir(), "locks")}
	list, _ := g.List(t.Context())
	release, err := hold(t.Context(), g, list)
	if err != nil {
		t.Fatal(err)
	}
	const held = "slot-0 is held by a job or another probe, want it idle"
	if _, err = hold(t.Context(), g, list); err == nil || err.Error() != held ||
		term.ExitCode(err) != term.ExitConflict {
		t.Errorf("%v, want %s", err, held)
	}
	release()
	g.users = []device.Process{{PID: 77}}
	const used = "slot-1 is in use by process 77, want it idle: what is measured next to others is not the GPU"
	if _, err = hold(t.Context(), g, list); err == nil || err.Error() != used ||
		term.ExitCode(err) != term.ExitConflict {
		t.Errorf("%v, want %s", err, used)
	}
	g.users = nil
	if release, err = hold(t.Context(), g, list); err != nil {
		t.Errorf("%v, want it free again", err)
	}
	release()
}
