// Package config holds what is applied to a cluster: definitions, roles and the controller.
package config

import _ "embed"

// CRDs are the definitions of the API, as YAML documents.
//
//go:embed crds.yaml
var CRDs []byte

// Install is the rest of an installation: namespace, roles and the controller, which makes the first policy.
//
//go:embed install.yaml
var Install []byte

// Image is the name of the controller's image in Install, where it stands once.
const Image = "trainyard-kube"
