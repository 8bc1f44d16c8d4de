// Package simulate has the verbs that run systems on a trace, and list them.
package simulate
