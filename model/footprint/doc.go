// Package footprint learns how much device memory jobs have at most.
package footprint
