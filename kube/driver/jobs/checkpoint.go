package jobs

import (
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/trainyard/trainyard/kube/api/v1alpha1"
)

// notKept says why what a job saves goes with its pods; "": it does not, as far as its spec says, or it says nothing of
// saving.
func notKept(tj *v1alpha1.TrainingJob) string {
	if tj.Spec.Cut != nil {
		return tj.Spec.Cut.NotKept
	}
	pod, path := &tj.Spec.Template.Spec, tj.Spec.Checkpoint.Path
	if path == "" || len(pod.Containers) == 0 {
		return ""
	}
	trains := &pod.Containers[0]
	mount := mountOf(trains, path)
	if mount == nil {
		return fmt.Sprintf(
			"checkpoint.path %s is on no volume that container %s mounts: what is saved there goes with its pod",
			path, trains.Name)
	}
	if mount.ReadOnly {
		return fmt.Sprintf(
			"checkpoint.path %s is on volume %s, which is mounted to be read only: nothing can be saved there",
			path, mount.Name)
	}
	for i := range pod.Volumes {
		v := &pod.Volumes[i]
		if kind := passing(&v.VolumeSource); v.Name == mount.Name && kind != "" {
			return fmt.Sprintf("checkpoint.path %s is on volume %s, which is %s: what is saved there goes with its pod",
				path, mount.Name, kind)
		}
	}
	return ""
}

// mountOf returns where the volume is mounted that a path of a container is on; nil: it is on none.
func mountOf(c *corev1.Container, path string) (best *corev1.VolumeMount) {
	for i := range c.VolumeMounts {
		m := &c.VolumeMounts[i]
		at := strings.TrimRight(m.MountPath, "/") + "/"
		if strings.HasPrefix(path+"/", at) && (best == nil || len(at) > len(best.MountPath)) {
			best = m
		}
	}
	return best
}

// passing says what a volume is that goes with its pod, or cannot be written to; "": it is none of these.
func passing(v *corev1.VolumeSource) string {
	switch {
	case v.EmptyDir != nil:
		return "an emptyDir"
	case v.Ephemeral != nil:
		return "ephemeral"
	case v.ConfigMap != nil, v.Secret != nil, v.DownwardAPI != nil, v.Projected != nil, v.Image != nil:
		return "made again for each pod"
	}
	return ""
}
