package interference

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/trainyard/trainyard/internal/csvtable"
)

// Set is a published measurement of a co-located set, or of a job alone.
type Set struct {
	Place  Place
	Models []string
	Slow   []float64 // of each
}

// Seed records sets as measured at the origin of time.
func (h *History) Seed(sets []Set) error {
	for _, s := range sets {
		if err := h.Record(s.Place, s.Models, s.Slow, 0); err != nil {
			return err
		}
	}
	return nil
}

// EaCORow is a row of the tables of the EaCO paper: jobs that share the 8 V100s of one node.
type EaCORow struct {
	Jobs      []string // J1 to J4
	PowerW    float64  // of the node, mean
	EnergyKWh float64  // of the set
	JCTHours  float64  // mean over its jobs
	EpochH    float64  // mean; 0 = not recorded
	Use       float64  // of the GPUs, mean, 0..1
	MaxUse    float64
	Memory    float64 // of the GPUs, mean, 0..1
	MaxMemory float64
}

// eacoModels are the models of J1 to J4.
var eacoModels = map[string]string{"J1": "AlexNet", "J2": "ResNet-18", "J3": "ResNet-50", "J4": "VGG-16"}

// ReadEaCO reads the paper's tables: columns set (as in J1+J3), n_jobs, avg_power_w, total_energy_kwh, avg_jct_h,
// avg_epoch_h (may be empty), avg and max of mem_util_pct and gpu_util_pct. Columns ending in _derived follow from
// these and are not read. Errors call the file by name.
func ReadEaCO(r io.Reader, name string) ([]EaCORow, error) {
	t, err := csvtable.Open(r, "interference", name)
	if err != nil {
		return nil, err
	}
	columns := []string{"set", "n_jobs", "avg_power_w", "total_energy_kwh", "avg_jct_h", "avg_epoch_h",
		"avg_mem_util_pct", "max_mem_util_pct", "avg_gpu_util_pct", "max_gpu_util_pct"}
	all := columns
	for _, c := range t.Header {
		if strings.HasSuffix(c, "_derived") {
			all = append(all, c)
		}
	}
	err = t.Only(all...)
	if err != nil {
		return nil, err
	}
	var rows []EaCORow
	err = t.Each(func() error {
		row, wrong := eacoRow(t)
		rows = append(rows, row)
		return wrong
	})
	if err != nil {
		return nil, err
	}
	return rows, nil
}

func eacoRow(t *csvtable.Table) (row EaCORow, err error) {
	number := func(column string, most float64) (x float64) {
		if err == nil {
			x, err = t.Number(column, 0, most)
		}
		return x
	}
	row = EaCORow{Jobs: strings.Split(t.Raw("set"), "+"), PowerW: number("avg_power_w", 1e6),
		EnergyKWh: number("total_energy_kwh", 1e6),
		JCTHours:  number("avg_jct_h", 1e6), Use: number("avg_gpu_util_pct", 100) / 100,
		MaxUse: number("max_gpu_util_pct", 100) / 100,
		Memory: number("avg_mem_util_pct", 100) / 100, MaxMemory: number("max_mem_util_pct", 100) / 100}
	if t.Raw("avg_epoch_h") != "" {
		row.EpochH = number("avg_epoch_h", 1e6)
	}
	jobs := number("n_jobs", MaxSet)
	if err == nil && (float64(len(row.Jobs)) != jobs || row.JCTHours == 0) {
		err = t.Fail("set %q of %v jobs in %v h, want as many names joined by + and a time > 0", t.Raw("set"), jobs,
			row.JCTHours)
	}
	for i, j := range row.Jobs {
		if model := eacoModels[j]; model != "" {
			row.Jobs[i] = model
		} else if err == nil {
			err = t.Fail("job %q, want J1 to J4", j)
		}
	}
	return row, err
}

// EaCOSets returns the sets of two and more jobs: each member's slow-down is the mean time of the set over the mean of
// its members alone, as the paper reports no more than means. A member that was not measured alone is an error.
func EaCOSets(rows []EaCORow) ([]Set, error) {
	alone := make(map[string]float64)
	for _, r := range rows {
		if len(r.Jobs) == 1 {
			alone[r.Jobs[0]] = r.JCTHours
		}
	}
	var sets []Set
	for _, r := range rows {
		if len(r.Jobs) == 1 {
			continue
		}
		sum := 0.0
		for _, j := range r.Jobs {
			if alone[j] == 0 {
				return nil, fmt.Errorf("interference: %s in %s, but not alone", j, strings.Join(r.Jobs, "+"))
			}
			sum += alone[j]
		}
		s := Set{Place: Place{GPU: "v100", Width: 8}, Models: r.Jobs}
		for range r.Jobs {
			s.Slow = append(s.Slow, r.JCTHours/(sum/float64(len(r.Jobs))))
		}
		sets = append(sets, s)
	}
	return sets, nil
}

// maxJSON is how much of a table of throughputs is read.
const maxJSON = 1 << 26

// Pair is an entry of Gavel's table: two kinds of job on the same GPUs.
type Pair struct {
	Type   string // GPU type, as in v100 or v100_unconsolidated
	Width  int32
	Models [2]string
	Alone  [2]float64 // steps/s
	Shared [2]float64 // steps/s; both 0 = not run, or it did not fit: the source does not say
}

// ReadGavel reads a table of throughputs as Gavel has it:
//
//	{"v100": {"('ResNet-18 (batch size 16)', 1)": {"null": 32.4,
//	    "('LM (batch size 5)', 1)": [20.1, 8.7], ...}, ...}, ...}
//
// and returns its pairs in the order of the file. Errors call the file by name.
func ReadGavel(r io.Reader, name string) ([]Pair, error) {
	text, err := io.ReadAll(io.LimitReader(r, maxJSON+1))
	if err == nil && len(text) > maxJSON {
		err = fmt.Errorf("more than %d bytes, want less", maxJSON)
	}
	if err != nil {
		return nil, fmt.Errorf("interference: %s: %w", name, err)
	}
	g := &gavel{dec: json.NewDecoder(bytes.NewReader(text)), alone: make(map[string]float64)}
	if err := g.types(); err != nil {
		line := 1 + bytes.Count(text[:min(int(g.dec.InputOffset()), len(text))], []byte("\n"))
		return nil, fmt.Errorf("interference: %s: line %d: %w", name, line, err)
	}
	for i := range g.pairs {
		p := &g.pairs[i]
		for k := range 2 {
			rate, known := g.alone[jobKey(p.Type, p.Models[k], p.Width)]
			if !known {
				return nil, fmt.Errorf("interference: %s: %s on %d %s in a pair, but not alone", name, p.Models[k],
					p.Width, p.Type)
			}
			p.Alone[k] = rate
		}
	}
	return g.pairs, nil
}

// gavel reads the table token by token, so that the order of the file is kept.
type gavel struct {
	dec   *json.Decoder
	pairs []Pair
	alone map[string]float64
}

func jobKey(typ, model string, width int32) string { return fmt.Sprint(typ, "/", width, "/", model) }

// types reads the whole document.
func (g *gavel) types() error {
	err := g.object("a mapping of GPU types", func(typ string) error {
		return g.object("a mapping of jobs", func(job string) error {
			model, width, err := gavelJob(job)
			if err != nil {
				return err
			}
			return g.object("a mapping of partners", func(partner string) error {
				return g.rates(typ, model, width, partner)
			})
		})
	})
	if err == nil && g.dec.More() {
		err = fmt.Errorf("more behind the closing brace, want nothing")
	}
	return err
}

// object hands each key of an object, of which none may come twice, to f, which reads its value.
func (g *gavel) object(want string, f func(key string) error) error {
	if t, err := g.dec.Token(); err != nil || t != json.Delim('{') {
		return fmt.Errorf("want %s", want)
	}
	seen := make(map[string]bool)
	for g.dec.More() {
		t, err := g.dec.Token()
		key, ok := t.(string)
		if err != nil || !ok || seen[key] {
			return fmt.Errorf("key %.80q, want %s, each once", key, want)
		}
		seen[key] = true
		if err := f(key); err != nil {
			return err
		}
	}
	if _, err := g.dec.Token(); err != nil {
		return fmt.Errorf("want %s", want)
	}
	return nil
}

// rates reads what job model does alone, under the key null, or next to partner.
func (g *gavel) rates(typ, model string, width int32, partner string) error {
	if partner == "null" {
		var x float64
		if err := g.dec.Decode(&x); err != nil || !(x >= 0 && x <= 1e9) {
			return fmt.Errorf("rate of %s alone, want a number from 0 to 1e9", model)
		}
		g.alone[jobKey(typ, model, width)] = x
		return nil
	}
	other, wide, err := gavelJob(partner)
	if err != nil {
		return err
	}
	var x []float64
	if err := g.dec.Decode(&x); err != nil || len(x) != 2 || !(x[0] >= 0 && x[0] <= 1e9) ||
		!(x[1] >= 0 && x[1] <= 1e9) || wide != width {
		return fmt.Errorf("rates of %s next to %s, want two numbers from 0 to 1e9 at equal width", model, other)
	}
	g.pairs = append(g.pairs, Pair{Type: typ, Width: width, Models: [2]string{model, other},
		Shared: [2]float64{x[0], x[1]}})
	return nil
}

// gavelJob reads a key such as ('ResNet-18 (batch size 16)', 1).
func gavelJob(text string) (model string, width int32, err error) {
	rest, open := strings.CutPrefix(text, "('")
	model, rest, mid := strings.Cut(rest, "', ")
	n, err := strconv.Atoi(strings.TrimSuffix(rest, ")"))
	if !open || !mid || !strings.HasSuffix(rest, ")") || err != nil || n < 1 || n > 1<<20 || model == "" {
		return "", 0, fmt.Errorf("job %.80q, want one as in ('Model', 1)", text)
	}
	return model, int32(n), nil
}

// GavelSets returns the pairs that ran: a pair that is there from both sides counts once.
func GavelSets(pairs []Pair) []Set {
	var sets []Set
	seen := make(map[string]bool)
	for i := range pairs {
		p := &pairs[i]
		place := Place{GPU: p.Type, Width: p.Width}
		k := key(place, slices.Sorted(slices.Values(p.Models[:])))
		if !(p.Shared[0] > 0 && p.Shared[1] > 0 && p.Alone[0] > 0 && p.Alone[1] > 0) || seen[k] {
			continue
		}
		seen[k] = true
		s := Set{Place: place, Models: []string{p.Models[0], p.Models[1]}}
		for k := range 2 {
			s.Slow = append(s.Slow, p.Alone[k]/p.Shared[k])
		}
		sets = append(sets, s)
	}
	return sets
}
