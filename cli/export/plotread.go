package export

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"time"

	"github.com/trainyard/trainyard/cli/term"
	"github.com/trainyard/trainyard/eventlog"
	"github.com/trainyard/trainyard/metrics"
	"github.com/trainyard/trainyard/report"
	"github.com/trainyard/trainyard/report/plot"
)

// mostDocument bounds a document: those of --json take kilobytes.
const mostDocument = 64 << 20

// readRuns reads the run in a log, or where the kind shows figures alone those in a document. at > 0: of a log what had
// happened by then, and what was expected.
func readRuns(ctx context.Context, path, kind string, at time.Duration) ([]plot.Run, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	in := bufio.NewReader(file)
	if start, _ := in.Peek(64); !bytes.Contains(start, []byte(`"trainyard.log/`)) && document(start) {
		if kind != "compare" {
			return nil, term.Malformed(fmt.Errorf("%s: %w", path, errNoLog))
		}
		return simulated(in, path)
	}
	if at > 0 {
		run, failed := expected(ctx, in, path, at)
		return []plot.Run{run}, failed
	}
	sys, err := runIn(in, path)
	if err != nil {
		return nil, err
	}
	return []plot.Run{runOf(&sys)}, nil
}

func runOf(s *report.System) plot.Run {
	return plot.Run{Name: s.Name, Result: s.Result, Jobs: s.Jobs, Timeline: s.Timeline}
}

// document reports whether a text starts as a document of --json does: over several lines.
func document(start []byte) bool {
	start = bytes.TrimLeft(start, "\ufeff \t\r\n")
	return len(start) > 1 && start[0] == '{' && (start[1] == '\n' || start[1] == '\r' || start[1] == ' ')
}

// decode reads a document of a schema.
func decode(r io.Reader, path, schema, of string, into any) error {
	whole, err := io.ReadAll(io.LimitReader(r, mostDocument+1))
	if err != nil {
		return err
	}
	if len(whole) > mostDocument {
		return term.Malformed(fmt.Errorf("%s: above %d MiB, want a document of %s", path, mostDocument>>20, of))
	}
	var head struct {
		Schema string `json:"schema"`
	}
	if err := json.Unmarshal(whole, &head); err != nil {
		return term.Malformed(fmt.Errorf("%s: no document of %s: %w", path, of, err))
	}
	if head.Schema != schema {
		return term.Malformed(fmt.Errorf("%s: schema %.80q, want %s: a document of %s", path, head.Schema, schema, of))
	}
	if err := json.Unmarshal(whole, into); err != nil {
		return term.Malformed(fmt.Errorf("%s: %w", path, err))
	}
	return nil
}

// simulated reads the figures of a document of simulate.
func simulated(r io.Reader, path string) ([]plot.Run, error) {
	var doc struct {
		Results []metrics.Result `json:"results"`
	}
	if err := decode(r, path, "trainyard.simulate/v1", "simulate --json", &doc); err != nil {
		return nil, err
	}
	if len(doc.Results) == 0 {
		return nil, term.Malformed(fmt.Errorf("%s: no result in it, want some", path))
	}
	runs := make([]plot.Run, len(doc.Results))
	for i := range doc.Results {
		runs[i] = plot.Run{Name: doc.Results[i].System, Result: doc.Results[i]}
	}
	return runs, nil
}

// readPlans reads documents of plan.
func readPlans(paths []string) ([]plot.Plan, error) {
	plans := make([]plot.Plan, len(paths))
	for i, path := range paths {
		file, err := os.Open(path)
		if err != nil {
			return nil, err
		}
		plans[i], err = planned(file, path)
		file.Close()
		if err != nil {
			return nil, err
		}
	}
	for i := range plans { // those of one workload are known apart by method
		for k := range plans[:i] {
			if plans[k].Name == plans[i].Name {
				plans[i].Name = filepath.Base(paths[i])
			}
		}
	}
	return plans, nil
}

func planned(r io.Reader, path string) (p plot.Plan, err error) {
	var doc struct {
		Workload string   `json:"workload"`
		Method   string   `json:"method"`
		Budget   float64  `json:"budget"`
		AvgJCT   float64  `json:"avg_jct_h"`
		Saves    *float64 `json:"saves_s_per_job_per_gpu"`
		Frontier []struct {
			Budget float64 `json:"budget"`
			AvgJCT float64 `json:"avg_jct_h"`
		} `json:"frontier"`
	}
	if bad := decode(r, path, "trainyard.plan/v1", "plan --json", &doc); bad != nil {
		return p, bad
	}
	p = plot.Plan{Name: filepath.Base(doc.Workload) + ", " + doc.Method, Budget: doc.Budget, JCT: doc.AvgJCT}
	if doc.Saves != nil {
		p.Saves = *doc.Saves
	}
	for _, c := range doc.Frontier {
		if c.Budget < 0 || c.AvgJCT < 0 || math.Max(c.Budget, c.AvgJCT) > 1e15 {
			return p, term.Malformed(fmt.Errorf("%s: frontier: budget %g, avg_jct_h %g, want numbers from 0 to 1e15",
				path, c.Budget, c.AvgJCT))
		}
		p.Frontier = append(p.Frontier, plot.Corner{Budget: c.Budget, JCT: c.AvgJCT})
	}
	return p, nil
}

// errAfter is about a moment at which nothing has happened yet.
var errAfter = errors.New("no job had been submitted by then")

// until yields the records of a log up to a time.
func until(r *eventlog.Reader, at time.Duration) func(yield func(*eventlog.Record, error) bool) {
	return func(yield func(*eventlog.Record, error) bool) {
		for rec, err := range r.Part() {
			if err == nil && time.Duration(rec.Event.Time) > at || !yield(rec, err) {
				return
			}
		}
	}
}
