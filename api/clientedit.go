package api

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
)

// SeenJob is how a job stood when it was asked for by Edits.
type SeenJob struct {
	Job
	tag string
}

// Edits changes jobs that were submitted: see EditsOf.
type Edits struct{ c *Client }

// EditsOf changes jobs by c.
func EditsOf(c *Client) Edits { return Edits{c} }

// See returns how a job stands, for a later change that goes only if it still stands so.
func (e Edits) See(ctx context.Context, job string) (seen SeenJob, err error) {
	err = e.c.again(ctx, func() error {
		resp, failed := e.c.Do(ctx, http.MethodGet, jobPath(job, ""), nil, nil)
		if failed != nil {
			return failed
		}
		defer func() { _ = resp.Body.Close() }()
		seen.tag = resp.Header.Get("ETag")
		return json.NewDecoder(io.LimitReader(resp.Body, maxAnswer)).Decode(&seen.Job)
	})
	return seen, err
}

// Edit has keys of a job be otherwise from now on, all of them or none. ErrChanged: it no longer stands as it was seen,
// and nothing was changed; the zero SeenJob goes by whatever it is now.
func (e Edits) Edit(ctx context.Context, job string, seen SeenJob, to Edit) (doc Edited, err error) {
	err = e.postIf(ctx, jobPath(job, "edit"), seen.tag, to, &doc)
	return doc, err
}

// Prioritize gives a job another priority.
func (e Edits) Prioritize(ctx context.Context, job string, to Priority) (doc Edited, err error) {
	err = e.c.post(ctx, jobPath(job, "priority"), to, &doc)
	return doc, err
}

// Signal sends a signal to processes of a job that runs.
func (e Edits) Signal(ctx context.Context, job string, in Signal) (doc Job, err error) {
	err = e.c.post(ctx, jobPath(job, "signal"), in, &doc)
	return doc, err
}

// postIf posts a body under If-Match; "" = whatever there is.
func (e Edits) postIf(ctx context.Context, path, tag string, body, doc any) error {
	if tag == "" {
		return e.c.post(ctx, path, body, doc)
	}
	b, err := json.Marshal(body)
	if err != nil {
		return err
	}
	if long := checkLength(b); long != nil {
		return long
	}
	return e.c.askWith(ctx, http.MethodPost, path, b, http.Header{"If-Match": {tag}}, doc)
}
