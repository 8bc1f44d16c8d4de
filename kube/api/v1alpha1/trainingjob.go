package v1alpha1

import (
	"crypto/sha256"
	"errors"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/json"
)

// TrainingJob is a training job that Trainyard runs when and where its policy says, at the width it says. It must be
// able to save what it has done when it gets SIGTERM, and to go on from there.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:shortName=tj
// +kubebuilder:printcolumn:name="Phase",type=string,JSONPath=`.status.phase`
// +kubebuilder:printcolumn:name="GPUs",type=string,JSONPath=`.status.gpus`
// +kubebuilder:printcolumn:name="Priority",type=integer,priority=1,JSONPath=`.spec.priority`
// +kubebuilder:printcolumn:name="Attempt",type=integer,priority=1,JSONPath=`.status.attempt`
// +kubebuilder:printcolumn:name="Service",type=string,priority=1,JSONPath=`.status.attained`
// +kubebuilder:printcolumn:name="Lost",type=string,priority=1,JSONPath=`.status.lost`
// +kubebuilder:printcolumn:name="Progress",type=string,priority=1,JSONPath=`.status.progress`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:printcolumn:name="Reason",type=string,JSONPath=`.status.reason`
// +kubebuilder:validation:XValidation:rule="self.metadata.name.matches('^[a-z]([-a-z0-9]{0,48}[a-z0-9])?$')",fieldPath=".metadata.name",message="want at most 50 of a-z, 0-9 and -, a letter first and no - last: names of hosts and services are made of it"
type TrainingJob struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec   TrainingJobSpec   `json:"spec"`
	Status TrainingJobStatus `json:"status,omitempty"`
}

// TrainingJobList is a list of jobs.
//
// +kubebuilder:object:root=true
type TrainingJobList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []TrainingJob `json:"items"`
}

// TrainingJobSpec is what the submitter says. Widths, priority, limits, checkpoint and suspend may be changed while the
// job is not done; the rest may not.
//
// +kubebuilder:validation:XValidation:rule="self.template == oldSelf.template",fieldPath=".template",reason=FieldValueForbidden,message="template cannot be changed: submit another job"
// +kubebuilder:validation:XValidation:rule="has(self.batch) == has(oldSelf.batch) && (!has(self.batch) || self.batch == oldSelf.batch)",fieldPath=".batch",reason=FieldValueForbidden,message="batch cannot be changed: submit another job"
// +kubebuilder:validation:XValidation:rule="has(self.profile) == has(oldSelf.profile) && (!has(self.profile) || self.profile == oldSelf.profile)",fieldPath=".profile",reason=FieldValueForbidden,message="profile cannot be changed: submit another job"
// +kubebuilder:validation:XValidation:rule="has(self.sharing) == has(oldSelf.sharing) && (!has(self.sharing) || self.sharing == oldSelf.sharing)",fieldPath=".sharing",reason=FieldValueForbidden,message="sharing cannot be changed: submit another job"
// +kubebuilder:validation:XValidation:rule="has(self.gpuTypes) == has(oldSelf.gpuTypes) && (!has(self.gpuTypes) || self.gpuTypes == oldSelf.gpuTypes)",fieldPath=".gpuTypes",reason=FieldValueForbidden,message="gpuTypes cannot be changed: submit another job"
// +kubebuilder:validation:XValidation:rule="has(self.retries) == has(oldSelf.retries) && (!has(self.retries) || self.retries == oldSelf.retries)",fieldPath=".retries",reason=FieldValueForbidden,message="retries cannot be changed: submit another job"
// +kubebuilder:validation:XValidation:rule="has(self.template.spec) && size(self.template.spec.containers) > 0",fieldPath=".template.spec.containers",reason=FieldValueRequired,message="want the container that trains, the first of them"
// +kubebuilder:validation:XValidation:rule="!has(self.template.spec) || !has(self.template.spec.nodeName)",fieldPath=".template.spec.nodeName",reason=FieldValueForbidden,message="the policy chooses nodes"
// +kubebuilder:validation:XValidation:rule="!has(self.template.spec) || !has(self.template.spec.schedulingGates)",fieldPath=".template.spec.schedulingGates",reason=FieldValueForbidden,message="pods are made when they are to start"
// +kubebuilder:validation:XValidation:rule="!has(self.checkpoint) || !has(self.checkpoint.resumeArg) || !has(self.template.spec) || size(self.template.spec.containers) == 0 || has(self.template.spec.containers[0].command) || has(self.template.spec.containers[0].args)",fieldPath=".checkpoint.resumeArg",message="it is added to command or args of the first container, want one of them"
type TrainingJobSpec struct {
	// Template is the pod of one rank; one pod runs on each node. The first container is the one that trains: it gets
	// the GPUs, the environment of the training contract and decides how the job ended.
	Template corev1.PodTemplateSpec `json:"template"`

	// GPUs is the width of the job.
	GPUs Width `json:"gpus"`
	// Batch bounds the batch size, if the job lets it be chosen.
	Batch *Batch `json:"batch,omitempty"`
	// Profile says what is known of the training.
	Profile Profile `json:"profile,omitempty,omitzero"`
	// Checkpoint says how the job saves what it has done.
	// +kubebuilder:default={}
	Checkpoint Checkpoint `json:"checkpoint,omitempty,omitzero"`
	// Sharing says whether other jobs may use its GPUs at the same time.
	Sharing Sharing `json:"sharing,omitempty,omitzero"`
	// Priority ranks jobs where the policy looks at it; the larger first.
	Priority int32 `json:"priority,omitempty"`
	// Preemptible says whether the job may be stopped, moved or resized for others: AfterSave (default: where
	// checkpoint.path is on a volume that outlives pods), Always or Never.
	// +kubebuilder:validation:Enum=AfterSave;Always;Never
	Preemptible Preemptible `json:"preemptible,omitempty"`
	// GPUTypes are the product names that will do, of which a gang gets one; empty means any.
	// +kubebuilder:validation:MaxItems=16
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=100
	// +listType=set
	GPUTypes []string `json:"gpuTypes,omitempty"`
	// Retries is how often the job is tried again after a failure of its own.
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=1000
	Retries int32 `json:"retries,omitempty"`
	// Suspend keeps the job from running; one that runs is stopped with its grace period.
	Suspend bool `json:"suspend,omitempty"`
	// WallTime is the limit on the run time that the user expects, which some policies use; such as 1h30m.
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:XValidation:rule="self.matches('^([0-9]{1,6}([.][0-9]{1,9})?(h|m|s|ms))+$')",message="want a time such as 1h30m or 90s"
	// +kubebuilder:validation:MaxLength=20
	WallTime *metav1.Duration `json:"wallTime,omitempty,omitzero"`
	// Deadline is when the job should be done, which some policies use.
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:MaxLength=40
	// +kubebuilder:validation:XValidation:rule="self.matches('^[0-9]{4}-(0[1-9]|1[0-2])-(0[1-9]|[12][0-9]|3[01])T([01][0-9]|2[0-3])(:[0-5][0-9]){2}([.][0-9]{1,9})?(Z|[-+]([01][0-9]|2[0-3]):[0-5][0-9])$') && timestamp(self) > timestamp('0001-01-01T00:00:00Z')",message="want a time such as 2030-01-02T15:04:05Z"
	Deadline *metav1.Time `json:"deadline,omitempty"`

	// TTLSecondsAfterFinished is after how many seconds a job that is done is deleted; where it is not given, after
	// ttlAfterFinished of the SchedulerPolicy.
	// +kubebuilder:validation:Minimum=0
	TTLSecondsAfterFinished *int32 `json:"ttlSecondsAfterFinished,omitempty"`

	// Unreadable says why the rest of the spec, which is empty then, could not be read. It is no part of the object.
	Unreadable string `json:"-"`
	// Cut is what a cache keeps of the template, which it left out; nil: it did not. It is no part of the object.
	Cut *Cut `json:"-"`
}

// Cut is what a cache keeps of a template that it leaves out.
type Cut struct {
	Bare    bool   // the job is done: the rest of the spec is left out, too
	NotKept string // why what the job saves goes with its pods
	Hash    string // of the template
}

// TemplateHash returns a hash of the template, which may be left out; "": it has none.
func (s *TrainingJobSpec) TemplateHash() string {
	if s.Cut != nil {
		return s.Cut.Hash
	}
	text, err := s.Template.Marshal()
	if err != nil {
		return ""
	}
	sum := sha256.Sum256(text)
	return string(sum[:])
}

// UnmarshalJSON reads a spec. The API server takes templates as they come. What is no pod template, or has fields that
// pods do not have, makes one job unreadable, and not the list of all of them.
func (s *TrainingJobSpec) UnmarshalJSON(b []byte) error {
	type plain TrainingJobSpec
	s.Cut = nil
	unknown, err := json.UnmarshalStrict(b, (*plain)(s), json.DisallowUnknownFields)
	if err = errors.Join(append(unknown, err)...); err != nil {
		*s = TrainingJobSpec{Unreadable: err.Error()}
	}
	return nil
}

// Preemptible is a request: whether a job may be stopped for others.
type Preemptible string

// Requests; "" is AfterSave.
const (
	PreemptAfterSave Preemptible = "AfterSave"
	PreemptAlways    Preemptible = "Always"
	PreemptNever     Preemptible = "Never"
)

// Width is a range of GPUs.
//
// +kubebuilder:validation:XValidation:rule="!has(self.max) || self.max >= self.min",fieldPath=".max",message="want max >= min"
// +kubebuilder:validation:XValidation:rule="!has(self.want) || self.want >= self.min && self.want <= (has(self.max) ? self.max : self.min)",fieldPath=".want",message="want it from min to max; max is min where it is not given"
type Width struct {
	// Min is the fewest GPUs the job can run on.
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=4096
	Min int32 `json:"min"`
	// Max is the most; min if it is not given.
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=4096
	Max *int32 `json:"max,omitempty"`
	// Want is what a policy that does not resize jobs gives; min if it is not given.
	// +kubebuilder:validation:Minimum=1
	Want *int32 `json:"want,omitempty"`
}

// Batch is a range of global batch sizes, in samples.
//
// +kubebuilder:validation:XValidation:rule="self.max >= self.min",fieldPath=".max",message="want max >= min"
type Batch struct {
	// +kubebuilder:validation:Minimum=1
	Min int32 `json:"min"`
	// +kubebuilder:validation:Minimum=1
	Max int32 `json:"max"`
	// PerGPUMax is how many samples fit on one GPU; 0 means unknown.
	// +kubebuilder:validation:Minimum=0
	PerGPUMax int32 `json:"perGPUMax,omitempty"`
}

// Profile is what is known of a training.
type Profile struct {
	// Model is the name of the model, by which profiles and what was learned are found.
	// +kubebuilder:validation:MaxLength=100
	Model string `json:"model,omitempty"`
	// Class is the application class of a variability-aware policy.
	// +kubebuilder:validation:MaxLength=100
	Class string `json:"class,omitempty"`
	// Epochs is how many epochs there are in all; 0 means unknown.
	// +kubebuilder:validation:Minimum=0
	Epochs int32 `json:"epochs,omitempty"`
}

// Checkpoint says how a job saves what it has done.
type Checkpoint struct {
	// GraceSeconds is the time between SIGTERM and SIGKILL in which the job saves.
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=3600
	// +kubebuilder:default=60
	GraceSeconds int64 `json:"graceSeconds,omitempty"`
	// Path is where the job saves, given to it as TRAINYARD_CHECKPOINT_DIR; the template must mount something there
	// that
	// outlives pods.
	// +kubebuilder:validation:MaxLength=1000
	Path string `json:"path,omitempty"`
	// ResumeArg is an argument added to the command of every attempt after the first.
	// +kubebuilder:validation:MaxLength=1000
	ResumeArg string `json:"resumeArg,omitempty"`
}

// Sharing says whether other jobs may use the job's GPUs at the same time.
type Sharing struct {
	Allowed bool `json:"allowed,omitempty"`
	// MemoryGiB is the device memory the job needs on each GPU; 0 means unknown.
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=4096
	MemoryGiB int32 `json:"memoryGiB,omitempty"`
	// UsePercent is how much of each GPU the job uses when it is alone there; 0 means unknown.
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=100
	UsePercent int32 `json:"usePercent,omitempty"`
}

// Phase says where a job stands.
//
// +kubebuilder:validation:Enum=Pending;Starting;Running;Stopping;Succeeded;Failed
type Phase string

// Phases of a job. One that was cancelled or rejected is Failed, and its reason says so.
const (
	Pending   Phase = "Pending"
	Starting  Phase = "Starting"
	Running   Phase = "Running"
	Stopping  Phase = "Stopping"
	Succeeded Phase = "Succeeded"
	Failed    Phase = "Failed"
)

// TrainingJobStatus is how a job stands. It is written before anything is done: what it says is meant, what pods there
// are is what has become of it.
type TrainingJobStatus struct {
	Phase Phase `json:"phase,omitempty"`
	// Reason is the one reason that the job is where it is, for people.
	Reason string `json:"reason,omitempty"`
	// Attempt counts the attempts started.
	Attempt int32 `json:"attempt,omitempty"`
	// GPUs is the width held, and the one wanted where that is another: "4", "2 of 4".
	GPUs string `json:"gpus,omitempty"`
	// Allocation are the GPUs of the live attempt.
	// +listType=atomic
	Allocation []AllocatedGPU `json:"allocation,omitempty"`
	// Placement is how exact the allocation is: gpu, or node where the mode is count.
	Placement string `json:"placement,omitempty"`
	// Batch is the global batch size of the live attempt; 0 means the job's own.
	Batch int32 `json:"batch,omitempty"`
	// Attained is the GPU time received, such as 3h20m.
	Attained string `json:"attained,omitempty"`
	// AttainedGPUSeconds is the same in seconds, as of the last event of the job.
	AttainedGPUSeconds int64 `json:"attainedGPUSeconds,omitempty"`
	// Restarts counts the attempts after the first.
	Restarts int32 `json:"restarts,omitempty"`
	// Lost is the run time of attempts whose work was not saved, as far as is known, such as 5m20s; empty where that is
	// none.
	Lost string `json:"lost,omitempty"`
	// LostSeconds is the same in seconds.
	LostSeconds int64 `json:"lostSeconds,omitempty"`
	// Progress is what the job reported last, such as "step 1200 of 4000" or "epoch 3".
	Progress string `json:"progress,omitempty"`
	// Conditions are Scheduled, Running, Complete and Failed.
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty"`

	// Record is the job as the engine knows it, one versioned line; not for people. It is the truth of which the fields
	// above are an extract.
	Record string `json:"record,omitempty"`
	// Memory is what the policy remembers of the job.
	Memory []byte `json:"memory,omitempty"`
}

// AllocatedGPU is one GPU of an attempt; of an attempt on more than 64 GPUs, all its GPUs on a node.
type AllocatedGPU struct {
	Node   string `json:"node"`
	Device string `json:"device"`         // index on its node, from "0"; of several GPUs 0-3,6
	UUID   string `json:"uuid,omitempty"` // empty where it is not known
	// SharedWith are the jobs that use it too, as namespace/name.
	// +listType=atomic
	SharedWith []string `json:"sharedWith,omitempty"`
}
