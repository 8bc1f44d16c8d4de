//go:build race

package whatifs

// outOfMemory is what a process that may take no more memory ends with: the race detector's own words.
const outOfMemory = "failed to allocate"
