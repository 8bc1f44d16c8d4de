// Package controlplane runs a real Kubernetes control plane for tests: etcd, kube-apiserver, kube-controller-manager
// and kube-scheduler, as processes of their own on the loopback, with their data in a directory of the test.
//
// The binaries are those of `make kube-bins`, found by TRAINYARD_KUBE_BINS, else in the first folder bin/kube/current
// at or above the working directory. Where they are missing a test skips and says so, or fails where
// TRAINYARD_REQUIRE_KUBE is set.
//
//	func TestMain(m *testing.M) { os.Exit(controlplane.Main(m)) }
//
//	func TestSomething(t *testing.T) {
//		cluster := controlplane.Shared(t) // one per test binary; Start(t, Options{}) is one of the test's own
//		client := kubernetes.NewForConfigOrDie(cluster.Config())
//		...
//	}
//
// Clients are system:masters and not throttled. To act with the rights of someone else, set Impersonate in the config.
// Service accounts have no tokens and pods are not given any: the admission plugin is off. There are no nodes: packages
// fakenode and realnode bring them.
//
// On Linux the servers die with the test binary, however it ends.
package controlplane
