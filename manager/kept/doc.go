// Package kept reads what the state folder of a manager keeps: its log, and what attempts of jobs wrote.
package kept
