package api

import (
	"context"
	"encoding/json"
	"fmt"
	"net/url"
	"strconv"
	"strings"
	"time"
)

// Figures asks a host what happened, and what will: see FiguresOf.
type Figures struct{ c *Client }

// FiguresOf asks by c about what happened and what is expected.
func FiguresOf(c *Client) Figures { return Figures{c} }

// longPaths are those of what a host may take long for.
var longPaths = []string{"/v1/history", "/v1/losses", "/v1/users", "/v1/usage", "/v1/series",
	"/v1/forecast"}

// Range is a span of time; a zero time is where what is known starts, or ends.
type Range struct{ From, To time.Time }

func (r Range) query() url.Values {
	q := url.Values{}
	for name, t := range map[string]time.Time{"from": r.From, "to": r.To} {
		if !t.IsZero() {
			q.Set(name, t.UTC().Format(time.RFC3339Nano))
		}
	}
	return q
}

// History returns what happened so far, packed.
func (f Figures) History(ctx context.Context) (doc History, err error) {
	err = f.c.get(ctx, "/v1/history", &doc)
	return doc, err
}

// Losses returns where every GPU-hour went in a span, which is widened to where steps of what is kept start and end.
func (f Figures) Losses(ctx context.Context, r Range) (doc Losses, err error) {
	err = f.c.get(ctx, "/v1/losses?"+r.query().Encode(), &doc)
	return doc, err
}

// Price returns what GPUs are worth, under a system that puts a price on them.
func (f Figures) Price(ctx context.Context) (doc Price, err error) {
	err = f.c.get(ctx, "/v1/price", &doc)
	return doc, err
}

// Attempts returns those of a job.
func (f Figures) Attempts(ctx context.Context, job string) (doc Attempts, err error) {
	err = f.c.get(ctx, jobPath(job, "attempts"), &doc)
	return doc, err
}

// Users returns what each user got.
func (f Figures) Users(ctx context.Context, r Range) (doc Users, err error) {
	err = f.c.get(ctx, "/v1/users?"+r.query().Encode(), &doc)
	return doc, err
}

// UsageQuestion says of what Usage is to be.
type UsageQuestion struct {
	Range
	By         []string // some of UsageWords; none = user
	Zone       string   // time zone of days; "" = UTC
	Price, KWh float64  // money that an hour of a GPU costs, and a kWh
}

// Usage returns what jobs used. Words, zones and prices are refused that are none.
func (f Figures) Usage(ctx context.Context, u UsageQuestion) (doc Usage, err error) {
	q := u.query()
	if len(u.By) > 0 {
		q.Set("by", strings.Join(u.By, ","))
	}
	if u.Zone != "" {
		q.Set("tz", u.Zone)
	}
	for name, x := range map[string]float64{"price": u.Price, "kwh": u.KWh} {
		if x != 0 {
			q.Set(name, strconv.FormatFloat(x, 'g', -1, 64))
		}
	}
	err = f.c.get(ctx, "/v1/usage?"+q.Encode(), &doc)
	return doc, err
}

// Series returns a figure over time, as so many points at most; 0 = 200. Those of names are refused that are none.
func (f Figures) Series(ctx context.Context, name string, r Range, points int) (doc Series, err error) {
	q := r.query()
	q.Set("name", name)
	if points > 0 {
		q.Set("points", strconv.Itoa(points))
	}
	err = f.c.get(ctx, "/v1/series?"+q.Encode(), &doc)
	return doc, err
}

// Forecast returns when jobs that are not done are expected to start and end.
func (f Figures) Forecast(ctx context.Context) (doc Outlook, err error) {
	err = f.c.get(ctx, "/v1/forecast", &doc)
	return doc, err
}

// Board calls show with how all jobs stand, and then with what changes of that, until the context ends or show returns
// an error; io.EOF is the good end. whole says that it is a board and no change of one. When the stream breaks it goes
// on with a new board.
func (f Figures) Board(ctx context.Context, show func(whole bool, b *Board) error) error {
	return f.c.follow(ctx, "/v1/board", func(e StreamEvent) error {
		if e.Data == nil {
			return nil
		}
		var b Board
		if err := json.Unmarshal(e.Data, &b); err != nil {
			return fmt.Errorf("board: %w", err)
		}
		return show(e.Kind == "board", &b)
	})
}
