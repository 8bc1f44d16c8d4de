package jobs

import (
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/trainyard/trainyard/kube/api/v1alpha1"
)

// Ensure that a job is warned whose checkpoints would go with its pods, and no other.
func TestNotKept(t *testing.T) {
	const on, gone = "checkpoint.path /a/b is on ", ": what is saved there goes with its pod"
	const again = ", which is made again for each pod"
	const volumes = `[{name: disk, persistentVolumeClaim: {claimName: d}}, {name: none, emptyDir: {}},
		{name: text, configMap: {name: m}}, {name: claimed, ephemeral: {}}]`
	for mounts, want := range map[string]string{
		`[]`:                               on + "no volume that container c mounts" + gone,
		`[{name: disk, mountPath: /}]`:     "",
		`[{name: disk, mountPath: /a}]`:    "",
		`[{name: disk, mountPath: /a/b/}]`: "",
		`[{name: disk, mountPath: /a/bc}]`: on + "no volume that container c mounts" + gone,
		`[{name: disk, mountPath: /a, readOnly: true}]`: on +
			"volume disk, which is mounted to be read only: nothing can be saved there",
		`[{name: none, mountPath: /a}]`: on + "volume none, which is an emptyDir" + gone,
		`[{name: disk, mountPath: /a}, {name: none, mountPath: /a/b}]`: on +
			"volume none, which is an emptyDir" + gone,
		`[{name: none, mountPath: /a}, {name: disk, mountPath: /a/b}]`: "",
		`[{name: text, mountPath: /a}]`:                                on + "volume text" + again + gone,
		`[{name: claimed, mountPath: /a}]`: on +
			"volume claimed, which is ephemeral" + gone,
	} {
		var tj v1alpha1.TrainingJob
		container := `{name: c, image: i, volumeMounts: ` + mounts + `}`
		spec := `{gpus: {min: 1}, checkpoint: {path: /a/b}, template: {spec: {containers: [` + container +
			`], volumes: ` + volumes + `}}}`
		err := yaml.Unmarshal([]byte(`{spec: `+spec+`}`), &tj)
		if err != nil || tj.Spec.Unreadable != "" {
			t.Fatal(err, tj.Spec.Unreadable)
		}
		if got := notKept(&tj); got != want {
			t.Errorf("%s: %q, want %q", mounts, got, want)
		}
		if tj.Spec.Checkpoint.Path = ""; notKept(&tj) != "" {
			t.Errorf("%s without a path: %q", mounts, notKept(&tj))
		}
	}
}
