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
// The machine list that is published next to the log contradicts it (philly-traces issue 8): the sizes of nodes follow
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

func readPhillyLog(in *input, r *row, jobs *intake) (notes []string, err error) {
	dec := json.NewDecoder(in.reader())
	dec.DisallowUnknownFields()
	if open, err := dec.Token(); err != nil || open != json.Delim('[') {
		return nil, failJSON(in, dec, 0, err, "want a list of jobs in brackets")
	}
	nodes := make(map[string]int)
	for n := 1; dec.More(); n++ {
		var record phillyJob
		if err := dec.Decode(&record); err != nil {
			return nil, failJSON(in, dec, n, err, "")
		}
		if wrong := record.read(r, jobs.slot()); wrong != "" {
			return nil, failJSON(in, dec, n, errors.New(wrong), "")
		}
		for i := range record.Attempts {
			noteNodes(nodes, record.Attempts[i].Detail)
		}
		in.line = in.lineAt(dec.InputOffset())
		if err := jobs.enter(r, in); err != nil {
			return nil, err
		}
	}
	if _, err := dec.Token(); err != nil {
		return nil, failJSON(in, dec, jobs.rows, err, "")
	}
	if dec.More() {
		return nil, failJSON(in, dec, jobs.rows, nil, "text behind the list of jobs, want none")
	}
	if note := nodeSizes(nodes); note != "" {
		notes = append(notes, note)
	}
	return notes, nil
}

// jsonKinds are the words of JSON for what phillyJob is made of.
var jsonKinds = map[reflect.Kind]string{reflect.String: "string", reflect.Slice: "array", reflect.Struct: "object"}

// failJSON says what is wrong with job n, or behind it.
func failJSON(in *input, dec *json.Decoder, n int, err error, want string) error {
	at := dec.InputOffset()
	if syntax := (*json.SyntaxError)(nil); errors.As(err, &syntax) {
		at = max(at, syntax.Offset)
	} else if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		at, err = math.MaxInt64, errors.New("the file ends early, want the whole of it")
	} else if kind := (*json.UnmarshalTypeError)(nil); errors.As(err, &kind) {
		err = fmt.Errorf("%s is of type %s, want %s", cmp.Or(kind.Field, "the job"), kind.Value,
			jsonKinds[kind.Type.Kind()])
	}
	in.line = in.lineAt(at)
	what := want
	if err != nil {
		what = strings.Trim(strings.TrimPrefix(err.Error(), "json: ")+", "+want, ", ")
	}
	if n == 0 {
		return in.fail("%s", what)
	}
	return in.fail("job %d: %s", n, what)
}

// read sets j to the job that the record describes, or returns what is wrong.
func (record *phillyJob) read(r *row, j *Job) (wrong string) {
	r.drop = ""
	if wrong = setAll(r, j, []value{{jobID, "jobid", record.Job}, {clockSubmit, "submitted_time", record.Submitted},
		{state, "status", record.Status}, {user, "user", record.User}, {group, "vc", record.VC}}); wrong != "" {
		return wrong
	}
	if len(record.Attempts) == 0 {
		r.leaveOut("no attempt is recorded")
		return ""
	}
	first, last := &record.Attempts[0], &record.Attempts[len(record.Attempts)-1]
	n := 0
	for _, place := range first.Detail {
		n += len(place.GPUs)
	}
	if n == 0 || n > MaxGPUs {
		r.leaveOut("no GPU in the first attempt")
		return ""
	}
	j.Attempts, j.Spec.GPUs = int32(len(record.Attempts)), sched.Rigid(n)
	wrong = setAll(r, j, []value{{clockStart, "start_time", first.Start}, {clockEnd, "end_time", last.End}})
	if wrong == "" && r.drop == "" {
		r.ran(j)
	}
	return wrong
}

// value is the value of a field of a record, which stands for a column.
type value struct {
	means      meaning
	name, text string
}

// setAll sets j to the values, or returns what is wrong with the first that is.
func setAll(r *row, j *Job, values []value) (wrong string) {
	for _, v := range values {
		if want := r.set(j, v.means, v.text); want != "" {
			return fmt.Sprintf("%s %q, %s", v.name, clip(v.text), want)
		}
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

// nodeSizes says how many nodes there are of each size.
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
