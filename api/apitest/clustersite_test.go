package apitest_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/trainyard/trainyard/api"
	"github.com/trainyard/trainyard/api/apitest"
	"github.com/trainyard/trainyard/api/site"
	"github.com/trainyard/trainyard/host"
	"github.com/trainyard/trainyard/sched"
)

// clusterSite is the world of a pretended cluster. A bearer token is a user: root may do all, NAME@NAMESPACE what
// concerns jobs of that namespace.
type clusterSite struct {
	apitest.ReadSite
	host    *host.Host
	follows atomic.Bool // another process leads

	mu      sync.Mutex
	objects map[string]bool // that are durable, by ref
}

var _ site.Site = (*clusterSite)(nil)

func (*clusterSite) Identify(r *http.Request) (api.Who, func() bool) {
	name, _ := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
	role := api.User
	switch name {
	case "":
		return api.Who{}, nil
	case "root":
		role = api.Admin
	}
	return api.Who{Name: name, Role: role}, func() bool { return true }
}

// May goes by namespaces: no role of the table counts.
func (*clusterSite) May(ctx context.Context, who api.Who, right site.Right) error {
	switch {
	case who.Name == "root":
		return nil
	case strings.Contains(right.Operation, "drain"):
		return api.Refusal(http.StatusForbidden, "%s may not patch nodes", who.Name)
	case right.Job == sched.None:
		return nil
	}
	owner, err := right.Owner(ctx)
	if err == nil && !strings.HasSuffix(who.Name, "@"+owner) {
		err = api.Refusal(http.StatusForbidden, "%s may not %s in namespace %s", who.Name, right.Operation, owner)
	}
	return err
}

func (*clusterSite) Ref(_ sched.JobID, spec *sched.JobSpec) string {
	return spec.User + "." + spec.Name
}

func (s *clusterSite) Expected(text string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.objects[text]
}

func (s *clusterSite) Ready() error {
	if s.follows.Load() {
		return api.ErrNotLeading
	}
	return nil
}

func (*clusterSite) Missing(operation string) (string, bool) {
	instead := map[string]string{"log": "events", "drain": "POST /v1/nodes/{node}/drain",
		"undrain": "POST /v1/nodes/{node}/undrain"}[operation]
	return instead, instead != ""
}

// Read takes NAMESPACE.NAME GPUS.
func (s *clusterSite) Read(_ context.Context, who api.Who, in *api.Submission) (site.Batch, error) {
	ref, width, _ := strings.Cut(in.File, " ")
	gpus, err := strconv.Atoi(width)
	owner, name := s.Split(ref)
	switch {
	case err != nil || name == "":
		return nil, fmt.Errorf("%w: %q, want NAMESPACE.NAME GPUS", api.ErrMalformed, in.File)
	case who.Name != "root" && !strings.HasSuffix(who.Name, "@"+owner):
		return nil, api.Refusal(http.StatusForbidden, "%s may not create jobs in namespace %s", who.Name, owner)
	}
	return &object{s, ref, sched.JobSpec{Name: name, User: owner, GPUs: sched.Rigid(gpus), Task: "uid"},
		in.Paused}, nil
}

// object is a job that a user wants.
type object struct {
	s      *clusterSite
	ref    string
	spec   sched.JobSpec
	paused bool
}

func (o *object) Names() []string { return []string{o.spec.Name} }

// Submit makes the object. The observer of the cluster sees it later: until then it has no number.
func (o *object) Submit(ctx context.Context) ([]site.Accepted, error) {
	o.s.mu.Lock()
	defer o.s.mu.Unlock()
	if o.s.objects == nil {
		o.s.objects = make(map[string]bool)
	}
	o.s.objects[o.ref] = true
	time.AfterFunc(50*time.Millisecond, func() {
		_, _ = o.s.host.Submit(context.WithoutCancel(ctx), func(sched.JobID, sched.Time) []*sched.JobSpec {
			return []*sched.JobSpec{&o.spec}
		}, host.Submitting{Paused: o.paused})
	})
	return []site.Accepted{{ID: sched.None, Ref: o.ref}}, nil
}

func (s *clusterSite) Command(ctx context.Context, _ api.Who, job sched.JobID, c sched.Command) error {
	return s.host.Command(ctx, job, c)
}

func (s *clusterSite) Change(ctx context.Context, _ api.Who, job sched.JobID, change func(*sched.JobChange)) error {
	return s.host.Change(ctx, job, change, func(_ *sched.JobSpec, c *sched.JobChange) error { return c.Validate() })
}

func (s *clusterSite) Drain(ctx context.Context, _ api.Who, nodes []sched.NodeID, on bool) error {
	return s.host.Drain(ctx, func(*sched.View) []sched.NodeID { return nodes }, on)
}

func (s *clusterSite) DrainGPUs(ctx context.Context, _ api.Who, gpus []sched.GPUID, on bool) error {
	return s.host.Post(ctx, func(*sched.View, sched.JobID, sched.Time) (events []sched.Event) {
		state := sched.GPUInUse
		if on {
			state = sched.GPUWithheld
		}
		for _, g := range gpus {
			events = append(events, sched.Event{Kind: sched.GPUChanged, Value: float64(g), Code: int32(state)})
		}
		return events
	})
}

// Open returns three lines on each of two ranks. A place is L and the number of lines before it, but for site.Start.
func (*clusterSite) Open(_ context.Context, from site.Source) (site.Output, error) {
	if from.Rank > 1 {
		return nil, fmt.Errorf("%w: rank %d, there are 2", api.ErrRefused, from.Rank)
	}
	return lines{fmt.Sprintf("rank %d\n", from.Rank), "zwei €\n", "three\n"}, nil
}

func (*clusterSite) Last(site.Source) (time.Time, bool) { return time.Time{}, false }

func (*clusterSite) Tail(sched.JobID, int32, int) []string { return nil }

func (*clusterSite) Place(text string) error {
	number, ok := strings.CutPrefix(text, "L")
	if _, err := strconv.ParseUint(number, 10, 8); text != site.Start && (!ok || err != nil) {
		return fmt.Errorf("%w: place %q", api.ErrMalformed, text)
	}
	return nil
}

// lines is one output.
type lines []string

func (l lines) at(place string) int {
	n, _ := strconv.Atoi(strings.TrimPrefix(place, "L"))
	return n
}

func (l lines) Next(place string, _ bool) ([]byte, string, error) {
	at := l.at(place)
	if at >= len(l) {
		return nil, place, nil
	}
	return []byte(l[at]), fmt.Sprintf("L%d", at+1), nil
}

func (l lines) Tail(place string, count int) string {
	return fmt.Sprintf("L%d", max(l.at(place), len(l)-count))
}

func (lines) Close() error { return nil }

// required returns the fields that the description of a host requires, by document.
func required(t *testing.T, c *api.Client) map[string][]string {
	t.Helper()
	resp, err := c.Do(t.Context(), http.MethodGet, "/openapi.json", nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	var doc struct {
		Components struct {
			Schemas map[string]struct{ Required []string }
		}
	}
	if err := json.NewDecoder(resp.Body).Decode(&doc); err != nil {
		t.Fatal(err)
	}
	list := make(map[string][]string)
	for name, schema := range doc.Components.Schemas {
		list[name] = slices.Clone(schema.Required)
	}
	return list
}
