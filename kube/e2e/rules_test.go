package e2e

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/trainyard/trainyard/kube/api/v1alpha1"
	"github.com/trainyard/trainyard/kube/config"
	"github.com/trainyard/trainyard/kube/controller"
)

// valid are the least objects of each kind that the API server takes.
var valid = map[string]string{
	"TrainingJob": `{metadata: {name: j, namespace: default}, spec: {gpus: {min: 1}, template: {spec: ` +
		`{containers: [{name: train, image: none}]}}}}`,
	"SchedulerPolicy": `{metadata: {name: default}, spec: {}}`,
	"GPUPool": `{metadata: {name: p}, spec: {gpuType: A100, gpusPerNode: 8, pricePerGPUHour: "2.5", max: 4, ` +
		`provider: {kind: fake}}}`,
	"GPUProfile": `{metadata: {name: node}, spec: {gpus: [{uuid: GPU-0, scores: {A: "1.1"}}]}}`,
}

// refused has, for every rule of the definitions, named by its place and kind, what makes a valid object break it, as a
// merge patch, and what the API server says to that. A rule on changes has two patches: one for the object as it was
// made, one for the change.
var refused = map[string][]refusal{
	"TrainingJob": {
		{"want at most 50 of", `{metadata: {name: "1st"}}`, "",
			`metadata.name: Invalid value: want at most 50 of a-z, 0-9 and -, a letter first and no - last: names of ` +
				`hosts and services are made of it`},
		{"want at most 50 of", `{metadata: {name: a.b}}`, "", `metadata.name: Invalid value: want at most 50`},
		{"want at most 50 of", `{metadata: {name: ` + strings.Repeat("a", 51) + `}}`, "",
			`metadata.name: Invalid value: want at most 50`},
		{"required spec", `{spec: null}`, "", `spec: Required value`},
		{"spec template cannot be changed", `{}`,
			`{spec: {template: {spec: {containers: [{name: train, image: other}]}}}}`,
			`spec.template: Forbidden: template cannot be changed: submit another job`},
		{"spec batch cannot be changed", `{}`, `{spec: {batch: {min: 1, max: 2}}}`,
			`spec.batch: Forbidden: batch cannot be changed: submit another job`},
		{"spec batch cannot be changed", `{spec: {batch: {min: 1, max: 2}}}`, `{spec: {batch: {max: 3}}}`,
			`spec.batch: Forbidden: batch cannot be changed: submit another job`},
		{"spec batch cannot be changed", `{spec: {batch: {min: 1, max: 2}}}`, `{spec: {batch: null}}`,
			`spec.batch: Forbidden: batch cannot be changed: submit another job`},
		{"spec profile cannot be changed", `{}`, `{spec: {profile: {model: x}}}`,
			`spec.profile: Forbidden: profile cannot be changed: submit another job`},
		{"spec sharing cannot be changed", `{}`, `{spec: {sharing: {allowed: true}}}`,
			`spec.sharing: Forbidden: sharing cannot be changed: submit another job`},
		{"spec gpuTypes cannot be changed", `{spec: {gpuTypes: [A100]}}`, `{spec: {gpuTypes: [H100]}}`,
			`spec.gpuTypes: Forbidden: gpuTypes cannot be changed: submit another job`},
		{"spec retries cannot be changed", `{}`, `{spec: {retries: 1}}`,
			`spec.retries: Forbidden: retries cannot be changed: submit another job`},
		{"spec want the container that trains", `{spec: {template: {spec: {containers: []}}}}`, "",
			`spec.template.spec.containers: Required value: want the container that trains, the first of them`},
		{"spec want the container that trains", `{spec: {template: {spec: null}}}`, "",
			`spec.template.spec.containers: Required value: want the container that trains`},
		{"spec the policy chooses nodes", `{spec: {template: {spec: {nodeName: a}}}}`, "",
			`spec.template.spec.nodeName: Forbidden: the policy chooses nodes`},
		{"spec pods are made when", `{spec: {template: {spec: {schedulingGates: [{name: a.b/c}]}}}}`, "",
			`spec.template.spec.schedulingGates: Forbidden: pods are made when they are to start`},
		{"spec it is added to command", `{spec: {checkpoint: {resumeArg: --resume}}}`, "",
			`spec.checkpoint.resumeArg: Invalid value: it is added to command or args of the first container, want ` +
				`one of them`},
		{"required spec.template", `{spec: {template: null}}`, "", `spec.template: Required value`},
		{"required spec.gpus", `{spec: {gpus: null}}`, "", `spec.gpus: Required value`},
		{"required spec.gpus.min", `{spec: {gpus: {min: null}}}`, "", `spec.gpus.min: Required value`},
		{"minimum spec.gpus.min", `{spec: {gpus: {min: 0}}}`, "",
			`spec.gpus.min in body should be greater than or equal to 1`},
		{"maximum spec.gpus.min", `{spec: {gpus: {min: 4097}}}`, "",
			`spec.gpus.min in body should be less than or equal to 4096`},
		{"minimum spec.gpus.max", `{spec: {gpus: {max: 0}}}`, "",
			`spec.gpus.max in body should be greater than or equal to 1`},
		{"maximum spec.gpus.max", `{spec: {gpus: {max: 4097}}}`, "",
			`spec.gpus.max in body should be less than or equal to 4096`},
		{"minimum spec.gpus.want", `{spec: {gpus: {want: 0}}}`, "",
			`spec.gpus.want in body should be greater than or equal to 1`},
		{"spec.gpus want max >= min", `{spec: {gpus: {min: 3, max: 2}}}`, "",
			`spec.gpus.max: Invalid value: want max >= min`},
		{"spec.gpus want it from min", `{spec: {gpus: {want: 2}}}`, "",
			`spec.gpus.want: Invalid value: want it from min to max; max is min where it is not given`},
		{"spec.gpus want it from min", `{spec: {gpus: {min: 2, max: 4, want: 1}}}`, "",
			`spec.gpus.want: Invalid value: want it from min to max`},
		{"required spec.batch.min", `{spec: {batch: {max: 1}}}`, "", `spec.batch.min: Required value`},
		{"required spec.batch.max", `{spec: {batch: {min: 1}}}`, "", `spec.batch.max: Required value`},
		{"minimum spec.batch.min", `{spec: {batch: {min: 0, max: 1}}}`, "",
			`spec.batch.min in body should be greater than or equal to 1`},
		{"minimum spec.batch.max", `{spec: {batch: {min: 1, max: 0}}}`, "",
			`spec.batch.max in body should be greater than or equal to 1`},
		{"minimum spec.batch.perGPUMax", `{spec: {batch: {min: 1, max: 1, perGPUMax: -1}}}`, "",
			`spec.batch.perGPUMax in body should be greater than or equal to 0`},
		{"spec.batch want max >= min", `{spec: {batch: {min: 2, max: 1}}}`, "",
			`spec.batch.max: Invalid value: want max >= min`},
		{"maxLength spec.profile.model", `{spec: {profile: {model: ` + long(101) + `}}}`, "",
			`spec.profile.model: Too long: may not be more than 100 bytes`},
		{"maxLength spec.profile.class", `{spec: {profile: {class: ` + long(101) + `}}}`, "",
			`spec.profile.class: Too long: may not be more than 100 bytes`},
		{"minimum spec.profile.epochs", `{spec: {profile: {epochs: -1}}}`, "",
			`spec.profile.epochs in body should be greater than or equal to 0`},
		{"minimum spec.checkpoint.graceSeconds", `{spec: {checkpoint: {graceSeconds: 0}}}`, "",
			`spec.checkpoint.graceSeconds in body should be greater than or equal to 1`},
		{"maximum spec.checkpoint.graceSeconds", `{spec: {checkpoint: {graceSeconds: 3601}}}`, "",
			`spec.checkpoint.graceSeconds in body should be less than or equal to 3600`},
		{"maxLength spec.checkpoint.path", `{spec: {checkpoint: {path: ` + long(1001) + `}}}`, "",
			`spec.checkpoint.path: Too long: may not be more than 1000 bytes`},
		{"maxLength spec.checkpoint.resumeArg", `{spec: {checkpoint: {resumeArg: ` + long(1001) + `}}}`, "",
			`spec.checkpoint.resumeArg: Too long: may not be more than 1000 bytes`},
		{"minimum spec.sharing.memoryGiB", `{spec: {sharing: {memoryGiB: -1}}}`, "",
			`spec.sharing.memoryGiB in body should be greater than or equal to 0`},
		{"maximum spec.sharing.memoryGiB", `{spec: {sharing: {memoryGiB: 4097}}}`, "",
			`spec.sharing.memoryGiB in body should be less than or equal to 4096`},
		{"minimum spec.sharing.usePercent", `{spec: {sharing: {usePercent: -1}}}`, "",
			`spec.sharing.usePercent in body should be greater than or equal to 0`},
		{"maximum spec.sharing.usePercent", `{spec: {sharing: {usePercent: 101}}}`, "",
			`spec.sharing.usePercent in body should be less than or equal to 100`},
		{"maxItems spec.gpuTypes", `{spec: {gpuTypes: [a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q]}}`, "",
			`spec.gpuTypes: Too many: 17: must have at most 16 items`},
		{"set spec.gpuTypes", `{spec: {gpuTypes: [a, a]}}`, "", `spec.gpuTypes[1]: Duplicate value: "a"`},
		{"minLength spec.gpuTypes[]", `{spec: {gpuTypes: [""]}}`, "",
			`spec.gpuTypes[0] in body should be at least 1 chars long`},
		{"maxLength spec.gpuTypes[]", `{spec: {gpuTypes: [` + long(101) + `]}}`, "",
			`spec.gpuTypes[0]: Too long: may not be more than 100 bytes`},
		{"enum spec.preemptible", `{spec: {preemptible: Sometimes}}`, "",
			`spec.preemptible: Unsupported value: "Sometimes"`},
		{"minimum spec.retries", `{spec: {retries: -1}}`, "",
			`spec.retries in body should be greater than or equal to 0`},
		{"maximum spec.retries", `{spec: {retries: 1001}}`, "",
			`spec.retries in body should be less than or equal to 1000`},
		{"spec.wallTime want a time", `{spec: {wallTime: 1 day}}`, "",
			`spec.wallTime: Invalid value: "1 day": want a time such as 1h30m or 90s`},
		{"spec.wallTime want a time", `{spec: {wallTime: -1h}}`, "",
			`spec.wallTime: Invalid value: "-1h": want a time such as 1h30m or 90s`},
		{"maxLength spec.wallTime", `{spec: {wallTime: 999999h999999h999999h}}`, "",
			`spec.wallTime: Too long: may not be more than 20 bytes`},
		{"spec.deadline want a time", `{spec: {deadline: "2026-11-22t10:00:00z"}}`, "",
			`spec.deadline: Invalid value: "2026-11-22t10:00:00z": want a time such as 2030-01-02T15:04:05Z`},
		{"spec.deadline want a time", `{spec: {deadline: "2026-13-22T10:00:00Z"}}`, "",
			`spec.deadline: Invalid value: "2026-13-22T10:00:00Z": want a time such as 2030-01-02T15:04:05Z`},
		{"minimum spec.ttlSecondsAfterFinished", `{spec: {ttlSecondsAfterFinished: -1}}`, "",
			`spec.ttlSecondsAfterFinished in body should be greater than or equal to 0`},
		{"maximum spec.ttlSecondsAfterFinished", `{spec: {ttlSecondsAfterFinished: 2147483648}}`, "",
			`spec.ttlSecondsAfterFinished in body should be less than or equal to 2147483647`},
		{"spec.deadline want a time", `{spec: {deadline: "2026-02-30T10:00:00Z"}}`, "",
			`want a time such as 2030-01-02T15:04:05Z`},
		{"maxLength spec.deadline", `{spec: {deadline: ` + long(41) + `}}`, "",
			`spec.deadline: Too long: may not be more than 40 bytes`},
		{"maximum spec.priority", `{spec: {priority: 99999999999}}`, "",
			`spec.priority in body should be less than or equal to 2147483647`},
		{"minimum spec.priority", `{spec: {priority: -99999999999}}`, "",
			`spec.priority in body should be greater than or equal to -2147483648`},
		{"maximum spec.gpus.want", `{spec: {gpus: {want: 99999999999}}}`, "",
			`spec.gpus.want in body should be less than or equal to 2147483647`},
		{"maximum spec.batch.min", `{spec: {batch: {min: 99999999999, max: 99999999999}}}`, "",
			`spec.batch.min in body should be less than or equal to 2147483647`},
		{"maximum spec.batch.max", `{spec: {batch: {min: 1, max: 99999999999}}}`, "",
			`spec.batch.max in body should be less than or equal to 2147483647`},
		{"maximum spec.batch.perGPUMax", `{spec: {batch: {min: 1, max: 1, perGPUMax: 99999999999}}}`, "",
			`spec.batch.perGPUMax in body should be less than or equal to 2147483647`},
		{"maximum spec.profile.epochs", `{spec: {profile: {epochs: 99999999999}}}`, "",
			`spec.profile.epochs in body should be less than or equal to 2147483647`},
	},
	"SchedulerPolicy": {
		{"there is one policy", `{metadata: {name: other}}`, "",
			`metadata.name: Invalid value: there is one policy, named default`},
		{"required spec", `{spec: null}`, "", `spec: Required value`},
		{"maxLength spec.system", `{spec: {system: ` + long(61) + `}}`, "",
			`spec.system: Too long: may not be more than 60 bytes`},
		{"maxProperties spec.settings", `{spec: {settings: {` + keys(101) + `}}}`, "",
			`spec.settings: Too many: 101: must have at most 100 items`},
		{"maxLength spec.ttlAfterFinished", `{spec: {ttlAfterFinished: ` + long(21) + `}}`, "",
			`spec.ttlAfterFinished: Too long: may not be more than 20 bytes`},
		{"spec.ttlAfterFinished want a time", `{spec: {ttlAfterFinished: later}}`, "",
			`spec.ttlAfterFinished: Invalid value: "later": want a time such as 168h, or never`},
		{"spec.round want a time", `{spec: {round: soon}}`, "",
			`spec.round: Invalid value: "soon": want a time such as 1h30m or 90s`},
		{"maxLength spec.round", `{spec: {round: 1.000000000h1.000000000h}}`, "",
			`spec.round: Too long: may not be more than 20 bytes`},
		{"enum spec.mode", `{spec: {mode: dra}}`, "",
			`spec.mode: Unsupported value: "dra": supported values: "dra-pinned", "dra-direct", "visible-devices", ` +
				`"count"`},
		{"maxLength spec.deviceClass", `{spec: {deviceClass: ` + long(254) + `}}`, "",
			`spec.deviceClass: Too long: may not be more than 253 bytes`},
		{"spec.startTimeout want a time", `{spec: {startTimeout: "10"}}`, "",
			`spec.startTimeout: Invalid value: "10": want a time of at least 1s, such as 10m`},
		{"maxLength spec.startTimeout", `{spec: {startTimeout: 1.000000000h1.000000000h}}`, "",
			`spec.startTimeout: Too long: may not be more than 20 bytes`},
		{"spec.startTimeout want a time", `{spec: {startTimeout: 0s}}`, "",
			`spec.startTimeout: Invalid value: "0s": want a time of at least 1s, such as 10m`},
		{"enum spec.progress", `{spec: {progress: stdout}}`, "",
			`spec.progress: Unsupported value: "stdout": supported values: "logs", "annotation", "none"`},
		{"spec.limits.grace want a time", `{spec: {limits: {grace: 0s}}}`, "",
			`spec.limits.grace: Invalid value: "0s": want a time of at least 1s, such as 10m`},
		{"maxLength spec.limits.grace", `{spec: {limits: {grace: 1.000000000h1.000000000h}}}`, "",
			`spec.limits.grace: Too long: may not be more than 20 bytes`},
		{"minimum spec.limits.jobBytes", `{spec: {limits: {jobBytes: 1023}}}`, "",
			`spec.limits.jobBytes in body should be greater than or equal to 1024`},
		{"maximum spec.limits.jobBytes", `{spec: {limits: {jobBytes: 524289}}}`, "",
			`spec.limits.jobBytes in body should be less than or equal to 524288`},
		{"minimum spec.limits.jobsPerNamespace", `{spec: {limits: {jobsPerNamespace: 0}}}`, "",
			`spec.limits.jobsPerNamespace in body should be greater than or equal to 1`},
		{"maximum spec.limits.jobsPerNamespace", `{spec: {limits: {jobsPerNamespace: 1000001}}}`, "",
			`spec.limits.jobsPerNamespace in body should be less than or equal to 1000000`},
		{"minimum spec.limits.priority", `{spec: {limits: {priority: -99999999999}}}`, "",
			`spec.limits.priority in body should be greater than or equal to -2147483648`},
		{"maximum spec.limits.priority", `{spec: {limits: {priority: 99999999999}}}`, "",
			`spec.limits.priority in body should be less than or equal to 2147483647`},
		{"maxItems spec.limits.priorityClasses", `{spec: {limits: {priorityClasses: [` + many + `]}}}`, "",
			`spec.limits.priorityClasses: Too many: 17: must have at most 16 items`},
		{"set spec.limits.priorityClasses", `{spec: {limits: {priorityClasses: [a, a]}}}`, "",
			`spec.limits.priorityClasses[1]: Duplicate value: "a"`},
		{"maxLength spec.limits.priorityClasses[]", `{spec: {limits: {priorityClasses: [` + long(254) + `]}}}`, "",
			`spec.limits.priorityClasses[0]: Too long: may not be more than 253 bytes`},
		{"maxItems spec.limits.schedulers", `{spec: {limits: {schedulers: [` + many + `]}}}`, "",
			`spec.limits.schedulers: Too many: 17: must have at most 16 items`},
		{"set spec.limits.schedulers", `{spec: {limits: {schedulers: [a, a]}}}`, "",
			`spec.limits.schedulers[1]: Duplicate value: "a"`},
		{"maxLength spec.limits.schedulers[]", `{spec: {limits: {schedulers: [` + long(254) + `]}}}`, "",
			`spec.limits.schedulers[0]: Too long: may not be more than 253 bytes`},
	},
	"GPUPool": {
		{"want at most 63 characters", `{metadata: {name: ` + strings.Repeat("a", 64) + `}}`, "",
			`metadata.name: Invalid value: want at most 63 characters: it is the value of a label`},
		{"required spec", `{spec: null}`, "", `spec: Required value`},
		{"spec want max >= min", `{spec: {min: 5}}`, "", `spec.max: Invalid value: want max >= min`},
		{"spec gpuType cannot be", `{}`, `{spec: {gpuType: H100}}`,
			`spec.gpuType: Forbidden: gpuType cannot be changed: make another pool`},
		{"spec gpusPerNode cannot be", `{}`, `{spec: {gpusPerNode: 4}}`,
			`spec.gpusPerNode: Forbidden: gpusPerNode cannot be changed: make another pool`},
		{"required spec.gpuType", `{spec: {gpuType: null}}`, "", `spec.gpuType: Required value`},
		{"minLength spec.gpuType", `{spec: {gpuType: ""}}`, "", `spec.gpuType in body should be at least 1 chars long`},
		{"maxLength spec.gpuType", `{spec: {gpuType: ` + long(101) + `}}`, "",
			`spec.gpuType: Too long: may not be more than 100 bytes`},
		{"required spec.gpusPerNode", `{spec: {gpusPerNode: null}}`, "", `spec.gpusPerNode: Required value`},
		{"minimum spec.gpusPerNode", `{spec: {gpusPerNode: 0}}`, "",
			`spec.gpusPerNode in body should be greater than or equal to 1`},
		{"maximum spec.gpusPerNode", `{spec: {gpusPerNode: 65}}`, "",
			`spec.gpusPerNode in body should be less than or equal to 64`},
		{"required spec.pricePerGPUHour", `{spec: {pricePerGPUHour: null}}`, "",
			`spec.pricePerGPUHour: Required value`},
		{"spec.pricePerGPUHour want a price", `{spec: {pricePerGPUHour: cheap}}`, "",
			`spec.pricePerGPUHour: Invalid value: "cheap": want a price of 0 to 1000000, such as 2.5`},
		{"maxLength spec.pricePerGPUHour", `{spec: {pricePerGPUHour: "1.000000000000000000000000000000"}}`, "",
			`spec.pricePerGPUHour: Too long: may not be more than 30 bytes`},
		{"spec.pricePerGPUHour want a price", `{spec: {pricePerGPUHour: -1}}`, "",
			`spec.pricePerGPUHour: Invalid value: -1: want a price of 0 to 1000000, such as 2.5`},
		{"spec.pricePerGPUHour want a price", `{spec: {pricePerGPUHour: "1e300"}}`, "",
			`"1e300": want a price of 0 to 1000000, such as 2.5`},
		{"spec.pricePerGPUHour want a price", `{spec: {pricePerGPUHour: "1e1.5"}}`, "",
			`"1e1.5": want a price of 0 to 1000000, such as 2.5`},
		{"maximum spec.min", `{spec: {min: 99999999999}}`, "",
			`spec.min in body should be less than or equal to 2147483647`},
		{"minimum spec.min", `{spec: {min: -1}}`, "", `spec.min in body should be greater than or equal to 0`},
		{"required spec.max", `{spec: {max: null}}`, "", `spec.max: Required value`},
		{"minimum spec.max", `{spec: {max: -1}}`, "", `spec.max in body should be greater than or equal to 0`},
		{"maximum spec.max", `{spec: {max: 10001}}`, "", `spec.max in body should be less than or equal to 10000`},
		{"spec.budgetGPUs want a number", `{spec: {budgetGPUs: some}}`, "",
			`spec.budgetGPUs: Invalid value: "some": want a number of GPUs from 0 to 1000000, such as 12.5`},
		{"maxLength spec.budgetGPUs", `{spec: {budgetGPUs: "1.000000000000000000000000000000"}}`, "",
			`spec.budgetGPUs: Too long: may not be more than 30 bytes`},
		{"spec.budgetGPUs want a number", `{spec: {budgetGPUs: "-0.5"}}`, "",
			`spec.budgetGPUs: Invalid value: "-0.5": want a number of GPUs from 0 to 1000000, such as 12.5`},
		{"spec.boot want a time", `{spec: {boot: "5"}}`, "",
			`spec.boot: Invalid value: "5": want a time such as 1h30m or 90s`},
		{"maxLength spec.boot", `{spec: {boot: 1.000000000h1.000000000h}}`, "",
			`spec.boot: Too long: may not be more than 20 bytes`},
		{"spec.billing want a time", `{spec: {billing: -1m}}`, "",
			`spec.billing: Invalid value: "-1m": want a time such as 1h30m or 90s`},
		{"maxLength spec.billing", `{spec: {billing: 1.000000000h1.000000000h}}`, "",
			`spec.billing: Too long: may not be more than 20 bytes`},
		{"required spec.provider", `{spec: {provider: null}}`, "", `spec.provider: Required value`},
		{"required spec.provider.kind", `{spec: {provider: {kind: null}}}`, "", `spec.provider.kind: Required value`},
		{"enum spec.provider.kind", `{spec: {provider: {kind: aws}}}`, "",
			`spec.provider.kind: Unsupported value: "aws": supported values: "karpenter", "scale", "fake"`},
		{"spec.provider want the name", `{spec: {provider: {kind: karpenter}}}`, "",
			`spec.provider.name: Required value: want the name of the NodePool, or of the object that is scaled`},
		{"spec.provider a pool of the kind fake", `{spec: {provider: {name: x}}}`, "",
			`spec.provider.name: Forbidden: a pool of the kind fake has none`},
		{"spec.provider want apiVersion and", `{spec: {provider: {kind: scale, name: x}}}`, "",
			`spec.provider.apiVersion: Required value: want apiVersion and objectKind of the object that is scaled`},
		{"spec.provider apiVersion, objectKind and", `{spec: {provider: {kind: karpenter, name: x, namespace: z}}}`, "",
			`spec.provider.kind: Invalid value: apiVersion, objectKind and namespace are for the kind scale alone`},
		{"minLength spec.provider.name", `{spec: {provider: {kind: karpenter, name: ""}}}`, "",
			`spec.provider.name in body should be at least 1 chars long`},
		{"maxLength spec.provider.name", `{spec: {provider: {kind: karpenter, name: ` + long(254) + `}}}`, "",
			`spec.provider.name: Too long: may not be more than 253 bytes`},
		{"maxLength spec.provider.namespace", `{spec: {provider: {kind: scale, namespace: ` + long(64) + `}}}`, "",
			`spec.provider.namespace: Too long: may not be more than 63 bytes`},
		{"minLength spec.provider.apiVersion", `{spec: {provider: {kind: scale, apiVersion: ""}}}`, "",
			`spec.provider.apiVersion in body should be at least 1 chars long`},
		{"maxLength spec.provider.apiVersion", `{spec: {provider: {kind: scale, apiVersion: ` + long(254) + `}}}`, "",
			`spec.provider.apiVersion: Too long: may not be more than 253 bytes`},
		{"minLength spec.provider.objectKind", `{spec: {provider: {kind: scale, objectKind: ""}}}`, "",
			`spec.provider.objectKind in body should be at least 1 chars long`},
		{"maxLength spec.provider.objectKind", `{spec: {provider: {kind: scale, objectKind: ` + long(64) + `}}}`, "",
			`spec.provider.objectKind: Too long: may not be more than 63 bytes`},
	},
	"GPUProfile": {
		{"required spec", `{spec: null}`, "", `spec: Required value`},
		{"maxItems spec.gpus", `{spec: {gpus: [` + gpus(65) + `]}}`, "",
			`spec.gpus: Too many: 65: must have at most 64 items`},
		{"map spec.gpus", `{spec: {gpus: [{uuid: a}, {uuid: a}]}}`, "", `spec.gpus[1]: Duplicate value: {"uuid":"a"}`},
		{"required spec.gpus[].uuid", `{spec: {gpus: [{withheld: true}]}}`, "", `spec.gpus[0].uuid: Required value`},
		{"minLength spec.gpus[].uuid", `{spec: {gpus: [{uuid: ""}]}}`, "",
			`spec.gpus[0].uuid in body should be at least 1 chars long`},
		{"maxLength spec.gpus[].uuid", `{spec: {gpus: [{uuid: ` + long(101) + `}]}}`, "",
			`spec.gpus[0].uuid: Too long: may not be more than 100 bytes`},
		{"maxProperties spec.gpus[].scores", `{spec: {gpus: [{uuid: a, scores: {` + keys(17) + `}}]}}`, "",
			`spec.gpus[0].scores: Too many: 17: must have at most 16 items`},
		{"spec.gpus[].scores{} want a time", `{spec: {gpus: [{uuid: a, scores: {A: slow}}]}}`, "",
			`spec.gpus[0].scores[A]: Invalid value: "slow": want a time relative to the median GPU, from 0.000001 to ` +
				`1000000, such as '1.08'`},
		{"maxLength spec.gpus[].scores{}",
			`{spec: {gpus: [{uuid: a, scores: {A: "1.000000000000000000000000000000"}}]}}`, "",
			`spec.gpus[0].scores.A: Too long: may not be more than 30 bytes`},
		{"spec.gpus[].scores{} want a time", `{spec: {gpus: [{uuid: a, scores: {A: "0"}}]}}`, "",
			`spec.gpus[0].scores[A]: Invalid value: "0": want a time relative to the median GPU, from 0.000001 to ` +
				`1000000, such as '1.08'`},
		{"maximum spec.idleWatts", `{spec: {idleWatts: 99999999999}}`, "",
			`spec.idleWatts in body should be less than or equal to 2147483647`},
		{"maximum spec.busyGPUWatts", `{spec: {busyGPUWatts: 99999999999}}`, "",
			`spec.busyGPUWatts in body should be less than or equal to 2147483647`},
		{"minimum spec.idleWatts", `{spec: {idleWatts: -1}}`, "",
			`spec.idleWatts in body should be greater than or equal to 0`},
		{"minimum spec.busyGPUWatts", `{spec: {busyGPUWatts: -1}}`, "",
			`spec.busyGPUWatts in body should be greater than or equal to 0`},
	},
}

// refusal is an object that breaks a rule: change makes it of a valid one, then changes it once it is there. What the
// API server answers has want in it.
type refusal struct{ rule, change, then, want string }

// of reports whether a rule is the one that is broken: expressions are named by how their message starts.
func (c refusal) of(rule string) bool {
	return rule == c.rule || strings.Count(c.rule, " ") > 1 && strings.HasPrefix(rule, c.rule)
}

// many are the items of a list that is too long.
const many = "a, b, c, d, e, f, g, h, i, j, k, l, m, o, p, q, r"

func long(n int) string { return strings.Repeat("x", n) }

func keys(n int) string {
	var list []string
	for i := range n {
		list = append(list, fmt.Sprintf(`k%d: "1"`, i))
	}
	return strings.Join(list, ", ")
}

func gpus(n int) string {
	var list []string
	for i := range n {
		list = append(list, fmt.Sprintf("{uuid: g%d}", i))
	}
	return strings.Join(list, ", ")
}

// Ensure that every rule of the definitions is there for a reason: an object that breaks it is refused, in words that
// name the field and what is wanted.
func TestRules(t *testing.T) {
	api := apiOf(t)
	for kind, list := range refused {
		rules := rulesOf(t, kind)
		covered := make(map[string]bool)
		for _, c := range list {
			of := rules[max(0, slices.IndexFunc(rules, c.of))]
			if !c.of(of) {
				t.Errorf("%s: there is no rule %q", kind, c.rule)
			}
			covered[of] = true
			err := attempt(t, api, kind, c)
			t.Logf("%s %s %s: %v", kind, c.change, c.then, err)
			if err != nil && (strings.HasPrefix(reasonOf(err), "<nil>") ||
				strings.Contains(err.Error(), "should match '")) {
				t.Errorf("%s, %s: %v, want it to name the field, and what is wanted in words", kind, c.change, err)
			}
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%s, %s, %s %s: error %v, want %q in it", kind, c.rule, c.change, c.then, err, c.want)
			}
		}
		for _, rule := range rules {
			if !covered[rule] {
				t.Errorf("%s: no object breaks the rule %q", kind, rule)
			}
		}
	}
}

// reasonOf returns what the API server says first is wrong with an object.
func reasonOf(err error) string {
	_, reason, _ := strings.Cut(err.Error(), "is invalid: ")
	return strings.TrimPrefix(reason, "[")
}

// attempt has the API server look at an object that breaks a rule.
func attempt(t *testing.T, api client.Client, kind string, c refusal) error {
	t.Helper()
	o := object(t, kind, c.change)
	if c.then == "" {
		return api.Create(t.Context(), o, client.DryRunAll)
	}
	if err := api.Create(t.Context(), o); err != nil {
		t.Fatalf("%s, %s: %v", kind, c.change, err)
	}
	patch, err := yaml.YAMLToJSON([]byte(c.then))
	if err != nil {
		t.Fatal(err)
	}
	refusal := api.Patch(t.Context(), o, client.RawPatch(types.MergePatchType, patch))
	if err := api.Delete(t.Context(), o); err != nil {
		t.Fatal(err)
	}
	return refusal
}

// object returns a valid object with a change made to it.
func object(t testing.TB, kind, change string) *unstructured.Unstructured {
	t.Helper()
	o := &unstructured.Unstructured{Object: parse(t, valid[kind])}
	merge(o.Object, parse(t, change))
	o.SetGroupVersionKind(v1alpha1.GroupVersion.WithKind(kind))
	return o
}

func parse(t testing.TB, text string) (m map[string]any) {
	t.Helper()
	b, err := yaml.YAMLToJSON([]byte(text))
	if err == nil {
		err = json.Unmarshal(b, &m)
	}
	if err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	return m
}

// merge is a merge patch.
func merge(to, change map[string]any) {
	for key, value := range change {
		child, nested := value.(map[string]any)
		at, there := to[key].(map[string]any)
		switch {
		case value == nil:
			delete(to, key)
		case nested && there:
			merge(at, child)
		default:
			to[key] = value
		}
	}
}

// rulesOf returns the rules of a definition, less those on what the controller alone writes, and on templates: of these
// only types are checked.
func rulesOf(t *testing.T, kind string) (rules []string) {
	t.Helper()
	for _, doc := range bytes.Split(config.CRDs, []byte("\n---\n")) {
		var crd apiextensionsv1.CustomResourceDefinition
		if err := yaml.UnmarshalStrict(doc, &crd); err != nil {
			t.Fatal(err)
		}
		if crd.Spec.Names.Kind == kind {
			s := crd.Spec.Versions[0].Schema.OpenAPIV3Schema
			delete(s.Properties, "status")
			rulesBelow("", s, func(rule string) { rules = append(rules, rule) })
		}
	}
	if len(rules) == 0 {
		t.Fatalf("no definition of %s", kind)
	}
	return rules
}

func rulesBelow(path string, s *apiextensionsv1.JSONSchemaProps, report func(rule string)) {
	for name, there := range map[string]bool{"minimum": s.Minimum != nil, "maximum": s.Maximum != nil,
		"minLength": s.MinLength != nil,
		"maxLength": s.MaxLength != nil, "minItems": s.MinItems != nil, "maxItems": s.MaxItems != nil,
		"maxProperties": s.MaxProperties != nil,
		"enum":          len(s.Enum) > 0, "pattern": s.Pattern != "", "format": s.Format != "" && s.Format != "int64"} {
		if there {
			report(name + " " + path)
		}
	}
	if s.XListType != nil && *s.XListType != "atomic" {
		report(*s.XListType + " " + path)
	}
	for _, rule := range s.XValidations {
		report(strings.TrimSpace(path + " " + rule.Message))
	}
	for _, name := range s.Required {
		report("required " + strings.TrimPrefix(path+"."+name, "."))
	}
	for _, name := range slices.Sorted(maps.Keys(s.Properties)) {
		if child := s.Properties[name]; name != "template" {
			rulesBelow(strings.TrimPrefix(path+"."+name, "."), &child, report)
		}
	}
	if s.Items != nil {
		rulesBelow(path+"[]", s.Items.Schema, report)
	}
	if s.AdditionalProperties != nil {
		rulesBelow(path+"{}", s.AdditionalProperties.Schema, report)
	}
}

// Ensure that the least objects are taken, that what they leave out has the values that are promised, written in YAML
// or in Go, and that labels of templates survive.
func TestDefaults(t *testing.T) {
	api := apiOf(t)
	for kind, want := range map[string]string{
		"TrainingJob": `{spec: {checkpoint: {graceSeconds: 60}}}`,
		"SchedulerPolicy": `{spec: {system: tiresias-las, mode: dra-pinned, deviceClass: gpu.nvidia.com, ` +
			`startTimeout: 10m, progress: logs, ` +
			`limits: {grace: 10m, jobBytes: 65536, jobsPerNamespace: 10000}, ttlAfterFinished: 168h}}`,
		"GPUPool": `{}`, "GPUProfile": `{}`,
	} {
		o := object(t, kind, `{}`)
		if err := api.Create(t.Context(), o, client.DryRunAll); err != nil {
			t.Errorf("%s: %v", kind, err)
		}
		got, wanted := o.Object["spec"].(map[string]any), object(t, kind, want).Object["spec"].(map[string]any)
		delete(got, "template") // has those of pods
		delete(wanted, "template")
		if a, b := fmt.Sprint(got), fmt.Sprint(wanted); a != b {
			t.Errorf("%s: %s, want %s", kind, a, b)
		}
	}
	tj := &v1alpha1.TrainingJob{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "j"},
		Spec: v1alpha1.TrainingJobSpec{GPUs: v1alpha1.Width{Min: 1},
			Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"team": "a"}},
				Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "c", Image: "i"}}}}}}
	policy := &v1alpha1.SchedulerPolicy{ObjectMeta: metav1.ObjectMeta{Name: "default"}}
	pool := &v1alpha1.GPUPool{ObjectMeta: metav1.ObjectMeta{Name: "p"},
		Spec: v1alpha1.GPUPoolSpec{GPUType: "A100", GPUsPerNode: 8,
			PricePerGPUHour: resource.MustParse("2.5"), Max: 4, Provider: v1alpha1.ProviderRef{Kind: "fake"}}}
	profile := &v1alpha1.GPUProfile{ObjectMeta: metav1.ObjectMeta{Name: "n"},
		Spec: v1alpha1.GPUProfileSpec{GPUs: []v1alpha1.GPUKnown{
			{UUID: "a", Scores: map[string]v1alpha1.Score{"A": {Quantity: resource.MustParse("1.125")},
				"B": {Quantity: resource.MustParse("1000")}}}}}}
	for _, o := range []client.Object{tj, policy, pool, profile} {
		if err := api.Create(t.Context(), o, client.DryRunAll); err != nil {
			t.Errorf("%T: %v", o, err)
		}
	}
	if tj.Spec.Checkpoint.GraceSeconds != 60 || tj.Spec.Template.Labels["team"] != "a" {
		t.Errorf("job in Go: %+v", tj.Spec)
	}
	if s := policy.Spec; fmt.Sprint(s) != fmt.Sprint(controller.DefaultPolicy().Spec) {
		t.Errorf("policy in Go: %+v", s)
	}
	if f := profile.Spec.GPUs[0].Scores["A"]; f.AsApproximateFloat64() != 1.125 {
		t.Errorf("score in Go: %v", f)
	}
}

// Ensure that what may be changed of a job can be, with a template as large as they come, which stays as it is.
func TestChanges(t *testing.T) {
	api := apiOf(t)
	tj := &v1alpha1.TrainingJob{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "large"},
		Spec: v1alpha1.TrainingJobSpec{GPUs: v1alpha1.Width{Min: 1},
			Template: corev1.PodTemplateSpec{
				Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "c", Image: "i",
					Args: []string{strings.Repeat("x", 200_000)}}}}}}}
	for i := range 1000 {
		c := &tj.Spec.Template.Spec.Containers[0]
		c.Env = append(c.Env, corev1.EnvVar{Name: fmt.Sprint("V", i), Value: long(100)})
	}
	if err := api.Create(t.Context(), tj); err != nil {
		t.Fatal(err)
	}
	good := `{spec: {gpus: {min: 2, max: 4}, priority: 7, wallTime: 1h30m, deadline: "2030-01-02T03:04:05Z", ` +
		`suspend: true, checkpoint: {path: /x, graceSeconds: 5}}}`
	patch, err := yaml.YAMLToJSON([]byte(good))
	if err != nil {
		t.Fatal(err)
	}
	if err := api.Patch(t.Context(), tj, client.RawPatch(types.MergePatchType, patch)); err != nil {
		t.Error(err)
	}
	tj.Spec.Template.Spec.Containers[0].Env[999].Value = "other"
	if err := api.Update(t.Context(), tj); err == nil || !strings.Contains(err.Error(), "template cannot be changed") {
		t.Errorf("another template: %v", err)
	}
	if err := api.Delete(t.Context(), tj); err != nil {
		t.Error(err)
	}
}

// Ensure that a job whose template the API server takes, and the types of Kubernetes do not, is reported as one that
// cannot be read, and by which field, next to others that can.
func TestUnreadable(t *testing.T) {
	api := apiOf(t)
	containers := map[string]string{
		"a-fine":     `[{name: c, image: i, resources: {limits: {cpu: "1"}}}]`,
		"b-number":   `[{name: c, image: i, resources: {limits: {cpu: 1e1.5}}}]`,
		"c-misspelt": `[{name: c, image: i, envs: []}]`, "d-type": `[{name: c, image: [i]}]`,
	}
	for name, list := range containers {
		o := object(t, "TrainingJob", fmt.Sprintf(`{metadata: {name: %s}, spec: {template: {spec: {containers: %s}}}}`,
			name, list))
		if err := api.Create(t.Context(), o); err != nil {
			t.Fatal(err)
		}
	}
	var list v1alpha1.TrainingJobList
	if err := api.List(t.Context(), &list, client.InNamespace("default")); err != nil {
		t.Fatal(err)
	}
	for i, want := range []string{"", "quantities must match", `unknown field "template.spec.containers[0].envs"`,
		"Container.template.spec.containers.image of type string"} {
		got := list.Items[i].Spec.Unreadable
		if (got == "") != (want == "") || !strings.Contains(got, want) || list.Items[i].UID == "" {
			t.Errorf("job %s: %q, want %q in it", list.Items[i].Name, got, want)
		}
		if err := api.Delete(t.Context(), &list.Items[i]); err != nil {
			t.Error(err)
		}
	}
}
