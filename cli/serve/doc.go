// Package serve has the verbs that look after a machine: serve, doctor, probe.
package serve
