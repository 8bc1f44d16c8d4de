package record_test

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/trainyard/trainyard/cluster"
	"github.com/trainyard/trainyard/engine"
	"github.com/trainyard/trainyard/eventlog"
	"github.com/trainyard/trainyard/kube/record"
	"github.com/trainyard/trainyard/sched"
	"github.com/trainyard/trainyard/simulate"
	"github.com/trainyard/trainyard/trace"
)

// copied is the state of the engine at the end of a batch, as objects have it.
type copied struct {
	jobs    []string
	cluster []byte
	now     sched.Time
	version uint64
}

func copyOf(t *testing.T, v *sched.View) copied {
	t.Helper()
	c := copied{now: v.Now, version: v.Version}
	for id := range v.Jobs {
		r := record.Of(v, sched.JobID(id), 7)
		c.jobs = append(c.jobs, r.String())
	}
	cl := record.ClusterOf(v, time.Time{})
	var err error
	if c.cluster, err = cl.Pack(); err != nil {
		t.Fatal(err)
	}
	return c
}

// restore reads what copyOf wrote.
func (c copied) restore(t *testing.T, h eventlog.Header) (*sched.View, []string) {
	t.Helper()
	var jobs []record.Job
	for _, line := range c.jobs {
		r, err := record.Read(line)
		if err != nil {
			t.Fatal(err)
		}
		jobs = append(jobs, r)
	}
	_, cl, err := record.ReadHead(c.cluster)
	if err != nil || cl == nil {
		t.Fatal(cl, err)
	}
	v, mended, err := record.View(jobs, *cl, c.now, c.version, 0)
	if err != nil {
		t.Fatal(err)
	}
	s, err := engine.Restore(h, v)
	if err != nil {
		t.Fatal(err)
	}
	return s.View(), mended
}

// watcher looks at a simulation now and then, at ends of batches.
type watcher struct {
	h    eventlog.Header
	v    *sched.View
	look func(h eventlog.Header, v *sched.View)
}

func (w *watcher) Log(v *sched.View, _ *sched.Event) { w.v = v }
func (w *watcher) BeginBatch()                       {}
func (w *watcher) EndBatch() error {
	if w.v != nil {
		w.look(w.h, w.v)
	}
	return nil
}

// systems of which each has something of its own to keep: queues, shared GPUs and trials, widths and batches, rented
// nodes.
var systems = []string{"tiresias-las", "eaco", "elastic", "fifo-packed", "srtf", "boa"}

// simulated runs a small trace under a system and has look called at the end of each batch.
func simulated(t *testing.T, name string, seed uint64, look func(h eventlog.Header, v *sched.View)) {
	t.Helper()
	c, err := cluster.Load("4x4")
	if err != nil {
		t.Fatal(err)
	}
	s := simulate.Request{Trace: trace.Generate(trace.Generator{Jobs: 60, Seed: seed, GPUs: 16, Load: 1.2}),
		Cluster: c, System: name}
	if name == "boa" {
		s.Budget = 8
	}
	s.Log = func(h eventlog.Header) eventlog.Sink { return &watcher{h: h, look: look} }
	if _, err := s.Run(context.Background()); err != nil {
		t.Fatal(err)
	}
}

// Ensure that a state written to objects and read back is the state.
func TestRoundTrip(t *testing.T) {
	for _, name := range systems {
		t.Run(name, func(t *testing.T) {
			r, looks := rand.New(rand.NewPCG(1, 2)), 0
			simulated(t, name, 3, func(h eventlog.Header, v *sched.View) {
				if r.IntN(20) > 0 {
					return
				}
				looks++
				want := copyOf(t, v)
				got, mended := want.restore(t, h)
				if len(mended) > 0 {
					t.Fatalf("mended: %q", mended)
				}
				same(t, copyOf(t, got), want)
				if !reflect.DeepEqual(got.GPUs, v.GPUs) {
					t.Fatalf("GPUs %+v, want %+v", got.GPUs, v.GPUs)
				}
			})
			if looks < 5 {
				t.Errorf("%d looks, want more", looks)
			}
		})
	}
}

func same(t *testing.T, got, want copied) {
	t.Helper()
	for i := range want.jobs {
		if got.jobs[i] != want.jobs[i] {
			t.Fatalf("job %d:\n%s\nwant\n%s", i, got.jobs[i], want.jobs[i])
		}
	}
	if !bytes.Equal(got.cluster, want.cluster) || len(got.jobs) != len(want.jobs) {
		t.Fatalf("the cluster differs, or %d jobs, want %d", len(got.jobs), len(want.jobs))
	}
}

// Ensure that a batch of which only some objects were written leaves a state in which no GPU has two masters.
func TestTornBatch(t *testing.T) {
	for _, name := range systems {
		t.Run(name, func(t *testing.T) {
			r, mended, looks := rand.New(rand.NewPCG(5, 6)), 0, 0
			var before copied
			every := 3
			if name == "boa" { // which reports far more often
				every = 60
			}
			simulated(t, name, 4, func(h eventlog.Header, v *sched.View) {
				if looks++; looks%every > 1 { // pairs of batches, one after the other
					return
				}
				after := copyOf(t, v)
				if looks%every == 1 && len(before.jobs) == len(after.jobs) {
					torn := copied{jobs: append([]string(nil), after.jobs...), cluster: after.cluster, now: before.now,
						version: before.version}
					second := r.IntN(2) == 0 // all that give are written, else none that only takes
					for i := range torn.jobs {
						if takes := takesOnly(t, before.jobs[i], after.jobs[i]); takes && !second || takes == second &&
							r.IntN(2) == 0 {
							torn.jobs[i] = before.jobs[i]
						}
					}
					got, said := torn.restore(t, h)
					mended += len(said)
					sound(t, got)
				}
				before = after
			})
			if mended > 0 && name != "elastic" { // only jobs that exchange GPUs with each other can fall out
				t.Errorf("%d jobs mended, want none", mended)
			}
		})
	}
}

// takesOnly reports whether a job gives up no GPU from one record to the next.
func takesOnly(t *testing.T, from, to string) bool {
	a, err := record.Read(from)
	if err != nil {
		t.Fatal(err)
	}
	b, err := record.Read(to)
	if err != nil {
		t.Fatal(err)
	}
	lacks := func(set, old []string) bool {
		return slices.ContainsFunc(old, func(g string) bool { return !slices.Contains(set, g) })
	}
	return !lacks(b.GPUs, a.GPUs) && !lacks(b.Target, a.Target)
}

// sound checks that no GPU has more masters than it may.
func sound(t *testing.T, v *sched.View) {
	t.Helper()
	for g := range v.GPUs {
		gpu := &v.GPUs[g]
		if gpu.Alone > 0 && gpu.Targets > 1 || int(gpu.Targets) > v.ShareLimit {
			t.Fatalf("GPU %d is the target of %d, %d of them alone", g, gpu.Targets, gpu.Alone)
		}
	}
}

// Ensure that of two jobs that exchange GPUs, one of which was written, both keep what they have.
func TestTornExchange(t *testing.T) {
	c := record.Cluster{Schema: 1, Nodes: []sched.Node{{Spec: sched.NodeSpec{Name: "a", GPUs: 2}}},
		GPUs: make([]record.GPU, 2)}
	job := func(id sched.JobID, name, held, target string) record.Job {
		spec := sched.JobSpec{Name: name, GPUs: sched.Rigid(1)}
		return record.Job{ID: id, Job: sched.Job{Spec: &spec, State: sched.Active, Attempt: sched.Running, Up: true,
			Attempts: 1},
			GPUs: []string{held}, Target: []string{target}}
	}
	jobs := []record.Job{job(0, "x", "a/0", "a/1"), job(1, "y", "a/1", "a/1")} // x was written, y was not
	v, mended, err := record.View(jobs, c, 5, 9, 3)
	if err != nil {
		t.Fatal(err)
	}
	if got, want := fmt.Sprint(v.Jobs[0].Target, v.Jobs[1].Target, v.Jobs[2].State, mended),
		"[0] [1] done [job 0 (x): it cannot have the GPUs it was to hold]"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
	jobs[1].ID = 0
	if _, _, err := record.View(jobs, c, 5, 9, 3); fmt.Sprint(err) != "record: jobs /x and /y are both number 0" {
		t.Error(err)
	}
}

// Ensure that what cannot be read is reported.
func TestBadRecords(t *testing.T) {
	for text, want := range map[string]string{
		"":                               "record: EOF",
		"{}":                             "record: schema 0, want 1 to 3",
		`{"Schema":4}`:                   "record: schema 4, want 1 to 3: a newer version of Trainyard wrote it",
		`{"Schema":4,"Jobs":3}`:          "record: schema 4, want 1 to 3: a newer version of Trainyard wrote it",
		`{"Schema":1,"Jobs":3}`:          `record: json: unknown field "Jobs"`,
		`{"Schema":1,"ID":3}`:            "record: job 3 with spec <nil>, want a number >= 0 and a spec",
		`{"Schema":1,"Job":{"Spec":{}}}`: "record: job 0: gpus 0, want > 0",
	} {
		if _, err := record.Read(text); fmt.Sprint(err) != want {
			t.Errorf("%s: %v, want %s", text, err, want)
		}
	}
	if _, _, err := record.ReadHead([]byte("no gzip")); err == nil {
		t.Error("no error of a blob that is none")
	}
}

// FuzzRead has no record panic.
func FuzzRead(f *testing.F) {
	f.Add(`{"Schema":1,"ID":3,"Job":{"Spec":{"GPUs":{"Min":1,"Want":1,"Max":1}}},"GPUs":["a/0"]}`)
	f.Fuzz(func(t *testing.T, text string) {
		r, err := record.Read(text)
		if err != nil {
			return
		}
		if back, err := record.Read(r.String()); err != nil || back.String() != r.String() {
			t.Fatalf("%v: %s, want %s", err, back.String(), r.String())
		}
	})
}

// Ensure that evidence, requests and losses come back as they were written.
func TestEvidenceComesBack(t *testing.T) {
	spec := &sched.JobSpec{Name: "a", GPUs: sched.Rigid(1),
		Stops: sched.Stops{Saves: true, Preempt: sched.NeverPreempt}}
	want := sched.Job{Spec: spec, Evidence: sched.Proven, Began: 9}
	want.SetLoss(sched.Loss{Work: 5, Stops: 2, Base: 7, Claimed: 11, Unproven: 3})
	v := &sched.View{Jobs: []sched.Job{want}}
	r := record.Of(v, 0, 1)
	got, err := record.Read(r.String())
	if err != nil || got.Job.Evidence != want.Evidence || got.Job.Loss() != want.Loss() || got.Job.Began != 9 ||
		got.Job.Spec.Preempt != spec.Preempt || !got.Job.Spec.Saves {
		t.Errorf("%+v, error %v, want %+v", got.Job, err, want)
	}
}

// Ensure that a record can be written as the version before knows it, which takes no more than it knows.
func TestSchemaBefore(t *testing.T) {
	spec := &sched.JobSpec{Name: "a", GPUs: sched.Rigid(1),
		Stops: sched.Stops{Saves: true, Preempt: sched.NeverPreempt}}
	j := sched.Job{Spec: spec, Evidence: sched.Proven, Began: 9, Attempts: 3}
	j.SetLoss(sched.Loss{Work: 5, Stops: 2})
	r := record.Of(&sched.View{Jobs: []sched.Job{j}}, 0, 1)
	line := r.In(record.OldJobSchema)
	for _, word := range []string{"Evidence", "Loss", "Saves", "Preempt\""} {
		if strings.Contains(line, word) {
			t.Errorf("%s in %s", word, line)
		}
	}
	back, err := record.Read(line)
	if err != nil || back.Schema != 1 || back.Job.Attempts != 3 || r.Job.Evidence != sched.Proven || !spec.Saves {
		t.Errorf("%+v, %v", back, err)
	}
	if again := back.In(record.OldJobSchema); again != line {
		t.Errorf("%s, want %s", again, line)
	}
}
