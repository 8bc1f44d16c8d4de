// Package hosttest is a world to test hosts in: a store in memory that outlives its host and fails on demand, and a
// driver of pretended nodes on which jobs run until they are asked to end.
package hosttest
