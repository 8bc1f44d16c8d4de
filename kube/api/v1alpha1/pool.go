package v1alpha1

import (
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// GPUPool is a kind of node that may be rented, or of nodes that are owned at a price.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:scope=Cluster
// +kubebuilder:printcolumn:name="Type",type=string,JSONPath=`.spec.gpuType`
// +kubebuilder:printcolumn:name="Rented",type=integer,JSONPath=`.status.rented`
// +kubebuilder:printcolumn:name="Target",type=integer,JSONPath=`.status.target`
// +kubebuilder:printcolumn:name="Spend",type=string,JSONPath=`.status.spend`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:printcolumn:name="Min",type=integer,priority=1,JSONPath=`.spec.min`
// +kubebuilder:printcolumn:name="Max",type=integer,priority=1,JSONPath=`.spec.max`
// +kubebuilder:printcolumn:name="Price",type=string,priority=1,JSONPath=`.spec.pricePerGPUHour`
// +kubebuilder:printcolumn:name="Budget",type=string,priority=1,JSONPath=`.spec.budgetGPUs`
// +kubebuilder:printcolumn:name="Provider",type=string,priority=1,JSONPath=`.spec.provider.kind`
// +kubebuilder:printcolumn:name="Object",type=string,priority=1,JSONPath=`.spec.provider.name`
// +kubebuilder:printcolumn:name="Message",type=string,JSONPath=`.status.message`
// +kubebuilder:validation:XValidation:rule="size(self.metadata.name) <= 63",fieldPath=".metadata.name",message="want at most 63 characters: it is the value of a label"
type GPUPool struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec   GPUPoolSpec   `json:"spec"`
	Status GPUPoolStatus `json:"status,omitempty"`
}

// GPUPoolList is a list of pools.
//
// +kubebuilder:object:root=true
type GPUPoolList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []GPUPool `json:"items"`
}

// GPUPoolSpec describes the nodes of a pool.
//
// +kubebuilder:validation:XValidation:rule="!has(self.min) || self.max >= self.min",fieldPath=".max",message="want max >= min"
// +kubebuilder:validation:XValidation:rule="self.gpuType == oldSelf.gpuType",fieldPath=".gpuType",reason=FieldValueForbidden,message="gpuType cannot be changed: make another pool"
// +kubebuilder:validation:XValidation:rule="self.gpusPerNode == oldSelf.gpusPerNode",fieldPath=".gpusPerNode",reason=FieldValueForbidden,message="gpusPerNode cannot be changed: make another pool"
type GPUPoolSpec struct {
	// GPUType is the product name of its GPUs.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=100
	GPUType string `json:"gpuType"`
	// GPUsPerNode is how many GPUs a node has.
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=64
	GPUsPerNode int32 `json:"gpusPerNode"`
	// PricePerGPUHour is what one GPU costs in an hour, in whatever currency.
	// +kubebuilder:validation:XValidation:rule="isQuantity(string(self)) && quantity(string(self)).compareTo(quantity('0')) >= 0 && quantity(string(self)).compareTo(quantity('1000000')) <= 0",message="want a price of 0 to 1000000, such as 2.5"
	// +kubebuilder:validation:XIntOrString
	// +kubebuilder:validation:MaxLength=30
	PricePerGPUHour resource.Quantity `json:"pricePerGPUHour"`
	// Min and Max bound the nodes that may be rented.
	// +kubebuilder:validation:Minimum=0
	Min int32 `json:"min,omitempty"`
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=10000
	Max int32 `json:"max"`
	// BudgetGPUs is how many GPUs may be rented on average, for systems that rent to a budget; 0 means none.
	// +kubebuilder:validation:XValidation:rule="isQuantity(string(self)) && quantity(string(self)).compareTo(quantity('0')) >= 0 && quantity(string(self)).compareTo(quantity('1000000')) <= 0",message="want a number of GPUs from 0 to 1000000, such as 12.5"
	// +kubebuilder:validation:XIntOrString
	// +kubebuilder:validation:MaxLength=30
	BudgetGPUs resource.Quantity `json:"budgetGPUs,omitempty,omitzero"`
	// Boot is the time from the request until a node joins, as far as is known.
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:XValidation:rule="self.matches('^([0-9]{1,6}([.][0-9]{1,9})?(h|m|s|ms))+$')",message="want a time such as 1h30m or 90s"
	// +kubebuilder:validation:MaxLength=20
	Boot metav1.Duration `json:"boot,omitempty,omitzero"`
	// Billing is the time that is paid for in whole multiples; 0 means to the second.
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:XValidation:rule="self.matches('^([0-9]{1,6}([.][0-9]{1,9})?(h|m|s|ms))+$')",message="want a time such as 1h30m or 90s"
	// +kubebuilder:validation:MaxLength=20
	Billing metav1.Duration `json:"billing,omitempty,omitzero"`
	// Provider says who makes nodes come and go.
	Provider ProviderRef `json:"provider"`
}

// ProviderRef names what makes the nodes of a pool come and go.
//
// +kubebuilder:validation:XValidation:rule="self.kind == 'fake' || has(self.name)",fieldPath=".name",reason=FieldValueRequired,message="want the name of the NodePool, or of the object that is scaled"
// +kubebuilder:validation:XValidation:rule="self.kind != 'fake' || !has(self.name)",fieldPath=".name",reason=FieldValueForbidden,message="a pool of the kind fake has none"
// +kubebuilder:validation:XValidation:rule="self.kind != 'scale' || has(self.apiVersion) && has(self.objectKind)",fieldPath=".apiVersion",reason=FieldValueRequired,message="want apiVersion and objectKind of the object that is scaled"
// +kubebuilder:validation:XValidation:rule="self.kind == 'scale' || !has(self.apiVersion) && !has(self.objectKind) && !has(self.namespace)",fieldPath=".kind",message="apiVersion, objectKind and namespace are for the kind scale alone"
type ProviderRef struct {
	// Kind is karpenter (a static NodePool, whose replicas are set), scale (any object with a scale subresource) or
	// fake (nodes that appear after the boot delay, for tests).
	// +kubebuilder:validation:Enum=karpenter;scale;fake
	Kind string `json:"kind"`
	// Name of the NodePool, or of the object that is scaled.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name,omitempty"`
	// Namespace, APIVersion and ObjectKind of the object that is scaled.
	// +kubebuilder:validation:MaxLength=63
	Namespace string `json:"namespace,omitempty"`
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	APIVersion string `json:"apiVersion,omitempty"`
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	ObjectKind string `json:"objectKind,omitempty"`
}

// GPUPoolStatus is what became of a pool.
type GPUPoolStatus struct {
	Rented int32  `json:"rented,omitempty"` // nodes that are there
	Target int32  `json:"target,omitempty"` // nodes wanted, booting ones included
	Spend  string `json:"spend,omitempty"`  // so far, in the currency of the price
	// Message says what keeps nodes from coming.
	Message string `json:"message,omitempty"`
}

// GPUProfile is what is known of the GPUs of one node: how fast each is for a class of jobs, what the node draws.
//
// +kubebuilder:object:root=true
// +kubebuilder:resource:scope=Cluster
// +kubebuilder:printcolumn:name="Idle-W",type=integer,JSONPath=`.spec.idleWatts`
// +kubebuilder:printcolumn:name="GPU-W",type=integer,JSONPath=`.spec.busyGPUWatts`
// +kubebuilder:printcolumn:name="Withheld",type=string,JSONPath=`.spec.gpus[?(@.withheld==true)].uuid`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type GPUProfile struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"` // the name is that of the node

	Spec GPUProfileSpec `json:"spec"`
}

// GPUProfileList is a list of profiles.
//
// +kubebuilder:object:root=true
type GPUProfileList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []GPUProfile `json:"items"`
}

// GPUProfileSpec is what is known of a node's GPUs.
type GPUProfileSpec struct {
	// +kubebuilder:validation:MaxItems=64
	// +listType=map
	// +listMapKey=uuid
	GPUs []GPUKnown `json:"gpus,omitempty"`
	// IdleWatts is the power of the node with no GPU busy, BusyGPUWatts what each busy GPU adds.
	// +kubebuilder:validation:Minimum=0
	IdleWatts int32 `json:"idleWatts,omitempty"`
	// +kubebuilder:validation:Minimum=0
	BusyGPUWatts int32 `json:"busyGPUWatts,omitempty"`
}

// Score is the time of a step relative to the median GPU, such as "1.1".
//
// +kubebuilder:validation:Type=string
// +kubebuilder:validation:MaxLength=30
// +kubebuilder:validation:XValidation:rule="self.matches('^[0-9]+([.][0-9]+)?[numkM]?$') && quantity(self).compareTo(quantity('1u')) >= 0 && quantity(self).compareTo(quantity('1M')) <= 0",message="want a time relative to the median GPU, from 0.000001 to 1000000, such as '1.08'"
type Score struct {
	resource.Quantity `json:",inline"`
}

// GPUKnown is what is known of one GPU.
type GPUKnown struct {
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=100
	UUID string `json:"uuid"`
	// Scores is the time of a step relative to the median GPU, by class of jobs: 1.1 is a tenth slower.
	// +kubebuilder:validation:MaxProperties=16
	Scores map[string]Score `json:"scores,omitempty,omitzero"`
	// Withheld has the GPU given to no new job.
	Withheld bool `json:"withheld,omitempty"`
}
