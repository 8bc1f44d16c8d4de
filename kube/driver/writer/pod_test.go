package writer

import (
	"fmt"
	"reflect"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/trainyard/trainyard/kube/api/v1alpha1"
	"github.com/trainyard/trainyard/kube/driver/devices"
	"github.com/trainyard/trainyard/kube/driver/internal/objects"
	"github.com/trainyard/trainyard/kube/driver/inventory"
	"github.com/trainyard/trainyard/sched"
)

// oneRank is an attempt on two GPUs of a node, the first of which is its third.
func oneRank(m v1alpha1.Mode, id sched.JobID) *Attempt {
	return &Attempt{Job: id, Number: 1, base: "train-1", mode: m, firstGPU: 2,
		Ranks: []Rank{{NodeName: "a", GPUs: []sched.GPUID{0, 1},
			Devices: []*devices.Device{{UUID: "GPU-2"}, {UUID: "GPU-3"}}}}}
}

// Ensure that no container of a pod asks for GPUs by number in addition to those that were decided, that those that
// asked have the same ones, and that none sees others by the variable of NVIDIA's runtime, whatever the template says.
func TestEquip(t *testing.T) {
	two := corev1.ResourceList{inventory.ResourceGPU: *objects.Quantity(2)}
	always := corev1.ContainerRestartPolicyAlways
	for _, mode := range []v1alpha1.Mode{v1alpha1.Pinned, v1alpha1.Direct, v1alpha1.Visible, v1alpha1.Count} {
		tj := objects.Job("train", 2, nil)
		s := &tj.Spec.Template.Spec
		s.Containers[0].Resources.Limits = two.DeepCopy()
		s.Containers = append(s.Containers,
			corev1.Container{Name: "watch",
				Resources: corev1.ResourceRequirements{Limits: two.DeepCopy(), Requests: two.DeepCopy()}},
			corev1.Container{Name: "log"})
		s.InitContainers = []corev1.Container{{Name: "check",
			Resources: corev1.ResourceRequirements{Limits: two.DeepCopy()}},
			{Name: "side", RestartPolicy: &always, Resources: corev1.ResourceRequirements{Limits: two.DeepCopy()}},
			{Name: "fetch"}}
		for _, list := range [][]corev1.Container{s.InitContainers, s.Containers} {
			for i := range list { // all the GPUs of the node
				list[i].Env = append(list[i].Env, corev1.EnvVar{Name: visibleGPUs, Value: "all"})
				list[i].EnvFrom = []corev1.EnvFromSource{{ConfigMapRef: new(corev1.ConfigMapEnvSource)}}
			}
		}
		p := oneRank(mode, 0).pod(0, tj, "")
		got := make(map[string]string)
		for _, c := range slices.Concat(p.Spec.InitContainers, p.Spec.Containers) {
			has := ""
			for _, e := range c.Env {
				if e.Name == visibleGPUs {
					has += "sees " + e.Value + " "
				}
			}
			if _, asks := c.Resources.Requests[inventory.ResourceGPU]; asks {
				has += " requests"
			}
			if n, asks := c.Resources.Limits[inventory.ResourceGPU]; asks {
				has += "counts " + n.String()
			}
			if len(c.Resources.Claims) > 0 {
				has += fmt.Sprint("claims ", len(c.Resources.Claims))
			}
			got[c.Name] = has
		}
		own := map[v1alpha1.Mode]string{v1alpha1.Pinned: "sees void claims 1", v1alpha1.Direct: "sees void claims 1",
			v1alpha1.Visible: "sees GPU-2,GPU-3 ", v1alpha1.Count: "counts 2"}[mode]
		const none = "sees void "
		want := map[string]string{"main": own, "watch": own, "log": none, "check": own, "side": own, "fetch": none}
		if mode == v1alpha1.Count { // what runs next to it would have others
			want["watch"], want["side"] = none, none
		}
		if fmt.Sprint(got) != fmt.Sprint(want) {
			t.Errorf("%s: %v, want %v", mode, got, want)
		}
		if p.Annotations[v1alpha1.AnnotationContainer] != "main" {
			t.Errorf("%s: annotations %v, want the container that trains", mode, p.Annotations)
		}
	}
}

// Ensure that jobs in the network of their node meet at ports of their own and find each other.
func TestHostNetwork(t *testing.T) {
	tj := objects.Job("train", 2, nil)
	port := func(id sched.JobID, first int) string {
		a := oneRank(v1alpha1.Pinned, id)
		a.firstGPU = first
		return variable(a.pod(0, tj, ""), "MASTER_PORT")
	}
	if port(7, 2) != "29500" {
		t.Errorf("port %s in a network of its own, want torchrun's", port(7, 2))
	}
	tj.Spec.Template.Spec.HostNetwork = true
	seen := make(map[string]bool)
	for first := range 15 {
		seen[port(7, first)] = true
		seen[port(sched.JobID(8+first), first)] = true
	}
	if len(seen) != 30 || port(100_000, 15) > "29755" {
		t.Errorf("%d ports of 30 jobs, and %s: want them apart, up to 29755", len(seen), port(100_000, 15))
	}
	if p := oneRank(v1alpha1.Pinned, 7).pod(0, tj, ""); p.Spec.DNSPolicy != corev1.DNSClusterFirstWithHostNet {
		t.Errorf("DNS policy %q, want one by which rank 0 is found", p.Spec.DNSPolicy)
	}
	tj.Spec.Template.Spec.DNSPolicy = corev1.DNSNone
	if p := oneRank(v1alpha1.Pinned, 7).pod(0, tj, ""); p.Spec.DNSPolicy != corev1.DNSNone {
		t.Errorf("DNS policy %q, want the user's", p.Spec.DNSPolicy)
	}
}

// Ensure that the user's template is kept as it is, but for what is ours to say.
func TestPodKeepsTheTemplate(t *testing.T) {
	t.Parallel()
	tj := objects.Job("train", 2,
		map[string]string{"DATA": "$(TRAINYARD_CHECKPOINT_DIR)/x", "MASTER_PORT": "1", "TRAINYARD_X": "y",
			"PET_NNODES": "9"})
	tj.UID = "uid"
	tj.Spec.Checkpoint = v1alpha1.Checkpoint{Path: "/ckpt", ResumeArg: "--resume", GraceSeconds: 90}
	template := &tj.Spec.Template
	template.Labels, template.Annotations = map[string]string{"team": "vision"},
		map[string]string{"karpenter.sh/do-not-disrupt": "false"}
	s := &template.Spec
	minute := int64(60)
	s.RestartPolicy, s.ServiceAccountName = corev1.RestartPolicyAlways, "trainer"
	s.Tolerations = []corev1.Toleration{{Key: corev1.TaintNodeNotReady, Operator: corev1.TolerationOpExists,
		TolerationSeconds: &minute}, {Key: "team", Value: "vision"}}
	s.Affinity = &corev1.Affinity{
		NodeAffinity: &corev1.NodeAffinity{RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{
			NodeSelectorTerms: []corev1.NodeSelectorTerm{
				{MatchExpressions: []corev1.NodeSelectorRequirement{
					{Key: "zone", Operator: corev1.NodeSelectorOpExists}}},
				{}}}}}
	s.Containers[0].Resources.Limits = corev1.ResourceList{inventory.ResourceGPU: *objects.Quantity(8),
		corev1.ResourceCPU: *objects.Quantity(4)}
	s.Containers = append(s.Containers, corev1.Container{Name: "side"})
	before := tj.DeepCopy()
	a := &Attempt{Job: 5, Number: 2, Key: types.NamespacedName{Namespace: objects.Namespace, Name: "train"}, UID: "uid",
		base: "train-2", mode: v1alpha1.Pinned,
		Config: sched.Config{Batch: 96, Accum: 3, LRScale: 0.5},
		Ranks: []Rank{{NodeName: "a", GPUs: []sched.GPUID{0, 1},
			Devices: []*devices.Device{
				{UUID: "GPU-a-0", ID: devices.ID{Driver: objects.Driver, Pool: "a", Name: "gpu-0"}},
				{UUID: "GPU-a-1"}}}}}
	p := a.pod(0, tj, "low")
	if !reflect.DeepEqual(before, tj) {
		t.Error("the job itself was changed")
	}
	c := &p.Spec.Containers[0]
	for name, want := range map[string]string{"DATA": "$(TRAINYARD_CHECKPOINT_DIR)/x", "MASTER_PORT": "29500",
		"MASTER_ADDR": "127.0.0.1", "TRAINYARD_X": "", "PET_NNODES": "1",
		"TRAINYARD_RESUME": "1", "TRAINYARD_JOB_ID": "5", "TRAINYARD_ATTEMPT": "2", "TRAINYARD_BATCH_PER_GPU": "16",
		"TRAINYARD_LR_SCALE":       "0.5",
		"TRAINYARD_CHECKPOINT_DIR": "/ckpt", "TRAINYARD_RUN_DIR": runDir, "TORCH_ELASTIC_SHUTDOWN_TIMEOUT": "80"} {
		if got := variable(p, name); got != want {
			t.Errorf("%s is %q, want %q", name, got, want)
		}
	}
	if n := len(c.VolumeMounts); c.VolumeMounts[n-1] != (corev1.VolumeMount{Name: runVolume, MountPath: runDir}) ||
		p.Spec.Volumes[len(p.Spec.Volumes)-1].EmptyDir == nil {
		t.Errorf("mounts %+v, volumes %+v", c.VolumeMounts, p.Spec.Volumes)
	}
	_, plugin := c.Resources.Limits[inventory.ResourceGPU]
	terms := p.Spec.Affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution.NodeSelectorTerms
	switch {
	case c.Args[len(c.Args)-1] != "--resume" || plugin || len(c.Resources.Limits) != 1 || len(c.Resources.Claims) != 1:
		t.Errorf("container %+v", c)
	case *p.Spec.ResourceClaims[0].ResourceClaimName != "train-2" || len(p.Spec.Containers) != 2 ||
		len(p.Spec.Containers[1].Env) != 1:
		t.Errorf("claims %+v, containers %+v", p.Spec.ResourceClaims, p.Spec.Containers)
	case len(terms) != 2 || len(terms[0].MatchExpressions) != 1 || terms[0].MatchFields[0].Values[0] != "a" ||
		terms[1].MatchFields[0].Values[0] != "a":
		t.Errorf("affinity %+v", terms)
	case p.Labels["team"] != "vision" || p.Labels[v1alpha1.LabelAttempt] != "2" ||
		p.Annotations["karpenter.sh/do-not-disrupt"] != "false" ||
		p.Annotations["cluster-autoscaler.kubernetes.io/safe-to-evict"] != "false":
		t.Errorf("labels %v, annotations %v", p.Labels, p.Annotations)
	case *p.Spec.TerminationGracePeriodSeconds != 90 || p.Spec.RestartPolicy != corev1.RestartPolicyNever ||
		p.Spec.PriorityClassName != "low" || p.Spec.ServiceAccountName != "trainer":
		t.Errorf("spec %+v", p.Spec)
	case len(p.Spec.Tolerations) != 4 ||
		slices.ContainsFunc(p.Spec.Tolerations, func(t corev1.Toleration) bool { return t.TolerationSeconds != nil }):
		t.Errorf("tolerations %+v", p.Spec.Tolerations)
	case !*p.OwnerReferences[0].Controller || !*p.OwnerReferences[0].BlockOwnerDeletion ||
		p.OwnerReferences[0].UID != "uid":
		t.Errorf("owner %+v", p.OwnerReferences)
	}
}

// Ensure that a template may have a volume of its own for the folder of the attempt, or something else in its place.
func TestRunDir(t *testing.T) {
	t.Parallel()
	claim := corev1.Volume{Name: runVolume,
		VolumeSource: corev1.VolumeSource{
			PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: "runs"}}}
	s := &corev1.PodSpec{Volumes: []corev1.Volume{claim}, Containers: []corev1.Container{{}, {}}}
	giveRunDir(s)
	if !reflect.DeepEqual(s.Volumes, []corev1.Volume{claim}) || len(s.Containers[0].VolumeMounts) != 1 ||
		len(s.Containers[1].VolumeMounts) != 0 {
		t.Errorf("a volume of its own: %+v", s)
	}
	mine := []corev1.VolumeMount{{Name: "x", MountPath: runDir}}
	s = &corev1.PodSpec{Containers: []corev1.Container{{VolumeMounts: mine}}}
	if giveRunDir(s); len(s.Volumes) != 0 || !reflect.DeepEqual(s.Containers[0].VolumeMounts, mine) {
		t.Errorf("a mount of its own: %+v", s)
	}
}

func variable(p *corev1.Pod, name string) string {
	for _, e := range p.Spec.Containers[0].Env {
		if e.Name == name {
			return e.Value
		}
	}
	return ""
}
