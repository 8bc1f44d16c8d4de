package simulate

import (
	"fmt"
	"io/fs"
	"maps"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/trainyard/trainyard/cli/term"
	"github.com/trainyard/trainyard/eventlog"
	"github.com/trainyard/trainyard/sched"
	"github.com/trainyard/trainyard/simulate"
	"github.com/trainyard/trainyard/system"
	"github.com/trainyard/trainyard/trace"
)

// presetWarnings says in what the request departs from the set-up that its preset reproduces.
func (c *comparison) presetWarnings() []string {
	p := simulate.PresetNamed(c.shared.Preset)
	if p == nil {
		return nil
	}
	var list []string
	warn := func(format string, args ...any) {
		text := "preset " + p.Name + ": " + fmt.Sprintf(format, args...) + ": figures are not comparable"
		if !slices.Contains(list, text) {
			list = append(list, text)
		}
	}
	for i := range c.shared.Cluster.Nodes {
		if n := c.shared.Cluster.Nodes[i].GPUs; p.NodeGPUs > 0 && n != p.NodeGPUs {
			warn("nodes have %s, the published set-up has %d", term.Counted(n, "GPU"), p.NodeGPUs)
		}
	}
	for i := range c.runs {
		sim := &c.runs[i].request
		wants := presetValues(p, sim.System)
		for _, key := range slices.Sorted(maps.Keys(sim.Settings)) {
			if want, ok := wants[key]; ok && !sameValue(sim.Settings[key], want) {
				warn("%s.%s=%s differs from the preset (%s)", sim.System, key, sim.Settings[key], want)
			}
		}
	}
	return list
}

// presetValues returns the keys that are part of the set-up, with the values that the preset gives them. Keys of a
// system's own are its parameters, which a preset leaves to the request.
func presetValues(p *simulate.PresetInfo, name string) map[string]string {
	values := make(map[string]string)
	if info, err := system.Named(name); err == nil {
		for _, k := range slices.Concat(info.CommonKeys(), info.ProvisioningKeys(), simulate.RuntimeKeys) {
			values[k.Name] = k.Default
		}
	}
	maps.Copy(values, p.Defaults(name))
	return values
}

// sameValue reports whether two values of a key mean the same.
func sameValue(a, b string) bool {
	a, b = strings.TrimSpace(a), strings.TrimSpace(b)
	x, errA := strconv.ParseFloat(a, 64)
	y, errB := strconv.ParseFloat(b, 64)
	return a == b || errA == nil && errB == nil && x == y
}

// kindsWarning says that profiles are of one type of GPU, where the cluster has several; nil: no warning.
func (c *comparison) kindsWarning() []string {
	path, types := c.shared.From.Apps, c.shared.Cluster.Types
	if path == "" || len(types) < 2 {
		return nil
	}
	return []string{fmt.Sprintf("--profiles %s has one speed by width and batch size for all types of GPU, the "+
		"cluster has %s: jobs go as fast on each of them, and to those with room", path, strings.Join(types, ", "))}
}

// suffixWarning says that times of one type of GPU are not read; nil: no warning.
func (c *comparison) suffixWarning() []string {
	path := c.shared.From.Apps
	files, err := fs.Glob(os.DirFS(path), "*/placements-*.csv")
	if path == "" || err != nil || len(files) == 0 {
		return nil
	}
	return []string{fmt.Sprintf("--profiles %s: %s and the like (%d in all) are of one type of GPU each, and are not "+
		"read: all types go by placements.csv", path, files[0], len(files))}
}

// priorityWarning says that worth counts steps of priority up to a bound; nil: no warning.
func (c *comparison) priorityWarning() []string {
	most := int32(0)
	for i := range c.runs {
		most = max(most, system.MostPriority(&eventlog.Header{System: c.runs[i].request.System,
			Settings: c.runs[i].request.Settings}))
	}
	if most == 0 {
		return nil
	}
	jobs := c.shared.Trace.Jobs
	i := slices.IndexFunc(jobs, func(j trace.Job) bool { return max(j.Spec.Priority, -j.Spec.Priority) > most })
	if i < 0 {
		return nil
	}
	return []string{fmt.Sprintf("%s: job %d: priority %d, worth counts those beyond %d as %[4]d, and below -%[4]d as "+
		"-%[4]d", c.shared.From.Trace, i, jobs[i].Spec.Priority, most)}
}

// preemptWarning says that jobs ask not to be stopped for others, at which systems set to unsaved=stop do not look;
// nil: no warning.
func (c *comparison) preemptWarning() []string {
	if c.shared.Preset != "" || !slices.ContainsFunc(c.runs, func(r systemRun) bool {
		return system.StopsAny(&eventlog.Header{System: r.request.System, Settings: r.request.Settings})
	}) {
		return nil
	}
	n := 0
	for i := range c.shared.Trace.Jobs {
		if c.shared.Trace.Jobs[i].Spec.Preempt == sched.NeverPreempt {
			n++
		}
	}
	if n == 0 {
		return nil
	}
	says := "say"
	if n == 1 {
		says = "says"
	}
	return []string{fmt.Sprintf("%s: %s %s preemptible=false, which plays no part under unsaved=stop; "+
		"--set '*.unsaved=leave' obeys it, as serve does", c.shared.From.Trace, term.Counted(n, "job"), says)}
}

// rigidWarning says that profiles of widths were given for jobs that take one width each; nil: no warning.
func (c *comparison) rigidWarning() []string {
	path := c.shared.From.Apps
	if path == "" || slices.ContainsFunc(c.shared.Trace.Jobs, func(j trace.Job) bool {
		return j.Spec.GPUs.Min < j.Spec.GPUs.Max
	}) {
		return nil
	}
	return []string{fmt.Sprintf("%s: no job has a range of GPUs, so that --profiles %s widens and narrows "+
		"none; jobs of a trace of the format pollux have one", c.shared.From.Trace, path)}
}
