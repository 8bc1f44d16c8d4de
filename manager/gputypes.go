package manager

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/trainyard/trainyard/attempt/task"
	"github.com/trainyard/trainyard/driver/local/device"
	"github.com/trainyard/trainyard/manager/jobfile"
	"github.com/trainyard/trainyard/sched"
	"github.com/trainyard/trainyard/system"
)

// asSold is the part that a GPU has at least of the memory it is sold with: a T4 of 16 GB has 15 GiB for programs.
const asSold = 0.93

// gpuKind is the GPUs of one type.
type gpuKind struct {
	name     string
	count    int
	memoryGB float32 // of the one with the least; 0 = unknown
}

// gpuKinds are the GPUs of a list by type.
func gpuKinds(types []string, list []device.Device) []gpuKind {
	kinds := make([]gpuKind, len(types))
	for t, name := range types {
		k := &kinds[t]
		k.name = name
		for i := range list {
			if list[i].Type != name {
				continue
			}
			if k.count++; k.count == 1 || list[i].MemoryGB < k.memoryGB {
				k.memoryGB = list[i].MemoryGB
			}
		}
	}
	return kinds
}

// meets reports whether such GPUs have the name and the memory that a job asks for.
func (k *gpuKind) meets(spec *sched.JobSpec, t *task.Task) bool {
	if k.name == device.SlotType { // it is no GPU: the memory of the machine is counted elsewhere
		return len(t.GPUTypes) == 0
	}
	return t.TakesGPU(k.name) && (k.memoryGB == 0 || k.memoryGB >= spec.GPUMemGB*asSold)
}

// String says how many of them there are, and what they are.
func (k gpuKind) String() string {
	switch {
	case k.name == device.SlotType:
		return fmt.Sprintf("%d slots and no GPU", k.count)
	case k.memoryGB > 0:
		return fmt.Sprintf("%d x %s (%s GB)", k.count, k.name, gigabytes(k.memoryGB))
	}
	return fmt.Sprintf("%d x %s", k.count, k.name)
}

// choosy reports whether a job takes some GPUs alone.
func choosy(j jobfile.Job) bool { return len(j.Task.GPUTypes) > 0 || j.Spec.GPUMemGB > 0 }

// typed returns jobs that take the types of GPUs which have the names and the memory that they ask for; ErrRefused
// says what there is where that will not do.
func (o *Options) typed(types []string, list []device.Device, jobs []jobfile.Job) ([]jobfile.Job, error) {
	info, err := system.Named(o.System)
	if err != nil {
		return nil, err
	}
	kinds := gpuKinds(types, list)
	jobs = slices.Clone(jobs)
	for i := range jobs {
		j := &jobs[i]
		if j.Spec.Types = 0; !choosy(*j) {
			continue
		}
		least, most, all := int(j.Spec.GPUs.Want), 0, true
		if info.Batches { // it chooses widths as well
			least = int(j.Spec.GPUs.Min)
		}
		for t := range kinds {
			if k := &kinds[t]; k.meets(&j.Spec, &j.Task) {
				j.Spec.Types, most = j.Spec.Types.With(sched.TypeID(t)), max(most, k.count)
			} else {
				all = false
			}
		}
		if most < least {
			return nil, fmt.Errorf("%w: job %s needs %d GPU%s%s, there are %s: it would never start", ErrRefused,
				j.Spec.Name, least, "s"[min(1, 1/least):], wantedOf(j), joined(kinds))
		}
		if all {
			j.Spec.Types = 0
		}
	}
	return jobs, nil
}

// wantedOf says which GPUs a job asks for.
func wantedOf(j *jobfile.Job) (text string) {
	if len(j.Task.GPUTypes) > 0 {
		text = " of gpu_type " + strings.Join(j.Task.GPUTypes, " or ")
	}
	if j.Spec.GPUMemGB > 0 {
		text += " with gpu_memory_gb " + gigabytes(j.Spec.GPUMemGB)
	}
	return text
}

// joined lists the GPUs that there are.
func joined(kinds []gpuKind) string {
	var parts []string
	for _, k := range kinds {
		if k.count > 0 {
			parts = append(parts, k.String())
		}
	}
	if len(parts) == 0 {
		return "none"
	}
	return strings.Join(parts, ", ")
}

// typed is that of Options for the GPUs there are by now.
func (m *Manager) typed(ctx context.Context, jobs []jobfile.Job) ([]jobfile.Job, error) {
	if !slices.ContainsFunc(jobs, choosy) {
		return jobs, nil
	}
	var list []device.Device
	for _, s := range m.Devices() {
		if s.State != sched.GPUForgotten {
			list = append(list, s.Device)
		}
	}
	if len(list) == 0 { // nothing was looked at so far
		var err error
		if list, err = m.o.Devices.List(ctx); err != nil {
			return nil, fmt.Errorf("manager: devices: %w", err)
		}
	}
	return m.o.typed(m.Header().Types, list, jobs)
}
