package realnode

import (
	"fmt"
	"os"
)

// ImageName is the one image of a node. Its first program is what holds the sandbox of a pod.
const ImageName = "localhost/trainyard:test"

// containerdConfig: snapshots are copies, which every file system can do. Whoever lacks CAP_SYS_RESOURCE cannot lower
// oom_score_adj, and runc dies of it unless asked not to. Networks are not set up by anyone: the one that is named has
// no program, so a pod that wants one of its own fails.
const containerdConfig = `version = 3
disabled_plugins = ['io.containerd.nri.v1.nri']
[plugins.'io.containerd.cri.v1.images']
snapshotter = 'native'
[plugins.'io.containerd.cri.v1.images'.pinned_images]
sandbox = '` + ImageName + `'
[plugins.'io.containerd.cri.v1.runtime']
restrict_oom_score_adj = true
disable_apparmor = true
enable_cdi = true
cdi_spec_dirs = ['/run/cdi']
[plugins.'io.containerd.cri.v1.runtime'.cni]
conf_dir = '%s'
`

const noNetwork = `{"cniVersion": "1.0.0", "name": "none", "plugins": [{"type": "none"}]}`

// kubeletConfig: no one but the API server is served, and that on the loopback; it does not look after disks, memory
// and swap of the machine.
const kubeletConfig = `apiVersion: kubelet.config.k8s.io/v1beta1
kind: KubeletConfiguration
address: 127.0.0.1
port: %d
healthzPort: 0
readOnlyPort: 0
authentication: {anonymous: {enabled: false}, webhook: {enabled: false}, x509: {clientCAFile: %s}}
authorization: {mode: AlwaysAllow}
containerRuntimeEndpoint: unix:///run/containerd/containerd.sock
cgroupRoot: /%s
cgroupDriver: cgroupfs
failCgroupV1: false
failSwapOn: false
enforceNodeAllocatable: []
oomScoreAdj: 0
evictionHard: {memory.available: 1Mi, nodefs.available: 0%%, nodefs.inodesFree: 0%%, imagefs.available: 0%%, imagefs.inodesFree: 0%%}
imageGCHighThresholdPercent: 100
imagePullCredentialsVerificationPolicy: NeverVerify
makeIPTablesUtilChains: false
resolvConf: ""
nodeStatusUpdateFrequency: 2s
nodeLeaseDurationSeconds: 8
`

// write makes the files of the node.
func (n *Node) write(image []byte, port int) error {
	for name, data := range map[string]string{
		"containerd.toml": fmt.Sprintf(containerdConfig, n.folder),
		"none.conflist":   noNetwork,
		"kubelet.yaml":    fmt.Sprintf(kubeletConfig, port, n.plane.KubeletClientCert(), cgroupOf(n.folder)),
		"image.tar":       string(image),
	} {
		if err := os.WriteFile(n.path(name), []byte(data), 0o600); err != nil {
			return err
		}
	}
	return nil
}
