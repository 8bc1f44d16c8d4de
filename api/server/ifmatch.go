package server

import (
	"context"
	"fmt"
	"net/http"
	"strings"

	"github.com/trainyard/trainyard/api"
	"github.com/trainyard/trainyard/sched"
)

// tagger names how jobs stand, in the form of an ETag: "ATTEMPT-STATE".
type tagger struct{ host Host }

func (t tagger) of(ctx context.Context, id sched.JobID) (tag string, err error) {
	ctx, cancel := context.WithTimeout(ctx, api.Patience)
	defer cancel()
	err = t.host.Look(ctx, func(v *sched.View) { tag = tagOf(&v.Jobs[id]) })
	return tag, err
}

func tagOf(j *sched.Job) string { return fmt.Sprintf("%q", fmt.Sprint(j.Attempts, "-", stateOf(j))) }

// unchanged refuses a change of a job that was asked for under If-Match, if the job stands otherwise than it was seen.
func (g *guard) unchanged(r *http.Request, c *caller) error {
	seen := strings.Join(r.Header.Values("If-Match"), ",")
	if c.job == sched.None || r.Method != http.MethodPost || seen == "" {
		return nil
	}
	tag, err := g.tag(r.Context(), c.job)
	if err != nil {
		return err
	}
	for one := range strings.SplitSeq(seen, ",") {
		if one = strings.TrimSpace(one); one == tag || one == "*" {
			return nil
		}
	}
	return fmt.Errorf("job %d %w: it is %s now, not %s", c.job, api.ErrChanged, tag, seen)
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
