package api

import "context"

// Clean says what of jobs that are done is to be removed. Checkpoints never are.
type Clean struct {
	OlderSec float64 `json:"older_s,omitempty" minimum:"0" doc:"only of jobs that have been done for so many seconds"`
	Outputs  bool    `json:"outputs,omitempty" doc:"only what attempts wrote"`
	Runs     bool    `json:"runs,omitempty" doc:"run folders whole; so it is too without outputs"`
	// Snapshots: scripts that no job runs which is not done.
	Snapshots bool `json:"snapshots,omitempty" doc:"scripts that no job runs which is not done; alone where neither outputs nor runs are"`
	Dry       bool `json:"dry,omitempty" doc:"only say what would be removed"`
}

// Cleaned is what was removed, or would be.
type Cleaned struct {
	Schema   string   `json:"schema" doc:"trainyard.cleaned/v1"`
	Dry      bool     `json:"dry,omitempty"`
	Jobs     int      `json:"jobs" doc:"of which something was removed"`
	Attempts int      `json:"attempts" doc:"of which something was removed"`
	Bytes    int64    `json:"bytes" doc:"of the disk that this gives back"`
	Scripts  []string `json:"scripts,omitempty" doc:"copies of scripts that were removed: the name and the start of the digest"`
	Left     []Left   `json:"left" doc:"what was left alone, and why"`
}

// Left is what was not removed.
type Left struct {
	Job     int    `json:"job"`
	Attempt int    `json:"attempt,omitempty" doc:"nothing = all of the job"`
	Why     string `json:"why"`
}

// Clean removes what jobs that are done left.
func (c *Client) Clean(ctx context.Context, in Clean) (doc Cleaned, err error) {
	err = c.post(ctx, cleanPath, in, &doc)
	return doc, err
}

const cleanPath = "/v1/clean"
