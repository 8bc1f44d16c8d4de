// Package machine has what a verb needs that is the manager of this machine itself.
package machine
