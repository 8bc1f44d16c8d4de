// Package host keeps a live world going: it loads what a store kept, has the engine decide on the events of a driver,
// and answers those who ask. It serves one machine (package manager) and a Kubernetes cluster (kube/controller) alike.
//
// A Host starts (a new log), resumes (the same system goes on with what it remembers), or renews (the system starts
// again, and the log says why: no one else writes Renewed). What users want reaches the engine through a Mailbox, as
// events in front of the driver's answer. Each batch passes through one list of sinks, see order.
//
// The package deliberately knows no system, no driver and no simulator: it is given what builds them, and a Forecaster.
package host
