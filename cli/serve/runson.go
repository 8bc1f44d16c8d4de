package serve

import (
	"context"
	"errors"
	"math"
	"runtime"

	"github.com/spf13/cobra"

	"github.com/trainyard/trainyard/cli/inputs"
	"github.com/trainyard/trainyard/cli/term"
	"github.com/trainyard/trainyard/driver/local/device"
	"github.com/trainyard/trainyard/driver/local/ports"
	"github.com/trainyard/trainyard/manager"
	"github.com/trainyard/trainyard/manager/jobfile"
	"github.com/trainyard/trainyard/model/speedup"
	"github.com/trainyard/trainyard/simulate"
	"github.com/trainyard/trainyard/system"
	"github.com/trainyard/trainyard/system/key"
)

// ShimVerb has the program be the shim of a run directory, see package shim. It is no command of users.
const ShimVerb = "shim"

// runsOn are the flags that say who decides about real jobs, and on what they run.
type runsOn struct {
	state   string
	slots   int
	system  string
	sets    []string
	scores  string // file of PM scores
	ports   string // of which attempts get leases
	known   string // path of profiles of applications
	budget  float64
	reserve float64 // GiB of memory that jobs are not given
	unit    string  // what jobs hold, in a word: GPU or slot
	begun   int     // slots that the folder was served with last, which holds where --slots is not given; 0 = none
}

// Define adds all of them but state, which verbs explain each in their way.
func (f *runsOn) Define(cmd *cobra.Command) {
	fs := cmd.Flags()
	fs.IntVar(&f.slots, "slots", 0, "run on `N` CPU slots (default: the GPUs, or a slot per processor where there "+
		"are none)")
	fs.StringVar(&f.system, "system", system.Default, "system `NAME` that decides, see `trainyard systems`")
	fs.StringArrayVar(&f.sets, "set", nil, "`NAME.KEY=VALUE`: a key of the system; NAME may be *; repeatable")
	fs.Float64Var(&f.budget, "budget", 0, "use `N` GPUs or slots on average, for systems that rent (boa): they are "+
		"given out one by one")
	fs.StringVar(&f.scores, "variability", "", "PM scores of the GPUs: `FILE` of trainyard probe")
	fs.StringVar(&f.known, "profiles", "", "with --set NAME.curves=oracle: how fast models train, `PATH` of a "+
		"folder of profiles, or of tables")
	fs.Float64Var(&f.reserve, "reserve-memory", 0, "leave `GB` of the machine's memory to others than jobs")
	fs.StringVar(&f.ports, "ports", ports.Default.String(),
		"`FIRST-LAST`: of these ports each attempt gets four of its own, to meet at")
	term.CompleteFlag(cmd, "system", term.OneOf(inputs.SystemNames))
	term.CompleteFlag(cmd, "set", term.StartOf(inputs.CompleteSets(takenHere)))
}

// options are what the manager is given, but for its folder and its jobs.
func (f *runsOn) options(ctx context.Context, cmd *cobra.Command) (o manager.Options, err error) {
	info, err := system.Named(f.system)
	if err != nil {
		return o, term.Usage(err)
	}
	if o.Settings, err = f.settings(info); err != nil {
		return o, err
	}
	if !(f.budget >= 0) || f.budget == 0 && cmd.Flags().Changed("budget") || math.IsInf(f.budget, 1) {
		return o, term.Usagef("--budget %v, want > 0", f.budget)
	}
	if o.Devices, o.Place, err = f.devices(ctx, cmd.Flags().Changed("slots")); err != nil {
		return o, err
	}
	if o.Knows, err = f.knows(ctx, &o); err != nil {
		return o, err
	}
	if o.Ports, err = f.portRange(cmd); err != nil {
		return o, err
	}
	if f.reserve < 0 || math.IsNaN(f.reserve) {
		return o, term.Usagef("--reserve-memory %v, want GiB, at least 0", f.reserve)
	}
	o.Machine = device.ThisMachine(float32(f.reserve))
	o.Budget = f.budget
	o.System, o.Version, o.Unit = f.system, term.OwnBuild().Version, f.unit
	o.Shim = []string{"/proc/self/exe", ShimVerb}
	return o, nil
}

// portRange is where processes of attempts meet.
func (f *runsOn) portRange(cmd *cobra.Command) (ports.Range, error) {
	r, err := ports.Parse(f.ports)
	if err != nil {
		return r, term.Usagef("--ports %w", err)
	}
	if cmd.Flags().Changed("ports") && len(ports.Free(r)) == 0 {
		return r, term.Usagef("--ports %v: the kernel gives all of these to clients (net.ipv4.ip_local_port_range), "+
			"want others", r)
	}
	return r, nil
}

// knows is what is known beforehand of the devices and jobs of o.
func (f *runsOn) knows(ctx context.Context, o *manager.Options) (k system.Knowledge, err error) {
	var list []device.Device
	if f.scores+f.known != "" {
		if list, err = o.Devices.List(ctx); err != nil {
			return k, err
		}
	}
	scores, err := simulate.ReadScores("variability", f.scores, len(list))
	if err != nil {
		return k, err
	}
	if k, err = inputs.KnowledgeOf(f.system, o.Settings, scores); err != nil {
		return k, err
	}
	k.Speeds, err = f.speeds(list)
	return k, err
}

// speeds says how fast jobs go by the profiles of their models, nil if there are none.
func (f *runsOn) speeds(list []device.Device) (speedup.Source, error) {
	apps, err := simulate.ReadApps(f.known)
	if err != nil || apps == nil {
		return nil, inputs.AppsError(err)
	}
	counts, most := make(map[string]int), 0 // those of a type are a node
	for i := range list {
		counts[list[i].Type]++
		most = max(most, counts[list[i].Type])
	}
	return speedup.NewOracle(apps, max(most, 1), len(list)), nil
}

// simulatedToo are the keys of a system, with those of the simulated world, of which settings says why they are
// refused.
func simulatedToo(info *system.Info) key.List { return key.Join(info.All(), system.World) }

// takenHere are the keys of a system that may be given for real jobs.
func takenHere(info *system.Info) key.List {
	return key.Join(info.All(), system.Beliefs).At(key.Machine)
}

// settings are the keys of the system. Those of a simulated world, and of machines that are rented, are refused.
func (f *runsOn) settings(info *system.Info) (map[string]string, error) {
	settings, err := inputs.ParseSets(f.sets, []*system.Info{info}, simulatedToo)
	if err != nil {
		return nil, err
	}
	abroad := (*key.Error)(nil)
	if err := info.CheckKeys(settings[0], key.Machine); errors.As(err, &abroad) {
		return nil, term.Usagef("--set %s.%s: %w", f.system, abroad.Key, abroad.Bare())
	}
	return settings[0], nil
}

// devices are what jobs may hold; given says that --slots was.
func (f *runsOn) devices(ctx context.Context, given bool) (device.Backend, string, error) {
	if err := checkSlots(f.slots); given && err != nil {
		return nil, "", err
	}
	if !given && f.begun > 0 {
		f.slots = f.begun
	} else if !given {
		if gpus, found := device.Find(ctx); found {
			f.unit = "GPU"
			return gpus, "GPUs", nil
		}
		f.slots = runtime.NumCPU()
	}
	f.unit = "slot"
	return device.Host(f.slots), term.Counted(f.slots, "CPU slot"), nil
}

// maxSlots is the most slots of a machine: four jobs of the most GPUs that one may ask for, and more processors than
// machines have. Each takes memory and is looked at in every decision. Ours.
const maxSlots = 4 * jobfile.MaxGPUs

// checkSlots refuses a number of slots that no machine has.
func checkSlots(n int) error {
	if n < 1 || n > maxSlots {
		return term.Usagef("--slots %d, want from 1 to %d", n, maxSlots)
	}
	return nil
}
