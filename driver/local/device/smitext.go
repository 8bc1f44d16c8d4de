package device

import (
	"fmt"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/trainyard/trainyard/sched"
)

// table is what nvidia-smi answered: lines of CSV, without a header and without quotes, and between them lines for
// people.
type table struct {
	columns []string
	rows    [][]string
	lost    []lostGPU
	code    error // it did not exit with 0, but said something all the same
}

// lostGPU is a GPU that nvidia-smi knows by its address only.
type lostGPU struct{ bus, text string }

var (
	lostLine = pattern(`^Unable to determine the device handle for (?:GPU|gpu) ` +
		`?([0-9A-Fa-f]+:[0-9A-Fa-f]+:[0-9A-Fa-f]+\.[0-9A-Fa-f]+):? *(.*)`)
	invalidLine = pattern(`Field "([^"]*)" is not a valid field to query`)
	sliceLine   = pattern(`^\s+MIG (\S+)\s+Device\s+(\d+): \(UUID: (MIG-[^)\s]+)\)$`)
	gpuLine     = pattern(`^GPU (\d+): (.*) \(UUID: (GPU-[^)\s]+)\)$`)
)

// pattern returns an expression that is compiled when it is asked for first: most commands never are in need of it.
func pattern(text string) func() *regexp.Regexp {
	return sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(text) })
}

// invalidColumn returns the column that nvidia-smi complains about, "" if it does not.
func invalidColumn(text string) string {
	if m := invalidLine().FindStringSubmatch(text); m != nil {
		return m[1]
	}
	return ""
}

// parseTable reads an answer about columns. A line that is neither a row nor known to be for people is an error.
func parseTable(text string, columns []string) (*table, error) {
	t := &table{columns: columns}
	n := 0
	for line := range strings.Lines(text) {
		n++
		line = strings.TrimSpace(line)
		if line == "" || strings.HasPrefix(line, "WARNING") || line == "No devices were found" ||
			line == "No running processes found" {
			continue
		}
		if m := lostLine().FindStringSubmatch(line); m != nil {
			t.lost = append(t.lost, lostGPU{m[1], m[2]})
			continue
		}
		row := strings.Split(line, ",")
		if len(row) != len(columns) {
			return nil, fmt.Errorf("line %d: %.100q has %d fields, want the %d of %s", n, line, len(row), len(columns),
				strings.Join(columns, ","))
		}
		for i := range row {
			row[i] = strings.TrimSpace(row[i])
		}
		if row[0] == "" || strings.ContainsFunc(row[0], func(c rune) bool { return c <= ' ' || c == '/' || c > '~' }) {
			return nil, fmt.Errorf("line %d: %s %.50q, want a UUID", n, columns[0], row[0])
		}
		t.rows = append(t.rows, row)
	}
	return t, nil
}

// cell returns the text in a column, "" if it was not asked for.
func (t *table) cell(row []string, column string) string {
	if i := slices.Index(t.columns, column); i >= 0 {
		return row[i]
	}
	return ""
}

// none are the ways of saying that a value cannot be reported; there are more of them in brackets.
var none = []string{"", "N/A", "ERR!", "Unknown Error", "Not Supported"}

// untold reports whether a field says that its value cannot be reported.
func untold(s string) bool { return slices.Contains(none, s) || strings.HasPrefix(s, "[") }

// number reads a field: Unknown if its value cannot be reported.
func (t *table) number(row []string, column string) (float64, error) {
	s := t.cell(row, column)
	if untold(s) {
		return Unknown, nil
	}
	x, err := strconv.ParseFloat(s, 64)
	if err != nil || !(x >= 0 && x <= 1e12) {
		return 0, fmt.Errorf("%s: %s %.50q, want a number >= 0", row[0], column, s)
	}
	return x, nil
}

// lostText returns the field that says that the GPU cannot be used; "" = none.
func lostText(row []string) string {
	for _, s := range row {
		if l := strings.ToLower(s); strings.HasPrefix(l, "[") &&
			(strings.Contains(l, "lost") || strings.Contains(l, "requires reset")) {
			return strings.Trim(s, "[]")
		}
	}
	return ""
}

// devices returns the GPUs, and the UUIDs of those that are split.
func (t *table) devices() (list []Device, split []string, err error) {
	list = make([]Device, len(t.rows))
	for i, row := range t.rows {
		var x [3]float64
		for k, column := range []string{"memory.total", "power.limit", "index"} {
			if x[k], err = t.number(row, column); err != nil {
				return nil, nil, err
			}
		}
		list[i] = Device{Name: row[0], Type: t.cell(row, "name"), MemoryGB: float32(max(x[0], 0) / 1024),
			LimitW: sched.Watts(max(x[1], 0)),
			Index:  int(max(x[2], 0)), Bus: t.cell(row, "pci.bus_id")}
		if t.cell(row, "mig.mode.current") == "Enabled" {
			split = append(split, row[0])
		}
	}
	return list, split, unique(list)
}

// unique returns an error if two devices have one name.
func unique(list []Device) error {
	seen := make(map[string]bool, len(list))
	for i := range list {
		if seen[list[i].Name] {
			return fmt.Errorf("%s twice, want each device once", list[i].Name)
		}
		seen[list[i].Name] = true
	}
	return nil
}

// readings returns what the rows say of each GPU, by UUID.
func (t *table) readings() (map[string]Reading, error) {
	readings := make(map[string]Reading, len(t.rows))
	for _, row := range t.rows {
		r := Blank()
		for _, f := range []struct {
			column string
			to     *float64
		}{{"memory.used", &r.UsedMiB}, {"utilization.gpu", &r.Use}, {"power.draw", &r.Watts},
			{"temperature.gpu", &r.Celsius}} {
			x, err := t.number(row, f.column)
			if err != nil {
				return nil, err
			}
			*f.to = x
		}
		if r.Use != Unknown {
			r.Use = math.Min(r.Use/100, 1)
		}
		if s := t.cell(row, "clocks_throttle_reasons.active"); !untold(s) {
			bits, err := strconv.ParseUint(strings.TrimPrefix(s, "0x"), 16, 64)
			if err != nil {
				return nil, fmt.Errorf("%s: throttle reasons %.50q, want a hexadecimal number", row[0], s)
			}
			r.Throttle = Throttle(bits)
		}
		r.Display = t.cell(row, "display_active") == "Enabled"
		r.Lost = lostText(row)
		if _, twice := readings[row[0]]; twice {
			return nil, fmt.Errorf("%s twice, want each GPU once", row[0])
		}
		readings[row[0]] = r
	}
	return readings, nil
}

// processes adds what the rows say of the processes on each GPU. Where a pid cannot be reported, the list of that GPU
// cannot be.
func (t *table) processes(readings map[string]Reading) error {
	hidden := make(map[string]bool)
	for uuid, r := range readings {
		r.Listed = true
		readings[uuid] = r
	}
	for _, row := range t.rows {
		r, known := readings[row[0]]
		pid := t.cell(row, "pid")
		if !known || untold(pid) {
			hidden[row[0]] = true
			continue
		}
		n, err := strconv.Atoi(pid)
		if err != nil || n < 0 {
			return fmt.Errorf("%s: process %.50q, want a number", row[0], pid)
		}
		mib, err := t.number(row, "used_memory")
		if err != nil {
			return err
		}
		r.Processes = append(r.Processes, Process{n, mib})
		readings[row[0]] = r
	}
	for uuid := range hidden {
		if r, known := readings[uuid]; known {
			r.Listed, r.Processes = false, nil
			readings[uuid] = r
		}
	}
	return nil
}

// buses returns the UUIDs by PCI address.
func (t *table) buses() map[string]string {
	m := make(map[string]string, len(t.rows))
	for _, row := range t.rows {
		if bus := t.cell(row, "pci.bus_id"); !untold(bus) {
			m[shortBus(bus)] = row[0]
		}
	}
	return m
}

// shortBus writes a PCI address in one way: 00000000:3B:00.0 and 0000:3b:00.0 are the same.
func shortBus(bus string) string {
	domain, rest, _ := strings.Cut(strings.ToLower(bus), ":")
	return strings.TrimLeft(domain, "0") + ":" + rest
}

// slice is a MIG slice.
type slice struct{ gpu, profile, uuid string }

// parseSlices reads the MIG slices from what nvidia-smi -L prints. Lines of another form are skipped.
func parseSlices(text string) (list []slice, err error) {
	gpu := ""
	for line := range strings.Lines(text) {
		line = strings.TrimRight(line, "\r\n ")
		if m := gpuLine().FindStringSubmatch(line); m != nil {
			gpu = m[3]
		}
		if m := sliceLine().FindStringSubmatch(line); m != nil {
			if gpu == "" {
				return nil, fmt.Errorf("slice %s before any GPU", m[3])
			}
			list = append(list, slice{gpu, m[1], m[3]})
		}
	}
	return list, nil
}

// replaced returns the devices with the slices of those that are split in their place. A split GPU without slices is no
// use.
func replaced(list []Device, split []string, parts []slice) (all []Device) {
	for i := range list {
		if !slices.Contains(split, list[i].Name) {
			all = append(all, list[i])
			continue
		}
		for _, s := range parts {
			if s.gpu == list[i].Name {
				d := list[i]
				d.Name, d.Type, d.Slice = s.uuid, d.Type+" MIG "+s.profile, s.profile
				d.MemoryGB, d.LimitW = profileGB(s.profile), 0
				all = append(all, d)
			}
		}
	}
	return all
}

// profileGB returns the memory of a MIG profile, such as 1g.10gb or 1c.2g.20gb+me; 0 = it does not say.
func profileGB(profile string) float32 {
	profile, _, _ = strings.Cut(profile, "+")
	text, ok := strings.CutSuffix(profile[strings.LastIndexByte(profile, '.')+1:], "gb")
	x, err := strconv.ParseFloat(text, 32)
	if !ok || err != nil || !(x >= 0 && x <= 1e4) {
		return 0
	}
	return float32(x)
}
