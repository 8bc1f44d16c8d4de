// Package client reaches the manager that a verb asks.
package client
