package api

import (
	"context"
	"encoding/json"
	"net/url"
)

// WhatIfQuestion is under which systems the log is to be simulated.
type WhatIfQuestion struct {
	Systems []string `json:"systems,omitempty" maxItems:"16" doc:"by name; none = those of trainyard whatif"`
}

// States of a WhatIf.
const (
	WhatIfRunning   = "running"
	WhatIfDone      = "done"
	WhatIfFailed    = "failed"
	WhatIfCancelled = "cancelled"
)

// WhatIf is how the jobs of the log would have fared under other systems, or how far the simulation of that has come.
type WhatIf struct {
	Schema  string   `json:"schema" doc:"trainyard.whatif-run/v1"`
	ID      string   `json:"id"`
	State   string   `json:"state" doc:"running, done, failed or cancelled"`
	Seq     uint64   `json:"seq" doc:"the last event of the log when it was asked"`
	Systems []string `json:"systems" doc:"that were asked for; none = those of trainyard whatif"`
	Done    int      `json:"simulated" doc:"systems, so far"`
	Of      int      `json:"of" doc:"systems in all; 0 = the log is being read"`
	Now     string   `json:"system,omitempty" doc:"that is being simulated"`
	Error   string   `json:"error,omitempty" doc:"of one that failed"`
	// Result is the document of `trainyard whatif --json`; nil = it is not done.
	Result json.RawMessage `json:"result,omitempty" doc:"trainyard.whatif/v1, once it is done"`
}

// WhatIfs asks a host what would have been: see WhatIfsOf.
type WhatIfs struct{ c *Client }

// WhatIfsOf asks by c what would have been.
func WhatIfsOf(c *Client) WhatIfs { return WhatIfs{c} }

const whatifPath = "/v1/whatif"

// Ask has the log so far simulated, or returns what came of the same question about the same log. ErrBusy: another
// question is being answered.
func (w WhatIfs) Ask(ctx context.Context, q WhatIfQuestion) (doc WhatIf, err error) {
	err = w.c.post(ctx, whatifPath, q, &doc)
	return doc, err
}

// Get returns how far a question has come. One that no one asks about for half a minute is cancelled.
func (w WhatIfs) Get(ctx context.Context, id string) (doc WhatIf, err error) {
	err = w.c.get(ctx, whatifPath+"/"+url.PathEscape(id), &doc)
	return doc, err
}

// Cancel takes a question back; it ends once all who asked it did.
func (w WhatIfs) Cancel(ctx context.Context, id string) (doc WhatIf, err error) {
	err = w.c.post(ctx, whatifPath+"/"+url.PathEscape(id)+"/cancel", nil, &doc)
	return doc, err
}
