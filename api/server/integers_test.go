package server

import (
	"context"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"github.com/trainyard/trainyard/api"
)

// hostileIntegers are numbers that overflow something, or are none.
var hostileIntegers = []string{
	"-1", "-2147483649", "2147483647", "2147483648", "2147483649", "4294967295", "4294967297",
	"9007199254740991", "9007199254740992", "9223372036854775807", "9223372036854775808",
	"18446744073709551617", "1e9", "0x10", "+1", " 1", "١", "",
}

// Ensure that each integer that a route takes has a least and a greatest value, and that none of any size is answered
// by a fault, or leaves something running once its client has left: a stream of attempt 2147483649 counted for days.
func TestIntegersAreBounded(t *testing.T) {
	t.Parallel()
	r := newRig(t, 1, nil)
	r.submit("jobs: [{name: quick, command: ['true']}, {name: later, command: ['true'], submit: 1h}]")
	if _, err := r.client.Wait(t.Context(), "quick"); err != nil {
		t.Fatal(err)
	}
	inputs := 0
	for path, item := range r.server.docs.OpenAPI().Paths {
		for method, op := range map[string]*huma.Operation{http.MethodGet: item.Get, http.MethodPost: item.Post} {
			if op == nil {
				continue
			}
			inputs += len(op.Parameters)
			for _, p := range op.Parameters {
				if p.Schema.Type == huma.TypeInteger && (p.Schema.Minimum == nil || p.Schema.Maximum == nil) {
					t.Errorf("%s %s: %s is an integer without bounds", method, path, p.Name)
				}
				for _, value := range hostileIntegers {
					r.askHostile(method, path, p, value)
				}
			}
		}
	}
	if inputs < 15 {
		t.Errorf("%d inputs, want those of all routes", inputs)
	}
	for _, field := range []string{"gpus_min", "gpus_want", "gpus_max"} {
		for _, value := range hostileIntegers {
			body := `{"gpus_max": 1, "` + field + `": ` + value + `}`
			r.answered(t.Context(), http.MethodPost, "/v1/jobs/later/resize", body, nil)
		}
	}
	for end := time.Now().Add(waitLong); r.server.guard.streams.open() > 0; time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("%d streams go on without their clients", r.server.guard.streams.open())
		}
	}
}

// askHostile asks with one input of a route at a value, and leaves once it is answered.
func (r *rig) askHostile(method, path string, p *huma.Param, value string) {
	r.Helper()
	ctx, leave := context.WithCancel(r.Context())
	defer leave()
	set := map[string]string{"{job}": "quick", "{seq}": "1", "{gpu}": "no-such", "{node}": "no-such"}
	query, header := url.Values{}, http.Header{}
	switch p.In {
	case "path":
		set["{"+p.Name+"}"] = url.PathEscape(value)
	case "query":
		query.Set(p.Name, value)
		if strings.HasSuffix(path, "/logs") {
			query.Set("follow", "true")
		}
	case "header":
		header.Set(p.Name, value)
	}
	for name, with := range set {
		path = strings.ReplaceAll(path, name, with)
	}
	r.answered(ctx, method, path+"?"+query.Encode(), "", header)
}

// answered asks and wants an answer that is no fault of the server's.
func (r *rig) answered(ctx context.Context, method, path, body string, header http.Header) {
	r.Helper()
	req, err := http.NewRequestWithContext(ctx, method, "http://"+api.HostName+path, strings.NewReader(body))
	if err != nil {
		return // the client refuses it
	}
	req.Header = header
	if header == nil {
		req.Header = http.Header{"Content-Type": {"application/json"}}
	}
	resp, err := r.overSocket(true).Do(req)
	if err != nil {
		r.Errorf("%s %s %s %v: %v", method, path, body, header, err)
		return
	}
	defer resp.Body.Close()
	if resp.StatusCode >= http.StatusInternalServerError {
		r.Errorf("%s %s %s %v: %s", method, path, body, header, resp.Status)
	}
}
