package controller

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/trainyard/trainyard/kube/api/v1alpha1"
	driverinventory "github.com/trainyard/trainyard/kube/driver/inventory"
	"github.com/trainyard/trainyard/kube/record"
	"github.com/trainyard/trainyard/sched"
)

// holders are the jobs that hold GPUs, with these, by what the API has of them.
func holders(t *testing.T, r *rig) map[string][]string {
	t.Helper()
	var list v1alpha1.TrainingJobList
	if err := r.api.List(t.Context(), &list); err != nil {
		t.Fatal(err)
	}
	of := make(map[string][]string)
	for i := range list.Items {
		if rec, err := record.Read(list.Items[i].Status.Record); err == nil && len(rec.GPUs) > 0 {
			of[list.Items[i].Name] = rec.GPUs
		}
	}
	return of
}

// Ensure that where a shard of the cluster is missing, cut, of another schema, number or leader, or names the node of
// another, or the head is deleted, whoever leads next goes on: jobs hold the GPUs that they held, and shards are whole
// once it has written a batch.
func TestShardsSpoilt(t *testing.T) {
	const shard = 0
	for name, spoil := range map[string]func(s *record.Shard) []byte{
		"missing":        nil,
		"head deleted":   nil,
		"cut":            func(s *record.Shard) []byte { return packed(s)[:40] },
		"empty":          func(*record.Shard) []byte { return nil },
		"other schema":   func(s *record.Shard) []byte { s.Schema = 1; return packed(s) },
		"other number":   func(s *record.Shard) []byte { s.Shard = 3; return packed(s) },
		"of no leader":   func(s *record.Shard) []byte { s.Leader = 1000; return packed(s) },
		"node of others": func(s *record.Shard) []byte { s.Nodes[0].Spec.Name = "node1"; return packed(s) },
		"too few":        func(s *record.Shard) []byte { s.Nodes, s.GPUs = nil, nil; return packed(s) },
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, "fifo", nil, 20, 1)
			for i := range 4 {
				n := nodeOf(fmt.Sprint("node", i))
				n.Annotations[v1alpha1.AnnotationGPUs] = "a,b,c,d"
				if err := r.api.Create(t.Context(), n); err != nil {
					t.Fatal(err)
				}
			}
			r.writes.Store(60)
			if err := r.lead(); !errors.Is(err, errDied) {
				t.Fatal(err)
			}
			m := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "trainyard", Name: shardMap(1, shard)}}
			if name == "head deleted" {
				m.Name = ClusterMap
			}
			if err := r.api.Get(t.Context(), client.ObjectKeyFromObject(m), m); err != nil {
				t.Fatal(err)
			}
			if spoil == nil {
				if err := r.api.Delete(t.Context(), m); err != nil {
					t.Fatal(err)
				}
			} else {
				s, err := record.ReadShard(m.BinaryData[blobKey], shard)
				if err != nil {
					t.Fatal(err)
				}
				m.BinaryData[blobKey] = spoil(&s)
				if err = r.api.Update(t.Context(), m); err != nil {
					t.Fatal(err)
				}
			}
			want := holders(t, r)
			if len(want) < 2 {
				t.Fatalf("%v hold GPUs: nothing is tested", want)
			}
			live, err := r.controller().start(context.Background())
			if err != nil {
				t.Fatal(err)
			}
			v := live.state.View()
			for i := range v.Jobs {
				if v.Jobs[i].Spec == nil || v.Jobs[i].State == sched.Done {
					continue
				}
				got := record.Of(v, sched.JobID(i), 1)
				if before := want[v.Jobs[i].Spec.Name]; !slices.Equal(got.GPUs, before) {
					t.Errorf("%s holds %v, want %v", v.Jobs[i].Spec.Name, got.GPUs, before)
				}
			}
			if live.renewed == "" {
				t.Error("the system goes on with numbers of GPUs that are others now")
			}
			r.writes.Store(-1)
			live.store.Log(v, &sched.Event{Kind: sched.NodeChanged, Job: sched.None})
			if err = live.store.EndBatch(); err != nil {
				t.Fatal(err)
			}
			if again, failed := r.controller().start(context.Background()); failed != nil || again.renewed != "" ||
				spread(again.state.View()) != spread(v) {
				t.Errorf("what was written then is not whole: %v", failed)
			}
		})
	}
}

// packed is a shard as it is written.
func packed(s *record.Shard) []byte {
	b, err := s.Pack()
	if err != nil {
		panic(err)
	}
	return b
}

// Ensure that GPUs of a node that is found again are where the statuses of jobs say, that the others follow in the
// order in which it shows them, and that what does not go together is not believed.
func TestPlacesOfGPUs(t *testing.T) {
	list := []string{"a", "b", "c", "d"}
	for _, c := range []struct {
		places map[int]string
		want   []string
	}{
		{nil, list},
		{map[int]string{0: "a", 3: "d"}, list},
		{map[int]string{0: "d", 2: "a"}, []string{"d", "b", "a", "c"}},
		{map[int]string{0: "d", 2: "d"}, nil},
		{map[int]string{0: "x"}, nil},
		{map[int]string{0: ""}, nil},
		{map[int]string{4: "a"}, nil},
		{map[int]string{-1: "a"}, nil},
	} {
		got, ok := placed(list, c.places)
		if ok != (c.want != nil) || ok && !slices.Equal(got, c.want) {
			t.Errorf("%v: %v, %v, want %v", c.places, got, ok, c.want)
		}
	}
	node := nodeOf("n")
	node.Labels = map[string]string{v1alpha1.LabelPool: "spot"}
	cl := &record.Cluster{Types: []string{"A100"}}
	shown := driverinventory.Shown{Product: "H100", GPUs: 4, UUIDs: list}
	if spec := specOf(node, shown, nil, cl); spec != nil {
		t.Errorf("a node of a pool that no one knows: %+v", spec)
	}
	cl.Pools = []sched.Pool{{Spec: sched.PoolSpec{Name: "other"}}, {Spec: sched.PoolSpec{Name: "spot"}}}
	spec := specOf(node, shown, map[int]string{1: "a"}, cl)
	if spec == nil || spec.Pool != 1 || spec.Type != 1 || !slices.Equal(cl.Types, []string{"A100", "H100"}) ||
		!slices.Equal(spec.Devices, []string{"b", "a", "c", "d"}) || spec.CPUs != 64 {
		t.Errorf("%+v, types %v", spec, cl.Types)
	}
	if specOf(nil, shown, nil, cl) != nil || specOf(node, driverinventory.Shown{}, nil, cl) != nil {
		t.Error("a node that is not there, or has no GPU, is found")
	}
}
