// Package text makes sentences of what package explain finds: why a job waits, when it may start, how it lost its GPUs.
// It serves both live worlds. What differs between them stands in a Vocabulary: templates of the sentences, the unit
// (GPU or slot), how jobs and times are written.
//
// The package reads the View and what it is given. It deliberately looks nothing up and decides nothing.
package text
