package simulate

import (
	"context"
	"errors"
	"path/filepath"
	"testing"
)

// ending is a context that is cancelled once it was asked so often whether it is.
type ending struct {
	context.Context
	asked, from int
}

// Err returns whether it is cancelled.
func (e *ending) Err() error {
	if e.asked++; e.asked > e.from {
		return context.Canceled
	}
	return nil
}

// Ensure that a cancelled context ends every simulation at once: those of the engine, and those of the simulators that
// presets restate, which know no context.
func TestCancelled(t *testing.T) {
	input := func(name string) string { return filepath.Join("..", "internal", "freeze", "testdata", "input", name) }
	testbed := filepath.Join("..", "examples", "testbed.csv")
	request := func(preset, system, trace, cluster string) *Request {
		return &Request{From: Inputs{Trace: trace, Cluster: cluster}, Preset: preset, System: system,
			Settings: map[string]string{}}
	}
	blox := request("blox-pal", "pal", input("blox.csv"), "15x4")
	blox.From.Scores = input("scores60.csv")
	gavel := request("gavel", "gandiva", input("gavel.trace"), "3x4:v100")
	gavel.From.Sharing = input("gavel.json")
	for _, s := range []*Request{
		request("", "worth", testbed, "15x4"), request("", "tiresias-las", testbed, "15x4"),
		request("", "pollux", testbed, "15x4"),
		request("tiresias", "tiresias-las", testbed, "15x4"), request("muri", "srtf", input("muri.csv"), "4x8"),
		blox, gavel, polluxSimulation(t, "optimus"),
	} {
		ctx := &ending{Context: context.Background(), from: 10}
		out, err := s.Run(ctx)
		if !errors.Is(err, context.Canceled) || out != nil {
			t.Errorf("preset %q, %s: %v, %v, want it to end as cancelled", s.Preset, s.System, out, err)
		}
		if ctx.asked > ctx.from+2 {
			t.Errorf("preset %q, %s: asked %d times whether it is cancelled, want it to end at %d", s.Preset, s.System,
				ctx.asked, ctx.from+1)
		}
	}
}
