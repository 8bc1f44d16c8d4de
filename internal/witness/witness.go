// Package witness runs helpers of tests that may skip a test or fail it, and says which they did. Only tests import it.
package witness

import (
	"runtime"
	"testing"
)

// Witness is a testing.TB that notes how a test would have ended, instead of ending it. What it has not of its own is
// that of TB.
type Witness struct {
	testing.TB
	Skips, Fails bool
}

// Helper does nothing.
func (w *Witness) Helper() {}

// Skipf notes a skip and ends the goroutine.
func (w *Witness) Skipf(string, ...any) {
	w.Skips = true
	runtime.Goexit()
}

// Fatalf notes a failure and ends the goroutine.
func (w *Witness) Fatalf(string, ...any) {
	w.Fails = true
	runtime.Goexit()
}

// See runs f with a witness to its end, on a goroutine of its own, and returns the witness.
func See(t testing.TB, f func(testing.TB)) *Witness {
	w, done := &Witness{TB: t}, make(chan struct{})
	go func() {
		defer close(done)
		f(w)
	}()
	<-done
	return w
}
