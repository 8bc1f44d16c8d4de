package controller

import (
	"errors"
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/trainyard/trainyard/kube/api/v1alpha1"
)

// ErrUndefined says that the cluster does not have all definitions of the API.
var ErrUndefined = errors.New("the cluster has no definition")

// defined returns an error that names the kinds that the cluster does not know, and says how to make them known.
func defined(m meta.RESTMapper) error {
	var missing []string
	for _, kind := range []string{"TrainingJob", "SchedulerPolicy", "GPUPool", "GPUProfile"} {
		_, err := m.RESTMapping(v1alpha1.GroupVersion.WithKind(kind).GroupKind(), v1alpha1.GroupVersion.Version)
		switch {
		case meta.IsNoMatchError(err):
			missing = append(missing, kind)
		case err != nil:
			return fmt.Errorf("controller: definitions: %w", err)
		}
	}
	if len(missing) > 0 {
		return fmt.Errorf("%w of %s (%s): apply what `trainyard-kube manifests` prints, or, for --observe alone, "+
			"`trainyard-kube manifests --crds`",
			ErrUndefined, strings.Join(missing, ", "), v1alpha1.GroupVersion)
	}
	return nil
}
