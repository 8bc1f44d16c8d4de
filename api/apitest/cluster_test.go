package apitest_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/trainyard/trainyard/api"
	"github.com/trainyard/trainyard/api/apitest"
	"github.com/trainyard/trainyard/api/server"
	"github.com/trainyard/trainyard/eventlog"
	"github.com/trainyard/trainyard/host"
	"github.com/trainyard/trainyard/host/hosttest"
	"github.com/trainyard/trainyard/metrics"
	"github.com/trainyard/trainyard/sched"
	"github.com/trainyard/trainyard/system"
)

// The pretended cluster.
const (
	clusterNodes = 500
	nodeGPUs     = 8
	keptEvents   = 400 // lines that its store keeps
)

// namespaces own its jobs.
var namespaces = []string{"nlp", "speech", "vision"}

// pretended is a host that decides for a cluster of 500 nodes that are not there. Its store is memory; no file is read
// or written.
type pretended struct {
	*host.Host
	store  *forgetful
	driver *hosttest.Driver
	books  atomic.Pointer[metrics.Recorder]
	site   *clusterSite
}

// Result returns the figures so far.
func (p *pretended) Result() (metrics.Result, []metrics.Job) {
	r := p.books.Load()
	return r.Result(p.Header().System), r.Jobs
}

// FirstEvent is the first event that the store keeps.
func (p *pretended) FirstEvent() uint64 { return p.store.first() }

// forgetful is a store that keeps the latest lines of its log.
type forgetful struct{ *hosttest.Store }

var _ host.Pager = (*forgetful)(nil)

func (f *forgetful) first() uint64 { return uint64(max(len(f.Lines())-keptEvents, 0) + 1) }

// Page returns lines from the event numbered seq on.
func (f *forgetful) Page(seq uint64, n int) ([][]byte, error) {
	if from := f.first(); seq < from {
		return nil, fmt.Errorf("event %d is gone, %d is the first", seq, from)
	}
	return f.Store.Page(seq, n)
}

// startCluster has a pretended cluster decide until the test ends.
func startCluster(t *testing.T) (*pretended, *server.Server) {
	t.Helper()
	origin := time.Now().UTC()
	h := eventlog.Header{Version: "test", Origin: origin.Format(time.RFC3339Nano), Zone: "UTC",
		Cluster: "pretended", System: "fifo-skip", Types: []string{"H100"}, NodeGPUs: nodeGPUs,
		GPUs: clusterNodes * nodeGPUs}
	meter := server.NewMeter()
	nodes := hosttest.Nodes(clusterNodes, nodeGPUs)
	for i := range nodes {
		nodes[i].Rack = int32(1 + i/20)
	}
	p := &pretended{store: &forgetful{hosttest.NewStore(hosttest.NewDisk(h))},
		driver: hosttest.NewDriver(nodes, origin)}
	opened, err := host.Open(t.Context(), host.Options{
		Store: p.store,
		System: func(h *eventlog.Header) (sched.Decider, error) {
			s, err := system.Live(h, system.Knowledge{})
			return s.Decider, err
		},
		Driver: func(*host.Start) (host.Driver, error) { return p.driver, nil },
		Recorder: func() eventlog.Sink {
			r := metrics.NewRecorder(0)
			p.books.Store(r)
			return r
		},
		Meters:  func(*host.Start) []eventlog.Sink { return []eventlog.Sink{meter} },
		Decided: meter.Decided,
		Held: func(id sched.JobID) string {
			if p.View().Jobs[id].Spec.Name == "refused" {
				return "held: exceeded quota"
			}
			return ""
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	p.Host, p.site = opened, &clusterSite{host: opened}
	answers, err := server.New(server.Options{Host: p, Site: p.site, Meter: meter, Version: "test"})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	over := make(chan error, 1)
	go func() { over <- p.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-over; err != nil && !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
		if err := p.Close(); err != nil {
			t.Error(err)
		}
	})
	return p, answers
}

// arrive submits a job of an owner and returns its ref.
func (p *pretended) arrive(t *testing.T, owner, name string, gpus int) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), apitest.Patience)
	defer cancel()
	_, err := p.Submit(ctx, func(sched.JobID, sched.Time) []*sched.JobSpec {
		return []*sched.JobSpec{{Name: name, User: owner, GPUs: sched.Rigid(gpus), Task: "uid of " + name}}
	})
	if err != nil {
		t.Fatal(err)
	}
	return owner + "." + name
}

// finish has a job run and end, and returns its ref.
func (p *pretended) finish(t *testing.T, c *api.Client, owner, name string) string {
	t.Helper()
	ref := p.arrive(t, owner, name, 1)
	apitest.Eventually(t, "done", func(ctx context.Context) bool {
		j, err := c.Job(ctx, ref)
		if err != nil {
			t.Fatal(err)
		}
		if j.State == "running" {
			p.driver.Finish(sched.JobID(j.ID))
		}
		return j.State == "done"
	})
	return ref
}

// cluster is the world of a pretended cluster: in each namespace a job called train runs, and enough others that the
// store has forgotten its first events.
func cluster(t *testing.T) apitest.World {
	t.Helper()
	p, answers := startCluster(t)
	c := apitest.Serve(t, answers)("root")
	w := apitest.World{Client: c, Kind: api.Cluster, Name: "vision.train", Output: "rank 0\nzwei €\nthree\n",
		Node: "node-7", Width: nodeGPUs}
	for _, owner := range namespaces {
		p.arrive(t, owner, "train", nodeGPUs)
	}
	w.Running = "vision.train"
	w.Done = p.finish(t, c, "speech", "done")
	for i := range 200 {
		p.arrive(t, namespaces[i%len(namespaces)], fmt.Sprintf("fills-%d", i), 1)
	}
	w.Waiting = p.arrive(t, "nlp", "wide", clusterNodes*nodeGPUs)
	w.Submit = func(name string) (api.Submission, string) {
		return api.Submission{File: fmt.Sprintf("vision.%s %d", name, clusterNodes*nodeGPUs)}, "vision." + name
	}
	for _, owner := range namespaces {
		apitest.Eventually(t, "running", func(ctx context.Context) bool {
			j, err := c.Job(ctx, owner+".train")
			return err == nil && j.State == "running"
		})
	}
	if p.FirstEvent() < 2 {
		t.Fatalf("the store forgot nothing of %d events", p.LastEvent())
	}
	return w
}

// Ensure that a host of a cluster keeps the contract.
func TestCluster(t *testing.T) { apitest.Run(t, cluster) }

// Ensure that jobs of one name in three namespaces are three jobs, whatever is asked of them.
func TestClusterNamespaces(t *testing.T) {
	p, answers := startCluster(t)
	c := apitest.Serve(t, answers)("root")
	for _, owner := range namespaces {
		p.arrive(t, owner, "train.v2", nodeGPUs) // names may have dots, namespaces have none
	}
	seen := make(map[int]bool)
	for _, owner := range namespaces {
		j, err := c.Job(t.Context(), owner+".train.v2")
		if err != nil || j.Owner != owner || j.Ref != owner+".train.v2" || j.Name != "train.v2" || seen[j.ID] {
			t.Errorf("%s: %+v, %v", owner, j, err)
		}
		seen[j.ID] = true
	}
	if _, err := c.Cancel(t.Context(), "nlp.train.v2"); err != nil { // the others of its name make it no riddle
		t.Fatal(err)
	}
	if j, err := c.Wait(t.Context(), "nlp.train.v2"); err != nil || j.Outcome != "cancelled" {
		t.Errorf("%+v, %v", j, err)
	}
	for _, owner := range []string{"speech", "vision"} {
		if j, err := c.Job(t.Context(), owner+".train.v2"); err != nil || j.State == "done" {
			t.Errorf("%+v, %v: want it untouched", j, err)
		}
	}
	for _, text := range []string{"train.v2", "v2", "nlp"} {
		if j, err := c.Job(t.Context(), text); !errors.Is(err, api.ErrNoJob) {
			t.Errorf("%q is job %d, %v", text, j.ID, err)
		}
	}
}

// Ensure that the Site decides who may do what, by namespace, and that those whom it does not know learn nothing.
func TestClusterRights(t *testing.T) {
	p, answers := startCluster(t)
	of := apitest.Serve(t, answers)
	for _, owner := range namespaces {
		p.arrive(t, owner, "train", 1)
	}
	ann := of("ann@vision")
	if _, err := ann.Pause(t.Context(), "vision.train"); err != nil {
		t.Errorf("her own: %v", err)
	}
	if _, err := ann.Pause(t.Context(), "nlp.train"); !errors.Is(err, api.ErrForbidden) {
		t.Errorf("that of another namespace: %v", err)
	}
	if _, err := ann.Submit(t.Context(), api.Submission{File: "nlp.x 1"}); !errors.Is(err, api.ErrForbidden) {
		t.Errorf("into another namespace: %v", err)
	}
	if _, err := ann.DrainNode(t.Context(), "node-1", true); !errors.Is(err, api.ErrForbidden) {
		t.Errorf("a node: %v", err)
	}
	if _, err := of("").Info(t.Context()); !errors.Is(err, api.ErrForbidden) {
		t.Errorf("unknown: %v", err)
	}
}

// Ensure that lists say of a job that rests why, as its own document does: that its user suspended it, or that the
// cluster holds it.
func TestClusterJobsThatRest(t *testing.T) {
	p, answers := startCluster(t)
	c := apitest.Serve(t, answers)("root")
	for name, want := range map[string]string{"rests": "suspended by its user", "refused": "held: exceeded quota"} {
		job := p.arrive(t, "nlp", name, 1)
		if _, err := c.Pause(t.Context(), job); err != nil {
			t.Fatal(err)
		}
		apitest.Eventually(t, name+" is held", func(ctx context.Context) bool {
			list, err := c.Jobs(ctx, api.Filter{States: []string{"held"}})
			return err == nil && slices.ContainsFunc(list.Jobs, func(j api.Job) bool {
				return j.Ref == job && j.Why == want
			})
		})
		if doc, err := c.Why(t.Context(), job, 0, 0); err != nil || doc.Sentence != want || doc.Code != "paused" {
			t.Errorf("%+v, %v, want %q", doc, err, want)
		}
	}
}

// Ensure that ranks have outputs of their own.
func TestClusterRanks(t *testing.T) {
	p, answers := startCluster(t)
	c := apitest.Serve(t, answers)("root")
	job := p.arrive(t, "nlp", "train", nodeGPUs)
	apitest.Eventually(t, "running", func(ctx context.Context) bool {
		j, err := c.Job(ctx, job)
		return err == nil && j.State == "running"
	})
	for rank, want := range []string{"rank 0\nzwei €\nthree\n", "rank 1\nzwei €\nthree\n"} {
		var got strings.Builder
		_, err := c.Logs(t.Context(), job, api.LogOptions{Tail: -1, Rank: rank}, func(o api.Output) error {
			if o.Rank != rank {
				t.Errorf("%+v, want rank %d", o, rank)
			}
			got.WriteString(o.Text)
			return nil
		})
		if err != nil || got.String() != want {
			t.Errorf("rank %d: %q, %v, want %q", rank, got.String(), err, want)
		}
	}
	_, err := c.Logs(t.Context(), job, api.LogOptions{Tail: -1, Rank: 2}, func(api.Output) error { return nil })
	if !errors.Is(err, api.ErrRefused) {
		t.Errorf("rank 2 of 2: %v", err)
	}
}

// Ensure that a process that does not lead says so, and that a client goes on with the next that does.
func TestClusterNotLeading(t *testing.T) {
	p, answers := startCluster(t)
	c := apitest.Serve(t, answers)("root")
	job := p.finish(t, c, "nlp", "done")
	p.site.follows.Store(true)
	_, err := c.Jobs(t.Context(), api.Filter{})
	problem := (*api.Problem)(nil)
	if !errors.As(err, &problem) || problem.Code != "not-leading" || problem.Status != http.StatusServiceUnavailable {
		t.Errorf("%v, want code not-leading", err)
	}
	var text strings.Builder
	if resp, err := c.Do(t.Context(), http.MethodGet, "/openapi.json", nil, nil); err != nil {
		t.Errorf("the description: %v", err)
	} else if err = resp.Write(&text); err != nil || resp.Body.Close() != nil {
		t.Error(err)
	}
	away := make(chan struct{})
	patient := apitest.Serve(t, answers)("root")
	patient.Outlast(apitest.Patience, func() { close(away) })
	p.site.follows.Store(false)
	if _, err := patient.Info(t.Context()); err != nil { // one has answered once
		t.Fatal(err)
	}
	p.site.follows.Store(true)
	over := make(chan error, 1)
	go func() { _, err := patient.Wait(t.Context(), job); over <- err }()
	<-away
	p.site.follows.Store(false)
	if err := <-over; err != nil {
		t.Errorf("behind the next leader: %v", err)
	}
}

// Ensure that the description of a cluster asks for nothing that only a machine has.
func TestClusterDescription(t *testing.T) {
	_, answers := startCluster(t)
	c := apitest.Serve(t, answers)("root")
	doc := required(t, c)
	for document, field := range map[string]string{"Info": "state", "Submission": "dir"} {
		if slices.Contains(doc[document], field) {
			t.Errorf("%s of a cluster requires %s", document, field)
		}
	}
	if !slices.Contains(doc["Info"], "host") {
		t.Error("info has no host")
	}
}
