// Package jobs has the verbs about jobs and what they run on.
package jobs
