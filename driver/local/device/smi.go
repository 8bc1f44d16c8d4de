package device

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"time"
)

// SMI are the GPUs that nvidia-smi lists, in the order of their PCI addresses. Each question is a short-lived process
// of its own; nvidia-smi answers one question per process, so that a sample takes two.
type SMI struct {
	nvidia
	Command  string        // path of nvidia-smi
	Patience time.Duration // how long a question may take; 0 = 20 s: a driver in trouble lets it hang for ever
	Blind    bool          // the pids it gives are not of our pid namespace: the processes are not named

	mu     sync.Mutex
	absent []string          // columns that this nvidia-smi does not know
	buses  map[string]string // UUID by PCI address, of those last listed or sampled
	parts  []slice           // as last listed
}

var _ Backend = (*SMI)(nil)

// Columns of nvidia-smi; see `nvidia-smi --help-query-gpu`. Drivers from 535 on call the throttle reasons by another
// name and still know this one; where they do not, they are not named.
var (
	listColumns   = []string{"uuid", "name", "index", "pci.bus_id", "memory.total", "power.limit", "mig.mode.current"}
	sampleColumns = []string{"uuid", "pci.bus_id", "memory.used", "utilization.gpu", "power.draw", "temperature.gpu",
		"clocks_throttle_reasons.active", "display_active"}
	appColumns = []string{"gpu_uuid", "pid", "used_memory"}
)

// FindSMI returns the GPUs of this machine, if it has nvidia-smi and that finds any.
func FindSMI(ctx context.Context) (*SMI, bool) {
	path, err := exec.LookPath("nvidia-smi")
	if err != nil {
		return nil, false
	}
	s := &SMI{Command: path, Blind: foreignPIDs()}
	list, err := s.List(ctx)
	return s, err == nil && len(list) > 0
}

// List returns the GPUs, and of those that are split the MIG slices instead.
func (s *SMI) List(ctx context.Context) ([]Device, error) {
	t, err := s.query(ctx, "gpu", listColumns)
	if err != nil {
		return nil, err
	}
	list, split, err := t.devices()
	if err != nil {
		return nil, fmt.Errorf("nvidia-smi: %w", err)
	}
	s.know(t)
	if len(split) == 0 {
		return list, nil
	}
	text, err := s.run(ctx, "-L")
	if err != nil {
		return nil, err
	}
	parts, err := parseSlices(text)
	if err != nil {
		return nil, fmt.Errorf("nvidia-smi -L: %w", err)
	}
	s.mu.Lock()
	s.parts = parts
	s.mu.Unlock()
	return replaced(list, split, parts), nil
}

// Sample asks what the GPUs do, then which processes are on them. Of a MIG slice it says no more than that it is there:
// nvidia-smi has figures of whole GPUs only.
func (s *SMI) Sample(ctx context.Context) (*Sample, error) {
	t, err := s.query(ctx, "gpu", sampleColumns)
	if err != nil {
		return nil, err
	}
	readings, err := t.readings()
	if err != nil {
		return nil, fmt.Errorf("nvidia-smi: %w", err)
	}
	s.know(t)
	partial := len(t.lost) > 0 || t.code != nil
	for _, l := range t.lost {
		if uuid := s.at(l.bus); uuid != "" {
			r := Blank()
			r.Lost = l.text
			readings[uuid] = r
		}
	}
	err = s.processes(ctx, readings)
	s.addSlices(readings)
	return &Sample{At: time.Now(), Readings: readings, Partial: partial}, err
}

// processes adds the processes that compute.
func (s *SMI) processes(ctx context.Context, readings map[string]Reading) error {
	if s.Blind {
		return nil
	}
	apps, err := s.query(ctx, "compute-apps", appColumns)
	if err != nil {
		return err
	}
	if err = apps.processes(readings); err != nil {
		return fmt.Errorf("nvidia-smi: %w", err)
	}
	return nil
}

// addSlices adds the slices of the GPUs that were reported.
func (s *SMI) addSlices(readings map[string]Reading) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, p := range s.parts {
		if gpu, known := readings[p.gpu]; known {
			r := Blank()
			r.Lost = gpu.Lost
			readings[p.uuid] = r
		}
	}
}

// know remembers which GPU has which address: of one that is lost only the address is reported.
func (s *SMI) know(t *table) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.buses == nil {
		s.buses = make(map[string]string)
	}
	maps.Copy(s.buses, t.buses())
}

// at returns the UUID of the GPU at an address; "" = unknown.
func (s *SMI) at(bus string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.buses[shortBus(bus)]
}

// query returns the table of a question. Columns that this nvidia-smi does not know are left empty, but for the first.
func (s *SMI) query(ctx context.Context, what string, columns []string) (*table, error) {
	for {
		s.mu.Lock()
		asked := slices.DeleteFunc(slices.Clone(columns), func(c string) bool { return slices.Contains(s.absent, c) })
		s.mu.Unlock()
		text, err := s.run(ctx, "--query-"+what+"="+strings.Join(asked, ","), "--format=csv,noheader,nounits")
		if name := invalidColumn(text); err != nil && len(asked) > 1 && slices.Contains(asked[1:], name) {
			s.mu.Lock()
			s.absent = append(s.absent, name)
			s.mu.Unlock()
			continue
		}
		failed := (*exec.ExitError)(nil)
		if err != nil && !errors.As(err, &failed) {
			return nil, err
		}
		t, parseErr := parseTable(text, asked)
		switch {
		case err != nil && (parseErr != nil || len(t.rows)+len(t.lost) == 0):
			return nil, err // which quotes what it said
		case parseErr != nil:
			return nil, fmt.Errorf("nvidia-smi: %w", parseErr)
		}
		t.code = err
		return t, nil
	}
}

// run returns what nvidia-smi prints, together with the error where it fails.
func (s *SMI) run(ctx context.Context, args ...string) (string, error) {
	patience := cmp.Or(s.Patience, 20*time.Second)
	limited, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	cmd := exec.CommandContext(limited, s.Command, args...)
	cmd.WaitDelay = time.Second
	out, err := cmd.Output()
	text := string(out)
	switch failed := (*exec.ExitError)(nil); {
	case ctx.Err() != nil:
		return "", fmt.Errorf("nvidia-smi: %w", ctx.Err())
	case limited.Err() != nil:
		return "", fmt.Errorf("nvidia-smi: no answer within %v", patience)
	case errors.As(err, &failed):
		text += string(failed.Stderr)
		return text, fmt.Errorf("nvidia-smi: %w: %.300s", err, strings.TrimSpace(text))
	case err != nil:
		return "", fmt.Errorf("nvidia-smi: %w", err)
	}
	return text, nil
}
