// Package pools rents nodes and gives them back: it asks a Provider for as many nodes as the engine ordered, cordons
// and releases nodes, and reports what may be rented of each GPUPool.
package pools
