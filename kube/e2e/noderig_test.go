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
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/trainyard/trainyard/kube/api/v1alpha1"
	"github.com/trainyard/trainyard/kube/internal/controlplane"
	"github.com/trainyard/trainyard/kube/internal/realnode"
	"github.com/trainyard/trainyard/kube/record"
)

// realRig is a rig whose nodes are real, whose controller is the program, and whose jobs are real training processes.
type realRig struct {
	*rig
	work string // folder that jobs have in common: witnesses, ledger, checkpoints, results
}

// newRealRig prepares a control plane and a policy, and no node.
func newRealRig(t *testing.T, policy v1alpha1.SchedulerPolicySpec) *realRig {
	t.Helper()
	realnode.Needs(t)
	r := &realRig{&rig{t: t, plane: controlplane.Start(t, controlplane.Options{}), space: "lab"}, t.TempDir()}
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

// trains describes a job that trains for real, on one GPU, keeps its checkpoints from attempt to attempt and leaves its result when it
// is done.
func (r *realRig) trains(name string, args ...string) *v1alpha1.TrainingJob {
	args = append(args, "--out", filepath.Join(r.work, name+".json"))
	return r.job(name, 1, func(j *v1alpha1.TrainingJob) {
		j.Spec.Template.Spec = realnode.PodSpec(r.work, args...)
		j.Spec.Checkpoint = v1alpha1.Checkpoint{Path: filepath.Join(r.work, name), GraceSeconds: 60}
	})
}

// alone has a job hold locks on itself and on the GPUs that it was given, in the ledger: two processes that overlap are found out, and
// when they began and ended is told.
func (r *realRig) alone(j *v1alpha1.TrainingJob) *v1alpha1.TrainingJob {
	c := &j.Spec.Template.Spec.Containers[0]
	c.Env = append(c.Env, corev1.EnvVar{Name: "TRAINER_LEDGER", Value: filepath.Join(r.work, "ledger")})
	return j
}

// given is what a process was given by its node and told by the controller (kube/internal/realnode/witness).
type given struct {
	Job, Attempt, Resume string
	Given, Told          []string
}

// witnesses returns what all processes so far were given, in the order of their starts. What was given is what was told, for each.
func (r *realRig) witnesses() (list []given) {
	r.t.Helper()
	data, err := os.ReadFile(filepath.Join(r.work, "given"))
	if err != nil && !os.IsNotExist(err) {
		r.t.Fatal(err)
	}
	for line := range bytes.Lines(data) {
		var g given
		must(r.t, json.Unmarshal(line, &g))
		if !slices.Equal(g.Given, g.Told) {
			r.t.Errorf("attempt %s of job %s was given %v by its node, and told of %v", g.Attempt, g.Job, g.Given, g.Told)
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

// entry is a line of the ledger (examples/trainer/ledger.go), of which begin, resume and end are of use here.
type entry struct {
	kind, job, attempt string
	step, code         int
	nanos              int64
	devices            string
}

// ledger returns what the processes that are alone wrote down, and fails the test where two overlapped.
func (r *realRig) ledger() (list []entry) {
	r.t.Helper()
	data, err := os.ReadFile(filepath.Join(r.work, "ledger", "ledger.log"))
	must(r.t, err)
	for s := bufio.NewScanner(bytes.NewReader(data)); s.Scan(); {
		var e entry
		var pid int
		var start, boot string
		line := s.Text()
		kind, _, _ := strings.Cut(line, " ")
		switch kind {
		case "begin":
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

// number returns the number of a job, which is what its processes know it by.
func (r *realRig) number(name string) string {
	r.t.Helper()
	job, err := record.Read(r.status(name).Record)
	must(r.t, err)
	return strconv.Itoa(int(job.ID))
}

// awaitStep waits until the process of a job's attempt has told of a step, or of one beyond, as the log of its pod has it.
func (r *realRig) awaitStep(name string, attempt, step int) {
	r.t.Helper()
	pods := r.plane.Client().CoreV1().Pods(r.space)
	eventually(r.t, fmt.Sprintf("%s is at step %d", name, step), func() bool {
		log, err := pods.GetLogs(fmt.Sprintf("%s-%d-0", name, attempt), &corev1.PodLogOptions{}).DoRaw(r.t.Context())
		at := 0
		if i := bytes.LastIndex(log, []byte("TRAINYARD step=")); err == nil && i >= 0 {
			_, err = fmt.Sscanf(string(log[i:]), "TRAINYARD step=%d", &at)
		}
		return err == nil && at >= step
	})
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
