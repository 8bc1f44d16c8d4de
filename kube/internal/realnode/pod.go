package realnode

import (
	"path/filepath"

	corev1 "k8s.io/api/core/v1"
)

// PodSpec is that of a pod that trains: examples/trainer with its arguments, in the container "train". What it is given
// is reported in the file "given" of the folder work, which is the same in the container; its checkpoints are for who
// runs it to name.
func PodSpec(work string, args ...string) corev1.PodSpec {
	command := append([]string{"/witness", filepath.Join(work, "given"), "/trainer"}, args...)
	directory := corev1.HostPathDirectory
	return corev1.PodSpec{
		HostNetwork: true, AutomountServiceAccountToken: new(false), EnableServiceLinks: new(false),
		Containers: []corev1.Container{{Name: "train", Image: ImageName, ImagePullPolicy: corev1.PullNever,
			Command:      command,
			VolumeMounts: []corev1.VolumeMount{{Name: "work", MountPath: work}}}},
		Volumes: []corev1.Volume{{Name: "work",
			VolumeSource: corev1.VolumeSource{HostPath: &corev1.HostPathVolumeSource{Path: work, Type: &directory}}}},
	}
}
