//go:build tools

// Package kube names packages that the module is about to use, so that `go mod tidy` keeps and pins their modules.
package kube

import (
	_ "github.com/trainyard/trainyard/sched"
	_ "k8s.io/api/resource/v1"
	_ "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	_ "k8s.io/apimachinery/pkg/apis/meta/v1"
	_ "k8s.io/client-go/kubernetes"
	_ "k8s.io/dynamic-resource-allocation/kubeletplugin"
	_ "sigs.k8s.io/controller-runtime"
	_ "sigs.k8s.io/controller-runtime/pkg/client/fake"
	_ "sigs.k8s.io/controller-runtime/pkg/envtest"
)
