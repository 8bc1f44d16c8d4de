package api

import (
	"context"
	"net/url"
	"strconv"
	"time"
)

// AsSuits asks for a look into the future where that is not hopeless: one of 2,000 jobs takes half a second of a
// processor, and beyond the reason is to be had at once all the same.
const AsSuits = -time.Millisecond

// Why returns why a job stands as it does. ahead bounds the look into the future, see AsSuits, try the time in
// which remedies are tried; 0 = none.
func (c *Client) Why(ctx context.Context, job string, ahead, try time.Duration) (doc Why, err error) {
	q := url.Values{"ahead_ms": {strconv.FormatInt(ahead.Milliseconds(), 10)},
		"try_ms": {strconv.FormatInt(try.Milliseconds(), 10)}}
	err = c.get(ctx, jobPath(job, "why")+"?"+q.Encode(), &doc)
	return doc, err
}

const decisionsPath = "/v1/decisions/"

// Explain returns a decision of the log, decided again.
func (c *Client) Explain(ctx context.Context, seq uint64) (doc Decision, err error) {
	err = c.get(ctx, decisionsPath+strconv.FormatUint(seq, 10), &doc)
	return doc, err
}

// Resize gives a job another width, or range of widths.
func (c *Client) Resize(ctx context.Context, job string, r Resize) (doc Job, err error) {
	err = c.post(ctx, jobPath(job, "resize"), r, &doc)
	return doc, err
}

// UseRemedy is which remedy of Why is to be carried out.
type UseRemedy struct {
	ID string `json:"id" minLength:"1" maxLength:"200" doc:"of a remedy, as why has it"`
}

// Remedied is what a remedy came to.
type Remedied struct {
	Schema string `json:"schema" doc:"trainyard.remedied/v1"`
	Remedy Remedy `json:"remedy" doc:"as it was tried again"`
	Job    Job    `json:"job" doc:"as it stands then"`
}

// Remedy tries a remedy of a waiting job again on a copy, and carries it out. ErrNoHelp: it would not start the job any
// more. ErrRefused: it takes another submission.
func (c *Client) Remedy(ctx context.Context, job, id string) (doc Remedied, err error) {
	err = c.post(ctx, jobPath(job, "remedy"), UseRemedy{id}, &doc)
	return doc, err
}
