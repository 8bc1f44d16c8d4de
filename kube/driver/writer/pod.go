package writer

import (
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/trainyard/trainyard/kube/api/v1alpha1"
	"github.com/trainyard/trainyard/kube/driver/inventory"
	"github.com/trainyard/trainyard/kube/driver/observer"
	"github.com/trainyard/trainyard/sched"
)

// masterPort is where the ranks of an attempt meet: torchrun's own default. Behind it are the ports of jobs in the
// network of their node, as many for the GPUs of a node times as many for jobs: up to 29755, below those that services
// take on nodes.
const (
	masterPort = 29500
	ports      = 16
)

// visibleGPUs is the variable by which NVIDIA's runtime gives a container GPUs.
const visibleGPUs = "NVIDIA_VISIBLE_DEVICES"

// directScheduler is the scheduler that pods name which we bind ourselves, so that no other does.
const directScheduler = "trainyard.dev"

// runDir is where the container that trains has a folder of the attempt's own: an emptyDir, unless the template has a
// volume runVolume.
const (
	runDir    = "/trainyard/run"
	runVolume = "trainyard-run"
)

// service returns the headless Service by which the ranks of an attempt find rank 0, before they are ready as well.
func (a *Attempt) service(tj *v1alpha1.TrainingJob) *corev1.Service {
	return &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: a.Key.Namespace, Name: a.base, Labels: a.labels(),
			OwnerReferences: []metav1.OwnerReference{ownerOf(tj, true)},
		},
		Spec: corev1.ServiceSpec{
			ClusterIP: corev1.ClusterIPNone, PublishNotReadyAddresses: true, Selector: a.labels(),
			Ports: []corev1.ServicePort{{Name: "master", Port: masterPort, TargetPort: intstr.FromInt32(masterPort)}},
		},
	}
}

// pod returns the pod of rank r: the template of the job, on exactly its node and GPUs, with what the rank needs to
// know.
func (a *Attempt) pod(r int, tj *v1alpha1.TrainingJob, priorityClass string) *corev1.Pod {
	template := tj.Spec.Template.DeepCopy()
	p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{
		Namespace: a.Key.Namespace, Name: a.PodName(r), OwnerReferences: []metav1.OwnerReference{ownerOf(tj, true)},
		Labels: template.Labels, Annotations: template.Annotations,
	}, Spec: template.Spec}
	a.mark(p, r)
	s := &p.Spec
	a.place(s, r, tj)
	if len(a.Ranks) > 1 {
		s.Hostname, s.Subdomain = p.Name, a.base
	}
	if s.PriorityClassName == "" && s.Priority == nil {
		s.PriorityClassName = priorityClass
	}
	equipped := a.equip(r, s)
	giveRunDir(s)
	trains := &s.Containers[0]
	trains.Env = a.environment(r, tj, trains.Env)
	a.show(r, s, equipped)
	if trains.TerminationMessagePolicy == "" { // its last words say why it failed
		trains.TerminationMessagePolicy = corev1.TerminationMessageFallbackToLogsOnError
	}
	if arg := tj.Spec.Checkpoint.ResumeArg; arg != "" && a.Number > 1 {
		trains.Args = append(trains.Args, arg)
	}
	return p
}

// mark gives the pod of rank r the labels and annotations by which it is known.
func (a *Attempt) mark(p *corev1.Pod, r int) {
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
	p.Annotations[v1alpha1.AnnotationContainer] = p.Spec.Containers[0].Name
}

// place says where and how the pod of rank r runs.
func (a *Attempt) place(s *corev1.PodSpec, r int, tj *v1alpha1.TrainingJob) {
	s.RestartPolicy = corev1.RestartPolicyNever
	seconds := int64(grace(tj).Seconds())
	s.TerminationGracePeriodSeconds = &seconds
	s.Affinity = pinnedTo(s.Affinity, a.Ranks[r].NodeName)
	s.Tolerations = tolerating(s.Tolerations)
	if s.HostNetwork && (s.DNSPolicy == "" || s.DNSPolicy == corev1.DNSClusterFirst) { // else it would not find rank 0
		s.DNSPolicy = corev1.DNSClusterFirstWithHostNet
	}
	if a.mode == v1alpha1.Direct {
		s.SchedulerName = directScheduler
	}
}

// grace returns the time between SIGTERM and SIGKILL, a second at least: with 0 the API server drops a pod at once.
func grace(tj *v1alpha1.TrainingJob) time.Duration {
	return max(time.Duration(tj.Spec.Checkpoint.GraceSeconds)*time.Second, time.Second)
}

// equip gives the container that trains its GPUs, in the way of the mode, and returns the names of those that have
// them. The other containers that ask for GPUs get the same ones, but for the mode count, which would give containers
// that run at the same time others.
func (a *Attempt) equip(r int, s *corev1.PodSpec) (equipped []string) {
	var claims []corev1.ResourceClaim
	for i, c := range a.Claims(r) {
		name := claimName(i)
		s.ResourceClaims = append(s.ResourceClaims, corev1.PodResourceClaim{Name: name, ResourceClaimName: &c.Name})
		claims = append(claims, corev1.ResourceClaim{Name: name})
	}
	for _, list := range [][]corev1.Container{s.InitContainers, s.Containers} {
		for i := range list {
			c := &list[i]
			trains := c == &s.Containers[0]
			if asks := takeGPUs(c); !trains && (!asks || a.mode == v1alpha1.Count && !runsBefore(s, c)) {
				continue
			}
			equipped = append(equipped, c.Name)
			c.Resources.Claims = append(c.Resources.Claims, claims...)
			if a.mode == v1alpha1.Count {
				if c.Resources.Limits == nil {
					c.Resources.Limits = make(corev1.ResourceList)
				}
				n := resource.NewQuantity(int64(len(a.Ranks[r].GPUs)), resource.DecimalSI)
				c.Resources.Limits[inventory.ResourceGPU] = *n
			}
		}
	}
	return equipped
}

// noGPUs is what visibleGPUs says where NVIDIA's runtime is to give a container none.
const noGPUs = "void"

// show says in every container which GPUs NVIDIA's runtime gives it by their names: those of the rank in the mode that
// gives them so, else none, whatever its template, a ConfigMap that this reads, or its image says. Where the device
// plugin gives a container GPUs it writes that variable itself, and one of the pod would go before it.
func (a *Attempt) show(r int, s *corev1.PodSpec, equipped []string) {
	for _, list := range [][]corev1.Container{s.InitContainers, s.Containers} {
		for i := range list {
			c, value := &list[i], noGPUs
			has := slices.Contains(equipped, c.Name)
			if has && a.mode == v1alpha1.Visible {
				value = strings.Join(a.uuids(r), ",")
			}
			c.Env = slices.DeleteFunc(c.Env, func(e corev1.EnvVar) bool { return e.Name == visibleGPUs })
			if !has || a.mode != v1alpha1.Count {
				c.Env = slices.Insert(c.Env, 0, corev1.EnvVar{Name: visibleGPUs, Value: value})
			}
		}
	}
}

// takeGPUs takes the GPUs by number that a container asks for out of it, and reports whether there were any.
func takeGPUs(c *corev1.Container) (asks bool) {
	for _, list := range []corev1.ResourceList{c.Resources.Limits, c.Resources.Requests} {
		if _, in := list[inventory.ResourceGPU]; in {
			asks = true
			delete(list, inventory.ResourceGPU)
		}
	}
	return asks
}

// runsBefore reports whether a container is over before the one that trains starts.
func runsBefore(s *corev1.PodSpec, c *corev1.Container) bool {
	same := func(i corev1.Container) bool { return i.Name == c.Name }
	return slices.ContainsFunc(s.InitContainers, same) && c.RestartPolicy == nil
}

// giveRunDir mounts the folder of the attempt, unless the template has something there.
func giveRunDir(s *corev1.PodSpec) {
	trains := &s.Containers[0]
	taken := func(m corev1.VolumeMount) bool { return m.MountPath == runDir }
	if slices.ContainsFunc(trains.VolumeMounts, taken) {
		return
	}
	if !slices.ContainsFunc(s.Volumes, func(v corev1.Volume) bool { return v.Name == runVolume }) {
		empty := corev1.VolumeSource{EmptyDir: new(corev1.EmptyDirVolumeSource)}
		s.Volumes = append(s.Volumes, corev1.Volume{Name: runVolume, VolumeSource: empty})
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

// tolerating returns tolerations with two more: for ever of a node that is silent, which ends nothing, and of the taint
// of nodes that are ours.
func tolerating(t []corev1.Toleration) []corev1.Toleration {
	silent := []string{corev1.TaintNodeNotReady, corev1.TaintNodeUnreachable}
	out := slices.DeleteFunc(t, func(t corev1.Toleration) bool { return slices.Contains(silent, t.Key) })
	for _, key := range silent {
		out = append(out,
			corev1.Toleration{Key: key, Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoExecute})
	}
	return append(out, corev1.Toleration{Key: v1alpha1.TaintPool, Operator: corev1.TolerationOpExists})
}

// uuids returns the GPUs of rank r.
func (a *Attempt) uuids(r int) []string { return uuidsOf(a.Ranks[r].Devices) }

// OwnsPod reports whether a pod of the name of rank r is that of the attempt: by the UID of its job, by its attempt and
// rank, and because it names the claims of the rank, or where there are none runs on its node.
func (a *Attempt) OwnsPod(r int, p *corev1.Pod) bool {
	if !observer.IsOf(p, a.UID) || !a.isLabelled(p) || p.Labels[v1alpha1.LabelRank] != strconv.Itoa(r) {
		return false
	}
	if p.Spec.NodeName != "" && p.Spec.NodeName != a.Ranks[r].NodeName {
		return false
	}
	for i, c := range a.Claims(r) {
		names := func(x corev1.PodResourceClaim) bool {
			return x.Name == claimName(i) && x.ResourceClaimName != nil && *x.ResourceClaimName == c.Name
		}
		if a.Config.Share != sched.Shared && !slices.ContainsFunc(p.Spec.ResourceClaims, names) {
			return false
		}
	}
	return true
}

// owns reports whether an object of the name of one of the attempt's is the attempt's.
func (a *Attempt) owns(o client.Object) bool {
	switch there := o.(type) {
	case *corev1.Pod:
		r, ok := a.RankOf(there.Name)
		return ok && a.OwnsPod(r, there)
	case *resourcev1.ResourceClaim:
		return a.OwnsClaim(there)
	}
	return observer.IsOf(o, a.UID)
}

// claimName is what a pod calls its i-th claim.
func claimName(i int) string { return "trainyard-" + strconv.Itoa(i) }

// port returns where the ranks meet. Jobs in the network of their node have ports of their own: those with other first
// GPUs never have the same one on nodes of up to 16 GPUs, and seldom on larger ones or where they share a GPU.
func (a *Attempt) port(tj *v1alpha1.TrainingJob) int {
	if !tj.Spec.Template.Spec.HostNetwork {
		return masterPort
	}
	return masterPort + a.firstGPU%ports + ports*(int(a.Job)%ports)
}

// labels stand on everything that belongs to an attempt.
func (a *Attempt) labels() map[string]string {
	return map[string]string{v1alpha1.LabelJob: a.Key.Name, v1alpha1.LabelAttempt: strconv.Itoa(int(a.Number))}
}
