package e2e

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/trainyard/trainyard/eventlog"
	"github.com/trainyard/trainyard/kube/api/v1alpha1"
	"github.com/trainyard/trainyard/kube/internal/controlplane"
	"github.com/trainyard/trainyard/kube/internal/realnode"
	"github.com/trainyard/trainyard/kube/provider"
	"github.com/trainyard/trainyard/kube/record"
	"github.com/trainyard/trainyard/sched"
)

// realRig is a rig whose nodes are real, whose controller is the program, and whose jobs are real training processes.
type realRig struct {
	*rig
	work    string // folder that jobs have in common: witnesses, ledger, checkpoints, results
	program *controlplane.Program
}

// newRealRig prepares a control plane and a policy, and no node.
func newRealRig(t *testing.T, plane controlplane.Options, policy v1alpha1.SchedulerPolicySpec) *realRig {
	t.Helper()
	realnode.Needs(t)
	r := &realRig{rig: &rig{t: t, plane: controlplane.Start(t, plane), space: "lab"}, work: t.TempDir()}
	r.api = clientOf(t, r.plane)
	define(t, r.api)
	install(t, r.api)
	r.create(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: r.space}})
	r.create(&v1alpha1.SchedulerPolicy{ObjectMeta: metav1.ObjectMeta{Name: "default"}, Spec: policy})
	must(t, os.Mkdir(filepath.Join(r.work, "ledger"), 0o755))
	return r
}

// node starts a real node.
func (r *realRig) node(name string, gpus int) *realnode.Node {
	r.t.Helper()
	return realnode.Start(r.t, r.plane, name, realnode.Options{GPUs: gpus, Image: realnode.Trainer(r.t)})
}

// ready reports whether the control plane takes a node for ready.
func (r *realRig) ready(name string) bool {
	r.t.Helper()
	var n corev1.Node
	must(r.t, r.api.Get(r.t.Context(), client.ObjectKey{Name: name}, &n))
	return slices.ContainsFunc(n.Status.Conditions, func(c corev1.NodeCondition) bool {
		return c.Type == corev1.NodeReady && c.Status == corev1.ConditionTrue
	})
}

// decide starts the controller.
func (r *realRig) decide() {
	r.t.Helper()
	r.program = r.launch("--log", filepath.Join(r.work, "log.jsonl"))
}

// history ends the controller and returns all events and decisions.
func (r *realRig) history() (list []sched.Event) {
	r.t.Helper()
	must(r.t, r.program.Signal(syscall.SIGTERM))
	<-r.program.Done()
	log, err := os.Open(filepath.Join(r.work, "log.jsonl"))
	must(r.t, err)
	defer log.Close()
	reader, err := eventlog.NewReader(log, "log.jsonl")
	must(r.t, err)
	for more := true; more; { // it starts again where a node shows GPUs of a new kind
		for rec, err := range reader.Part() {
			must(r.t, err)
			e := rec.Event
			e.GPUs = slices.Clone(e.GPUs)
			if e.Target != nil {
				e.Target = new(*e.Target)
			}
			list = append(list, e)
		}
		more, err = reader.Another()
		must(r.t, err)
	}
	return list
}

// trains describes a job that trains for real, on one GPU, keeps its checkpoints from attempt to attempt and leaves its
// result when it is done.
func (r *realRig) trains(name string, args ...string) *v1alpha1.TrainingJob {
	args = append(args, "--out", filepath.Join(r.work, name+".json"))
	return r.job(name, 1, func(j *v1alpha1.TrainingJob) {
		j.Spec.Template.Spec = realnode.PodSpec(r.work, args...)
		j.Spec.Checkpoint = v1alpha1.Checkpoint{Path: filepath.Join(r.work, name), GraceSeconds: 60}
	})
}

// alone has a job hold locks on itself and on the GPUs that it was given, in the ledger: two processes that overlap are
// found out, and when they started and ended is reported.
func (r *realRig) alone(j *v1alpha1.TrainingJob) *v1alpha1.TrainingJob {
	c := &j.Spec.Template.Spec.Containers[0]
	c.Env = append(c.Env, corev1.EnvVar{Name: "TRAINER_LEDGER", Value: filepath.Join(r.work, "ledger")})
	return j
}

// given is what a process was given by its node and by the controller (kube/internal/realnode/witness).
type given struct {
	Job, Attempt, Resume string
	Given, Reported      []string
	Width                string
	Meets                map[string]string
}

// witnesses returns what all processes so far were given, in the order of their starts. What was given is what was
// given, for each.
func (r *realRig) witnesses() (list []given) {
	r.t.Helper()
	data, err := os.ReadFile(filepath.Join(r.work, "given"))
	if err != nil && !os.IsNotExist(err) {
		r.t.Fatal(err)
	}
	for line := range bytes.Lines(data) {
		var g given
		must(r.t, json.Unmarshal(line, &g))
		if !slices.Equal(g.Given, g.Reported) {
			r.t.Errorf("attempt %s of job %s was given %v by its node, and heard of %v", g.Attempt, g.Job, g.Given,
				g.Reported)
		}
		list = append(list, g)
	}
	return list
}

// wantGiven checks that the process of a job's attempt was given these GPUs, and no others.
func (r *realRig) wantGiven(name string, attempt int32, uuids ...string) {
	r.t.Helper()
	var got [][]string
	for _, g := range r.witnesses() {
		if g.Job == r.number(name) && g.Attempt == fmt.Sprint(attempt) {
			got = append(got, g.Given)
		}
	}
	if len(got) != 1 || !slices.Equal(got[0], uuids) {
		r.t.Errorf("attempt %d of %s: processes with %v, want one with %v", attempt, name, got, uuids)
	}
}

// entry is a line of the ledger (examples/trainer/ledger.go), of which start, resume and end are of use here.
type entry struct {
	kind, job, attempt string
	step, code         int
	nanos              int64
	devices            string
}

// ledger returns what the processes that are alone wrote down, and fails the test where two overlapped.
func (r *realRig) ledger() (list []entry) {
	r.t.Helper()
	return r.ledgerIn("ledger")
}

// ledgerIn is ledger, of a folder.
func (r *realRig) ledgerIn(folder string) (list []entry) {
	r.t.Helper()
	data, err := os.ReadFile(filepath.Join(r.work, folder, "ledger.log"))
	if err != nil && !os.IsNotExist(err) {
		r.t.Fatal(err)
	}
	for s := bufio.NewScanner(bytes.NewReader(data)); s.Scan(); {
		var e entry
		var pid int
		var start, boot string
		line := s.Text()
		kind, _, _ := strings.Cut(line, " ")
		switch kind {
		case "start":
			_, err = fmt.Sscan(line, &e.kind, &e.job, &e.attempt, &pid, &start, &boot, &e.nanos, &e.devices)
		case "resume":
			_, err = fmt.Sscan(line, &e.kind, &e.job, &e.attempt, &pid, &e.step, &e.nanos)
		case "end":
			_, err = fmt.Sscan(line, &e.kind, &e.job, &e.attempt, &pid, &e.code, &e.step, &e.nanos)
		default:
			err = fmt.Errorf("two processes at a time")
		}
		if err != nil {
			r.t.Fatalf("ledger: %s: %v", line, err)
		}
		list = append(list, e)
	}
	return list
}

// ends returns the jobs of which processes ended by themselves with a code.
func (r *realRig) ends(code int) (jobs []string) {
	r.t.Helper()
	for _, e := range r.ledger() {
		if e.kind == "end" && e.code == code {
			jobs = append(jobs, e.job)
		}
	}
	return jobs
}

// number returns the number of a job, which is what its processes know it by.
func (r *realRig) number(name string) string {
	r.t.Helper()
	job, err := record.Read(r.status(name).Record)
	must(r.t, err)
	return strconv.Itoa(int(job.ID))
}

// awaitStep waits until the process of a job's attempt has reported a step, or of one beyond.
func (r *realRig) awaitStep(name string, attempt, step int) {
	r.t.Helper()
	eventually(r.t, fmt.Sprintf("%s is at step %d", name, step), func() bool { return r.step(name, attempt) >= step })
}

// step returns the last step that the process of a job's attempt reported, as the node has it in the pod's log; -1 if
// there is none yet.
func (r *realRig) step(name string, attempt int) int {
	log, err := r.plane.Client().CoreV1().Pods(r.space).GetLogs(fmt.Sprintf("%s-%d-0", name, attempt),
		&corev1.PodLogOptions{}).DoRaw(r.t.Context())
	at := -1
	if i := bytes.LastIndex(log, []byte("TRAINYARD step=")); err == nil && i >= 0 {
		if _, err := fmt.Sscanf(string(log[i:]), "TRAINYARD step=%d", &at); err != nil {
			return -1 // half a line
		}
	}
	return at
}

// saved returns the step of the newest checkpoint of a job.
func (r *realRig) saved(name string) (step int) {
	files, err := filepath.Glob(filepath.Join(r.work, name, "step-*.ckpt"))
	must(r.t, err)
	for _, file := range files {
		at := 0
		_, err := fmt.Sscanf(filepath.Base(file), "step-%d.ckpt", &at)
		must(r.t, err)
		step = max(step, at)
	}
	return step
}

// result is what a training that ended left.
type result struct {
	Steps    int
	Hash     string
	Accuracy float64
}

func (r *realRig) result(name string) (res result) {
	r.t.Helper()
	data, err := os.ReadFile(filepath.Join(r.work, name+".json"))
	must(r.t, err)
	must(r.t, json.Unmarshal(data, &res))
	return res
}

// cloud has the nodes of a pool boot and go, as machines.
type cloud struct {
	r        *realRig
	up       map[string]*realnode.Node // by name
	released []string
}

// runs plays the cloud until something is so. A node that was ordered comes up when its boot is over; one that was
// given back is shut down.
func (c *cloud) runs(what string, until func() bool) {
	c.r.t.Helper()
	eventually(c.r.t, what, func() bool {
		var list corev1.NodeList
		must(c.r.t, c.r.api.List(c.r.t.Context(), &list, client.HasLabels{v1alpha1.LabelPool}))
		there := make(map[string]bool)
		for i := range list.Items {
			n := &list.Items[i]
			there[n.Name] = true
			at, err := time.Parse(time.RFC3339Nano, n.Annotations[provider.BootsAt])
			must(c.r.t, err)
			if c.up[n.Name] == nil && time.Now().After(at) {
				c.boot(n.Name)
			}
		}
		for name, n := range c.up {
			if !there[name] {
				c.r.wantIdle(name)
				must(c.r.t, n.Halt())
				delete(c.up, name)
				c.released = append(c.released, name)
			}
		}
		return until()
	})
}

// boot brings up a node. On a loaded machine one may join, serve no job and be given back before that is noticed here.
func (c *cloud) boot(name string) {
	c.r.t.Helper()
	n := realnode.New(c.r.t, c.r.plane, name, realnode.Options{GPUs: 2, Image: realnode.Trainer(c.r.t)})
	if err := n.Boot(c.r.t.Context()); !apierrors.IsNotFound(err) {
		must(c.r.t, err)
	}
	c.up[name] = n
}

// wantIdle checks that every process that started on GPUs of a node has ended by itself.
func (r *realRig) wantIdle(node string) {
	r.t.Helper()
	running := make(map[string]bool) // by job and attempt
	for _, e := range r.ledger() {
		switch {
		case e.kind == "start" && strings.Contains(e.devices, "GPU-"+node+"-"):
			running[e.job+"/"+e.attempt] = true
		case e.kind == "end":
			delete(running, e.job+"/"+e.attempt)
		}
	}
	if len(running) > 0 {
		r.t.Errorf("node %s was given back under %v", node, running)
	}
}
