package trace

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/trainyard/trainyard/sched"
)

// phillyLogLayout is the job log of Philly as published: cluster_job_log of msr-fiddle/philly-traces (Jeon et al.,
// ATC'19), a JSON array of jobs with all their attempts. The run time is that from the start of the first attempt to
// the end of the last, gaps included, as in the other plain tables of Philly; GPUs are those of the first attempt. Jobs
// that never had GPUs, or whose first start or last end is not recorded, are left out.
//
// The machine list that is published beside the log contradicts it (philly-traces issue 8): the sizes of nodes are told
// from the GPUs that attempts were given, in a warning.
var phillyLogLayout = layout{
	name: "philly-log",
	line: "job log of Philly as published: JSON with all attempts",
	zone: "seconds from the first submission in the recorded clock, whose zone is not stated",
	source: "Philly log; run time from the start of the first attempt to the end of the last, gaps included; GPUs of " +
		"the first attempt",
	clock: true,
	columns: []column{
		{name: "jobid", means: jobID},
		{name: "submitted_time", means: clockSubmit},
		{name: "attempts", means: attempts},
		{name: "status", means: state},
		{name: "user", means: user},
		{name: "vc", means: group},
	},
	whole: readPhillyLog,
}

type phillyJob struct {
	Job       string          `json:"jobid"`
	Submitted string          `json:"submitted_time"`
	Attempts  []phillyAttempt `json:"attempts"`
	Status    string          `json:"status"`
	User      string          `json:"user"`
	VC        string          `json:"vc"`
}

type phillyAttempt struct {
	Start  string        `json:"start_time"`
	End    string        `json:"end_time"`
	Detail []phillyPlace `json:"detail"`
}

// phillyPlace is the GPUs of an attempt on one node.
type phillyPlace struct {
	IP   string   `json:"ip"`
	GPUs []string `json:"gpus"`
}

func readPhillyLog(p *parser) error {
	dec := json.NewDecoder(p.in.reader())
	dec.DisallowUnknownFields()
	if open, err := dec.Token(); err != nil || open != json.Delim('[') {
		return p.failJSON(dec, 0, err, "want a list of jobs in brackets")
	}
	nodes := make(map[string]int)
	for n := 1; dec.More(); n++ {
		var job phillyJob
		if err := dec.Decode(&job); err != nil {
			return p.failJSON(dec, n, err, "")
		}
		if err := p.phillyJob(&job); err != "" {
			return p.failJSON(dec, n, errors.New(err), "")
		}
		for i := range job.Attempts {
			noteNodes(nodes, job.Attempts[i].Detail)
		}
		p.in.line = p.in.lineAt(dec.InputOffset())
		if err := p.enter(&p.jobs[len(p.jobs)-1]); err != nil {
			return err
		}
	}
	if _, err := dec.Token(); err != nil {
		return p.failJSON(dec, p.rows, err, "")
	}
	if dec.More() {
		return p.failJSON(dec, p.rows, nil, "text behind the list of jobs, want none")
	}
	if note := nodeSizes(nodes); note != "" {
		p.notes = append(p.notes, note)
	}
	return nil
}

// jsonKinds are the words of JSON for what phillyJob is made of.
var jsonKinds = map[reflect.Kind]string{reflect.String: "string", reflect.Slice: "array", reflect.Struct: "object"}

// failJSON says what is wrong with job n, or behind it.
func (p *parser) failJSON(dec *json.Decoder, n int, err error, want string) error {
	at := dec.InputOffset()
	if syntax := (*json.SyntaxError)(nil); errors.As(err, &syntax) {
		at = max(at, syntax.Offset)
	} else if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		at, err = math.MaxInt64, errors.New("the file ends early, want the whole of it")
	} else if kind := (*json.UnmarshalTypeError)(nil); errors.As(err, &kind) {
		err = fmt.Errorf("%s is of type %s, want %s", cmp.Or(kind.Field, "the job"), kind.Value,
			jsonKinds[kind.Type.Kind()])
	}
	p.in.line = p.in.lineAt(at)
	what := want
	if err != nil {
		what = strings.Trim(strings.TrimPrefix(err.Error(), "json: ")+", "+want, ", ")
	}
	if n == 0 {
		return p.fail("%s", what)
	}
	return p.fail("job %d: %s", n, what)
}

// phillyJob appends the job that a record describes, or says what is wrong.
func (p *parser) phillyJob(record *phillyJob) (wrong string) {
	j := p.slot()
	for _, c := range []struct {
		means meaning
		text  string
	}{{jobID, record.Job}, {clockSubmit, record.Submitted}, {state, record.Status}, {user, record.User},
		{group, record.VC}} {
		if want := p.set(j, c.means, c.text); want != "" {
			return fmt.Sprintf("%s %q, %s", p.layout.named(c.means), clip(c.text), want)
		}
	}
	if len(record.Attempts) == 0 {
		p.leaveOut("no attempt is recorded")
		return ""
	}
	first, last := &record.Attempts[0], &record.Attempts[len(record.Attempts)-1]
	n := 0
	for _, place := range first.Detail {
		n += len(place.GPUs)
	}
	if n == 0 || n > MaxGPUs {
		p.leaveOut("no GPU in the first attempt")
		return ""
	}
	j.Attempts, j.Spec.GPUs = int32(len(record.Attempts)), sched.Rigid(n)
	for _, c := range []struct {
		means meaning
		name  string
		text  string
	}{{clockStart, "start_time", first.Start}, {clockEnd, "end_time", last.End}} {
		if want := p.set(j, c.means, c.text); want != "" {
			return fmt.Sprintf("%s %q, %s", c.name, clip(c.text), want)
		}
	}
	if p.drop == "" {
		p.ran(j)
	}
	return ""
}

// noteNodes keeps for each node the largest number of GPUs it must have.
func noteNodes(nodes map[string]int, places []phillyPlace) {
	for _, place := range places {
		n := len(place.GPUs)
		for _, name := range place.GPUs {
			if k, err := strconv.Atoi(strings.TrimPrefix(name, "gpu")); err == nil && k < 1024 {
				n = max(n, k+1)
			}
		}
		if n > nodes[place.IP] {
			nodes[strings.Clone(place.IP)] = n
		}
	}
}

// nodeSizes tells how many nodes there are of each size.
func nodeSizes(nodes map[string]int) string {
	if len(nodes) == 0 {
		return ""
	}
	sizes := make(map[int]int)
	for _, n := range nodes {
		sizes[n]++
	}
	var parts []string
	for _, n := range slices.Sorted(maps.Keys(sizes)) {
		parts = append(parts, fmt.Sprintf("%d with %d GPUs", sizes[n], n))
	}
	return fmt.Sprintf("placements show %d nodes: %s; go by them where a machine list says otherwise", len(nodes),
		strings.Join(parts, ", "))
}
