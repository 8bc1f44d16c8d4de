package cluster

import "github.com/trainyard/trainyard/internal/strictyaml"

// The limits of the reader that the tests come up to.
const (
	maxKeys   = strictyaml.MaxKeys
	maxAbsent = strictyaml.MaxAbsent
)
