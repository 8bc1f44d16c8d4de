package jobs

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/trainyard/trainyard/kube/api/v1alpha1"
)

// mostIgnored is how many bytes of what is ignored an Event reports.
const mostIgnored = 500

// ignored returns what a job says that has no effect: annotations in our name that are none of ours, and fields that
// its user applied and the API server dropped. Of the latter only kubectl's note of what was applied knows.
func (js *Jobs) ignored(tj *v1alpha1.TrainingJob) (list []string) {
	for name := range tj.Annotations {
		if strings.HasPrefix(name, v1alpha1.GroupVersion.Group+"/") && !slices.Contains(js.o.Annotations, name) {
			list = append(list, fmt.Sprintf("annotation %s is not known, and has no effect", name))
		}
	}
	slices.Sort(list)
	var applied v1alpha1.TrainingJob
	text := tj.Annotations[corev1.LastAppliedConfigAnnotation]
	if json.Unmarshal([]byte(text), &applied) == nil && applied.Spec.Unreadable != "" {
		list = append(list, "the API server dropped from spec what it does not know: "+
			strings.ReplaceAll(applied.Spec.Unreadable, "\n", ", "))
	}
	for i, text := range list {
		if len(text) > mostIgnored {
			list[i] = strings.ToValidUTF8(text[:mostIgnored], "") + " ..."
		}
	}
	return list
}
