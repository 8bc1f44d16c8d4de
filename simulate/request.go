package simulate

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/trainyard/trainyard/cluster"
	"github.com/trainyard/trainyard/eventlog"
	"github.com/trainyard/trainyard/metrics"
	"github.com/trainyard/trainyard/metrics/timeline"
	"github.com/trainyard/trainyard/model/speedup"
	"github.com/trainyard/trainyard/model/variability"
	"github.com/trainyard/trainyard/pipeline"
	"github.com/trainyard/trainyard/sched"
	"github.com/trainyard/trainyard/system"
	"github.com/trainyard/trainyard/system/key"
	"github.com/trainyard/trainyard/trace"
)

// Request is one run of one system on one trace and one cluster. What it is about is given by values, or by the files
// in From; a value counts where both are given.
type Request struct {
	From Inputs // the zero value: there are none, and nothing is read

	Trace    *trace.Trace
	Cluster  *cluster.Cluster
	System   string
	Settings map[string]string      // keys of the system and of the simulated world
	Files    key.Contents           // of the files that Settings name
	Preset   string                 // "": none
	Budget   float64                // GPUs rented on average, for systems that rent; 0: none given
	Round    time.Duration          // decisions at multiples of it only; 0: the system's own
	Apps     map[string]speedup.App // how fast jobs truly go, by the model they name; nil: in proportion to their GPUs
	Mix      []speedup.Class        // rates and curves of applications as an oracle knows them; nil: those of the trace
	Scores   *variability.Scores    // true PM scores of the GPUs by number; nil: GPUs do not differ
	Known    *variability.Scores    // what the system knows of them; nil: Scores
	// how jobs that share GPUs slow each other down; nil: they do not, and no job consents
	Sharing *Sharing
	Caps    CapCurves      // what GPUs do under power caps, by model; nil: caps slow no job down
	Energy  metrics.Energy // power caps, prices and carbon of energy, where known
	Inject  []sched.Event  // user commands, prices, node changes from outside

	NoiseSeed uint64   // of the key report_noise
	Recorded  Recorded // how jobs were seen to run

	Sinks []eventlog.Sink                     // are given every event; a preset with a simulator of its own has none
	Log   func(eventlog.Header) eventlog.Sink // makes a sink that knows how the log starts too; nil: there is none
	// Timeline, if not nil, is given every event, and the power drawn; a preset with a simulator of its own has none.
	Timeline *timeline.Timeline
	Prices   *Prices                // if not nil, notes what GPUs are worth, where the system puts a price on them
	Clock    func() int64           // nanoseconds, for decision times; nil: not measured
	Adapt    func(*pipeline.Stages) // may change the system's stages; nil: they stay
}

// Recorded is how jobs were seen to run. What is nil was not seen.
type Recorded struct {
	// StartUp is what each start costs a job, its first too, in place of what the keys say.
	StartUp func(*trace.Job) time.Duration
	// Mute reports whether a job says nothing of the ends of its epochs; else all that have epochs do.
	Mute func(*trace.Job) bool
	// Speed is the work per time of a job on so many GPUs, alone, 1 on those that it asks for; else it is in proportion
	// to them. Applications that are known go before it.
	Speed func(j *trace.Job, gpus int) float64
	// Known is the work of a job from which on it is known how much it is in all: up to there that is
	// estimated, as for real jobs. Else it is known from the start.
	Known func(*trace.Job) time.Duration
	// Apps is how fast applications go by type of GPU, for types that differ; of others, and of what systems know,
	// Request.Apps says it.
	Apps map[string]map[string]speedup.App
	// Slow is how much longer a job takes next to others on a GPU; else as Sharing says.
	Slow func(j *trace.Job, others []*trace.Job) float64
}

// Outcome is what came of a simulation.
type Outcome struct {
	metrics.Result
	PerJob []metrics.Job // in order of arrival
	Engine string        // what computed it: Engine, or a replica
	Knows  []string      // what the system knew by an oracle: sizes, curves; of a replica it is not known
}

// Engine is our own engine, as opposed to a replica of a published simulator.
const Engine = "trainyard"

// Engine names what computes the outcome: Engine, or "replica:" and the package of the replica that the preset has for
// the system.
func (s *Request) Engine() string {
	if p := PresetNamed(s.Preset); p != nil && p.Replica(s.System) {
		return "replica:" + p.replica
	}
	return Engine
}

// RuntimeKeys are the keys of the simulated world, taken for every system.
var RuntimeKeys = system.World

// Error says which field of a Request is wrong.
type Error struct {
	Field string // as in "Preset", or "Settings"
	err   error
}

// Error says what is wrong with the field.
func (e *Error) Error() string { return e.err.Error() }

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.err }

// wrong says that a field is wrong; nil stays nil. An error that names a field keeps it.
func wrong(field string, err error) error {
	if named := (*Error)(nil); err == nil || errors.As(err, &named) {
		return err
	}
	return &Error{field, err}
}

// Check returns what is wrong with the request, or nil: a file that cannot be read, an unknown system, key or preset, a
// value that makes no sense. It is an *Error. Whatever Run returns after a Check without error is not the request's
// fault.
func (s *Request) Check() error {
	_, err := s.ready()
	return err
}

// Run simulates to the end: until nothing can happen any more.
func (s *Request) Run(ctx context.Context) (*Outcome, error) {
	b, err := s.ready()
	if err != nil {
		return nil, err
	}
	var out *Outcome
	if b.alone == nil {
		out, err = b.request.drive(ctx, b)
	} else if out, err = b.alone(func() bool { return ctx.Err() != nil }); err == nil {
		err = ctx.Err() // a replica that was stopped has only part of the jobs
	}
	if err != nil {
		return nil, err
	}
	out.Engine = s.Engine()
	return out, nil
}

// ready reads what is to be read and wires it.
func (s *Request) ready() (*built, error) {
	w := *s
	if err := w.Load(); err != nil {
		return nil, err
	}
	switch {
	case w.Trace == nil:
		return nil, wrong("Trace", errors.New("simulate: no trace, want one, or its file"))
	case w.Cluster == nil:
		return nil, wrong("Cluster", errors.New("simulate: no cluster, want one, or its file"))
	case w.Round < 0:
		return nil, wrong("Round", fmt.Errorf("simulate: round %v, want one > 0, or 0 for the system's own", w.Round))
	}
	b, err := w.build()
	if err != nil {
		return nil, wrong("Settings", err)
	}
	b.request = &w
	return b, nil
}

// KeysOf returns the keys that a system takes in a simulation under the preset of that name, "" = none: its own, those
// of every system, those of the simulated world and those of the preset.
func KeysOf(info *system.Info, preset string) key.List {
	return key.Join(info.All(), system.World, presetKeys(preset))
}

// CheckKeys returns an error about the first key, in order of name, that is none of KeysOf.
func CheckKeys(info *system.Info, preset string, settings map[string]string) error {
	return KeysOf(info, preset).Check("system: "+info.Name, settings, key.Simulation)
}
