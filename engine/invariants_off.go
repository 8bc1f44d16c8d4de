//go:build !invariants

package engine

// invariants has the engine recount its state from scratch as it goes. Built with -tags invariants, in tests.
const invariants = false
