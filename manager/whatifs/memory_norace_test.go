//go:build !race

package whatifs

// outOfMemory is what a process that may take no more memory ends with.
const outOfMemory = "MiB of memory"
