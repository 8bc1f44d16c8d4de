package simulate

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/trainyard/trainyard/cluster"
	"github.com/trainyard/trainyard/driver/sim"
	"github.com/trainyard/trainyard/internal/suggest"
	"github.com/trainyard/trainyard/pipeline"
	"github.com/trainyard/trainyard/sched"
	"github.com/trainyard/trainyard/stage/allocate"
	"github.com/trainyard/trainyard/system"
	"github.com/trainyard/trainyard/system/key"
)

// preset reproduces a published set-up for one system: quirks included, as far as they change figures.
type preset struct {
	defaults map[string]string // settings unless given
	note     string            // what else a restart costs
	adapt    func(*pipeline.Stages, *sim.Runtime)
	demand   func(*sched.JobSpec, *cluster.Cluster)
	// alone runs a stand-alone replica instead of the engine.
	alone func(*Request, *key.Settings) (replicaRun, error)
}

// replicaRun runs a replica until stop, which it asks often, returns true.
type replicaRun func(stop func() bool) (*Outcome, error)

// PresetInfo describes a preset.
type PresetInfo struct {
	Name, Line string
	NodeGPUs   int      // of every node in the published set-up; 0 = any
	Keys       key.List // its systems take under it, besides their own
	replica    string   // package of the released simulator, where one runs some of its systems
	systems    map[string]preset
}

// Systems returns the names of the systems the preset has, sorted.
func (p *PresetInfo) Systems() []string { return slices.Sorted(maps.Keys(p.systems)) }

// Defaults returns the settings the preset gives the system unless they are given, which the caller must not change.
func (p *PresetInfo) Defaults(sys string) map[string]string { return p.systems[sys].defaults }

// RestartNote says what a restart under the preset costs in addition to restart_overhead; "" = nothing.
func (p *PresetInfo) RestartNote(sys string) string { return p.systems[sys].note }

// Replica reports whether the preset runs the system in a simulator of its own: then there are no events, and nothing
// is known of nodes.
func (p *PresetInfo) Replica(sys string) bool { return p.systems[sys].alone != nil }

// Presets lists all presets.
var Presets = []PresetInfo{
	{"tiresias", "the released Tiresias simulator (NSDI'19, commit 959f9b0): whole seconds, free restarts, its ties " +
		"and bugs", 0, nil, "tiresias", tiresiasPreset},
	{"helios", "HeliosArtifact (SC'21, commit bdaae109): consolidated 8-GPU nodes, preemption adds 7/30/60 s of work",
		8, nil, "", heliosPreset},
	{"muri", "the simulator released with Muri (SIGCOMM'22, commit 4e69a78c), without sharing: 8-GPU nodes, free " +
		"moves, each event costs progress", 8,
		nil, "muri", muriPreset},
	{"blox-pal", "the simulator released with PAL (SC'24, tag artifact-v1.4): rounds, free moves, a trace that " +
		"repeats itself", 0,
		palPresetKeys, "pal", palPreset},
	{"gavel", "the simulator released with Gavel (OSDI'20, commit c4fa4009) on GPUs of one type: rounds of 360 s, " +
		"throughputs by --interference", 0,
		gavelPresetKeys, "gavel", gavelPreset},
	{"pollux", "the simulator released with Pollux (OSDI'21, branch osdi21-artifact): minutes, 30 s at every start, " +
		"--profiles as measured there", 0,
		nil, "pollux", polluxPreset},
}

// PresetNamed returns the preset of that name, nil if there is none.
func PresetNamed(name string) *PresetInfo {
	for i := range Presets {
		if p := &Presets[i]; p.Name == name {
			return p
		}
	}
	return nil
}

// PresetNames returns the names of all presets.
func PresetNames() []string {
	var names []string
	for i := range Presets {
		names = append(names, Presets[i].Name)
	}
	return names
}

// presetKeys returns the keys that a preset adds.
func presetKeys(name string) key.List {
	if p := PresetNamed(name); p != nil {
		return p.Keys
	}
	return nil
}

func presetFor(name, sys string) (preset, error) {
	if name == "" {
		return preset{}, nil
	}
	info := PresetNamed(name)
	if info == nil {
		names := PresetNames()
		return preset{}, fmt.Errorf("preset: %q is not known%s, want one of %s", name, suggest.Hint(name, names),
			strings.Join(names, ", "))
	}
	p, ok := info.systems[sys]
	if !ok {
		return p, fmt.Errorf("preset: %s has no system %q, only %s", name, sys, strings.Join(info.Systems(), ", "))
	}
	return p, nil
}

// heliosPreset: FIFO and SJF need nothing but free restarts; SRTF fills a quota by demand, and a preempted job has more
// work left. Source: Hu et al., SC'21, HeliosArtifact.
var heliosPreset = map[string]preset{
	"fifo": {defaults: freeRestarts},
	"sjf":  {defaults: freeRestarts},
	"srtf": {defaults: freeRestarts, note: "each preemption adds 7, 30 or 60 s of work",
		adapt: func(s *pipeline.Stages, r *sim.Runtime) {
			s.Allocate = allocate.Quota{}
			r.Penalty = func(width int) time.Duration {
				switch {
				case width == 1:
					return 7 * time.Second
				case width <= 8:
					return 30 * time.Second
				}
				return 60 * time.Second
			}
		}},
}

// seedOf returns the seed, 0 for a system that draws nothing.
func seedOf(set *key.Settings) uint64 {
	if !system.Seed.Taken(set) {
		return 0
	}
	return uint64(system.Seed.Get(set))
}

// wantZero refuses keys of which a released simulator knows nothing, unless they are 0.
func wantZero(set *key.Settings, knows string, keys ...key.Key) error {
	for i := range keys {
		if keys[i].Is(set) {
			return fmt.Errorf("%s=%s, want 0: %s knows nothing of it", keys[i].Name, set.Text(&keys[i]), knows)
		}
	}
	return nil
}

// wantWord refuses all values of a key but one.
func wantWord(set *key.Settings, k key.Of[string], word string) {
	if text := set.Text(&k.Key); set.Has(k.Name) && text != word {
		set.Refuse(k.Name, word+suggest.Hint(text, []string{word}))
	}
}

// wantLocal refuses a penalty of distance.
func wantLocal(set *key.Settings) error {
	if x := system.LocalityPenalty.Get(set); x != 1 {
		return fmt.Errorf("locality_penalty=%v, want 1: in the released simulator placement changes no speed", x)
	}
	return nil
}

var freeRestarts = map[string]string{"restart_overhead": "0", "spread_penalty": "0"}
