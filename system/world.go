package system

import (
	"errors"
	"io"
	"math"
	"time"

	"github.com/trainyard/trainyard/model/skew"
	"github.com/trainyard/trainyard/model/variability"
	"github.com/trainyard/trainyard/system/key"
)

// The keys of the simulated world. No system reads them.
var (
	RestartAtFirst = key.Switch("yes", "no", "restart_at_first", "no",
		"yes: at its first start as well").Only(key.Simulation)
	StartDelay = key.Seconds("start_delay", "0",
		"seconds between the order to start and the job being up").Only(key.Simulation)
	StopDelay = key.Seconds("stop_delay", "0",
		"seconds between the order to stop and the GPUs being free").Only(key.Simulation)
	BootDelay = key.Seconds("boot_delay", "0", "seconds a node takes to boot that sleeps, "+
		"or is rented for a system that rents although the cluster names no pools").Only(key.Simulation)
	CheckpointInterval = key.Seconds("checkpoint_interval", "600",
		"seconds between periodic checkpoints: what a node failure can cost; 0 = nothing is lost").Only(key.Simulation)
	InterferenceNoise = key.NumberTo(10, "interference_noise", "0",
		"with --interference: deviation of the logarithm of a factor on "+
			"the slow-down of each job in each company").Only(key.Simulation)
	InterferenceSeed = key.Int("interference_seed", "0",
		"with --interference: seed of these factors").Only(key.Simulation)
	SpreadPenalty = key.NumberTo(MostSlowdown, "spread_penalty", formatted(skew.Penalty),
		"slow-down of a gang on more nodes than it needs, per unit of its model's skew").Only(key.Simulation)
	SlowGPUs = key.FromFile("slow_gpus", "FILE with gpu,from_s,to_s,factor: GPUs, by number from 0, that take factor "+
		"times as long "+
		"for a while; only stragglers=oracle knows it", "table of slow GPUs", "a file with gpu,from_s,to_s,factor",
		readSpells).
		Only(key.Simulation)
	ReportInterval = key.New("report_interval", "0",
		"seconds between reports of jobs on their progress, from which "+
			"stragglers=watch learns; 0 = only changes of speed are reported, at once", readInterval).
		Only(key.Simulation)
	ReportNoise = key.NumberTo(10, "report_noise", "0",
		"deviation of the logarithm of the speed that a report gives, such as 0.02").
		Only(key.Simulation)
)

// World are the keys of the simulated world, Beliefs among them, which every system takes there.
var World = key.List{RestartOverhead.Key, RestartAtFirst.Key, StartDelay.Key, StopDelay.Key, BootDelay.Key,
	CheckpointInterval.Key,
	LocalityPenalty.Key, Classes.Key, Locality.Key, InterferenceNoise.Key, InterferenceSeed.Key, SpreadPenalty.Key,
	SlowGPUs.Key,
	ReportInterval.Key, ReportNoise.Key}

// readInterval reads the time between reports: each is an event of each job that runs.
func readInterval(text string) (time.Duration, error) {
	d, err := key.ParseSeconds(text, "")
	if err != nil || d > 0 && d < 100*time.Millisecond {
		return 0, errors.New("0, or a number of seconds from 0.1 to a century")
	}
	return d, nil
}

func readSpells(data io.Reader, path string, about key.About) ([]variability.Spell, error) {
	return variability.ReadSpells(data, path, about.GPUs)
}

// inf and never are no limits.
var inf = math.Inf(1)

const never time.Duration = math.MaxInt64
