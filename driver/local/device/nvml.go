//go:build nvml

package device

import (
	"bytes"
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/NVIDIA/go-nvml/pkg/nvml"

	"github.com/trainyard/trainyard/sched"
)

// NVML are the GPUs that NVIDIA's management library lists, in the order of their PCI addresses. It is faster than
// nvidia-smi, knows the energy counter and what MIG slices do. A call that hangs cannot be ended: see Sampler.
type NVML struct {
	nvidia
	lib   nvml.Interface // initialised
	blind bool           // the pids it gives are not of our pid namespace: the processes are not named
}

var _ Backend = (*NVML)(nil)

// Find returns the GPUs of this machine, if there are any: by NVML, or by nvidia-smi where there is no NVML.
func Find(ctx context.Context) (Backend, bool) {
	n := &NVML{lib: nvml.New(), blind: foreignPIDs()}
	if n.lib.Init() != nvml.SUCCESS {
		return FindSMI(ctx)
	}
	list, err := n.List(ctx)
	return n, err == nil && len(list) > 0
}

// List returns the GPUs, and of those that are split the MIG slices instead. A GPU that is lost is left out.
func (n *NVML) List(context.Context) (list []Device, err error) {
	err = n.each(func(i int, h nvml.Device) error {
		var d Device
		d, err := describe(h)
		if err != nil {
			return fmt.Errorf("nvml: GPU %d: %w", i, err)
		}
		d.Index = i
		parts, split := slicesOf(h)
		if !split {
			list = append(list, d)
			return nil
		}
		for _, part := range parts {
			s, err := describe(part)
			if err != nil {
				return fmt.Errorf("nvml: slice of GPU %d: %w", i, err)
			}
			_, s.Slice, _ = strings.Cut(s.Type, " MIG ")
			s.Index, s.Bus, s.LimitW = i, d.Bus, 0
			list = append(list, s)
		}
		return nil
	})
	if err == nil {
		err = unique(list)
	}
	return list, err
}

// each calls f for every GPU that answers.
func (n *NVML) each(f func(i int, h nvml.Device) error) error {
	count, r := n.lib.DeviceGetCount()
	if r != nvml.SUCCESS {
		return fmt.Errorf("nvml: count of GPUs: %w", r)
	}
	for i := range count {
		h, r := n.lib.DeviceGetHandleByIndex(i)
		switch {
		case r == nvml.ERROR_GPU_IS_LOST:
			continue
		case r != nvml.SUCCESS:
			return fmt.Errorf("nvml: GPU %d: %w", i, r)
		}
		if err := f(i, h); err != nil {
			return err
		}
	}
	return nil
}

// describe returns what is fixed of a GPU or a slice.
func describe(h nvml.Device) (d Device, err error) {
	var r nvml.Return
	if d.Name, r = h.GetUUID(); r != nvml.SUCCESS {
		return d, fmt.Errorf("UUID: %w", r)
	}
	if d.Type, r = h.GetName(); r != nvml.SUCCESS {
		return d, fmt.Errorf("name: %w", r)
	}
	if m, r := h.GetMemoryInfo(); r == nvml.SUCCESS {
		d.MemoryGB = float32(float64(m.Total) / (1 << 30))
	}
	if w, r := h.GetEnforcedPowerLimit(); r == nvml.SUCCESS {
		d.LimitW = sched.Watts(w) / 1000
	}
	if p, r := h.GetPciInfo(); r == nvml.SUCCESS {
		text, _, _ := bytes.Cut(p.BusId[:], []byte{0})
		d.Bus = string(text)
	}
	return d, nil
}

// slicesOf returns the MIG slices of a GPU, and whether it is split at all.
func slicesOf(h nvml.Device) (list []nvml.Device, split bool) {
	mode, _, r := h.GetMigMode()
	if r != nvml.SUCCESS || mode != nvml.DEVICE_MIG_ENABLE {
		return nil, false
	}
	count, r := h.GetMaxMigDeviceCount()
	if r != nvml.SUCCESS {
		return nil, true
	}
	for i := range count {
		if part, r := h.GetMigDeviceHandleByIndex(i); r == nvml.SUCCESS {
			list = append(list, part)
		}
	}
	return list, true
}

// Sample asks each GPU what it does. What one cannot say is Unknown.
func (n *NVML) Sample(ctx context.Context) (*Sample, error) {
	s := &Sample{Readings: make(map[string]Reading)}
	err := n.each(func(_ int, h nvml.Device) error {
		all := []nvml.Device{h}
		if parts, split := slicesOf(h); split {
			all = append(all, parts...)
		}
		for _, h := range all {
			if uuid, r := h.GetUUID(); r == nvml.SUCCESS {
				s.Readings[uuid] = n.read(h)
			} else {
				s.Partial = true
			}
		}
		return ctx.Err()
	})
	s.At = time.Now()
	return s, err
}

// read returns what a GPU or a slice does. Each figure may be missing on its own.
func (n *NVML) read(h nvml.Device) Reading {
	x := Blank()
	x.UsedMiB = used(h)
	if u, r := h.GetUtilizationRates(); r == nvml.SUCCESS {
		x.Use = min(float64(u.Gpu)/100, 1)
	}
	if mw, r := h.GetPowerUsage(); r == nvml.SUCCESS {
		x.Watts = float64(mw) / 1000
	}
	if mj, r := h.GetTotalEnergyConsumption(); r == nvml.SUCCESS {
		x.Joules = float64(mj) / 1000
	}
	c, r := h.GetTemperature(nvml.TEMPERATURE_GPU)
	switch r {
	case nvml.SUCCESS:
		x.Celsius = float64(c)
	case nvml.ERROR_GPU_IS_LOST, nvml.ERROR_RESET_REQUIRED:
		x.Lost = r.Error()
	}
	if bits, r := h.GetCurrentClocksThrottleReasons(); r == nvml.SUCCESS {
		x.Throttle = Throttle(bits)
	}
	if on, r := h.GetDisplayActive(); r == nvml.SUCCESS {
		x.Display = on == nvml.FEATURE_ENABLED
	}
	if !n.blind {
		x.Processes, x.Listed = processesOn(h)
	}
	return x
}

// used returns the memory in use, in MiB. The first version of the call counts what the driver reserves as used, some
// hundred MiB; it is the fallback.
func used(h nvml.Device) float64 {
	if m, r := h.GetMemoryInfo_v2(); r == nvml.SUCCESS {
		return float64(m.Used) / (1 << 20)
	}
	if m, r := h.GetMemoryInfo(); r == nvml.SUCCESS {
		return float64(m.Used) / (1 << 20)
	}
	return Unknown
}

// processesOn returns the processes that compute. Those that only draw, as a desktop does, keep no one from computing.
func processesOn(h nvml.Device) ([]Process, bool) {
	infos, r := h.GetComputeRunningProcesses()
	if r != nvml.SUCCESS {
		return nil, false
	}
	list := make([]Process, len(infos))
	for i, p := range infos {
		list[i] = Process{int(p.Pid), Unknown}
		if p.UsedGpuMemory != ^uint64(0) { // NVML_VALUE_NOT_AVAILABLE
			list[i].MiB = float64(p.UsedGpuMemory) / (1 << 20)
		}
	}
	return list, true
}
