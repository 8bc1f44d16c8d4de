//go:build race

package whatif_test

// defaultSeeds of the test of promise 18: the race detector takes ten times as long, and finds nothing new in more of
// the same.
const defaultSeeds = 3

// defaultMatrix are the scenarios of a cell of the matrix: what they find is not for the race detector.
const defaultMatrix = 2
