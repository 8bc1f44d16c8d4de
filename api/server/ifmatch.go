package server

import (
	"context"
	"fmt"
	"net/http"
	"strings"

	"github.com/trainyard/trainyard/api"
	"github.com/trainyard/trainyard/host"
	"github.com/trainyard/trainyard/sched"
)

// tagger names how jobs stand, in the form of an ETag: "ATTEMPT-STATE-MIN-WANT-MAX", the last three being the GPUs that
// their users want.
type tagger struct{ host Host }

func (t tagger) of(ctx context.Context, id sched.JobID) (tag string, err error) {
	ctx, cancel := context.WithTimeout(ctx, api.Patience)
	defer cancel()
	err = t.host.Look(ctx, func(v *sched.View) { tag = tagOf(v, &v.Jobs[id]) })
	return tag, err
}

func tagOf(v *sched.View, j *sched.Job) string {
	r := j.Spec.GPUs
	return fmt.Sprintf("%q", fmt.Sprint(j.Attempts, "-", stateOf(v, j), "-", r.Min, "-", r.Want, "-", r.Max))
}

// shortTag is the form that says nothing of widths.
func shortTag(v *sched.View, j *sched.Job) string {
	return fmt.Sprintf("%q", fmt.Sprint(j.Attempts, "-", stateOf(v, j)))
}

// seen is how a request under If-Match saw its job; "" = it was made under none.
type seen string

func seenBy(r *http.Request) seen { return seen(strings.Join(r.Header.Values("If-Match"), ",")) }

// refuse returns an error if the job stands otherwise than it was seen; asked: someone else is changing it.
func (s seen) refuse(v *sched.View, id sched.JobID, asked bool) error {
	j := v.Job(id)
	tag, short := tagOf(v, j), shortTag(v, j)
	for one := range strings.SplitSeq(string(s), ",") {
		if one = strings.TrimSpace(one); one == "*" || !asked && (one == tag || one == short) {
			return nil
		}
	}
	if asked {
		return fmt.Errorf("job %d %w: another request came first", id, api.ErrChanged)
	}
	return fmt.Errorf("job %d %w: it is %s now, not %s", id, api.ErrChanged, tag, s)
}

// onlyIfSeen has what is done to the job under the returned context be done only if it stands as the one who asks saw
// it: no one else changes it in between.
func onlyIfSeen(ctx context.Context) context.Context {
	c := callerOf(ctx)
	if c.seen == "" {
		return ctx
	}
	return host.OnlyIf(ctx, func(v *sched.View, asked bool) error { return c.seen.refuse(v, c.job, asked) })
}

// showTag says with the document of a job how it stands. A job that changes before the document is made has the older
// tag: then a change is refused once too often.
func (g *guard) showTag(w http.ResponseWriter, r *http.Request, c *caller) {
	if c.job == sched.None || r.Method != http.MethodGet || strings.Count(r.URL.Path, "/") != 3 {
		return
	}
	if tag, err := g.tag(r.Context(), c.job); err == nil {
		w.Header().Set("ETag", tag)
	}
}
