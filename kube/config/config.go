// Package config holds what is applied to a cluster: definitions, roles, the controller and the default policy.
package config

import _ "embed"

// CRDs are the definitions of the API, as YAML documents.
//
//go:embed crds.yaml
var CRDs []byte

// Install is the rest of an installation: namespace, roles, the controller and the default policy.
//
//go:embed install.yaml
var Install []byte
