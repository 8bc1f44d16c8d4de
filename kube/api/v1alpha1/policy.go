package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// SchedulerPolicy says who decides and how pods get their GPUs. There is one, named default.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:scope=Cluster
// +kubebuilder:printcolumn:name="System",type=string,JSONPath=`.spec.system`
// +kubebuilder:printcolumn:name="Mode",type=string,JSONPath=`.spec.mode`
// +kubebuilder:printcolumn:name="GPUs",type=string,JSONPath=`.status.gpus`
// +kubebuilder:printcolumn:name="Running",type=integer,JSONPath=`.status.running`
// +kubebuilder:printcolumn:name="Waiting",type=integer,JSONPath=`.status.waiting`
// +kubebuilder:printcolumn:name="Round",type=string,priority=1,JSONPath=`.spec.round`
// +kubebuilder:printcolumn:name="Start-Timeout",type=string,priority=1,JSONPath=`.spec.startTimeout`
// +kubebuilder:printcolumn:name="Progress",type=string,priority=1,JSONPath=`.spec.progress`
// +kubebuilder:printcolumn:name="Leader",type=integer,priority=1,JSONPath=`.status.leader`
// +kubebuilder:printcolumn:name="Age",type=date,priority=1,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:printcolumn:name="Message",type=string,JSONPath=`.status.message`
// +kubebuilder:validation:XValidation:rule="self.metadata.name == 'default'",fieldPath=".metadata.name",message="there is one policy, named default"
type SchedulerPolicy struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec   SchedulerPolicySpec   `json:"spec"`
	Status SchedulerPolicyStatus `json:"status,omitempty"`
}

// SchedulerPolicyList is a list of policies.
//
// +kubebuilder:object:root=true
type SchedulerPolicyList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []SchedulerPolicy `json:"items"`
}

// Mode says how pods get exactly the GPUs that were decided.
//
// +kubebuilder:validation:Enum=dra-pinned;dra-direct;visible-devices;count
type Mode string

// Modes. See docs/guide/kubernetes.md for what each needs of the cluster.
const (
	Pinned  Mode = "dra-pinned"      // a claim that selects the devices by UUID; kube-scheduler allocates
	Direct  Mode = "dra-direct"      // we allocate; only for nodes that are ours alone
	Visible Mode = "visible-devices" // NVIDIA_VISIBLE_DEVICES; only for nodes that are ours alone
	Count   Mode = "count"           // nvidia.com/gpu: the node is exact, the GPU is not
)

// SchedulerPolicySpec says who decides.
type SchedulerPolicySpec struct {
	// System names the scheduling system, as `trainyard systems` lists them.
	// +kubebuilder:validation:MaxLength=60
	// +kubebuilder:default=tiresias-las
	System string `json:"system,omitempty"`
	// Settings are the keys of the system.
	// +kubebuilder:validation:MaxProperties=100
	Settings map[string]string `json:"settings,omitempty"`
	// Round has decisions taken at multiples of it only; 0 means the system's own.
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:XValidation:rule="self.matches('^([0-9]{1,6}([.][0-9]{1,9})?(h|m|s|ms))+$')",message="want a time such as 1h30m or 90s"
	// +kubebuilder:validation:MaxLength=20
	Round metav1.Duration `json:"round,omitempty,omitzero"`
	// Mode says how pods get their GPUs.
	// +kubebuilder:default=dra-pinned
	Mode Mode `json:"mode,omitempty"`
	// DeviceClass is that of the claims.
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:default=gpu.nvidia.com
	DeviceClass string `json:"deviceClass,omitempty"`
	// StartTimeout is how long the ranks of an attempt may take until all are up.
	// +kubebuilder:default="10m"
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:MaxLength=20
	// +kubebuilder:validation:XValidation:rule="self.matches('^([0-9]{1,6}([.][0-9]{1,9})?(h|m|s|ms))+$') && duration(self) >= duration('1s')",message="want a time of at least 1s, such as 10m"
	StartTimeout metav1.Duration `json:"startTimeout,omitempty,omitzero"`
	// Progress says where training processes report how far they are: logs (standard output of the first rank),
	// annotation (of its pod), none.
	// +kubebuilder:validation:Enum=logs;annotation;none
	// +kubebuilder:default=logs
	Progress string `json:"progress,omitempty"`
	// Limits bound what jobs may ask for; one that asks for more is refused.
	// +kubebuilder:default={}
	Limits Limits `json:"limits,omitempty,omitzero"`
	// TTLAfterFinished is after how long a job that is done is deleted, where it does not say itself; or never.
	// +kubebuilder:default="168h"
	// +kubebuilder:validation:MaxLength=20
	// +kubebuilder:validation:XValidation:rule="self == 'never' || self.matches('^([0-9]{1,6}([.][0-9]{1,9})?(h|m|s|ms))+$')",message="want a time such as 168h, or never"
	TTLAfterFinished string `json:"ttlAfterFinished,omitempty"`
}

// Limits bound what jobs may ask for, so that no tenant stalls or exhausts the scheduler, or passes all others.
type Limits struct {
	// Grace is the longest checkpoint.graceSeconds that a job may have.
	// +kubebuilder:default="10m"
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:MaxLength=20
	// +kubebuilder:validation:XValidation:rule="self.matches('^([0-9]{1,6}([.][0-9]{1,9})?(h|m|s|ms))+$') && duration(self) >= duration('1s')",message="want a time of at least 1s, such as 10m"
	Grace metav1.Duration `json:"grace,omitempty,omitzero"`
	// Priority is the highest that a job may have.
	Priority int32 `json:"priority,omitempty"`
	// PriorityClasses are those that templates may name. Classes that preempt are not allowed even if they are listed.
	// +kubebuilder:validation:MaxItems=16
	// +kubebuilder:validation:items:MaxLength=253
	// +listType=set
	PriorityClasses []string `json:"priorityClasses,omitempty"`
	// JobBytes is how large a job may be as JSON.
	// +kubebuilder:validation:Minimum=1024
	// +kubebuilder:validation:Maximum=524288
	// +kubebuilder:default=65536
	JobBytes int32 `json:"jobBytes,omitempty"`
	// JobsPerNamespace is how many jobs of a namespace may be there that are not done.
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=1000000
	// +kubebuilder:default=10000
	JobsPerNamespace int32 `json:"jobsPerNamespace,omitempty"`
	// Schedulers are those that templates may name, in addition to default-scheduler.
	// +kubebuilder:validation:MaxItems=16
	// +kubebuilder:validation:items:MaxLength=253
	// +listType=set
	Schedulers []string `json:"schedulers,omitempty"`
}

// SchedulerPolicyStatus is what the controller last made durable next to the jobs.
type SchedulerPolicyStatus struct {
	// Leader counts the controllers that have led; what an earlier one writes is refused.
	Leader int64 `json:"leader,omitempty"`
	// Version is the number of events folded when the last batch was complete, Now its time in nanoseconds since
	// Origin.
	Version int64        `json:"version,omitempty"`
	Now     int64        `json:"now,omitempty"`
	Origin  *metav1.Time `json:"origin,omitempty"`
	// Schema is that of the records of jobs; a controller that does not know it writes nothing.
	Schema int32 `json:"schema,omitempty"`
	// Jobs counts the numbers given to jobs.
	Jobs int32 `json:"jobs,omitempty"`
	// System is who decided last, with its settings; another starts again with what it finds.
	System string `json:"system,omitempty"`
	GPUs   string `json:"gpus,omitempty"` // in use of all: "37 of 40"
	// +optional
	Running int32 `json:"running"`
	// +optional
	Waiting int32 `json:"waiting"`
	// Message says what is wrong with the policy, or that a system started again.
	Message string `json:"message,omitempty"`
}
