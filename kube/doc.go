// Package kube runs jobs on Kubernetes; see docs/guide/kubernetes.md of the root module for how to, kube/driver and
// kube/controller for how it works.
package kube

//go:generate go run sigs.k8s.io/controller-tools/cmd/controller-gen@v0.20.1 object paths=./api/...
//go:generate go run sigs.k8s.io/controller-tools/cmd/controller-gen@v0.20.1 crd:generateEmbeddedObjectMeta=true paths=./api/... output:crd:dir=config/crd
//go:generate go run ./internal/crdgen config/crd config/crds.yaml
//go:generate rm -r config/crd
