package system

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/trainyard/trainyard/model/checkpoint"
	"github.com/trainyard/trainyard/model/restart"
	"github.com/trainyard/trainyard/model/skew"
	"github.com/trainyard/trainyard/model/variability"
	"github.com/trainyard/trainyard/sched"
	"github.com/trainyard/trainyard/system/key"
)

// The keys that every system takes.
var (
	Placement = key.Choice("placement", "consolidate", "exact GPUs: count, consolidate, packed, yarn or skew",
		"count", "consolidate", "packed", "yarn", "skew")
	PackLimit = key.New("pack_limit", formatted(skew.PackLimit),
		"placement skew: share of the largest tensor above which a model is consolidated, or learned", parsePackLimit)
	Profiles = key.FromFiles("profiles",
		"MODEL=FILE,...: logs of tensor or message sizes, or checkpoints, that show the skew of models (default: "+
			"published ones)",
		"a log of tensor or message sizes, or a checkpoint", profileNames, readProfiles)
	MinRun = key.New("min_run", "0", "seconds during which a started job cannot be preempted; "+
		"auto = 300, or ten times what its restart costs if that is longer", parseMinRun).Lives(AutoMinRun)
	PreemptLimit = key.Int("preempt_limit", "0",
		"times that a job may be stopped for others within an hour; 0 = any number").
		Lives(strconv.Itoa(restart.DefaultRails.PerHour))
	Unsaved = key.Choice("unsaved", sched.StopUnsaved.String(),
		"jobs of which nothing shows that they save: stop = they are stopped like others, leave = they are not "+
			"stopped, moved or resized for others",
		sched.StopUnsaved.String(), sched.LeaveUnsaved.String()).LivesSince(2, sched.LeaveUnsaved.String())
	LossRail = key.Switch("on", "off", "loss_rail", "off", "on = a job that lost work to others is not stopped for "+
		"others again before an attempt has done twice as much").LivesSince(2, "on")
	KeepFree = key.Switch("on", "off", "keep_free", "off", "unsaved=leave: on = GPUs are kept for the first job that "+
		"does not fit: none that may not be stopped takes them").LivesSince(2, "on")
	UserLimit = key.Int("user_limit", "0", "GPUs one user may hold at a time; 0 = no limit")
	Priority  = key.Choice("priority", PriorityOwn,
		"priorities of jobs: own = as the system has them, classes = who waits goes by priority first, then by the "+
			"system's own order, ignore = they play no part",
		PriorityOwn, PriorityClasses, PriorityIgnored).LivesSince(3, PriorityClasses)
	PriorityAge = key.Seconds("priority_age", formatted(DefaultAge.Seconds()),
		"priority=classes: seconds of waiting that lift a job by a class, a hundred times at most; 0 = none do")
	PriorityPreempts = key.Switch("yes", "no", "priority_preempts", "no",
		"priority=classes: yes = running jobs give way to a higher class, no = only where the system's own order says "+
			"so, and to no lower class")
)

// Values of the key priority.
const (
	PriorityOwn     = "own"
	PriorityClasses = "classes"
	PriorityIgnored = "ignore"
)

// DefaultAge is that of the key priority_age. Ours.
const DefaultAge = 24 * time.Hour

// Common are the keys that every system takes.
var Common = key.List{Placement.Key, PackLimit.Key, Profiles.Key, MinRun.Key, PreemptLimit.Key, Unsaved.Key,
	LossRail.Key, KeepFree.Key, UserLimit.Key, Priority.Key, PriorityAge.Key, PriorityPreempts.Key}

// The keys of what provides nodes. A machine has its own GPUs.
var (
	Provide = key.Choice("provision", "follow", "where nodes may be rented: follow the demand, or reserve", "follow",
		"reserve").
		Only(rented)
	Reserve = key.Int("reserve", "0", "provision reserve: GPUs rented at all times").Only(rented)
	MaxGPUs = key.Int("max_gpus", "0", "provision follow: GPUs wanted at most; 0 = what the pools allow").Only(rented)
	Keep    = key.Seconds("keep", "0", "provision follow: seconds a node that is not needed is kept before it is let "+
		"go").Only(rented)
	Caps = key.New("power_cap", "off", "power caps: off, WATTS as in 150W, "+
		"or the slow-down from 1 on up to which the cap of least energy is taken", parseCap).Only(rented)
	Sleep = key.New("sleep", "inf", "seconds after which an idle node is put to sleep while no job waits; inf = never",
		parseSleep).
		Only(rented)
)

// rented are the places where nodes may come and go.
const rented = key.Simulation | key.Cluster

// Provisioning are the keys of what provides nodes, which every system takes in addition to its own and Common.
var Provisioning = key.List{Provide.Key, Reserve.Key, MaxGPUs.Key, Keep.Key, Caps.Key, Sleep.Key}

// MostSlowdown is the most by which distance, spread, company or a report may slow a job: beyond it the times of a
// simulation lose their meaning.
const MostSlowdown = 1_000_000

// The keys of what restarts and distance are taken to cost by the systems that use it. In a simulation that is also the
// truth.
var (
	RestartOverhead = key.ByModel(DefaultRestart, "restart_overhead", formatted(DefaultRestart.Seconds()),
		"seconds a job holds its GPUs without progress at every start but its first; or MODEL=SECONDS,...,SECONDS, "+
			"the last for other models")
	LocalityPenalty = key.NumberTo(MostSlowdown, "locality_penalty", "1",
		"time of an iteration of a gang on several nodes over that on one (default with --variability: 1.7)").
		WithScores(formatted(variability.PublishedAcross))
	Classes = key.FromFile("classes", "of jobs: stated (else as published of models); FILE with model,class or with "+
		"profiles; "+
		"observed = concluded from how fast jobs run", "class map", "a file with model,class or with profiles",
		readClasses).
		Or(StatedClasses, ObservedClasses)
	Locality = key.FromFile("locality", "FILE with model_or_class,gpus_min,level,penalty: the same by model or "+
		"class, GPUs "+
		"and distance (node, rack, across); what it leaves open is locality_penalty",
		"locality", "a file with model_or_class,gpus_min,level,penalty", readLocality)
)

// Beliefs are the keys of what restarts and distance cost.
var Beliefs = key.List{RestartOverhead.Key, LocalityPenalty.Key, Classes.Key, Locality.Key}

// Values of the key classes that name no file: what jobs say of themselves, else what was published of their models; or
// what follows from how fast jobs run.
const (
	StatedClasses   = "stated"
	ObservedClasses = "observed"
)

// DefaultRestart is what a restart costs unless the key restart_overhead says otherwise. Source: Gu et al., NSDI'19,
// section 5.2.4 as quoted by Lucid's source: 13,724 s over 221 preemptions.
const DefaultRestart = 62 * time.Second

// formatted is a default as it is written.
func formatted(x float64) string { return strconv.FormatFloat(x, 'g', -1, 64) }

// packLimit is the value of the key pack_limit.
type packLimit struct {
	learned bool
	limit   float64
}

func parsePackLimit(text string) (p packLimit, err error) {
	if text == "learned" {
		return packLimit{learned: true}, nil
	}
	p.limit, err = key.ParseNumber(inf, "a number >= 0, or learned")(text)
	return p, err
}

// AutoMinRun is the value of the key min_run that follows what restarts cost.
const AutoMinRun = "auto"

// minRun is the value of the key min_run.
type minRun struct {
	auto  bool
	least time.Duration
}

func parseMinRun(text string) (m minRun, err error) {
	if text == AutoMinRun {
		return minRun{auto: true}, nil
	}
	m.least, err = key.ParseSeconds(text, ", or auto")
	return m, err
}

// powerCap is the value of the key power_cap: its zero value is off.
type powerCap struct {
	watts float64 // of every GPU
	slow  float64 // the slow-down up to which the cap of least energy is taken
}

func parseCap(text string) (powerCap, error) {
	text = strings.TrimSpace(text)
	if text == "off" {
		return powerCap{}, nil
	}
	number, fixed := strings.CutSuffix(text, "W")
	x, err := strconv.ParseFloat(number, 64)
	if err != nil || !(x > 0 && x <= 1e6) || !fixed && x < 1 {
		return powerCap{}, errors.New("off, WATTS as in 150W, or a slow-down >= 1")
	}
	if fixed {
		return powerCap{watts: x}, nil
	}
	return powerCap{slow: x}, nil
}

// parseSleep reads a time; never where it is inf.
func parseSleep(text string) (time.Duration, error) {
	x, err := key.ParseNumber(inf, "a number >= 0 or inf")(text)
	if err != nil || x == inf {
		return never, err
	}
	return key.ParseSeconds(text, "")
}

// profileNames lists the files of MODEL=FILE,....
func profileNames(value string) (files []key.Name, err error) {
	for _, part := range strings.Split(value, ",") {
		model, path, ok := strings.Cut(strings.TrimSpace(part), "=")
		twice := slices.ContainsFunc(files, func(f key.Name) bool { return f.Of == model })
		if !ok || model == "" || path == "" || twice {
			return nil, errors.New("MODEL=FILE,... such as vgg16=vgg16.log, each model once")
		}
		files = append(files, key.Name{What: "profile of " + model, Of: model, Path: path})
	}
	return files, nil
}

// readProfiles returns the skew of models by their logs or checkpoints, and of others as published.
func readProfiles(files []key.File, _ key.About) (func(model string) (float64, bool), error) {
	skews := make(map[string]float64)
	for _, f := range files {
		profile, err := readProfile(f)
		if err != nil {
			return nil, err
		}
		skews[f.Of] = profile.Skew()
	}
	return func(model string) (float64, bool) {
		if x, ok := skews[model]; ok {
			return x, true
		}
		return skew.Of(model)
	}, nil
}

// readProfile reads a checkpoint, which shows in its first bytes, or a log.
func readProfile(f key.File) (skew.Profile, error) {
	var head [9]byte
	data, size, random := f.Random()
	if random {
		if n, _ := data.ReadAt(head[:], 0); !checkpoint.Is(head[:n], size) {
			random = false
		}
	}
	if !random {
		return skew.ParseLog(f.Data, f.Path)
	}
	tensors, err := checkpoint.Read(data, size, f.Path)
	if err != nil {
		return skew.Profile{}, err
	}
	profile, err := checkpoint.Profile(tensors)
	if err != nil {
		err = fmt.Errorf("profiles: %s: %w", f.Path, err)
	}
	return profile, err
}

// readClasses reads a map of models among the classes of the scores.
func readClasses(data io.Reader, path string, about key.About) (*variability.ClassMap, error) {
	if about.Classes == nil {
		return nil, key.Missing("classes", path, "there are no classes without scores of GPUs; give --variability")
	}
	return variability.ReadClassMap(data, path, about.Classes)
}

// readLocality reads a table of penalties. It must leave nothing open unless locality_penalty is given, which fills
// that in.
func readLocality(data io.Reader, path string, about key.About) (*variability.Locality, error) {
	l, err := variability.ReadLocality(data, path)
	if err != nil {
		return nil, err
	}
	if _, filled := about.Given["locality_penalty"]; !filled && !l.Whole() {
		return nil, fmt.Errorf("variability: %s: nothing is said of models and classes that are not named, want a "+
			"row *,1,across,PENALTY, "+
			"or the key locality_penalty", path)
	}
	return &l, nil
}

// commas is a list as it is written.
func commas(list []float64) string {
	texts := make([]string, len(list))
	for i, x := range list {
		texts[i] = formatted(x)
	}
	return strings.Join(texts, ",")
}
