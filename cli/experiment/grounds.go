package experiment

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"runtime"
	"strings"

	"github.com/trainyard/trainyard/cli/term"
	"github.com/trainyard/trainyard/internal/parallel"
	"github.com/trainyard/trainyard/internal/suggest"
	"github.com/trainyard/trainyard/pipeline"
	"github.com/trainyard/trainyard/simulate"
	"github.com/trainyard/trainyard/stage/allocate"
	"github.com/trainyard/trainyard/system/worth"
)

// ground is one paper's home, or none's: there worth is compared with the best of the systems that are at home.
type ground struct {
	Name string
	Rows []groundRow
}

// groundRow is a set of worlds in which systems are compared by mean completion time or energy, paired by world.
type groundRow struct {
	Name string
	Home []contender // systems at home
	Best string      // of them, chosen before on the half for choosing
	Bar  float64     // by how much worth must be better, as a share, for the ground to be better
	// Energy: worth must be better by energy, at no longer run time; else by mean completion time.
	Energy bool
	// Worlds returns the worlds of the half for choosing, or of the other; n: seeds at most, 0 = the row's own number.
	Worlds func(deciding bool, n int) ([]world, error)
}

// contender is a system with its settings.
type contender struct {
	Name, System string
	Settings     map[string]string
}

// world is a trace on a cluster.
type world struct {
	Name    string
	Request simulate.Request  // without system
	Common  map[string]string // settings of all systems
	Rental  *rental           // instead of Request and Common; nil = all GPUs are there
	// ByWeek: the trace is long, and each week of arrivals is a sample of its own.
	ByWeek bool
}

// groundsOptions are what only this experiment takes.
type groundsOptions struct {
	Ground    string // play this one alone
	Check     bool   // the half for deciding
	Constants string // file that replaces some constants
}

// groundsExperiment plays all grounds, and says by rules fixed before whether worth is better than each of the five.
func groundsExperiment(ctx context.Context, w io.Writer, o Options) error {
	set := allocate.Chosen()
	if err := readConstants(o.Grounds.Constants, &set); err != nil {
		return err
	}
	all := grounds(o.Data)
	if o.Grounds.Ground != "" {
		one, err := groundNamed(all, o.Grounds.Ground)
		if err != nil {
			return err
		}
		all = one
	}
	m, err := playGrounds(ctx, all, set, o)
	if err != nil {
		return fmt.Errorf("experiment: grounds: %w", err)
	}
	if err := o.keep(m, m.text()); err != nil {
		return err
	}
	if o.JSON {
		return term.WriteJSON(w, m)
	}
	return term.WriteText(w, m.text())
}

// groundNamed returns the one of a name.
func groundNamed(all []ground, name string) ([]ground, error) {
	var names []string
	for i := range all {
		if all[i].Name == name {
			return all[i : i+1], nil
		}
		names = append(names, all[i].Name)
	}
	return nil, term.Usagef("--ground %q is not known%s; want one of %s", name, suggest.Hint(name, names),
		strings.Join(names, ", "))
}

// hashOf returns a digest of all constants.
func hashOf(set *allocate.Constants) string {
	sum := sha256.Sum256([]byte(worth.Constants(set)))
	return hex.EncodeToString(sum[:6])
}

// playGrounds simulates all worlds under all systems, and computes the verdicts.
func playGrounds(ctx context.Context, all []ground, set allocate.Constants, o Options) (*groundsDoc, error) {
	m := &groundsDoc{Schema: "trainyard.experiment/v1", Experiment: "grounds", Half: "choosing",
		Constants: hashOf(&set), Sets: 1, Partial: o.Grounds.Ground != "", Grounds: []*groundDoc{}}
	if o.Grounds.Check {
		m.Half = "deciding"
	}
	var tasks []parallel.Task
	for i := range all {
		g := &groundDoc{Name: all[i].Name, Rows: []*rowDoc{}}
		m.Grounds = append(m.Grounds, g)
		for k := range all[i].Rows {
			r := &all[i].Rows[k]
			row := &rowDoc{Name: r.Name, Best: r.Best, bar: r.Bar, energy: r.Energy}
			g.Rows = append(g.Rows, row)
			worlds, err := r.Worlds(o.Grounds.Check, o.Seeds)
			if errors.Is(err, fs.ErrNotExist) || errors.Is(err, errNoData) {
				row.Missing = err.Error()
				continue
			}
			if err != nil {
				return nil, err
			}
			tasks = append(tasks, row.play(r, worlds, set, o.Grounds.Check)...)
		}
	}
	m.Runs = len(tasks)
	if err := parallel.Do(ctx, runtime.GOMAXPROCS(0), tasks, o.Progress); err != nil {
		return nil, err
	}
	m.judge()
	return m, nil
}

// errNoData says that a row needs public traces.
var errNoData = errors.New("needs --data FOLDER of public traces")

// The rows of worth: as it is, and what it would be if it knew sizes.
const (
	rowWorth  = "worth"
	rowOracle = "worth, sizes known"
)

// play returns the simulations of a row: of all that are at home on the half for choosing, else of the best alone.
func (d *rowDoc) play(r *groundRow, worlds []world, set allocate.Constants, deciding bool) []parallel.Task {
	list := []contender{{Name: rowWorth, System: "worth", Settings: map[string]string{"scores": "use"}},
		{Name: rowOracle, System: "worth", Settings: map[string]string{"scores": "use", "sizes": "oracle"}}}
	for _, c := range r.Home {
		if !deciding || c.Name == r.Best {
			list = append(list, c)
		}
	}
	d.contenders, d.outcomes, d.paid = list, make([][]*simulate.Outcome, len(list)), make([][]float64, len(list))
	d.Worlds, d.weekly = len(worlds), len(worlds) > 0 && worlds[0].ByWeek
	var tasks []parallel.Task
	for i, c := range list {
		d.outcomes[i], d.paid[i] = make([]*simulate.Outcome, len(worlds)), make([]float64, len(worlds))
		for k := range worlds {
			tasks = append(tasks, func(ctx context.Context) error {
				out, paid, err := worlds[k].run(ctx, c, set)
				if err != nil {
					return fmt.Errorf("%s, %s, %s: %w", r.Name, worlds[k].Name, c.Name, err)
				}
				d.outcomes[i][k], d.paid[i][k] = out, paid
				return nil
			})
		}
	}
	return tasks
}

// run simulates a system in a world, worth with a set of constants, and returns what it paid for, in GPUs on average; 0
// where nothing is rented to a budget.
func (x *world) run(ctx context.Context, c contender, set allocate.Constants) (*simulate.Outcome, float64, error) {
	var adapt func(*pipeline.Stages)
	if c.System == "worth" {
		adapt = func(st *pipeline.Stages) { st.Allocate.(*allocate.Clear).Constants = set }
	}
	if x.Rental != nil {
		return x.Rental.run(ctx, c, adapt)
	}
	s := x.Request
	s.System, s.Settings, s.Adapt = c.System, plus(c.Settings, x.Common), adapt
	out, err := s.Run(ctx)
	return out, 0, err
}
