//go:build nvml

package device

import (
	"reflect"
	"strings"
	"testing"

	"github.com/NVIDIA/go-nvml/pkg/nvml"
	"github.com/NVIDIA/go-nvml/pkg/nvml/mock"
)

// library is a library that knows some GPUs; one that is nil is lost.
func library(gpus ...*mock.Device) *NVML {
	return &NVML{lib: &mock.Interface{
		DeviceGetCountFunc: func() (int, nvml.Return) { return len(gpus), nvml.SUCCESS },
		DeviceGetHandleByIndexFunc: func(i int) (nvml.Device, nvml.Return) {
			if gpus[i] == nil {
				return nil, nvml.ERROR_GPU_IS_LOST
			}
			return gpus[i], nvml.SUCCESS
		},
	}}
}

// mockGPU is an A100 that reports everything if r is a success, else its name only.
func mockGPU(uuid string, r nvml.Return) *mock.Device {
	bus := nvml.PciInfo{}
	copy(bus.BusId[:], "00000000:0A:00.0")
	return &mock.Device{
		GetUUIDFunc: func() (string, nvml.Return) { return uuid, nvml.SUCCESS },
		GetNameFunc: func() (string, nvml.Return) { return "NVIDIA A100", nvml.SUCCESS },
		GetMemoryInfoFunc: func() (nvml.Memory, nvml.Return) {
			return nvml.Memory{Total: 80 << 30, Used: 1 << 30}, r
		},
		GetMemoryInfo_v2Func: func() (nvml.Memory_v2, nvml.Return) {
			return nvml.Memory_v2{Used: 512 << 20}, r
		},
		GetEnforcedPowerLimitFunc: func() (uint32, nvml.Return) { return 400_000, r },
		GetPciInfoFunc:            func() (nvml.PciInfo, nvml.Return) { return bus, r },
		GetMigModeFunc:            func() (int, int, nvml.Return) { return nvml.DEVICE_MIG_DISABLE, 0, r },
		GetUtilizationRatesFunc: func() (nvml.Utilization, nvml.Return) {
			return nvml.Utilization{Gpu: 50}, r
		},
		GetPowerUsageFunc:                   func() (uint32, nvml.Return) { return 75_310, r },
		GetTotalEnergyConsumptionFunc:       func() (uint64, nvml.Return) { return 123_456_789, r },
		GetTemperatureFunc:                  func(nvml.TemperatureSensors) (uint32, nvml.Return) { return 31, r },
		GetCurrentClocksThrottleReasonsFunc: func() (uint64, nvml.Return) { return 4, r },
		GetDisplayActiveFunc:                func() (nvml.EnableState, nvml.Return) { return nvml.FEATURE_DISABLED, r },
		GetComputeRunningProcessesFunc: func() ([]nvml.ProcessInfo, nvml.Return) {
			return []nvml.ProcessInfo{{Pid: 12, UsedGpuMemory: 256 << 20}, {Pid: 13, UsedGpuMemory: ^uint64(0)}}, r
		},
	}
}

// Ensure that what the library says is taken over in our units, that what it cannot say is unknown, and that a lost GPU
// is not there.
func TestNVML(t *testing.T) {
	n := library(mockGPU("GPU-a", nvml.SUCCESS), nil, mockGPU("GPU-b", nvml.ERROR_NOT_SUPPORTED),
		mockGPU("GPU-c", nvml.ERROR_GPU_IS_LOST))
	list, err := n.List(t.Context())
	want := []Device{{Name: "GPU-a", Type: "NVIDIA A100", MemoryGB: 80, Bus: "00000000:0A:00.0", LimitW: 400},
		{Name: "GPU-b", Type: "NVIDIA A100", Index: 2}, {Name: "GPU-c", Type: "NVIDIA A100", Index: 3}}
	if err != nil || !reflect.DeepEqual(list, want) {
		t.Errorf("%+v, %v, want %+v", list, err, want)
	}
	s, err := n.Sample(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	lost := Blank()
	lost.Lost = nvml.ERROR_GPU_IS_LOST.Error()
	readings := map[string]Reading{"GPU-a": {512, .5, 75.31, 123456.789, 31, ThrottlePowerCap, false, "", true,
		[]Process{{12, 256}, {13, Unknown}}},
		"GPU-b": Blank(), "GPU-c": lost}
	if !reflect.DeepEqual(s.Readings, readings) || s.Partial {
		t.Errorf("%+v, want %+v", s.Readings, readings)
	}
	if n.blind = true; true {
		if s, err = n.Sample(t.Context()); err != nil || s.Readings["GPU-a"].Listed {
			t.Errorf("%+v, %v, want no processes", s, err)
		}
	}
}

// Ensure that the slices of a split GPU are listed in its place and sampled next to it.
func TestNVMLSlices(t *testing.T) {
	gpu, part := mockGPU("GPU-a", nvml.SUCCESS), mockGPU("MIG-1", nvml.SUCCESS)
	gpu.GetMigModeFunc = func() (int, int, nvml.Return) { return nvml.DEVICE_MIG_ENABLE, 0, nvml.SUCCESS }
	gpu.GetMaxMigDeviceCountFunc = func() (int, nvml.Return) { return 7, nvml.SUCCESS }
	gpu.GetMigDeviceHandleByIndexFunc = func(i int) (nvml.Device, nvml.Return) {
		if i == 2 {
			return part, nvml.SUCCESS
		}
		return nil, nvml.ERROR_NOT_FOUND
	}
	part.GetNameFunc = func() (string, nvml.Return) { return "NVIDIA A100 MIG 1g.10gb", nvml.SUCCESS }
	n := library(gpu)
	list, err := n.List(t.Context())
	if want := []Device{{Name: "MIG-1", Type: "NVIDIA A100 MIG 1g.10gb", MemoryGB: 80, Bus: "00000000:0A:00.0",
		Slice: "1g.10gb"}}; err != nil || !reflect.DeepEqual(list, want) {
		t.Errorf("%+v, %v, want %+v", list, err, want)
	}
	if s, err := n.Sample(t.Context()); err != nil || len(s.Readings) != 2 || s.Readings["MIG-1"].UsedMiB != 512 {
		t.Errorf("%+v, %v", s, err)
	}
}

// Ensure that a library that fails says so.
func TestNVMLFails(t *testing.T) {
	n := library()
	n.lib.(*mock.Interface).DeviceGetCountFunc = func() (int, nvml.Return) { return 0, nvml.ERROR_DRIVER_NOT_LOADED }
	n.lib.(*mock.Interface).ErrorStringFunc = func(nvml.Return) string { return "" }
	for _, err := range []error{second(n.List(t.Context())), second(n.Sample(t.Context()))} {
		if err == nil || !strings.Contains(err.Error(), "nvml: count of GPUs: ") {
			t.Errorf("%v, want the count named", err)
		}
	}
	if b, found := Find(t.Context()); found { // on a machine with a GPU
		if _, err := b.Sample(t.Context()); err != nil {
			t.Error(err)
		}
	}
}

func second[T any](_ T, err error) error { return err }
