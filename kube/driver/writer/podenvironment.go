package writer

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/trainyard/trainyard/attempt/task"
	"github.com/trainyard/trainyard/kube/api/v1alpha1"
)

// environment returns the variables of rank r, before those of its user, which may refer to them. A variable of ours
// replaces the user's of its name.
func (a *Attempt) environment(r int, tj *v1alpha1.TrainingJob, users []corev1.EnvVar) []corev1.EnvVar {
	var env []corev1.EnvVar
	add := func(name, value string) { env = append(env, corev1.EnvVar{Name: name, Value: value}) }
	here := task.Variables{
		Job: a.Job, Attempt: a.Number, GPUs: a.Width(), Checkpoint: tj.Spec.Checkpoint.Path, Grace: grace(tj),
		Config: a.Config, GPUMemGB: float32(tj.Spec.Sharing.MemoryGiB), Devices: a.uuids(r),
	}
	for _, kv := range here.Environment() {
		name, value, _ := strings.Cut(kv, "=")
		add(name, value)
	}
	add("TRAINYARD_RUN_DIR", runDir)
	for _, kv := range a.meeting(r, tj) {
		add(kv[0], kv[1])
	}
	for _, e := range users {
		taken := slices.ContainsFunc(env, func(x corev1.EnvVar) bool { return x.Name == e.Name })
		if !taken && !strings.HasPrefix(e.Name, "TRAINYARD_") {
			env = append(env, e)
		}
	}
	return env
}

// meeting returns the variables by which the ranks find each other.
func (a *Attempt) meeting(r int, tj *v1alpha1.TrainingJob) [][2]string {
	master := "127.0.0.1"
	if len(a.Ranks) > 1 {
		master = fmt.Sprintf("%s.%s.%s.svc", a.PodName(0), a.base, a.Key.Namespace)
	}
	port := strconv.Itoa(a.port(tj))
	nodes, each, rank := strconv.Itoa(len(a.Ranks)), strconv.Itoa(len(a.Ranks[r].GPUs)), strconv.Itoa(r)
	vars := [][2]string{
		{"MASTER_ADDR", master}, {"MASTER_PORT", port}, {"WORLD_SIZE", strconv.Itoa(a.Width())},
		{"NNODES", nodes}, {"NODE_RANK", rank}, {"NPROC_PER_NODE", each},
	}
	for _, kv := range [][2]string{
		{"NNODES", nodes}, {"NPROC_PER_NODE", each}, {"NODE_RANK", rank}, {"MASTER_ADDR", master},
		{"MASTER_PORT", port},
	} {
		vars = append(vars, [2]string{"PET_" + kv[0], kv[1]}) // torchrun takes its flags from there
	}
	return vars
}
