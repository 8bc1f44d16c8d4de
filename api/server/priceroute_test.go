package server

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/trainyard/trainyard/api"
)

// Ensure that a price of slots is served once jobs lack them, alike by all ways to ask, and that a system without one
// says what to ask instead.
func TestPrice(t *testing.T) {
	t.Parallel()
	r := newRigOf(t, "worth", 1, nil)
	r.submit("jobs: [{name: holds, command: [sleep, 1h], grace: 1s}, {name: waits, command: [sleep, 1h], grace: 1s}]")
	ctx, cancel := context.WithTimeout(t.Context(), waitLong)
	defer cancel()
	ask := api.FiguresOf(r.client)
	doc, err := ask.Price(ctx)
	for err == nil && (len(doc.Bids) < 2 || doc.Bids[0].Held != 1) {
		time.Sleep(10 * time.Millisecond)
		doc, err = ask.Price(ctx)
	}
	if err != nil {
		t.Fatal(err)
	}
	if doc.Schema != "trainyard.price/v1" || doc.System != "worth" || len(doc.Prices) != 1 || doc.Prices[0].GPUs != 1 ||
		!(doc.Prices[0].Price > 0) {
		t.Errorf("%+v, want a price of one slot", doc)
	}
	if w := doc.Bids[1]; w.Job != 1 || w.Held != 0 || w.Wants != 1 || !(w.Worth > 0) || !(w.LeftSec > 0) {
		t.Errorf("%+v, want a bid of job 1 for a slot", w)
	}
	why, err := r.client.Why(ctx, "waits", 0, 0)
	if err != nil {
		t.Fatal(err)
	}
	if why.Bid == nil || why.Bid.Job != 1 || !strings.HasPrefix(why.Bid.Text, "A slot is worth ") ||
		!strings.Contains(why.Bid.Text, "It asks for 1, each worth ") {
		t.Errorf("why: %+v", why.Bid)
	}
	jobs, err := r.client.Jobs(ctx, api.Filter{})
	if err != nil {
		t.Fatal(err)
	}
	for i := range jobs.Jobs {
		if !(jobs.Jobs[i].Worth > 0) {
			t.Errorf("job %d: worth %v", i, jobs.Jobs[i].Worth)
		}
	}
	resp, err := r.client.Do(ctx, http.MethodGet, "/metrics", nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if text, bad := io.ReadAll(resp.Body); bad != nil || !strings.Contains(string(text), "trainyard_gpu_price{type=") {
		t.Errorf("figures without a price, %v", bad)
	}
	other := newRig(t, 1, nil)
	if _, err = api.FiguresOf(other.client).Price(ctx); !errors.Is(err, api.ErrNotHere) ||
		!strings.Contains(err.Error(), "explain") {
		t.Errorf("a system without a price: %v", err)
	}
}

// Ensure that bids are said in words, whatever they are.
func TestBidText(t *testing.T) {
	for _, c := range []struct {
		bid     api.Bid
		want    string
		assumed bool
	}{
		{api.Bid{Price: 3.21, Wants: 4, Worth: 2.14, LeftSec: 18000}, "A GPU is worth 3.2 now: an hour of one saves " +
			"others 3.2 hours of waiting. It asks for 4, each worth 2.1 to it (about 5 h left): it starts when the " +
			"price falls to that.", false},
		{api.Bid{Price: 0, Held: 2, Holds: 1e308, LeftSec: 59.2}, "A GPU is worth nothing now: no job that could use " +
			"one lacks it. It has 2, each worth any price to it (about 60 s left), and no use for more.", false},
		{api.Bid{Price: 1, Wants: 4, Worth: 2, LeftSec: 600}, "A GPU is worth 1 now: an hour of one saves others 1 " +
			"hours of waiting. It asks for 4, each worth 2 to it (about 10 min left): it pays the price, and starts " +
			"when so many come free or a job can be stopped for less than that gains.", false},
		{api.Bid{Price: 1, Wants: 4, Worth: 2, LeftSec: 600, Kept: true}, "A GPU is worth 1 now: an hour of one " +
			"saves others 1 hours of waiting. It asks for 4, each worth 2 to it (about 10 min left); as it has " +
			"waited long, what becomes free is kept for it.", false},
		{api.Bid{Price: 250.4, Held: 1, Holds: 300, Wants: 2, Worth: .5, LeftSec: 6000}, "A GPU is worth 250 now: " +
			"an hour of one saves others 250 hours of waiting. It has 1, each worth 300 to it (about 2 h left); each " +
			"of 1 more would be worth 0.5.", false},
		{api.Bid{Price: 1, Wants: 1, Worth: 1, LeftSec: 3600}, "A GPU is worth 1 now: an hour of one saves others 1 " +
			"hours of waiting. It asks for 1, each worth as much to it (about 60 min left, which is assumed: nothing " +
			"is known yet of such jobs): those that have them came first, and it starts when so many come free.", true},
	} {
		if got := bidText(&c.bid, c.assumed, "GPU"); got != c.want {
			t.Errorf("%+v:\n%s, want\n%s", c.bid, got, c.want)
		}
	}
}
