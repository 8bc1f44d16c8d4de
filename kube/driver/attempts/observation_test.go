package attempts

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/trainyard/trainyard/kube/api/v1alpha1"
	"github.com/trainyard/trainyard/kube/driver/devices"
	"github.com/trainyard/trainyard/kube/driver/internal/objects"
	"github.com/trainyard/trainyard/kube/driver/inventory"
	"github.com/trainyard/trainyard/kube/driver/observer"
	"github.com/trainyard/trainyard/kube/driver/writer"
	"github.com/trainyard/trainyard/sched"
)

// bench is the attempt of a job of two ranks on two nodes, without an engine and without writers.
type bench struct {
	*testing.T
	client.Client

	as      *Attempts
	v       *sched.View
	in      *inventory.Inventory
	held    bool // another claim has a device
	foreign bool // others use a device
}

func newBench(t *testing.T, change func(*Options)) *bench {
	t.Helper()
	scheme := runtime.NewScheme()
	if err := errors.Join(clientgoscheme.AddToScheme(scheme), v1alpha1.AddToScheme(scheme)); err != nil {
		t.Fatal(err)
	}
	tj := objects.Job("train", 2, nil)
	tj.UID = "uid"
	list := append([]client.Object{tj}, objects.Node("n0", 1)...)
	api := fake.NewClientBuilder().WithScheme(scheme).WithObjects(append(list, objects.Node("n1", 1)...)...)
	log := slog.New(slog.DiscardHandler)
	none := func(string) (sched.TypeID, error) { return 0, nil }
	b := &bench{T: t, Client: api.Build(), in: inventory.New(inventory.Options{
		Mode: v1alpha1.Count, Types: none, NewType: func(string) {}, Log: log,
	})}
	b.v = &sched.View{Jobs: []sched.Job{{Spec: &sched.JobSpec{User: objects.Namespace, Name: "train", Task: "uid"}}}}
	for id, name := range []string{"n0", "n1"} {
		n := sched.Node{Spec: sched.NodeSpec{Name: name, GPUs: 1}, State: sched.NodeUp, First: sched.GPUID(id), Busy: 1}
		b.v.Nodes = append(b.v.Nodes, n)
		b.v.GPUs = append(b.v.GPUs, sched.GPU{Node: sched.NodeID(id)})
		b.lookAtNode(name)
	}
	o := Options{
		Mode: v1alpha1.Count, StartTimeout: time.Minute, Every: 10 * time.Second, Look: func(observer.Key) {}, Log: log,
		Go: func(func(context.Context)) context.CancelFunc { return func() {} },
	}
	if change != nil {
		change(&o)
	}
	b.as = New(o)
	return b
}

func (b *bench) lookAtNode(name string) {
	b.Helper()
	_, err := b.in.LookAtNode(b.Context(), observer.API{Cache: b}, name, inventory.Around{
		View: b.v, Foreign: func(devices.ID) bool { return false },
		Pool: func(*corev1.Node) sched.PoolID { return sched.None },
	})
	if err != nil {
		b.Fatal(err)
	}
}

// order gives the order to start the attempt.
func (b *bench) order() *writer.Attempt {
	b.Helper()
	j := &b.v.Jobs[0]
	j.Attempts, j.Attempt, j.GPUs = 1, sched.Starting, []sched.GPUID{0, 1}
	a := b.as.Order(b.v, &sched.Action{Kind: sched.Start, Attempt: 1, GPUs: j.GPUs})
	if a != nil {
		b.as.Started(0, nil)
	}
	return a
}

// up has all pods run, as the engine knows.
func (b *bench) up() {
	b.Helper()
	for _, name := range []string{"train-1-0", "train-1-1"} {
		b.pod(name, corev1.PodRunning, nil)
	}
	b.expect(b.observe(), "started")
	b.v.Jobs[0].Up, b.v.Jobs[0].Attempt = true, sched.Running
}

// pod makes a pod of the job, or changes it.
func (b *bench) pod(name string, phase corev1.PodPhase, change func(*corev1.Pod)) {
	b.Helper()
	p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: objects.Namespace, Name: name}}
	there := b.Get(b.Context(), client.ObjectKeyFromObject(p), p) == nil
	p.OwnerReferences = []metav1.OwnerReference{{Kind: "TrainingJob", Name: "train", UID: "uid"}}
	part := strings.Split(name, "-") // job, attempt, rank
	p.Labels = map[string]string{v1alpha1.LabelJob: part[0], v1alpha1.LabelAttempt: part[1],
		v1alpha1.LabelRank: part[2]}
	p.Spec.Containers = []corev1.Container{{Name: "main"}}
	p.Status.Phase = phase
	if change != nil {
		change(p)
	}
	status := p.DeepCopy()
	err := b.Create(b.Context(), p)
	if there {
		err = nil
	}
	status.ResourceVersion = p.ResourceVersion
	if err = errors.Join(err, b.Status().Update(b.Context(), status)); err != nil {
		b.Fatal(err)
	}
}

func (b *bench) remove(name string) {
	b.Helper()
	p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: objects.Namespace, Name: name}}
	if err := b.Delete(b.Context(), p); err != nil {
		b.Fatal(err)
	}
}

func (b *bench) observe() Seen {
	b.Helper()
	seen, err := b.as.Observe(b.Context(), observer.API{Cache: b, Server: b}, 0, Around{
		View: b.v, Now: 5, Inventory: b.in,
		Held: func(*writer.Attempt) (types.NamespacedName, bool) {
			return types.NamespacedName{Namespace: "lab", Name: "other"}, b.held
		},
		Foreign: func(*writer.Attempt) (*devices.Device, bool) {
			return &devices.Device{UUID: "GPU-x"}, b.foreign
		},
	})
	if err != nil {
		b.Fatal(err)
	}
	return seen
}

// expect checks which events were found.
func (b *bench) expect(seen Seen, want ...string) {
	b.Helper()
	var got []string
	for _, e := range seen.Events {
		got = append(got, strings.TrimSpace(e.Kind.String()+" "+e.Text))
	}
	if !slices.Equal(got, want) {
		b.Errorf("found %q, want %q", got, want)
	}
}

// exit has the process of a pod end.
func exit(code int32) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		over := &corev1.ContainerStateTerminated{ExitCode: code, Reason: "Error"}
		p.Status.ContainerStatuses = []corev1.ContainerStatus{{
			Name: "main", State: corev1.ContainerState{Terminated: over},
		}}
	}
}

// Ensure that an attempt is ordered once, starts once all its pods run, and has ended once all are over.
func TestAttemptToItsEnd(t *testing.T) {
	b := newBench(t, nil)
	a := b.order()
	if a == nil || b.order() != nil || !b.as.IsAlive(0) {
		t.Fatal("want it ordered once")
	}
	b.expect(b.observe())
	b.pod("train-1-0", corev1.PodRunning, nil)
	b.expect(b.observe())
	b.up()
	b.expect(b.observe())
	b.pod("train-1-0", corev1.PodSucceeded, exit(0))
	b.expect(b.observe())
	b.pod("train-1-1", corev1.PodSucceeded, exit(0))
	seen := b.observe()
	if b.expect(seen, "ended"); seen.Events[0].Outcome != sched.Finished || seen.Over == nil || seen.Over.Lost {
		t.Errorf("%+v, over %+v", seen.Events[0], seen.Over)
	}
	for _, k := range []observer.Key{observer.KeyOfNode("n0"), observer.KeyOfNode("n1"), observer.KeyOfJob(a.Key)} {
		if !slices.Contains(seen.Again, k) {
			t.Errorf("%v is not looked at again", k)
		}
	}
	if b.as.IsAlive(0) {
		t.Error("want it not alive")
	}
	if b.as.Forget(0); len(b.as.odometers)+len(b.as.losses) > 0 {
		t.Error("want nothing kept")
	}
}

// Ensure that where a rank fails the pods of the others are deleted once, and that how it ends is written down before.
func TestRankFails(t *testing.T) {
	b := newBench(t, nil)
	b.order()
	b.up()
	b.pod("train-1-1", corev1.PodFailed, exit(3))
	seen := b.observe()
	want := `{"attempt":1,"outcome":"failed","code":3,"text":"pod train-1-1: exit code 3 (Error)"}`
	if b.expect(seen); seen.Remove == nil || seen.Remove.Ending != want {
		t.Fatalf("removes %+v, want %s", seen.Remove, want)
	}
	if seen = b.observe(); seen.Remove != nil {
		t.Error("removed twice")
	}
	b.remove("train-1-0")
	b.expect(b.observe(), "ended pod train-1-1: exit code 3 (Error)")
}

// Ensure that a leader that takes over ends an attempt as the one before was ending it.
func TestKeptEnding(t *testing.T) {
	for _, c := range []struct{ name, kept, want string }{
		{"kept", `{"attempt":1,"outcome":"failed","code":3,"text":"pod train-1-1: exit code 3"}`,
			"ended pod train-1-1: exit code 3"},
		{"of another attempt", `{"attempt":2,"outcome":"failed","code":3}`, "ended " + deletedByOthers + "train-1-0"},
		{"of a rank that is none", `{"attempt":1,"outcome":"failed","suspect":[2]}`,
			"ended " + deletedByOthers + "train-1-0"},
		{"spoilt", `{`, "ended " + deletedByOthers + "train-1-0"},
	} {
		t.Run(c.name, func(t *testing.T) {
			b := newBench(t, nil)
			j := &b.v.Jobs[0]
			j.Attempts, j.Attempt, j.GPUs, j.Up = 1, sched.Running, []sched.GPUID{0, 1}, true
			b.as.Adopt(b.v, 0)
			tj := objects.Job("train", 2, nil)
			err := b.Get(t.Context(), client.ObjectKeyFromObject(tj), tj)
			tj.Annotations = map[string]string{v1alpha1.AnnotationDeletion: c.kept}
			if err = errors.Join(err, b.Update(t.Context(), tj)); err != nil {
				t.Fatal(err)
			}
			b.expect(b.observe(), c.want)
		})
	}
}

// Ensure that an attempt that is stopped has its pods deleted once, and ends as ordered once they are gone.
func TestStop(t *testing.T) {
	b := newBench(t, nil)
	b.order()
	b.up()
	stop := &sched.Action{Kind: sched.Stop, Attempt: 1, Why: sched.Preempted}
	if r := b.as.Stop(b.v, stop); r == nil || r.Ending != "" {
		t.Fatalf("removes %+v", r)
	}
	if b.as.Stop(b.v, stop) != nil {
		t.Error("removed twice")
	}
	b.remove("train-1-0")
	b.expect(b.observe())
	b.remove("train-1-1")
	b.expect(b.observe(), "ended "+AsOrdered)
}

// Ensure that pods of a node that is gone are given up once, and that the attempt has lost a machine.
func TestNodeGone(t *testing.T) {
	b := newBench(t, nil)
	b.order()
	b.up()
	n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n1"}}
	if err := b.Delete(t.Context(), n); err != nil {
		t.Fatal(err)
	}
	b.lookAtNode("n1")
	if keys := b.as.On(1); len(keys) != 1 {
		t.Errorf("%v are on the node", keys)
	}
	seen := b.observe()
	if len(seen.Force) != 1 || seen.Force[0].Name != "train-1-1" || seen.Remove == nil || seen.Remove.Ending != "" {
		t.Errorf("gives up %v, removes %+v", seen.Force, seen.Remove)
	}
	if seen = b.observe(); len(seen.Force) > 0 {
		t.Error("given up twice")
	}
	b.remove("train-1-0")
	b.remove("train-1-1")
	seen = b.observe()
	if b.expect(seen, "ended "+seen.Events[0].Text); seen.Events[0].Outcome != sched.NodeLost || !seen.Over.Lost {
		t.Errorf("%+v", seen.Events[0])
	}
	if wait := seen.Events[0].WorkFrom - 5; time.Duration(wait) != time.Second || b.as.losses[0] != 1 {
		t.Errorf("rests for %v", time.Duration(wait))
	}
}

// Ensure that the start of an attempt has its time from the order on, and fails when that is over; and that one that
// cannot be made fails at once.
func TestStartIsLate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, nil)
		b.order()
		if due, late := b.as.UntilDue(b.v, time.Millisecond); due != time.Minute || len(late) > 0 {
			t.Errorf("due in %v, late %v", due, late)
		}
		time.Sleep(time.Minute)
		if due, late := b.as.UntilDue(b.v, time.Millisecond); due != time.Millisecond || len(late) != 1 {
			t.Errorf("due in %v, late %v", due, late)
		}
		seen := b.observe()
		if seen.Remove == nil {
			t.Fatal("want its pods removed")
		}
		for r := range 2 {
			seen.Remove.Note(r, true, false)
		}
		b.expect(b.observe(), "start-failed its claims, or its service, could not be made within 1m0s")
		b.v.Jobs[0].Attempts = 2
		b.as.Order(b.v, &sched.Action{Kind: sched.Start, Attempt: 2, GPUs: b.v.Jobs[0].GPUs})
		b.as.Started(0, errors.New("it cannot be"))
		if seen = b.observe(); seen.Remove == nil {
			t.Fatal("want its pods removed")
		}
		for r := range 2 {
			seen.Remove.Note(r, true, false)
		}
		b.expect(b.observe(), "start-failed it cannot be")
	})
}

// Ensure that an attempt whose GPUs others took does not wait for them, and that no GPU is a suspect for it: they are
// out of use until the others are gone.
func TestGPUsOfOthers(t *testing.T) {
	b := newBench(t, nil)
	b.order()
	b.pod("train-1-0", corev1.PodPending, nil)
	b.expect(b.observe())
	b.foreign = true
	seen := b.observe()
	if seen.Remove == nil {
		t.Fatal("want its pods removed")
	}
	b.remove("train-1-0")
	seen.Remove.Note(1, true, false)
	seen = b.observe()
	if b.expect(seen, "start-failed GPU GPU-x is in use by others"); len(seen.Events[0].GPUs) > 0 {
		t.Errorf("suspects are %v", seen.Events[0].GPUs)
	}
}

// Ensure that pods of others, with the name of one of an attempt's, are none of it whatever they say of themselves.
func TestPodsOfOthers(t *testing.T) {
	for what, change := range map[string]func(*corev1.Pod){
		"another owner":   func(p *corev1.Pod) { p.OwnerReferences[0].UID = "other" },
		"another attempt": func(p *corev1.Pod) { p.Labels[v1alpha1.LabelAttempt] = "2" },
		"another rank":    func(p *corev1.Pod) { p.Labels[v1alpha1.LabelRank] = "1" },
		"another node":    func(p *corev1.Pod) { p.Spec.NodeName = "n1" },
	} {
		b := newBench(t, nil)
		b.order()
		b.pod("train-1-1", corev1.PodRunning, nil)
		b.pod("train-1-0", corev1.PodRunning, change)
		if seen := b.observe(); len(seen.Events) > 0 || seen.Remove != nil {
			t.Errorf("%s: %+v", what, seen)
		}
	}
}

// Ensure that an attempt whose job is deleted is cancelled where its pods go before it is stopped.
func TestOrphan(t *testing.T) {
	b := newBench(t, nil)
	b.order()
	b.up()
	b.as.Orphan(0)
	b.remove("train-1-0")
	b.remove("train-1-1")
	seen := b.observe()
	if b.expect(seen, "ended "+AsOrdered); seen.Events[0].Outcome != sched.Cancelled {
		t.Errorf("%+v", seen.Events[0])
	}
}

// Ensure that a pod that the cache lacks is asked for once where those who led before know of it, and not else.
func TestPodOfEarlierLeader(t *testing.T) {
	b := newBench(t, nil)
	j := &b.v.Jobs[0]
	j.Attempts, j.Attempt, j.GPUs, j.Up = 1, sched.Running, []sched.GPUID{0, 1}, true
	b.as.Adopt(b.v, 0)
	b.pod("train-1-0", corev1.PodRunning, nil)
	b.pod("train-1-1", corev1.PodRunning, nil)
	empty := newBench(t, nil)
	around := Around{View: b.v, Inventory: b.in, Held: func(*writer.Attempt) (types.NamespacedName, bool) {
		return types.NamespacedName{}, false
	}, Foreign: func(*writer.Attempt) (*devices.Device, bool) { return nil, false }}
	seen, err := b.as.Observe(t.Context(), observer.API{Cache: empty, Server: b}, 0, around)
	if b.expect(seen); err != nil || seen.Remove != nil {
		t.Errorf("%+v, %v: want it to go on", seen, err)
	}
	a := b.as.alive[0]
	seen, err = b.as.Observe(t.Context(), observer.API{Cache: empty, Server: empty}, 0, around)
	if err != nil || !a.HasNone(0) {
		t.Errorf("%+v, %v: want it known that the pods are gone", seen, err)
	}
	b.expect(seen, "ended "+deletedByOthers+"train-1-0")
}
