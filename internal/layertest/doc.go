// Package layertest checks, as a test, which packages of this module may import which, and what the pure packages must
// not do. Its table_test.go is the table; every rule in it carries its reason, which a failure prints.
//
// It reads the non-test Go files of the module under every build tag, as source: imports and selector expressions, no
// types. It does not look at test files, at folders called testdata, or at nested modules.
package layertest
