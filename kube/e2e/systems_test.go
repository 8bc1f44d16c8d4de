package e2e

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/trainyard/trainyard/engine"
	"github.com/trainyard/trainyard/eventlog"
	"github.com/trainyard/trainyard/kube/api/v1alpha1"
	"github.com/trainyard/trainyard/kube/controller"
	"github.com/trainyard/trainyard/kube/internal/fakenode"
	"github.com/trainyard/trainyard/kube/provider"
	"github.com/trainyard/trainyard/model/variability"
	"github.com/trainyard/trainyard/system"
)

// fleetNodes is how many nodes of 8 GPUs every system has.
const fleetNodes = 40

// Ensure that every system runs jobs of all kinds to their ends on a cluster, and that the engine alone, which is what
// simulates, decides all of it the same again when it is given what happened, and nothing else.
func TestSystems(t *testing.T) {
	t.Parallel()
	table := system.Table()
	half := (len(table) + 1) / 2
	for part := range slices.Chunk(table, half) {
		t.Run("from-"+part[0].Name, func(t *testing.T) {
			t.Parallel()
			w := &world{ledger: newLedger()}
			w.rig = newRig(t, fleetNodes, fakenode.Options{GPUs: gpusOfNode, Run: w.ledger.run},
				v1alpha1.SchedulerPolicySpec{})
			for _, info := range part {
				t.Run(info.Name, func(t *testing.T) { w.of(t).under(info) })
			}
		})
	}
}

// of returns the world for a part of its test, with nothing in it but nodes.
func (w *world) of(t *testing.T) *world {
	part := &world{ledger: newLedger(), rig: &rig{t: t, plane: w.plane, api: w.api, fleet: w.fleet, space: w.space}}
	w.ledger.mu.Lock()
	w.ledger.next = part.ledger
	w.ledger.mu.Unlock()
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("the log ends with\n%s", part.log.Bytes()[max(0, part.log.Len()-8<<10):])
		}
	})
	t.Cleanup(part.kill)
	return part
}

// under runs a mixed workload under a system, and replays it.
func (w *world) under(info system.Info) {
	policy := v1alpha1.SchedulerPolicySpec{System: info.Name}
	switch keys := info.KeyNames(); { // rounds of their own take minutes
	case slices.Contains(keys, "interval"):
		policy.Settings = map[string]string{"interval": "1"}
	case info.Batches || info.Rents || slices.Contains(keys, "order"):
		policy.Round.Duration = time.Second
	}
	w.create(&v1alpha1.SchedulerPolicy{ObjectMeta: metav1.ObjectMeta{Name: "default"}, Spec: policy})
	w.stubborn(func() error { // the policy that newRig made, or that of the system before
		p := w.policy()
		p.Spec = policy
		return w.api.Update(w.t.Context(), p)
	})
	if info.Rents {
		defer w.rentable()()
	}
	known := system.Knowledge{}
	if info.Scored {
		known.Scores = w.profile()
	}
	began := time.Now()
	w.serve(func(o *controller.ServeOptions) { o.Log = slog.New(slog.DiscardHandler) })
	w.mixed()
	w.settle()
	w.stubborn(func() error {
		return w.api.DeleteAllOf(w.t.Context(), &v1alpha1.TrainingJob{}, client.InNamespace(w.space))
	})
	eventually(w.t, "no job is left", func() bool {
		var list v1alpha1.TrainingJobList
		return w.api.List(w.t.Context(), &list) == nil && len(list.Items) == 0
	})
	took := time.Since(began)
	w.kill()
	w.forget()
	log := w.log.Bytes()
	events, err := replay(log, known)
	if err != nil {
		w.t.Fatalf("the replay: %v", err)
	}
	var reported *engine.Divergence
	if _, err := replay(tampered(w.t, log), known); !errors.As(err, &reported) ||
		!strings.Contains(reported.Recorded, elsewhere) {
		w.t.Errorf("the replay of a log with another decision in it: %v", err)
	}
	w.t.Logf("%s: %d jobs done in %v; %d events with %d decisions are the same again", info.Name, len(w.jobs),
		took.Round(time.Second/10), events,
		bytes.Count(log, []byte(`"event":"decided"`)))
}

// profile gives PM scores of the GPUs of half of the nodes, and returns what a system knows of all by number.
func (w *world) profile() *variability.Scores {
	w.t.Helper()
	s := &variability.Scores{Name: "the GPUProfiles", Classes: []string{"A"}, PM: make([][]float64, 1)}
	for n, node := range fakenode.Names("node", fleetNodes) {
		p := &v1alpha1.GPUProfile{ObjectMeta: metav1.ObjectMeta{Name: node}}
		for i := range gpusOfNode {
			score := 1.0
			if n%2 == 1 { // of the others nothing is known
				q := resource.MustParse(fmt.Sprintf("%d.%02d", (7*n+3*i)%2, 80+(7*n+3*i)%20))
				p.Spec.GPUs = append(p.Spec.GPUs, v1alpha1.GPUKnown{UUID: fakenode.UUID(node, i),
					Scores: map[string]v1alpha1.Score{"A": {Quantity: q}}})
				score = q.AsApproximateFloat64()
			}
			s.GPUs = append(s.GPUs, variability.GPU{Name: strconv.Itoa(len(s.GPUs))})
			s.PM[0] = append(s.PM[0], score)
		}
		if len(p.Spec.GPUs) > 0 {
			w.create(p)
		}
	}
	w.t.Cleanup(func() {
		if err := w.api.DeleteAllOf(context.Background(), &v1alpha1.GPUProfile{}); err != nil {
			w.t.Error(err)
		}
	})
	return s
}

// mixed submits jobs of fixed and of any width, of one GPU and of several nodes, such as share and such as do not, with
// a deadline and without, and two of which each wants more than half of the cluster.
func (w *world) mixed() {
	widths := []v1alpha1.Width{{Min: 1}, {Min: 2}, {Min: 4}, {Min: 12}, {Min: 1, Max: new(int32(8))},
		{Min: 1, Max: new(int32(4)), Want: new(int32(2))}, {Min: 1},
		{Min: 168}, {Min: 3}, {Min: 24, Max: new(int32(64))}, {Min: 164}, {Min: 8}}
	for i, width := range widths {
		j := w.job(fmt.Sprint("job-", i), 1)
		j.Spec.GPUs = width
		j.Spec.Profile = v1alpha1.Profile{Model: []string{"resnet50", "bert"}[i%2], Class: "A", Epochs: 10}
		j.Spec.Sharing = v1alpha1.Sharing{Allowed: i%2 == 0, MemoryGiB: 10}
		if i%3 > 0 {
			j.Spec.Deadline = &metav1.Time{Time: time.Now().Add(time.Hour)}
		}
		if width.Max != nil {
			j.Spec.Batch = &v1alpha1.Batch{Min: 64, Max: 512, PerGPUMax: 128}
		}
		j.Spec.Template.Annotations = map[string]string{
			runsFor: fmt.Sprint(time.Duration(1+i%3) * 500 * time.Millisecond)}
		w.stubborn(func() error { return w.api.Create(w.t.Context(), j) })
		w.jobs = append(w.jobs, j.Name)
	}
}

// forget takes away what a controller left, so that the next starts at the start.
func (w *world) forget() {
	w.t.Helper()
	objects := []client.Object{&v1alpha1.SchedulerPolicy{ObjectMeta: metav1.ObjectMeta{Name: "default"}}}
	for _, name := range []string{controller.ClusterMap, controller.MemoryMap} {
		objects = append(objects, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "trainyard", Name: name}})
	}
	for _, o := range objects {
		if err := client.IgnoreNotFound(w.api.Delete(w.t.Context(), o)); err != nil {
			w.t.Fatal(err)
		}
	}
}

// replay has a new system of the same kind, which knows as much, decide what a log says, and returns how many events
// there were. The error says where it decides otherwise.
func replay(log []byte, known system.Knowledge) (events int, err error) {
	if n := bytes.Count(log, []byte(eventlog.Schema)); n != 1 {
		return 0, fmt.Errorf("%d logs in one: the controller started again meanwhile", n)
	}
	r, err := eventlog.NewReader(bytes.NewReader(log), "log")
	if err != nil {
		return 0, err
	}
	h := r.Header()
	if known.Scores != nil && len(known.Scores.GPUs) != h.GPUs {
		return 0, fmt.Errorf("scores of %d GPUs, the system knows of %d", len(known.Scores.GPUs), h.GPUs)
	}
	sys, err := system.Live(&h, known)
	if err != nil {
		return 0, err
	}
	state, _, err := engine.Recover(context.Background(), h, r.Records(), sys.Decider, engine.ReplayOptions{})
	if err != nil {
		return 0, err
	}
	if lines := bytes.Count(log, []byte("\n")) - 1; state.View().Version != uint64(lines) || lines == 0 {
		return 0, fmt.Errorf("%d events replayed of %d", state.View().Version, lines)
	}
	return int(state.View().Version), nil
}

// elsewhere is what tampered has a job decided to run on.
const elsewhere = `"gpus":[319]`

// tampered returns a log in which the last decision that gives a job GPUs gives it others.
func tampered(t testing.TB, log []byte) []byte {
	t.Helper()
	all := regexp.MustCompile(`"event":"decided".*?("gpus":\[[0-9][0-9,]*\])`).FindAllSubmatchIndex(log, -1)
	if len(all) == 0 {
		t.Fatal("no decision gives a job GPUs")
	}
	last := all[len(all)-1]
	return slices.Concat(log[:last[2]], []byte(elsewhere), log[last[3]:])
}

// rentable makes a pool of nodes that boot for a second, and plays the cloud that has them come. The function it
// returns ends that.
func (w *world) rentable() (end func()) {
	w.t.Helper()
	pool := &v1alpha1.GPUPool{ObjectMeta: metav1.ObjectMeta{Name: "cloud"},
		Spec: v1alpha1.GPUPoolSpec{GPUType: "NVIDIA H100 80GB HBM3", GPUsPerNode: 8,
			PricePerGPUHour: resource.MustParse("2"), Max: 4, BudgetGPUs: resource.MustParse("16"),
			Boot:     metav1.Duration{Duration: time.Second},
			Provider: v1alpha1.ProviderRef{Kind: "fake"}}}
	w.create(pool)
	ctx, cancel := context.WithCancel(context.Background())
	var cloud sync.WaitGroup
	cloud.Go(func() { w.cloud(ctx) })
	return func() {
		w.kill()
		cancel()
		cloud.Wait()
		w.letPoolsGo()
		if err := w.api.Delete(context.Background(), pool); err != nil {
			w.t.Error(err)
		}
	}
}

// cloud has rented nodes boot and go, until ctx ends; then all go.
func (w *world) cloud(ctx context.Context) {
	up := make(map[string]bool)
	for ; ctx.Err() == nil; time.Sleep(50 * time.Millisecond) {
		var list corev1.NodeList
		if w.api.List(ctx, &list, client.HasLabels{v1alpha1.LabelPool}) != nil {
			continue
		}
		there := make(map[string]bool)
		for i := range list.Items {
			n := &list.Items[i]
			at, err := time.Parse(time.RFC3339Nano, n.Annotations[provider.BootsAt])
			if there[n.Name] = true; err == nil && !up[n.Name] && time.Now().After(at) &&
				w.fleet.Adopt(ctx, n.Name) == nil {
				up[n.Name] = true
			}
		}
		for name := range up {
			if !there[name] {
				w.leave(name)
				delete(up, name)
			}
		}
	}
	for name := range up {
		w.leave(name)
	}
}

// leave takes a rented node away, its object as well if it is there.
func (w *world) leave(name string) {
	if err := w.fleet.Remove(context.Background(), name); err != nil && !apierrors.IsNotFound(err) {
		w.t.Error(err)
	}
}
