package driver

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/trainyard/trainyard/attempt/task"
	"github.com/trainyard/trainyard/kube/api/v1alpha1"
	"github.com/trainyard/trainyard/kube/driver/inventory"
)

// masterPort is where the ranks of an attempt meet. It is torchrun's own default. Behind it are those of jobs in the network of their node,
// ports for the GPUs of a node times as many for jobs: up to 29755, below those that services take on nodes.
const (
	masterPort = 29500
	ports      = 16
)

// visibleGPUs is the variable by which NVIDIA's runtime gives a container GPUs.
const visibleGPUs = "NVIDIA_VISIBLE_DEVICES"

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
	p.Annotations[v1alpha1.AnnotationContainer] = s.Containers[0].Name
	s.RestartPolicy = corev1.RestartPolicyNever
	seconds := int64(grace(tj).Seconds())
	s.TerminationGracePeriodSeconds = &seconds
	s.Affinity = pinnedTo(s.Affinity, a.ranks[r].nodeName)
	s.Tolerations = tolerating(s.Tolerations)
	if len(a.ranks) > 1 {
		s.Hostname, s.Subdomain = p.Name, a.base
	}
	if s.HostNetwork && (s.DNSPolicy == "" || s.DNSPolicy == corev1.DNSClusterFirst) { // else it would not find rank 0
		s.DNSPolicy = corev1.DNSClusterFirstWithHostNet
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

// equip gives the container that trains its GPUs, in the way of the mode; and the same ones to those beside it that ask for GPUs, but for
// count, which would give containers that run at the same time others.
func (a *attempt) equip(r int, s *corev1.PodSpec) {
	var claims []corev1.ResourceClaim
	for i, c := range a.claimsOf(r) {
		name := "trainyard-" + strconv.Itoa(i)
		s.ResourceClaims = append(s.ResourceClaims, corev1.PodResourceClaim{Name: name, ResourceClaimName: &c.name})
		claims = append(claims, corev1.ResourceClaim{Name: name})
	}
	for _, list := range [][]corev1.Container{s.InitContainers, s.Containers} {
		for i := range list {
			c := &list[i]
			trains := c == &s.Containers[0]
			if asks := takeGPUs(c); !trains && (!asks || a.mode == v1alpha1.Count && !runsBefore(s, c)) {
				continue
			}
			switch c.Resources.Claims = append(c.Resources.Claims, claims...); {
			case a.mode == v1alpha1.Count:
				if c.Resources.Limits == nil {
					c.Resources.Limits = make(corev1.ResourceList)
				}
				c.Resources.Limits[inventory.ResourceGPU] = *intQuantity(len(a.ranks[r].gpus))
			case a.mode == v1alpha1.Visible && !trains: // it is told with the rest
				c.Env = append(c.Env, corev1.EnvVar{Name: visibleGPUs, Value: strings.Join(a.uuids(r), ",")})
			}
		}
	}
}

// takeGPUs takes the GPUs by number that a container asks for out of it, and reports whether it did.
func takeGPUs(c *corev1.Container) (asks bool) {
	for _, list := range []corev1.ResourceList{c.Resources.Limits, c.Resources.Requests} {
		if _, in := list[inventory.ResourceGPU]; in {
			asks = true
			delete(list, inventory.ResourceGPU)
		}
	}
	return asks
}

// runsBefore reports whether a container is over before the one that trains begins.
func runsBefore(s *corev1.PodSpec, c *corev1.Container) bool {
	return slices.ContainsFunc(s.InitContainers, func(i corev1.Container) bool { return i.Name == c.Name }) && c.RestartPolicy == nil
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
	told := task.Told{Job: a.id, Attempt: a.number, GPUs: a.width(), Checkpoint: tj.Spec.Checkpoint.Path, Grace: grace(tj), Config: a.config, Devices: a.uuids(r)}
	var env []corev1.EnvVar
	add := func(name, value string) { env = append(env, corev1.EnvVar{Name: name, Value: value}) }
	for _, kv := range told.Environment() {
		name, value, _ := strings.Cut(kv, "=")
		add(name, value)
	}
	if a.mode == v1alpha1.Visible {
		add(visibleGPUs, strings.Join(told.Devices, ","))
	}
	add("TRAINYARD_RUN_DIR", runDir)
	master := "127.0.0.1"
	if len(a.ranks) > 1 {
		master = fmt.Sprintf("%s.%s.%s.svc", a.podName(0), a.base, a.key.Namespace)
	}
	nodes, each, rank, port := strconv.Itoa(len(a.ranks)), strconv.Itoa(len(here.gpus)), strconv.Itoa(r), strconv.Itoa(a.port(tj))
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

// uuids returns the GPUs of rank r.
func (a *attempt) uuids(r int) (uuids []string) {
	for _, g := range a.ranks[r].devices {
		uuids = append(uuids, g.UUID)
	}
	return uuids
}

// port returns where the ranks meet. Those in the network of their node meet at ports of their own: jobs with other first GPUs never have the
// same one on nodes of up to 16 GPUs, and on larger ones, or where they share one, seldom.
func (a *attempt) port(tj *v1alpha1.TrainingJob) int {
	if !tj.Spec.Template.Spec.HostNetwork {
		return masterPort
	}
	return masterPort + a.firstGPU%ports + ports*(int(a.id)%ports)
}

// labels stand on everything that belongs to an attempt.
func (a *attempt) labels() map[string]string {
	return map[string]string{v1alpha1.LabelJob: a.key.Name, v1alpha1.LabelAttempt: strconv.Itoa(int(a.number))}
}
