// Package inventory knows the nodes of a cluster and their GPUs: what each shows of itself in a mode, which node has
// which device, and which numbers nodes and GPUs have in the View. A look at a node reports how it differs from the
// View's.
package inventory
