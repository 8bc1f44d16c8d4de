package api

import (
	"bytes"
	"encoding/json"
	"slices"
	"strconv"
	"unicode/utf8"
)

// jobsKey stands before the list in a document of jobs. Within a text of JSON it cannot stand: its quotes would be
// escaped.
const jobsKey = `"jobs":[`

// readJobs reads a document of jobs, of which there may be 100,000. What is written plainly, as a Server does, is read
// by a jobScan, and what is not, or has names that this does not know, by encoding/json, which takes ten times as long:
// the result is the same.
func readJobs(b []byte, doc *Jobs) error {
	from := bytes.Index(b, []byte(jobsKey)) + len(jobsKey)
	if from < len(jobsKey) {
		return json.Unmarshal(b, doc)
	}
	s := jobScan{b: b, i: from}
	list, ok := s.list(bytes.Count(b[from:], []byte(`{"id":`)))
	if !ok {
		return json.Unmarshal(b, doc)
	}
	if err := json.Unmarshal(slices.Concat(b[:from], b[s.i:]), doc); err != nil { // the rest of it
		return err
	}
	if doc.Jobs == nil || len(doc.Jobs) > 0 { // it was another list
		return json.Unmarshal(b, doc)
	}
	doc.Jobs = list
	return nil
}

// jobScan reads jobs from left to right, without blanks between. It gives up where anything is not as it expects.
type jobScan struct {
	b      []byte
	i      int
	failed bool
}

// list reads about n jobs, up to the end of their list.
func (s *jobScan) list(n int) ([]Job, bool) {
	list := make([]Job, 0, n)
	if s.next() == ']' {
		return list, true
	}
	for {
		from, j := s.i, Job{}
		if s.job(&j); s.failed {
			s.i, s.failed = from, false
			if j = (Job{}); json.Unmarshal(s.value(), &j) != nil {
				return nil, false
			}
		}
		list = append(list, j)
		if s.next() == ']' {
			return list, true
		}
		if s.expect(','); s.failed {
			return nil, false
		}
	}
}

// job reads a job, or fails.
func (s *jobScan) job(j *Job) {
	s.expect('{')
	for !s.failed {
		key := s.raw()
		s.expect(':')
		s.field(j, string(key))
		if s.next() == '}' {
			s.i++
			return
		}
		s.expect(',')
	}
}

// field reads the value of a field.
func (s *jobScan) field(j *Job, key string) { //nolint:funlen // a table
	switch key {
	case "id":
		j.ID = s.whole()
	case "name":
		j.Name = s.text()
	case "user":
		j.User = s.text()
	case "model":
		j.Model = s.text()
	case "class":
		j.Class = s.text()
	case "state":
		j.State = s.text()
	case "outcome":
		j.Outcome = s.text()
	case "text":
		j.Text = s.text()
	case "why":
		j.Why = s.text()
	case "gpus_min":
		j.Min = s.whole()
	case "gpus_want":
		j.Want = s.whole()
	case "gpus_max":
		j.Max = s.whole()
	case "gpus":
		j.GPUs = s.texts()
	case "attempt":
		j.Attempt = s.whole()
	case "preemptions":
		j.Preemptions = s.whole()
	case "resizes":
		j.Resizes = s.whole()
	case "submitted":
		j.Submitted = s.text()
	case "started":
		j.Started = s.text()
	case "ended":
		j.Ended = s.text()
	case "queue_s":
		j.QueueSec = s.number()
	case "run_s":
		j.RunSec = s.number()
	case "gpu_seconds":
		j.GPUSeconds = s.number()
	case "energy_j":
		j.EnergyJ = s.number()
	case "exit_code":
		j.ExitCode = s.whole()
	case "priority":
		j.Priority = s.whole()
	case "batch":
		j.Batch = s.whole()
	case "step":
		j.Step = int64(s.whole())
	case "total":
		j.Total = int64(s.whole())
	case "speed":
		j.Speed = s.number()
	default: // few jobs have more
		s.failed = true
	}
}

// next returns the byte that comes next, 0 at the end.
func (s *jobScan) next() byte {
	if s.i == len(s.b) {
		return 0
	}
	return s.b[s.i]
}

func (s *jobScan) expect(c byte) {
	if s.failed = s.failed || s.next() != c; !s.failed {
		s.i++
	}
}

// raw reads a text that is its own meaning.
func (s *jobScan) raw() []byte {
	s.expect('"')
	from := s.i
	for ; s.i < len(s.b); s.i++ {
		switch c := s.b[s.i]; {
		case c == '"':
			s.i++
			return s.b[from : s.i-1]
		case c == '\\' || c < ' ':
			s.failed = true
			return nil
		}
	}
	s.failed = true
	return nil
}

func (s *jobScan) text() string {
	b := s.raw()
	s.failed = s.failed || !utf8.Valid(b)
	return string(b)
}

func (s *jobScan) texts() []string {
	list := []string{}
	for s.expect('['); !s.failed && s.next() != ']'; {
		if len(list) > 0 {
			s.expect(',')
		}
		list = append(list, s.text())
	}
	s.expect(']')
	return list
}

// digits reads what a number may be made of.
func (s *jobScan) digits() string {
	from := s.i
	for s.i < len(s.b) && (s.b[s.i] >= '0' && s.b[s.i] <= '9' || bytes.IndexByte([]byte("+-.eE"), s.b[s.i]) >= 0) {
		s.i++
	}
	return string(s.b[from:s.i])
}

func (s *jobScan) whole() int {
	n, err := strconv.Atoi(s.digits())
	s.failed = s.failed || err != nil
	return n
}

func (s *jobScan) number() float64 {
	x, err := strconv.ParseFloat(s.digits(), 64)
	s.failed = s.failed || err != nil
	return x
}

// value passes over a value, whatever it is, and returns it. It is an object or nothing that json.Unmarshal
// understands.
func (s *jobScan) value() []byte {
	d := json.NewDecoder(bytes.NewReader(s.b[s.i:]))
	var text json.RawMessage
	if d.Decode(&text) != nil {
		return nil
	}
	s.i += int(d.InputOffset())
	return text
}
