package api

import "time"

// Limits of requests, on both sides.
const (
	Patience   = 10 * time.Second // of the manager with one request, and with its body
	Submitting = time.Minute      // for many jobs to become durable
	Explaining = 2 * time.Minute  // for a long log to be decided again
	MaxBody    = 1 << 20          // bytes that may be sent
	MaxJobs    = 2 << 20          // bytes of a Submission
	MaxHeaders = 32 << 10         // bytes of the headers of a request
	MaxSeq     = 1<<53 - 1        // number of an event: what numbers of JSON hold exactly
	MaxEvent   = 32 << 20         // bytes of a line of a stream: of a log it grows with the GPUs of a target only
)
