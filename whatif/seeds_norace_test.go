//go:build !race

package whatif_test

// defaultSeeds of the test of promise 18: 48 s of CPU.
const defaultSeeds = 25

// defaultMatrix are the scenarios of a cell of the matrix.
const defaultMatrix = 40
