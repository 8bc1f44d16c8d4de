package e2e

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/trainyard/trainyard/kube/internal/controlplane"
)

// shown are objects with what their controller writes of them, and what kubectl get shows: plain, and with -o wide. AGE
// is left out.
var shown = []struct{ kind, change, status, plain, wide string }{
	{"TrainingJob", `{metadata: {name: resnet50-imagenet}, spec: {priority: 7}}`,
		`{phase: Running, gpus: "4", attempt: 2, attained: 3h20m0s, lost: 5m20s, lostSeconds: 320, progress: step ` +
			`1200 of 4000, reason: "runs on node-7/0-3"}`,
		"NAME=resnet50-imagenet PHASE=Running GPUS=4 REASON=runs on node-7/0-3",
		"NAME=resnet50-imagenet PHASE=Running GPUS=4 PRIORITY=7 ATTEMPT=2 SERVICE=3h20m0s LOST=5m20s PROGRESS=step " +
			"1200 of 4000 REASON=runs on node-7/0-3"},
	{"TrainingJob", `{metadata: {name: waits}}`,
		`{phase: Pending, gpus: "0 of 2-8", attained: 0s, reason: "needs 8 GPUs, 6 are free; 12 jobs rank before it"}`,
		"NAME=waits PHASE=Pending GPUS=0 of 2-8 REASON=needs 8 GPUs, 6 are free; 12 jobs rank before it",
		"NAME=waits PHASE=Pending GPUS=0 of 2-8 PRIORITY= ATTEMPT= SERVICE=0s LOST= PROGRESS= REASON=needs 8 GPUs, 6 " +
			"are free; 12 jobs rank before it"},
	{"SchedulerPolicy", `{}`,
		`{gpus: 34 of 40, running: 12, waiting: 3, leader: 5, message: "tiresias-las gives way to pal"}`,
		"NAME=default SYSTEM=tiresias-las MODE=dra-pinned GPUS=34 of 40 RUNNING=12 WAITING=3 MESSAGE=tiresias-las " +
			"gives way to pal",
		"NAME=default SYSTEM=tiresias-las MODE=dra-pinned GPUS=34 of 40 RUNNING=12 WAITING=3 ROUND= " +
			"START-TIMEOUT=10m PROGRESS=logs LEADER=5 MESSAGE=tiresias-las gives way to pal"},
	{"GPUPool", `{spec: {min: 1, budgetGPUs: "12.5", provider: {kind: karpenter, name: gpus}}}`,
		`{rented: 3, target: 4, spend: "120.50", message: "quota of A100 is used up"}`,
		"NAME=p TYPE=A100 RENTED=3 TARGET=4 SPEND=120.50 MESSAGE=quota of A100 is used up",
		"NAME=p TYPE=A100 RENTED=3 TARGET=4 SPEND=120.50 MIN=1 MAX=4 PRICE=2.5 BUDGET=12.5 PROVIDER=karpenter " +
			"OBJECT=gpus MESSAGE=quota of A100 is used up"},
	{"GPUProfile", `{metadata: {name: node-7}, spec: {idleWatts: 400, busyGPUWatts: 300, gpus: [{uuid: GPU-0, ` +
		`scores: {A: "1.1", B: "1"}}, {uuid: GPU-1, withheld: true}]}}`, "",
		"NAME=node-7 IDLE-W=400 GPU-W=300 WITHHELD=GPU-1", "NAME=node-7 IDLE-W=400 GPU-W=300 WITHHELD=GPU-1"},
}

// Ensure that kubectl get reports each kind what one looks for, on lines that fit a terminal, and the rest where it is
// asked for.
func TestColumns(t *testing.T) {
	api := apiOf(t)
	for _, c := range shown {
		o := object(t, c.kind, c.change)
		must(t, api.Create(t.Context(), o))
		if c.status != "" {
			body, err := yaml.YAMLToJSON([]byte("{status: " + c.status + "}"))
			must(t, err)
			must(t, api.Status().Patch(t.Context(), o, client.RawPatch("application/merge-patch+json", body)))
		}
		table := tableOf(t, strings.ToLower(c.kind), o.GetNamespace(), o.GetName())
		must(t, api.Delete(t.Context(), o))
		if got := line(table, 0); got != c.plain {
			t.Errorf("%s: %s, want %s", c.kind, got, c.plain)
		}
		if got := line(table, 1); got != c.wide {
			t.Errorf("%s -o wide: %s, want %s", c.kind, got, c.wide)
		}
		if n := width(table); n > 100 {
			t.Errorf("%s: %d letters wide, want at most 100", c.kind, n)
		}
		t.Log(c.kind, line(table, 1))
	}
}

// tableOf asks for an object as kubectl get does.
func tableOf(t *testing.T, kind, space, name string) (table metav1.Table) {
	t.Helper()
	plural := strings.Replace(kind+"s", "ys", "ies", 1)
	path := []string{"/apis/trainyard.dev/v1alpha1"}
	if space != "" {
		path = append(path, "namespaces", space)
	}
	raw, err := controlplane.Shared(t).Client().Discovery().RESTClient().Get().AbsPath(append(path, plural, name)...).
		SetHeader("Accept", "application/json;as=Table;v=v1;g=meta.k8s.io").DoRaw(t.Context())
	must(t, err)
	must(t, json.Unmarshal(raw, &table))
	return table
}

// line is the row of a table, in columns up to a priority; the age, which is another each time, is left out.
func line(table metav1.Table, priority int32) string {
	var cells []string
	for i, c := range table.ColumnDefinitions {
		if c.Priority <= priority && c.Name != "Age" {
			cells = append(cells, strings.ToUpper(c.Name)+"="+cell(table, i))
		}
	}
	return strings.Join(cells, " ")
}

func cell(table metav1.Table, i int) string {
	if v := table.Rows[0].Cells[i]; v != nil {
		return fmt.Sprint(v)
	}
	return ""
}

// width is how many letters a row has with what kubectl puts between columns, which are as wide as their names at
// least.
func width(table metav1.Table) (n int) {
	for i, c := range table.ColumnDefinitions {
		if c.Priority == 0 {
			n += max(len(c.Name), len(cell(table, i))) + 3
		}
	}
	return n - 3
}
