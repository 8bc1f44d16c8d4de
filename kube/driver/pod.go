package driver

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/trainyard/trainyard/driver/local/task"
	"github.com/trainyard/trainyard/kube/api/v1alpha1"
)

// masterPort is where the ranks of an attempt meet. It is torchrun's own default.
const masterPort = 29500

// directScheduler is the scheduler that pods name which we bind ourselves, so that no other does.
const directScheduler = "trainyard.dev"

// runDir is where the container that trains has a folder of the attempt's own: an emptyDir, unless the template has a volume runVolume.
const (
	runDir    = "/trainyard/run"
	runVolume = "trainyard-run"
)

// service returns the headless Service by which the ranks of an attempt find rank 0, before they are ready as well.
func (a *attempt) service(tj *v1alpha1.TrainingJob) *corev1.Service {
	return &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Namespace: a.key.Namespace, Name: a.base, Labels: a.labels(), OwnerReferences: []metav1.OwnerReference{ownerOf(tj, true)}},
		Spec: corev1.ServiceSpec{ClusterIP: corev1.ClusterIPNone, PublishNotReadyAddresses: true, Selector: a.labels(),
			Ports: []corev1.ServicePort{{Name: "master", Port: masterPort, TargetPort: intstr.FromInt32(masterPort)}}},
	}
}

// pod returns the pod of rank r: the template of the job, on exactly its node and GPUs, told what it needs to know.
func (a *attempt) pod(r int, tj *v1alpha1.TrainingJob, priorityClass string) *corev1.Pod {
	template := tj.Spec.Template.DeepCopy()
	p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: a.key.Namespace, Name: a.podName(r), OwnerReferences: []metav1.OwnerReference{ownerOf(tj, true)},
		Labels: template.Labels, Annotations: template.Annotations}, Spec: template.Spec}
	if p.Labels == nil {
		p.Labels = make(map[string]string)
	}
	maps.Copy(p.Labels, a.labels())
	p.Labels[v1alpha1.LabelRank] = strconv.Itoa(r)
	if p.Annotations == nil {
		p.Annotations = make(map[string]string)
	}
	for _, name := range []string{"karpenter.sh/do-not-disrupt", "cluster-autoscaler.kubernetes.io/safe-to-evict"} {
		if _, set := p.Annotations[name]; !set { // who rents says who goes
			p.Annotations[name] = strconv.FormatBool(strings.HasPrefix(name, "karpenter"))
		}
	}
	s := &p.Spec
	s.RestartPolicy = corev1.RestartPolicyNever
	seconds := int64(grace(tj).Seconds())
	s.TerminationGracePeriodSeconds = &seconds
	s.Affinity = pinnedTo(s.Affinity, a.ranks[r].nodeName)
	s.Tolerations = tolerating(s.Tolerations)
	if len(a.ranks) > 1 {
		s.Hostname, s.Subdomain = p.Name, a.base
	}
	if s.PriorityClassName == "" && s.Priority == nil {
		s.PriorityClassName = priorityClass
	}
	if a.mode == v1alpha1.Direct {
		s.SchedulerName = directScheduler
	}
	a.equip(r, s)
	giveRunDir(s)
	trains := &s.Containers[0]
	trains.Env = a.environment(r, tj, trains.Env)
	if trains.TerminationMessagePolicy == "" { // its last words tell why it failed
		trains.TerminationMessagePolicy = corev1.TerminationMessageFallbackToLogsOnError
	}
	if arg := tj.Spec.Checkpoint.ResumeArg; arg != "" && a.number > 1 {
		trains.Args = append(trains.Args, arg)
	}
	return p
}

// equip gives the container that trains its GPUs, in the way of the mode.
func (a *attempt) equip(r int, s *corev1.PodSpec) {
	trains := &s.Containers[0]
	delete(trains.Resources.Limits, resourceGPU)
	delete(trains.Resources.Requests, resourceGPU)
	if a.mode == v1alpha1.Count {
		n := *intQuantity(len(a.ranks[r].gpus))
		if trains.Resources.Limits == nil {
			trains.Resources.Limits = make(corev1.ResourceList)
		}
		trains.Resources.Limits[resourceGPU] = n
		return
	}
	for i, c := range a.claimsOf(r) {
		name := "trainyard-" + strconv.Itoa(i)
		s.ResourceClaims = append(s.ResourceClaims, corev1.PodResourceClaim{Name: name, ResourceClaimName: &c.name})
		trains.Resources.Claims = append(trains.Resources.Claims, corev1.ResourceClaim{Name: name})
	}
}

// giveRunDir mounts the folder of the attempt, unless the template has something there.
func giveRunDir(s *corev1.PodSpec) {
	trains := &s.Containers[0]
	if slices.ContainsFunc(trains.VolumeMounts, func(m corev1.VolumeMount) bool { return m.MountPath == runDir }) {
		return
	}
	if !slices.ContainsFunc(s.Volumes, func(v corev1.Volume) bool { return v.Name == runVolume }) {
		s.Volumes = append(s.Volumes, corev1.Volume{Name: runVolume, VolumeSource: corev1.VolumeSource{EmptyDir: new(corev1.EmptyDirVolumeSource)}})
	}
	trains.VolumeMounts = append(trains.VolumeMounts, corev1.VolumeMount{Name: runVolume, MountPath: runDir})
}

// pinnedTo returns the affinity with the one node that a pod may run on, whatever else its user wants of it.
func pinnedTo(a *corev1.Affinity, node string) *corev1.Affinity {
	if a == nil {
		a = new(corev1.Affinity)
	}
	if a.NodeAffinity == nil {
		a.NodeAffinity = new(corev1.NodeAffinity)
	}
	required := a.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution
	if required == nil || len(required.NodeSelectorTerms) == 0 {
		required = &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{{}}}
	}
	for i := range required.NodeSelectorTerms { // any of them will do
		t := &required.NodeSelectorTerms[i]
		t.MatchFields = append(t.MatchFields, onNode(node).MatchFields...)
	}
	a.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution = required
	return a
}

// tolerating returns tolerations with those for ever of a node that is silent: that ends nothing; and of the taint of nodes that are
// ours.
func tolerating(t []corev1.Toleration) []corev1.Toleration {
	silent := []string{corev1.TaintNodeNotReady, corev1.TaintNodeUnreachable}
	out := slices.DeleteFunc(t, func(t corev1.Toleration) bool { return slices.Contains(silent, t.Key) })
	for _, key := range silent {
		out = append(out, corev1.Toleration{Key: key, Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoExecute})
	}
	return append(out, corev1.Toleration{Key: v1alpha1.TaintPool, Operator: corev1.TolerationOpExists})
}

// environment returns what rank r is told, before what its user says, who may refer to it. Of what is ours the user's is left out.
func (a *attempt) environment(r int, tj *v1alpha1.TrainingJob, users []corev1.EnvVar) []corev1.EnvVar {
	here := &a.ranks[r]
	told := task.Told{Job: a.id, Attempt: a.number, GPUs: a.width(), Checkpoint: tj.Spec.Checkpoint.Path, Grace: grace(tj), Config: a.config}
	for _, g := range here.devices {
		told.Devices = append(told.Devices, g.uuid)
	}
	var env []corev1.EnvVar
	add := func(name, value string) { env = append(env, corev1.EnvVar{Name: name, Value: value}) }
	for _, kv := range told.Environment() {
		name, value, _ := strings.Cut(kv, "=")
		add(name, value)
	}
	if a.mode == v1alpha1.Visible {
		add("NVIDIA_VISIBLE_DEVICES", strings.Join(told.Devices, ","))
	}
	add("TRAINYARD_RUN_DIR", runDir)
	master := "127.0.0.1"
	if len(a.ranks) > 1 {
		master = fmt.Sprintf("%s.%s.%s.svc", a.podName(0), a.base, a.key.Namespace)
	}
	nodes, each, rank, port := strconv.Itoa(len(a.ranks)), strconv.Itoa(len(here.gpus)), strconv.Itoa(r), strconv.Itoa(masterPort)
	add("MASTER_ADDR", master)
	add("MASTER_PORT", port)
	add("WORLD_SIZE", strconv.Itoa(a.width()))
	add("NNODES", nodes)
	add("NODE_RANK", rank)
	add("NPROC_PER_NODE", each)
	for _, kv := range [][2]string{{"NNODES", nodes}, {"NPROC_PER_NODE", each}, {"NODE_RANK", rank}, {"MASTER_ADDR", master}, {"MASTER_PORT", port}} {
		add("PET_"+kv[0], kv[1]) // torchrun takes its flags from there
	}
	for _, e := range users {
		if !slices.ContainsFunc(env, func(x corev1.EnvVar) bool { return x.Name == e.Name }) && !strings.HasPrefix(e.Name, "TRAINYARD_") {
			env = append(env, e)
		}
	}
	return env
}

// labels stand on everything that belongs to an attempt.
func (a *attempt) labels() map[string]string {
	return map[string]string{v1alpha1.LabelJob: a.key.Name, v1alpha1.LabelAttempt: strconv.Itoa(int(a.number))}
}

func isOwner(o metav1.OwnerReference) bool {
	return o.Kind == "TrainingJob" && strings.HasPrefix(o.APIVersion, v1alpha1.GroupVersion.Group+"/")
}

func metaOf(key types.NamespacedName) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name}
}
