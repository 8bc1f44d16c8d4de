package experiment

import (
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/trainyard/trainyard/cluster"
	"github.com/trainyard/trainyard/model/skew"
	"github.com/trainyard/trainyard/model/speedup"
	"github.com/trainyard/trainyard/model/variability"
	"github.com/trainyard/trainyard/simulate"
	"github.com/trainyard/trainyard/trace"
)

// seedsOfHalf is how many seeds a row takes of each half; those for choosing are 1 to 5, whatever is asked for.
const seedsOfHalf = 5

// mostSeeds is how many seeds the half for deciding may take.
const mostSeeds = 30

// halfSeeds returns the seeds of a half, n at most.
func halfSeeds(deciding bool, n int) []uint64 {
	first, most := uint64(1), seedsOfHalf
	if deciding {
		first, most = seedsOfHalf+1, mostSeeds
	}
	if n <= 0 {
		n = seedsOfHalf
	}
	var list []uint64
	for i := range min(n, most) {
		list = append(list, first+uint64(i))
	}
	return list
}

// grounds returns all seven, the public traces being in a folder, "" = there are none.
func grounds(data string) []ground {
	return []ground{
		{Name: "tiresias", Rows: tiresiasGround(data)},
		{Name: "pal", Rows: palGround(data)},
		{Name: "elastic", Rows: elasticGround(data)},
		{Name: "boa", Rows: boaGround(data)},
		{Name: "eaco", Rows: eacoGround(data)},
		{Name: "sia", Rows: siaGround(data)},
		{Name: "neutral", Rows: neutralGround(data)},
	}
}

// inData returns the path of a public trace.
func inData(data, path string) (string, error) {
	if data == "" {
		return "", errNoData
	}
	return filepath.Join(data, filepath.FromSlash(path)), nil
}

// common are the settings that all systems share: one cost of a restart.
func common(more ...string) map[string]string {
	set := map[string]string{"restart_overhead": fmt.Sprint(restart.Seconds())}
	for i := 0; i < len(more); i += 2 {
		set[more[i]] = more[i+1]
	}
	return set
}

// worldOf returns a world without scores and applications.
func worldOf(name string, t *trace.Trace, spec string, settings map[string]string) (world, error) {
	c, err := cluster.Load(spec)
	return world{Name: name, Request: simulate.Request{Trace: t, Cluster: c}, Common: settings}, err
}

// rigidHome are the two systems of Tiresias.
var rigidHome = []contender{{"tiresias-las", "tiresias-las", nil}, {"tiresias-gittins", "tiresias-gittins", nil}}

func tiresiasGround(data string) []groundRow {
	const bar = .05
	return []groundRow{
		{Name: "480 jobs of a testbed, 15x4", Home: rigidHome, Best: "tiresias-las", Bar: bar,
			Worlds: func(deciding bool, n int) (list []world, err error) {
				for _, seed := range halfSeeds(deciding, n) {
					x, bad := worldOf(fmt.Sprint("seed ", seed), trace.Testbed(seed), "15x4", common())
					if bad != nil {
						return nil, bad
					}
					list = append(list, x)
				}
				return list, nil
			}},
		{Name: "a virtual cluster of Philly, 8x8", Home: rigidHome, Best: "tiresias-gittins", Bar: bar,
			Worlds: func(deciding bool, _ int) ([]world, error) {
				name := "2869ce"
				if deciding {
					name = "7f04ca"
				}
				path, err := inData(data, "traces/philly_vc/"+name+"_oct_nov.csv")
				if err != nil {
					return nil, err
				}
				t, err := trace.Read(path, trace.Options{})
				if err != nil {
					return nil, err
				}
				x, err := worldOf(name, t, "8x8", common())
				x.ByWeek = true
				return []world{x}, err
			}},
	}
}

// palHome is PAL under several orders.
var palHome = []contender{
	palUnder("fifo", "off"), palUnder("tiresias-las", "off"),
	palUnder("fifo", "on"), palUnder("las", "on"), palUnder("tiresias-las", "on"), palUnder("tiresias-gittins", "on"),
}

// palUnder is PAL under an order, with jobs behind one that does not fit let through or not.
func palUnder(order, backfill string) contender {
	name := "pal under " + order
	if backfill == "on" {
		name += ", backfill"
	}
	return contender{name, "pal", map[string]string{"order": order, "backfill": backfill}}
}

// palHalves are the workloads for choosing, and for deciding.
var palHalves = [2][]int{{1, 2, 4, 5}, {3, 6, 7, 8}}

func palGround(data string) []groundRow {
	row := func(name, best string, scores func() (*variability.Scores, error)) groundRow {
		return groundRow{Name: name, Home: palHome, Best: best, Bar: .10,
			Worlds: func(deciding bool, _ int) (list []world, err error) {
				known, err := scores()
				if err != nil {
					return nil, err
				}
				for _, i := range palHalves[half(deciding)] {
					t, bad := trace.Read(filepath.Join(data, fmt.Sprintf("pal/traces/workload-%d.csv", i)),
						trace.Options{})
					if bad != nil {
						return nil, bad
					}
					x, bad := worldOf(fmt.Sprint("workload ", i), t, "16x4", common("spread_penalty",
						fmt.Sprint(skew.Penalty)))
					if bad != nil {
						return nil, bad
					}
					x.Request.Scores = known
					list = append(list, x)
				}
				return list, nil
			}}
	}
	return []groundRow{
		row("scores of the artifact, 16x4", "pal under tiresias-las, backfill", func() (*variability.Scores, error) {
			path, err := inData(data, "pal/golden/artifact-gpus-64.csv")
			if err != nil {
				return nil, err
			}
			return readScoresFile(path)
		}),
		row("medians of GPUs, 16x4", "pal under tiresias-las, backfill", func() (*variability.Scores, error) {
			path, err := inData(data, "pal/variability")
			if err != nil {
				return nil, err
			}
			medians, err := palMedians(path)
			if err != nil {
				return nil, err
			}
			return drawMedians(1, 64, medians), nil
		}),
	}
}

// half is 0 for choosing, 1 for deciding.
func half(deciding bool) int {
	if deciding {
		return 1
	}
	return 0
}

// elasticHome are the systems that resize.
var elasticHome = []contender{{"elastic", "elastic", nil}, {"pollux", "pollux", nil}}

func elasticGround(data string) []groundRow {
	rows := []groundRow{polluxRow(data, "learned", "pollux", .03), polluxRow(data, "oracle", "elastic", .08)}
	for _, a := range elasticArrivals {
		rows = append(rows, groundRow{Name: "kinds of ours, " + a.name + " load, speeds known, 10x4", Home: elasticHome,
			Best: "elastic", Bar: .08,
			Worlds: func(deciding bool, n int) (list []world, err error) {
				apps, _, err := elasticApps(data)
				if err != nil {
					return nil, err
				}
				for _, seed := range halfSeeds(deciding, n) {
					x, bad := worldOf(fmt.Sprint("seed ", seed), elasticTrace(seed, 40, 8*time.Hour, a), "10x4",
						common("curves", "oracle"))
					if bad != nil {
						return nil, bad
					}
					x.Request.Apps = apps
					list = append(list, x)
				}
				return list, nil
			}})
	}
	return rows
}

// polluxRow is the row of Pollux' own workloads, with speeds learned or known.
func polluxRow(data, curves, best string, bar float64) groundRow {
	word := curves
	if curves == "oracle" {
		word = "known"
	}
	return groundRow{Name: "Pollux' workloads, speeds " + word + ", 16x4", Home: elasticHome, Best: best, Bar: bar,
		Worlds: func(deciding bool, _ int) (list []world, err error) {
			path, err := inData(data, "pollux/osdi21")
			if err != nil {
				return nil, err
			}
			profiles, err := speedup.ReadProfiles(os.DirFS(filepath.Join(path, "traces")), "")
			if err != nil {
				return nil, err
			}
			apps := make(map[string]speedup.App)
			for _, p := range profiles {
				apps[p.Name] = p
			}
			for i := 1 + 4*half(deciding); len(list) < 4; i++ {
				t, bad := trace.Read(filepath.Join(path, fmt.Sprintf("workloads/workload-%d.csv", i)), trace.Options{})
				if bad != nil {
					return nil, bad
				}
				x, bad := worldOf(fmt.Sprint("workload ", i), t, "16x4", common("curves", curves))
				if bad != nil {
					return nil, bad
				}
				x.Request.Apps = apps
				list = append(list, x)
			}
			return list, nil
		}}
}
