package driver

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/trainyard/trainyard/kube/api/v1alpha1"
	"github.com/trainyard/trainyard/kube/driver/internal/objects"
	"github.com/trainyard/trainyard/sched"
)

// Ensure that what happens to jobs and pools costs exactly these writes, and none twice. Those of the scheduler, the
// kubelets and the controller-manager are counted as well: they stay the same as long as ours do.
func TestWritesOfALife(t *testing.T) {
	life := func(w *world) {
		w.run()
		w.stop(0)
		w.settle()
		w.start(0, 1, 2, 3, 4, 5, 6)
		w.settle()
		w.cluster.exit(w.Context(), w.podOf("train-2-1"), 3)
		w.pass(10 * time.Second)
		must(w, w.Delete(w.Context(), objects.Job("train", 6, nil)))
		w.settle()
	}
	shared := func(w *world) {
		must(w, w.Create(w.Context(), objects.Job("other", 1, nil)))
		w.settle()
		for id := range sched.JobID(2) {
			w.startAs(id, sched.Config{Share: sched.Shared}, 0)
			w.settle()
		}
		for id := range sched.JobID(2) {
			w.stop(id)
			w.settle()
		}
	}
	rent := func(w *world) {
		pool := w.spot()
		w.rented(objects.Node("spot-1", 4))
		w.settle()
		order := func(a sched.Action, e sched.Event) {
			e.Time, e.Kind, e.Job, a.Job = w.v.Now, sched.Ordered, sched.None, sched.None
			e.Code = int32(a.Kind)
			w.s.Apply(&e)
			must(w, w.d.Apply(w.Context(), sched.Plan{Actions: []sched.Action{a}}))
			w.settle()
		}
		order(sched.Action{Kind: sched.Rent, Count: 1}, sched.Event{Value: 1})
		gone := float64(sched.NodeGone)
		order(sched.Action{Kind: sched.SetNode, Node: 2, State: sched.NodeGone}, sched.Event{Node: 2, Value: gone})
		order(sched.Action{Kind: sched.Rent}, sched.Event{})
		must(w, w.Delete(w.Context(), pool))
		w.pass(10 * time.Second)
	}
	for _, c := range []struct {
		name  string
		mode  v1alpha1.Mode
		width int32
		test  func(w *world)
	}{
		{"a-gang", v1alpha1.Pinned, 6, life},
		{"a-gang-bound-by-the-driver", v1alpha1.Direct, 6, life},
		{"a-gang-by-number", v1alpha1.Count, 6, life},
		{"two-on-a-GPU", v1alpha1.Pinned, 1, shared},
		{"renting", v1alpha1.Pinned, 1, rent},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				class := &deviceClass{ObjectMeta: metav1.ObjectMeta{Name: class}}
				w := open(t, newCluster(t, slices.Concat(objects.Node("a", 4), objects.Node("b", 4),
					[]client.Object{objects.Job("train", c.width, nil), class})...), func(o *Options) {
					o.Mode = c.mode
					o.Provider = &provider{cluster: o.Client.(*cluster)}
				})
				c.test(w)
				want, err := os.ReadFile(filepath.Join("testdata", "writes", c.name+".txt"))
				must(t, err)
				if got := w.written(); got != string(want) {
					t.Errorf("wrote:\n%s\nwant:\n%s", got, want)
				}
			})
		})
	}
}

// written returns the writes, each once with its number, in the order of their names: lines of tasks do not wait for
// each other.
func (w *world) written() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	count := map[string]int{}
	var names []string
	for _, x := range w.writes {
		x = strings.NewReplacer("*v1alpha1.", "", "*v1.", "").Replace(x)
		if count[x]++; count[x] == 1 {
			names = append(names, x)
		}
	}
	slices.Sort(names)
	var out strings.Builder
	for _, x := range names {
		if count[x] > 1 {
			x = fmt.Sprint(x, " x", count[x])
		}
		fmt.Fprintln(&out, x)
	}
	return out.String()
}
