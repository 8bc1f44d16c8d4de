// Package timeline folds a log into what pictures need: the attempts of each job, what the cluster did over time, and
// in which class each GPU was at each instant.
//
//	events ─▶ Timeline ─▶ Attempts, Jobs   when, on which GPUs, why
//	                   ─▶ Series           GPUs held, the queue and power over time
//	                   ─▶ Losses           GPUs x time by class, over time and by user
//
// A Timeline is an eventlog.Sink. It folds the log of a simulation, of a replay and of a manager alike. Its cost grows
// with what changes, not with time.
package timeline
