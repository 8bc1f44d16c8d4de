package experiment

import (
	"errors"
	"fmt"

	"github.com/trainyard/trainyard/sched"
	"github.com/trainyard/trainyard/simulate"
)

// eacoGround is EaCO's: jobs of 8 GPUs on scarce and on ample nodes that sleep while they are idle, and the energy that
// they take. No job has a deadline.
func eacoGround(data string) []groundRow {
	const jobs = 600
	recorded := func(path string) func() (func(uint64) []sched.Time, error) {
		return func() (func(uint64) []sched.Time, error) {
			full, err := inData(data, path)
			if err != nil {
				return nil, err
			}
			return recordedArrivals(full, jobs, 8)
		}
	}
	var rows []groundRow
	for _, d := range []struct {
		name     string
		arrivals func() (func(uint64) []sched.Time, error)
	}{
		{"generated", func() (func(uint64) []sched.Time, error) { return poissonArrivals(jobs), nil }},
		{"Philly", recorded("traces/philly/philly_gpu_jobs.csv.gz")},
		{"Venus", recorded("traces/venus/venus_gpu_jobs.csv.gz")},
	} {
		for _, nodes := range []int{28, 64} {
			rows = append(rows, groundRow{Name: fmt.Sprintf("arrivals of %s, %dx8, energy", d.name, nodes),
				Home: []contender{{"eaco", "eaco", nil}}, Best: "eaco", Bar: .05, Energy: true,
				Worlds: func(deciding bool, n int) ([]world, error) {
					tables, err := groundTables(data)
					if err != nil {
						return nil, err
					}
					arrivals, err := d.arrivals()
					if err != nil {
						return nil, err
					}
					return eacoWorlds(arrivals, nodes, tables, halfSeeds(deciding, n))
				}})
		}
	}
	return rows
}

// groundTables are those of the paper, or what stands for them where there is no data.
func groundTables(data string) (*simulate.Sharing, error) {
	path, err := inData(data, "colocation/eaco/eaco_tables.csv")
	if errors.Is(err, errNoData) {
		return standInTables(), nil
	}
	return readSharingFile(path)
}

// eacoWorlds are those of seeds.
func eacoWorlds(arrivals func(uint64) []sched.Time, nodes int, tables *simulate.Sharing,
	seeds []uint64) ([]world, error) {
	c, err := eacoCluster(nodes)
	if err != nil {
		return nil, err
	}
	var list []world
	for _, seed := range seeds {
		list = append(list, world{Name: fmt.Sprint("seed ", seed), Common: common("sleep", "0"),
			Request: simulate.Request{Trace: eacoTrace(seed, arrivals(seed)), Cluster: c, Sharing: tables}})
	}
	return list, nil
}
