// Package explain says why a job does not run: one constraint that binds, as a code and its numbers. What the View
// alone shows is found here; a Decider that knows more (package pipeline) adds its own reasons in the same terms.
//
// The package deliberately writes no sentence (package explain/text does) and changes nothing.
package explain
