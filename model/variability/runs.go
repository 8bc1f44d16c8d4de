package variability

import (
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"

	"github.com/trainyard/trainyard/internal/csvtable"
	"github.com/trainyard/trainyard/sched"
)

// MaxRuns bounds the runs of one file.
const MaxRuns = 1 << 20

// maxPerf bounds what a run measured.
const maxPerf = 1e18

// Run is one measurement of one GPU: a benchmark of some class, run once.
type Run struct {
	GPU  string     // name of the GPU
	Node string     // name of its node, "" = unknown
	Perf float64    // time of an iteration, in any unit that the runs measured together share; > 0
	At   sched.Time // when, by the clock of whoever measured; 0 = unknown
}

// NameBy says what a GPU is called.
type NameBy uint8

// ByUUID calls a GPU by the column uuid. ByPlace calls it by where it sits, cabinet-node-device, such as c002-4-1: so
// do some published files in the column uuid, and so files that name GPUs differently can be joined, if no one swapped
// any in between.
const (
	ByUUID NameBy = iota
	ByPlace
)

// ReadRuns reads published measurements: one row for each run, with columns uuid and perf, and where known cabinet,
// node and device (all three are needed ByPlace) and ts (seconds of Unix time). Such files have many more columns,
// which are passed over. A node is called cabinet-node, without zeros in front; -1 means unknown. Errors name the file
// as name, the line, and what was wanted instead.
//
// Units of perf differ between files, even of one benchmark: measure the runs of each file for themselves.
func ReadRuns(r io.Reader, name string, by NameBy) ([]Run, error) {
	t, err := openTable(r, name)
	if err != nil {
		return nil, err
	}
	needs := []string{"uuid", "perf"}
	if by == ByPlace {
		needs = []string{"cabinet", "node", "device", "perf"}
	}
	if _, err := t.Need(needs...); err != nil {
		return nil, err
	}
	at := t.Find(runColumns...)
	var runs []Run
	names := make(map[string]string) // names repeat: keep one copy of each
	for {
		more, err := t.Next()
		if more && len(runs) == MaxRuns {
			err = t.Fail("more than %d runs, want less", MaxRuns)
		}
		if err != nil {
			return nil, err
		}
		if !more {
			break
		}
		run, err := readRun(t, t.Row, at, by)
		if err != nil {
			return nil, err
		}
		run.GPU, run.Node = intern(names, run.GPU), intern(names, run.Node)
		runs = append(runs, run)
	}
	if len(runs) == 0 {
		return nil, t.Fail("no runs, want a row for each")
	}
	return runs, nil
}

// runColumns are the columns of which a run is made.
var runColumns = []string{"uuid", "perf", "cabinet", "node", "device", "ts"}

// readRun reads a row of t; at says where each of runColumns is in it, -1 = nowhere.
func readRun(t *csvtable.Table, row []string, at []int, by NameBy) (run Run, err error) {
	field := func(i int) string {
		if at[i] < 0 {
			return ""
		}
		return row[at[i]]
	}
	uuid, perf, cabinet, node, device, ts := field(0), field(1), field(2), field(3), field(4), field(5)
	run = Run{GPU: uuid, Node: place(cabinet, node)}
	if by == ByPlace {
		run.GPU = place(cabinet, node, device)
	}
	if !wordOK(run.GPU) || run.Node != "" && !wordOK(run.Node) {
		return run, t.Fail("GPU %s, node %s, want %s", csvtable.Quote(run.GPU), csvtable.Quote(run.Node), wantedWord)
	}
	if run.Perf, err = number(perf, 1/maxPerf, maxPerf); err != nil {
		return run, t.Fail("perf %s, want %w", csvtable.Quote(perf), err)
	}
	if ts != "" && ts != "-1" {
		sec, err := number(ts, 1e-9, 9e9)
		if err != nil {
			return run, t.Fail("ts %s, want seconds of Unix time, %w", csvtable.Quote(ts), err)
		}
		run.At = sched.Time(sched.Seconds(sec))
	}
	return run, nil
}

func intern(names map[string]string, s string) string {
	kept, ok := names[s]
	if !ok {
		kept = strings.Clone(s)
		names[kept] = kept
	}
	return kept
}

// place joins the parts of an address, whole numbers without zeros in front. It is "" if a part is missing.
func place(parts ...string) string {
	var kept []string
	for _, p := range parts {
		if n, err := strconv.Atoi(p); err == nil {
			p = strconv.Itoa(n)
		}
		if p == "" || p == "-1" {
			return ""
		}
		kept = append(kept, p)
	}
	return strings.Join(kept, "-")
}

// checkRun returns what a run should have been, or "".
func checkRun(run *Run) string {
	switch {
	case !wordOK(run.GPU):
		return "a GPU with " + wantedWord
	case math.IsNaN(run.Perf) || run.Perf < 1/maxPerf || run.Perf > maxPerf:
		return fmt.Sprintf("a perf in %v..%v", 1/maxPerf, maxPerf)
	}
	return ""
}
