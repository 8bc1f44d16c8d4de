// Package trace has the verb that describes, converts and draws traces.
package trace
