package apitest

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/trainyard/trainyard/api"
)

// states are the words for how a job stands.
var states = []string{"held", "waiting", "starting", "running", "stopping", "done"}

// filled is a path of the description with something for each of its parameters.
func filled(s *suite, path string) string {
	return strings.NewReplacer("{job}", url.PathEscape(s.Running), "{seq}", "1", "{node}", url.PathEscape(s.Node),
		"{gpu}", "0", "{id}", "none").Replace(path)
}

func (s *suite) openapi(t *testing.T) {
	if s.doc.OpenAPI != "3.1.0" || len(s.doc.Paths) == 0 {
		t.Errorf("openapi %q with %d paths", s.doc.OpenAPI, len(s.doc.Paths))
	}
}

func (s *suite) metrics(t *testing.T) {
	text := s.text(t, "/metrics", nil)
	for _, want := range []string{`trainyard_jobs{state="running"} `, "trainyard_queue_length ", "trainyard_gpus{"} {
		if !strings.Contains(text, want) {
			t.Errorf("no figure %s", want)
		}
	}
}

func (s *suite) info(t *testing.T) {
	doc, err := s.Client.Info(t.Context())
	switch {
	case err != nil:
		t.Fatal(err)
	case doc.Schema != "trainyard.info/v1" || doc.Host != s.Kind || doc.System == "" || doc.Settings == nil:
		t.Errorf("%+v, want a host of kind %s", doc, s.Kind)
	case doc.Problems == nil || !slices.IsSorted(doc.Can):
		t.Errorf("%+v, want a list of problems, and capabilities in order", doc)
	case (s.Kind == api.Machine) != (doc.State != "" && doc.PID > 0):
		t.Errorf("state %q, pid %d of a %s", doc.State, doc.PID, s.Kind)
	}
	if _, err := time.Parse(time.RFC3339, doc.Since); err != nil {
		t.Error(err)
	}
}

// nodes checks that the flat list, the nodes and the jobs say the same.
func (s *suite) nodes(t *testing.T) {
	doc, err := s.Client.Nodes(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if doc.Schema != "trainyard.nodes/v1" || doc.Unit == "" || len(doc.Nodes) == 0 {
		t.Errorf("schema %q, unit %q, %d nodes", doc.Schema, doc.Unit, len(doc.Nodes))
	}
	s.listed(t, &doc)
	j, err := s.Client.Job(t.Context(), s.Running)
	if err != nil {
		t.Fatal(err)
	}
	held := 0
	for _, g := range doc.GPUs {
		if slices.Contains(g.Jobs, j.ID) {
			held++
		}
	}
	if held != s.Width || len(j.GPUs) != s.Width {
		t.Errorf("job %s holds %d GPUs of nodes and %v, want %d", s.Running, held, j.GPUs, s.Width)
	}
}

// listed checks that the GPUs of all nodes, in order, are the flat list.
func (s *suite) listed(t *testing.T, doc *api.Nodes) {
	t.Helper()
	at := 0
	for _, n := range doc.Nodes {
		if n.Name == "" || !slices.Contains([]string{"up", "asleep", "draining", "down", "gone"}, n.State) {
			t.Errorf("node %+v", n)
		}
		for _, name := range n.GPUs {
			g := &doc.GPUs[at]
			if at++; g.Name != name || g.Type != n.Type || s.Kind == api.Cluster && g.Node != n.Name {
				t.Errorf("GPU %+v, want %s of type %s on %s", g, name, n.Type, n.Name)
			}
		}
	}
	if at != len(doc.GPUs) {
		t.Errorf("%d GPUs, and %d on nodes", len(doc.GPUs), at)
	}
}

func (s *suite) jobs(t *testing.T) {
	all := s.list(t, api.Filter{})
	refs := make(map[string]bool)
	for i := range all.Jobs {
		j := &all.Jobs[i]
		if !slices.Contains(states, j.State) || j.Name == "" || j.GPUs == nil || j.Submitted == "" {
			t.Errorf("job %+v", j)
		}
		if j.Ref == "" || refs[j.Ref] || j.Owner == "" || j.Owner != j.User {
			t.Errorf("job %d: ref %q, owner %q of user %q", j.ID, j.Ref, j.Owner, j.User)
		}
		refs[j.Ref] = true
		if i > 0 && all.Jobs[i-1].ID >= j.ID {
			t.Errorf("job %d behind %d", j.ID, all.Jobs[i-1].ID)
		}
	}
	s.filtered(t, &all)
	s.refused(t, http.MethodGet, "/v1/jobs?state=dead", "", "malformed", http.StatusBadRequest, api.ErrMalformed)
}

// checkTable checks that a table lists the jobs that a document does.
func checkTable(s *suite, t *testing.T) {
	all := s.list(t, api.Filter{})
	got, err := s.Client.Table(t.Context(), api.Filter{})
	if err != nil || got.Unit != all.Unit || got.Now == "" || len(got.Jobs) != len(all.Jobs) {
		t.Fatalf("%d jobs of %q at %q, %v, want %d of %q", len(got.Jobs), got.Unit, got.Now, err, len(all.Jobs),
			all.Unit)
	}
	for i := range all.Jobs {
		g, w := &got.Jobs[i], &all.Jobs[i]
		if g.ID != w.ID || g.Name != w.Name || g.User != w.User || g.State != w.State || g.Outcome != w.Outcome ||
			g.Min != w.Min || g.Max != w.Max || !slices.Equal(g.GPUs, w.GPUs) {
			t.Errorf("job %+v, want %+v", g, w)
		}
	}
	s.refused(t, http.MethodGet, "/v1/table?state=dead", "", "malformed", http.StatusBadRequest, api.ErrMalformed)
}

// filtered checks what a list leaves out of all jobs.
func (s *suite) filtered(t *testing.T, all *api.Jobs) {
	t.Helper()
	for _, state := range []string{"running", "waiting", "done"} {
		for _, j := range s.list(t, api.Filter{States: []string{state}}).Jobs {
			if j.State != state {
				t.Errorf("job %d is %s, asked for %s", j.ID, j.State, state)
			}
		}
	}
	owner := all.Jobs[0].User
	for _, j := range s.list(t, api.Filter{User: owner}).Jobs {
		if j.User != owner {
			t.Errorf("job %d of %s, asked for %s", j.ID, j.User, owner)
		}
	}
	last := s.list(t, api.Filter{Limit: 1})
	if len(last.Jobs) != 1 || last.Total != all.Total || last.Jobs[0].ID != all.Jobs[len(all.Jobs)-1].ID {
		t.Errorf("the latest: %+v of %d, want that of %d", last.Jobs, last.Total, all.Total)
	}
}

func (s *suite) list(t *testing.T, f api.Filter) api.Jobs {
	t.Helper()
	doc, err := s.Client.Jobs(t.Context(), f)
	if err != nil {
		t.Fatal(err)
	}
	if doc.Schema != "trainyard.jobs/v1" || doc.Unit == "" || doc.System == "" || len(doc.Jobs) == 0 {
		t.Fatalf("%+v: schema %q, unit %q, system %q, %d jobs", f, doc.Schema, doc.Unit, doc.System, len(doc.Jobs))
	}
	return doc
}

// job asks for the same job by its number, its ref and its name.
func (s *suite) job(t *testing.T) {
	first, err := s.Client.Job(t.Context(), s.Running)
	if err != nil {
		t.Fatal(err)
	}
	for _, text := range []string{strconv.Itoa(first.ID), first.Ref, s.Name} {
		if j, err := s.Client.Job(t.Context(), text); err != nil || j.ID != first.ID || j.State != "running" {
			t.Errorf("%q: job %d %s, %v, want %d", text, j.ID, j.State, err, first.ID)
		}
	}
	for _, text := range []string{"no-such", "no.such", "99999999"} {
		s.refused(t, http.MethodGet, "/v1/jobs/"+text, "", "no-job", http.StatusNotFound, api.ErrNoJob)
	}
}

func (s *suite) why(t *testing.T) {
	doc, err := s.Client.Why(t.Context(), s.Waiting, api.AsSuits, 500*time.Millisecond)
	switch {
	case err != nil:
		t.Fatal(err)
	case doc.Schema != "trainyard.why/v1" || doc.Sentence == "" || doc.Code == "" || doc.Job.State != "waiting":
		t.Errorf("%+v", doc)
	case doc.Ahead == nil || doc.Remedies == nil || doc.Figures == nil || doc.Job.Why == "":
		t.Errorf("%+v: want lists, and a reason of the job", doc)
	}
	doc, err = s.Client.Why(t.Context(), s.Running, 0, 0)
	if err != nil || !strings.HasPrefix(doc.Sentence, "runs on ") || doc.Start != nil {
		t.Errorf("%q, start %v, %v: want one that runs", doc.Sentence, doc.Start, err)
	}
	s.outlook(t)
}

// outlook checks that a list says of each job what why says of it at the same moment, where the list is asked for that.
func (s *suite) outlook(t *testing.T) {
	job := func(f api.Filter) *api.Job {
		t.Helper()
		doc, err := s.Client.Jobs(t.Context(), f)
		if err != nil {
			t.Fatal(err)
		}
		for i := range doc.Jobs {
			if j := &doc.Jobs[i]; j.Ref == s.Waiting || strconv.Itoa(j.ID) == s.Waiting || j.Name == s.Waiting {
				return j
			}
		}
		t.Fatalf("%s is not listed", s.Waiting)
		return nil
	}
	if j := job(api.Filter{}); j.Start != nil || j.End != nil {
		t.Errorf("starts %+v, ends %+v, want nothing that was not asked for", j.Start, j.End)
	}
	for tries := 0; ; tries++ { // what happens in between makes it another moment
		listed := job(api.Filter{Ahead: 5 * time.Second})
		why, err := s.Client.Why(t.Context(), s.Waiting, 5*time.Second, 0)
		switch {
		case err != nil:
			t.Fatal(err)
		case reflect.DeepEqual(listed.Start, why.Start) && reflect.DeepEqual(listed.End, why.End):
			return
		case tries == 100:
			t.Fatalf("listed %+v to %+v, why says %+v to %+v", listed.Start, listed.End, why.Start, why.End)
		}
	}
}

func (s *suite) wait(t *testing.T) {
	if j, err := s.Client.Wait(t.Context(), s.Done); err != nil || j.State != "done" || j.Outcome == "" ||
		j.Ended == "" {
		t.Errorf("%+v, %v: want it done", j, err)
	}
	var j api.Job
	if s.document(t, "/v1/jobs/"+url.PathEscape(s.Running)+"/wait?seconds=0", &j); j.State != "running" {
		t.Errorf("%s is %s, want running", s.Running, j.State)
	}
}

// event is one event of a stream.
type event struct{ kind, id, data string }

// stream returns the events of a stream until enough says so, or it ends.
func (s *suite) stream(t *testing.T, path, behind string, enough func(event) bool) (list []event) {
	t.Helper()
	var header http.Header
	if behind != "" {
		header = http.Header{"Last-Event-Id": {behind}}
	}
	resp, err := s.Client.Do(t.Context(), http.MethodGet, path, nil, header)
	if err != nil {
		t.Fatalf("%s: %v", path, err)
	}
	defer resp.Body.Close()
	err = api.ReadEvents(resp.Body, func(e api.StreamEvent) error {
		list = append(list, event{e.Kind, e.ID, string(e.Data)})
		if enough(list[len(list)-1]) {
			return io.EOF
		}
		return nil
	})
	if err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Fatalf("%s: %v", path, err)
	}
	return list
}

// logs reads an output whole, by its last lines, as text, and on from the middle by ids that it does not look into.
func (s *suite) logs(t *testing.T) {
	path := "/v1/jobs/" + url.PathEscape(s.Running) + "/logs"
	var text strings.Builder
	end, err := s.Client.Logs(t.Context(), s.Running, api.LogOptions{Tail: -1}, func(o api.Output) error {
		text.WriteString(o.Text)
		return nil
	})
	if err != nil || text.String() != s.Output || end.State != "running" || end.Attempt != 1 {
		t.Errorf("%q, %+v, %v, want %q", text.String(), end, err, s.Output)
	}
	if got := s.text(t, path, http.Header{"Accept": {"text/plain"}}); got != s.Output {
		t.Errorf("as text %q, want %q", got, s.Output)
	}
	lines := strings.SplitAfter(strings.TrimSuffix(s.Output, "\n"), "\n")
	last := func(e event) bool { return e.kind == "end" }
	if got := outputOf(t, s.stream(t, path+"?tail=1", "", last)); got != lines[len(lines)-1]+"\n" {
		t.Errorf("the last line is %q, want that of %q", got, s.Output)
	}
	rest := s.Output
	for _, e := range s.stream(t, path, "", last) {
		if e.kind != "output" {
			continue
		}
		rest = strings.TrimPrefix(rest, outputOf(t, []event{e}))
		if got := outputOf(t, s.stream(t, path, e.id, last)); got != rest {
			t.Errorf("behind %q: %q, want %q", e.id, got, rest)
		}
	}
	s.refused(t, http.MethodGet, path+"?attempt=99", "", "refused", http.StatusUnprocessableEntity, api.ErrRefused)
	resp, err := s.Client.Do(t.Context(), http.MethodGet, path, nil, http.Header{"Last-Event-Id": {"nowhere"}})
	if !errors.Is(err, api.ErrMalformed) {
		t.Errorf("behind nowhere: %v", err)
	}
	if err == nil {
		_ = resp.Body.Close()
	}
}

// outputOf puts the pieces of a stream together.
func outputOf(t *testing.T, list []event) string {
	t.Helper()
	var text strings.Builder
	for _, e := range list {
		var out api.Output
		if e.kind != "output" {
			continue
		}
		if err := json.Unmarshal([]byte(e.data), &out); err != nil || out.Attempt != 1 {
			t.Errorf("%+v: %v", e, err)
		}
		text.WriteString(out.Text)
	}
	return text.String()
}

// events reads from the first event that is kept, and on behind it.
func (s *suite) events(t *testing.T) {
	first := s.firstEvent(t)
	n := 0
	list := s.stream(t, fmt.Sprintf("/v1/events?from=%d", first), "", func(event) bool { n++; return n == 3 })
	if len(list) != 3 || list[0].id != strconv.FormatUint(first, 10) {
		t.Fatalf("from %d: %+v", first, list)
	}
	for i, e := range list {
		var line struct{ Seq uint64 }
		if err := json.Unmarshal([]byte(e.data), &line); err != nil || line.Seq != first+uint64(i) ||
			e.kind != "event" {
			t.Errorf("%+v: %v, want event %d", e, err, first+uint64(i))
		}
	}
	behind := s.stream(t, "/v1/events", list[0].id, func(event) bool { return true })
	if len(behind) != 1 || behind[0] != list[1] {
		t.Errorf("behind %s: %+v, want %+v", list[0].id, behind, list[1])
	}
	fresh := s.stream(t, "/v1/events", "", func(event) bool { return true })
	if len(fresh) != 1 || fresh[0].id == "" || fresh[0].data != "" {
		t.Errorf("of what is new: %+v, want a first id alone", fresh)
	}
	s.refused(t, http.MethodGet, "/v1/events?from=x", "", "malformed", http.StatusBadRequest, api.ErrMalformed)
}

// firstEvent is the first event that is kept: a host that forgets says so where more is wanted.
func (s *suite) firstEvent(t *testing.T) uint64 {
	t.Helper()
	resp, err := s.Client.Do(t.Context(), http.MethodGet, "/v1/events?from=0", nil, nil)
	if err == nil {
		_ = resp.Body.Close()
		return 1
	}
	p := (*api.Problem)(nil)
	if !errors.As(err, &p) || p.Code != "gone" || p.Status != http.StatusGone || p.From < 2 ||
		!errors.Is(err, api.ErrGone) {
		t.Fatalf("from 0: %v, want all, or code gone and from where on there are events", err)
	}
	s.refused(t, http.MethodGet, fmt.Sprintf("/v1/events?from=%d", p.From-1), "", "gone", http.StatusGone, api.ErrGone)
	return p.From
}

func (s *suite) log(t *testing.T) {
	var lines []string
	for line := range strings.Lines(s.text(t, "/v1/log", nil)) {
		lines = append(lines, line)
		if !json.Valid([]byte(line)) {
			t.Fatalf("line %d of the log is %q", len(lines), line)
		}
	}
	if len(lines) < 4 || !strings.Contains(lines[0], `"schema"`) {
		t.Errorf("%d lines, the first %.100q, want a header and events", len(lines), lines)
	}
}

// explain has a decision about the running job decided again.
func (s *suite) explain(t *testing.T) {
	for line := range strings.Lines(s.text(t, "/v1/log", nil)) {
		var e struct {
			Seq   uint64
			Event string
		}
		if json.Unmarshal([]byte(line), &e) != nil || e.Event != "decided" {
			continue
		}
		doc, err := s.Client.Explain(t.Context(), e.Seq)
		if err != nil || doc.Schema != "trainyard.decision/v1" || doc.Seq != e.Seq || doc.Sentence == "" {
			t.Errorf("%+v, %v", doc, err)
		}
		s.refused(t, http.MethodGet, "/v1/decisions/1", "", "no-decision", http.StatusConflict, api.ErrNoDecided)
		s.refused(t, http.MethodGet, "/v1/decisions/99999999", "", "no-event", http.StatusNotFound, api.ErrNoEvent)
		return
	}
	t.Error("nothing was decided")
}

// problems asks for what every host refuses alike.
func (s *suite) problems(t *testing.T) {
	for _, c := range []struct {
		method, path, body, code string
		status                   int
		kind                     error
	}{
		{"GET", "/v1/nowhere", "", "forbidden", http.StatusNotFound, api.ErrForbidden},
		{"DELETE", "/v1/jobs", "", "forbidden", http.StatusMethodNotAllowed, api.ErrForbidden},
		{"GET", "/v1/jobs/../info", "", "forbidden", http.StatusNotFound, api.ErrForbidden},
		{"GET", "/v1/jobs", "{}", "malformed", http.StatusRequestEntityTooLarge, api.ErrMalformed},
		{"POST", "/v1/nodes/no-such/drain", "", "no-node", http.StatusNotFound, api.ErrNoNode},
		{"POST", "/v1/gpus/no-such/drain", "", "no-gpu", http.StatusNotFound, api.ErrNoGPU},
	} {
		operation := map[string]string{"no-node": "drain-node", "no-gpu": "drain-gpu"}[c.code]
		if operation != "" && !s.serves(t, operation) {
			continue
		}
		s.refused(t, c.method, c.path, c.body, c.code, c.status, c.kind)
	}
}

// serves reports whether the host serves an operation.
func (s *suite) serves(t *testing.T, operation string) bool {
	t.Helper()
	doc, err := s.Client.Info(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return slices.Contains(doc.Can, operation)
}
