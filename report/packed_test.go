package report_test

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"io"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/trainyard/trainyard/metrics/timeline"
	"github.com/trainyard/trainyard/report"
	"github.com/trainyard/trainyard/sched"
	"github.com/trainyard/trainyard/simulate"
)

const inputs = "../internal/freeze/testdata/input/"

// simulated returns a report of two systems on nodes that fail, on a trace with all that submitters say.
func simulated(t *testing.T) *report.Report {
	t.Helper()
	r := &report.Report{Version: "test"}
	for _, name := range []string{"fifo", "tiresias-las"} {
		line := new(timeline.Timeline)
		q := simulate.Request{System: name, Timeline: line,
			From: simulate.Inputs{Trace: inputs + "mixed.csv", Cluster: inputs + "failing.yaml"}}
		out, err := q.Run(context.Background())
		if err != nil {
			t.Fatal(err)
		}
		r.Systems = append(r.Systems, report.System{Name: name, Result: out.Result, Jobs: out.PerJob, Timeline: line})
	}
	return r
}

func written(t *testing.T, r *report.Report) string {
	t.Helper()
	var b bytes.Buffer
	if _, err := r.Write(&b); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// table is a table of columns as a plain reader gives it.
type table map[string][]int64

// decoded reads a block by the words of report.ColumnsSchema alone.
func decoded(t *testing.T, file, id string) map[string]table {
	t.Helper()
	m := regexp.MustCompile(`(?s)<script type="text/plain" id="` + id + `">(.*?)</script>`).FindStringSubmatch(file)
	if m == nil {
		t.Fatalf("no block %s", id)
	}
	z, err := gzip.NewReader(base64.NewDecoder(base64.StdEncoding, strings.NewReader(m[1])))
	if err != nil {
		t.Fatal(err)
	}
	all, err := io.ReadAll(z)
	if err != nil {
		t.Fatal(err)
	}
	var head struct {
		Schema string
		Tables []struct {
			Name    string
			Rows    int
			Columns []struct {
				Name, Kind    string
				At, Planes    int
				Signed, Delta bool
			}
		}
	}
	size := binary.LittleEndian.Uint32(all)
	if err := json.Unmarshal(all[4:4+size], &head); err != nil || head.Schema != report.ColumnsSchema {
		t.Fatalf("block %s: schema %q, %v", id, head.Schema, err)
	}
	data, tables := all[4+size:], map[string]table{}
	for _, x := range head.Tables {
		tables[x.Name] = table{"": make([]int64, x.Rows)}
		for _, c := range x.Columns {
			if c.Kind == "text" || c.Kind == "numbered" {
				continue
			}
			list, last := make([]int64, x.Rows), int64(0)
			for i := range list {
				for p := range c.Planes {
					list[i] |= int64(data[c.At+p*x.Rows+i]) << (8 * p)
				}
				if c.Signed {
					list[i] = list[i]>>1 ^ -(list[i] & 1)
				}
				if c.Delta {
					list[i] += last
					last = list[i]
				}
			}
			tables[x.Name][c.Name] = list
		}
	}
	return tables
}

// Ensure that the same run gives the same bytes, and that a reader made from the description of the form alone finds
// each attempt and job in it, to the unit that the head says.
func TestPacked(t *testing.T) {
	r := simulated(t)
	file := written(t, r)
	if file != written(t, simulated(t)) {
		t.Error("two runs of the same give different bytes")
	}
	var head struct {
		Unit    float64 `json:"unit_s"`
		Rounded bool
	}
	m := regexp.MustCompile(`(?s)<script type="application/json" id="head">(.*?)</script>`).FindStringSubmatch(file)
	if err := json.Unmarshal([]byte(m[1]), &head); err != nil {
		t.Fatal(err)
	}
	unit := time.Duration(head.Unit * 1e9)
	in := func(at sched.Time) int64 { return int64(time.Duration(at).Round(unit) / unit) }
	for i, id := range []string{"system-0", "system-1"} {
		got, line := decoded(t, file, id), r.Systems[i].Timeline
		a, run := got["attempts"], 0
		if len(a["job"]) != len(line.Attempts) || len(line.Attempts) < 80 {
			t.Fatalf("%s: %d attempts, want %d, some of them", id, len(a["job"]), len(line.Attempts))
		}
		ends := make([]int64, len(line.Jobs))
		for k := range line.Attempts {
			want := &line.Attempts[k]
			if a["job"][k] != int64(want.Job) || a["start"][k] != in(want.Ordered) ||
				a["length"][k] != in(want.Ended)-in(want.Ordered) || a["runs"][k] != int64(len(want.GPUs)) ||
				a["outcome"][k] != int64(want.Outcome) {
				t.Fatalf("%s: attempt %d is not %+v", id, k, *want)
			}
			for _, gpus := range want.GPUs {
				if got["runs"]["first"][run] != int64(gpus.First) || got["runs"]["count"][run] != int64(gpus.Count) {
					t.Fatalf("%s: GPUs of attempt %d are not %v", id, k, want.GPUs)
				}
				run++
			}
			ends[want.Job] = in(want.Ended)
		}
		for k, j := range r.Systems[i].Jobs {
			if end := ends[k] + got["outcomes"]["finish"][k]; j.Finish != sched.None && end != in(j.Finish) {
				t.Errorf("%s: job %d finishes at %d, want %d", id, k, end, in(j.Finish))
			}
		}
		if n := len(got["spells"][""]); n < 3 {
			t.Errorf("%s: %d spells in which nodes were down, want some", id, n)
		}
	}
}

// Ensure that an anonymous report has no name of a job, a user, a model or a node in any block, and no setting.
func TestAnonymous(t *testing.T) {
	r := simulated(t)
	r.Systems[0].Settings = map[string]string{"distribution": "secret.csv"}
	r.Command = []string{"trainyard", "simulate", "--trace", "secret.csv"}
	r.Facts = []report.Fact{{Name: "trace", Text: "secret.csv: 80 jobs"}}
	names := func(r *report.Report) string {
		file := written(t, r)
		all := regexp.MustCompile(`(?s)id="head">(.*?)</script>`).FindStringSubmatch(file)[1]
		for _, id := range []string{"jobs", "system-0", "system-1"} {
			m := regexp.MustCompile(`(?s)id="` + id + `">(.*?)</script>`).FindStringSubmatch(file)
			z, err := gzip.NewReader(base64.NewDecoder(base64.StdEncoding, strings.NewReader(m[1])))
			if err != nil {
				t.Fatal(err)
			}
			text, err := io.ReadAll(z)
			if err != nil {
				t.Fatal(err)
			}
			all += string(text)
		}
		return all
	}
	open := names(r)
	r.Anonymous = true
	closed := names(r)
	// Jobs are m0, m1 and so on, packed as "m" with numbers behind it.
	for _, name := range []string{"ResNet-50", `"words":["m"]`, "u1\"", "secret", "node0"} {
		if !strings.Contains(open, name) {
			t.Errorf("a report without %q, want it: else nothing is shown", name)
		}
		if strings.Contains(closed, name) {
			t.Errorf("an anonymous report has %q", name)
		}
	}
	if r.Systems[0].Jobs[0].Name == "job 0" || r.Systems[0].Timeline.Jobs[0].User == "user 1" {
		t.Error("the report that was given lost its names")
	}
}
