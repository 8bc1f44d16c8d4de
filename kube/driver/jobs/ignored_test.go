package jobs

import (
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/trainyard/trainyard/kube/api/v1alpha1"
)

// Ensure that what of a job has no effect is named, and nothing else is, whatever kubectl's note looks like.
func TestIgnored(t *testing.T) {
	const applied = corev1.LastAppliedConfigAnnotation
	for _, c := range []struct {
		annotations map[string]string
		want        []string
	}{
		{nil, nil},
		{map[string]string{
			v1alpha1.AnnotationDeletion: "x", "other.dev/gpus": "7", "trainyard.development/a": "",
		}, nil},
		{map[string]string{"trainyard.dev/b": "", "trainyard.dev/a": ""}, []string{
			"annotation trainyard.dev/a is not known, and has no effect",
			"annotation trainyard.dev/b is not known, and has no effect"}},
		{map[string]string{applied: `{"spec": {"gpus": {"min": 1}, "template": {"spec": {}}}}`}, nil},
		{map[string]string{applied: `{"spec": {"gpu": 1, "checkpoint": {"dir": "/x"}}}`}, []string{
			"the API server dropped from spec what it does not know: " +
				`unknown field "gpu", unknown field "checkpoint.dir"`}},
		{map[string]string{applied: ``}, nil},
		{map[string]string{applied: `null`}, nil},
		{map[string]string{applied: `{"spec": nonsense`}, nil},
		{map[string]string{applied: `[]`}, nil},
	} {
		b := newBench(t, false)
		b.js.o.Annotations = []string{v1alpha1.AnnotationDeletion}
		tj := jobOf("train", "uid")
		tj.Annotations = c.annotations
		if got := b.js.ignored(tj); !slices.Equal(got, c.want) {
			t.Errorf("%v: %q, want %q", c.annotations, got, c.want)
		}
	}
	b := newBench(t, false)
	tj := jobOf("train", "uid")
	tj.Annotations = map[string]string{applied: `{"spec": {"` + strings.Repeat("ä", 1000) + `": 1}}`}
	if got := b.js.ignored(tj); len(got) != 1 || len(got[0]) > mostIgnored+len(" ...") {
		t.Errorf("of a long name: %q", got)
	}
}
