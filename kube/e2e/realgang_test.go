package e2e

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"

	"github.com/trainyard/trainyard/kube/api/v1alpha1"
	"github.com/trainyard/trainyard/kube/internal/controlplane"
)

// Ensure that a gang over two real nodes is one process on each, that each sees exactly its GPUs and knows how to
// find the other, that the job is done once both have ended; and that where one fails the other is asked to stop, and
// has its time to save.
func TestRealGangOverTwoNodes(t *testing.T) {
	t.Parallel()
	r := newRealRig(t, controlplane.Options{}, v1alpha1.SchedulerPolicySpec{System: "fifo"})
	for _, folder := range []string{"ledger-0", "ledger-1"} {
		must(t, os.Mkdir(filepath.Join(r.work, folder), 0o755))
	}
	r.node("real-a", 2)
	r.node("real-b", 1)
	for _, name := range []string{"real-a", "real-b"} { // they are numbered as they offer their GPUs
		eventually(t, name+" is ready", func() bool { return r.ready(name) && r.offers(name) })
	}
	r.decide()
	gang := func(name string, args ...string) *v1alpha1.TrainingJob {
		j := r.trains(name, append(args, "--checkpoint-every=0", "--checkpoint-dir="+
			filepath.Join(r.work, name+"-$(NODE_RANK)"))...)
		j.Spec.GPUs.Min, j.Spec.Checkpoint.Path = 3, ""
		c := &j.Spec.Template.Spec.Containers[0]
		c.Env = append(c.Env, corev1.EnvVar{Name: "TRAINER_LEDGER",
			Value: filepath.Join(r.work, "ledger-$(NODE_RANK)")})
		c.Command[slices.Index(c.Command, "--out")+1] = filepath.Join(r.work, name+"-$(NODE_RANK).json") // each its own
		return j
	}
	r.create(gang("pair", "--steps=20", "--step-time=100ms"))
	if st := r.until("pair", v1alpha1.Succeeded); st.Attempt != 1 {
		t.Errorf("the pair: %+v", st)
	}
	r.wantRanks("pair", "2 GPU-real-a-0 GPU-real-a-1", "1 GPU-real-b-0")
	fail := filepath.Join(r.work, "fail-")
	r.create(gang("broken", "--steps=1000000", "--step-time=100ms", "--fail-when="+fail+"$(NODE_RANK)"))
	for rank := range 2 {
		eventually(t, fmt.Sprintf("rank %d is at work", rank), func() bool {
			return len(r.ledgerIn(fmt.Sprint("ledger-", rank))) == 3
		})
	}
	must(t, os.WriteFile(fail+"0", nil, 0o644))
	if st := r.until("broken", v1alpha1.Failed); st.Attempt != 1 ||
		!strings.Contains(st.Reason, "pod broken-1-0: exit code 3") {
		t.Errorf("the broken one: %+v", st)
	}
	for rank, code := range []int{3, 75} {
		list := r.ledgerIn(fmt.Sprint("ledger-", rank))
		last := list[len(list)-1]
		if n := len(list); n != 4 || last.kind != "end" || last.job != r.number("broken") || last.code != code {
			t.Errorf("rank %d wrote down %+v, want two processes of which the last ended with code %d", rank, list,
				code)
		}
	}
	if saved, err := filepath.Glob(filepath.Join(r.work, "broken-1", "step-*.ckpt")); err != nil || len(saved) != 1 {
		t.Errorf("rank 1 saved %v, %v; want what it did", saved, err)
	}
}

// offers reports whether the control plane knows of GPUs of a node.
func (r *realRig) offers(name string) bool {
	r.t.Helper()
	var list resourcev1.ResourceSliceList
	must(r.t, r.api.List(r.t.Context(), &list))
	return slices.ContainsFunc(list.Items, func(s resourcev1.ResourceSlice) bool {
		return s.Spec.NodeName != nil && *s.Spec.NodeName == name && len(s.Spec.Devices) > 0
	})
}

// wantRanks checks that of the first attempt of a job there was one process for each rank, with so many GPUs of these
// UUIDs, which was reported of itself and the others.
func (r *realRig) wantRanks(name string, ranks ...string) {
	r.t.Helper()
	got := make(map[string]given)
	for _, g := range r.witnesses() {
		if g.Job == r.number(name) {
			got[g.Meets["NODE_RANK"]] = g
		}
	}
	if len(got) != len(ranks) {
		r.t.Fatalf("%s: processes %+v, want %d", name, got, len(ranks))
	}
	for rank, want := range ranks {
		each, uuids, _ := strings.Cut(want, " ")
		g := got[fmt.Sprint(rank)]
		if has := strings.Join(g.Given, " "); has != uuids || g.Width != "3" || g.Attempt != "1" {
			r.t.Errorf("%s, rank %d: %+v, want %s", name, rank, g, uuids)
		}
		meets := map[string]string{"MASTER_ADDR": fmt.Sprintf("%s-1-0.%s-1.lab.svc", name, name),
			"MASTER_PORT": "29500", "WORLD_SIZE": "3",
			"NNODES": fmt.Sprint(len(ranks)), "NODE_RANK": fmt.Sprint(rank), "NPROC_PER_NODE": each}
		for key, value := range maps.Clone(meets) {
			if key != "WORLD_SIZE" {
				meets["PET_"+key] = value
			}
		}
		if !maps.Equal(g.Meets, meets) {
			r.t.Errorf("%s, rank %d finds the others by %v, want %v", name, rank, g.Meets, meets)
		}
	}
}
