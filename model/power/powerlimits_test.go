package power

import (
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/trainyard/trainyard/internal/csvtable"
)

// windowPrefix opens the name of a window in which a limit was tried.
const windowPrefix = "__GlobalPowerLimitOptimizer_"

// ReadLimits reads what Zeus's monitor wrote while it tried one power limit after the other on the same work
// (power_limit_profiles/*.csv): columns start_time, window_name (ending in the limit in W), elapsed_time (s) and
// gpuN_energy (J) of each GPU. The power is the mean over the GPUs. Errors call the file by name.
func ReadLimits(r io.Reader, name string) (Caps, error) {
	t, err := csvtable.Open(r, "power", name)
	if err != nil {
		return nil, err
	}
	columns, gpus := []string{"start_time", "window_name", "elapsed_time"}, []string(nil)
	for _, c := range t.Header {
		if strings.HasPrefix(c, "gpu") && strings.HasSuffix(c, "_energy") {
			gpus = append(gpus, c)
		}
	}
	err = t.Only(append(columns, gpus...)...)
	if err != nil {
		return nil, err
	}
	if len(gpus) == 0 {
		return nil, t.Fail("no column gpu0_energy, want the energy of at least one GPU")
	}
	var samples []sample
	err = t.Each(func() error {
		s, wrong := limitRow(t, gpus)
		samples = append(samples, s)
		return wrong
	})
	if err != nil {
		return nil, err
	}
	c, err := capsOf(samples)
	if err != nil {
		return nil, fmt.Errorf("power: %s: %w", name, err)
	}
	return c, nil
}

func limitRow(t *csvtable.Table, gpus []string) (s sample, err error) {
	limit, ok := strings.CutPrefix(t.Raw("window_name"), windowPrefix)
	if s.limit, err = strconv.ParseFloat(limit, 64); err != nil || !ok || !(s.limit >= 1 && s.limit <= maxWatts) {
		return s, t.Fail("window_name %q, want %s and a limit in W", t.Raw("window_name"), windowPrefix)
	}
	if s.time, err = t.Number("elapsed_time", 1e-6, maxTime); err != nil {
		return s, err
	}
	for _, g := range gpus {
		joules, err := t.Number(g, 1e-6, 1e15)
		if err != nil {
			return s, err
		}
		s.power += joules / s.time / float64(len(gpus))
	}
	return s, nil
}
