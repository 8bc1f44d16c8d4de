package api

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
)

// commandsPath is where the same is done with several jobs.
const commandsPath = "/v1/commands"

// mostCommanded is how many jobs a request names: half of what a manager takes.
const mostCommanded = 50_000

// CommandAll has the same done with several jobs: cancel, pause, resume or requeue, in one request for up to 50,000.
// The documents say of each, in their order, how it stands, and the errors why nothing was done. A manager from before
// there was that is asked for one after the other.
func CommandAll(ctx context.Context, c *Client, command string, jobs []string) (list []Job, wrong []error, err error) {
	for some := range slices.Chunk(jobs, mostCommanded) {
		documents, refused, failed := commandSome(ctx, c, command, some)
		if failed != nil {
			return nil, nil, failed
		}
		list, wrong = append(list, documents...), append(wrong, refused...)
	}
	return list, wrong, nil
}

// commandSome is CommandAll in one request.
func commandSome(ctx context.Context, c *Client, command string, jobs []string) ([]Job, []error, error) {
	list, wrong := make([]Job, len(jobs)), make([]error, len(jobs))
	single := map[string]func(*Client, context.Context, string) (Job, error){"cancel": (*Client).Cancel,
		"pause": (*Client).Pause, "resume": (*Client).Resume, "requeue": (*Client).Requeue}
	var doc Commanded
	err := c.post(ctx, commandsPath, Commanding{command, jobs}, &doc)
	if p := (*Problem)(nil); errors.As(err, &p) && p.Status == http.StatusNotFound && single[command] != nil {
		for i, job := range jobs {
			list[i], wrong[i] = single[command](c, ctx, job)
		}
		return list, wrong, nil
	}
	if err != nil {
		return nil, nil, err
	}
	if len(doc.Jobs) != len(jobs) {
		return nil, nil, fmt.Errorf("%s: the manager answered about %d jobs, want %d", command, len(doc.Jobs),
			len(jobs))
	}
	for i := range doc.Jobs {
		switch one := &doc.Jobs[i]; {
		case one.Problem != nil:
			wrong[i] = received(one.Problem)
		case one.Job != nil:
			list[i] = *one.Job
		default:
			wrong[i] = fmt.Errorf("%s: job %q: the manager did not answer how it stands", command, jobs[i])
		}
	}
	return list, wrong, nil
}
