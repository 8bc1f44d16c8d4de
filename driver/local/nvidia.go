package local

import (
	"cmp"
	"context"
	"encoding/csv"
	"errors"
	"fmt"
	"os/exec"
	"strconv"
	"strings"
	"time"
)

// Nvidia are the GPUs that nvidia-smi lists, in the order of their PCI addresses.
type Nvidia struct {
	Command  string        // path of nvidia-smi
	Patience time.Duration // how long it may take; 0 = 20 s: a driver in trouble lets it hang for ever
}

var _ Devices = Nvidia{}

// FindNvidia returns the GPUs of this machine, if it has nvidia-smi and that finds any.
func FindNvidia() (Nvidia, bool) {
	path, err := exec.LookPath("nvidia-smi")
	if err != nil {
		return Nvidia{}, false
	}
	n := Nvidia{Command: path}
	list, err := n.List()
	return n, err == nil && len(list) > 0
}

// List returns the GPUs by UUID.
func (n Nvidia) List() ([]Device, error) {
	rows, err := n.query("--query-gpu=uuid,name,memory.total", 3)
	if err != nil {
		return nil, err
	}
	list := make([]Device, len(rows))
	for i, r := range rows {
		mib, err := strconv.ParseFloat(r[2], 32)
		if err != nil {
			return nil, fmt.Errorf("nvidia-smi: GPU %d: memory %q, want MiB", i, r[2])
		}
		list[i] = Device{Name: r[0], Type: r[1], MemoryGB: float32(mib / 1024)}
	}
	return list, nil
}

// Users returns the processes that compute on each GPU.
func (n Nvidia) Users() (map[string][]int, error) {
	rows, err := n.query("--query-compute-apps=gpu_uuid,pid", 2)
	if err != nil {
		return nil, err
	}
	users := make(map[string][]int)
	for _, r := range rows {
		pid, err := strconv.Atoi(r[1])
		if err != nil {
			return nil, fmt.Errorf("nvidia-smi: process %q of GPU %s, want a number", r[1], r[0])
		}
		users[r[0]] = append(users[r[0]], pid)
	}
	return users, nil
}

// Locks returns a folder of the machine, whatever the environment says: no two managers give out one GPU.
func (Nvidia) Locks() string { return "/tmp/trainyard-gpus" }

// Env shows a job its GPUs alone.
func (Nvidia) Env(held []Device) []string {
	names := make([]string, len(held))
	for i := range held {
		names[i] = held[i].Name
	}
	return []string{"CUDA_DEVICE_ORDER=PCI_BUS_ID", "CUDA_VISIBLE_DEVICES=" + strings.Join(names, ",")}
}

// query returns the rows that nvidia-smi prints, of so many columns each.
func (n Nvidia) query(what string, columns int) ([][]string, error) {
	patience := cmp.Or(n.Patience, 20*time.Second)
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	cmd := exec.CommandContext(ctx, n.Command, what, "--format=csv,noheader,nounits")
	cmd.WaitDelay = time.Second
	out, err := cmd.Output()
	if ctx.Err() != nil {
		return nil, fmt.Errorf("nvidia-smi: no answer within %v", patience)
	}
	if failed := (*exec.ExitError)(nil); errors.As(err, &failed) {
		return nil, fmt.Errorf("nvidia-smi: %w: %s", err, strings.TrimSpace(string(append(out, failed.Stderr...))))
	}
	if err != nil {
		return nil, fmt.Errorf("nvidia-smi: %w", err)
	}
	r := csv.NewReader(strings.NewReader(string(out)))
	r.TrimLeadingSpace, r.FieldsPerRecord, r.LazyQuotes = true, columns, true
	rows, err := r.ReadAll()
	if err != nil {
		return nil, fmt.Errorf("nvidia-smi: %w", err)
	}
	return rows, nil
}
