package apitest_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"io"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/trainyard/trainyard/api"
)

var record = flag.Bool("record", false, "write the answers of the pretended cluster that tests of the page are shown")

// recording holds answers to GETs by path. Of a stream it has the first event.
type recording map[string]recorded

type recorded struct {
	Status int    `json:"status"`
	Type   string `json:"type"`
	Body   string `json:"body"`
}

// recordedPaths are what the page asks a host for. Job 0 runs, 3 is done, 204 waits.
var recordedPaths = []string{"/v1/info", "/v1/board", "/v1/jobs?state=waiting,held&ahead_ms=-1",
	"/v1/jobs?state=starting,running,stopping&ahead_ms=-1",
	"/v1/jobs?state=waiting,starting,running,stopping&ahead_ms=-1", "/v1/jobs/0/why", "/v1/jobs/3/why",
	"/v1/jobs/204/why", "/v1/history", "/v1/calibration", "/v1/decisions/1"}

// answer asks a host.
func answer(t *testing.T, c *api.Client, path string) recorded {
	t.Helper()
	resp, err := c.Do(t.Context(), http.MethodGet, path, nil, nil)
	if p := (*api.Problem)(nil); errors.As(err, &p) {
		text, bad := json.Marshal(p)
		if bad != nil {
			t.Fatal(bad)
		}
		return recorded{p.Status, p.ContentType(""), string(text)}
	}
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	var body []byte
	if path == "/v1/board" {
		for one := make([]byte, 1); err == nil && !bytes.HasSuffix(body, []byte("\n\n")); {
			_, err = resp.Body.Read(one)
			body = append(body, one...)
		}
	} else {
		body, err = io.ReadAll(resp.Body)
	}
	if err != nil {
		t.Fatalf("%s: %v", path, err)
	}
	return recorded{resp.StatusCode, resp.Header.Get("Content-Type"), string(body)}
}

// Ensure that the recorded answers that tests of the page are shown have the form in which a host of a cluster answers.
func TestClusterRecording(t *testing.T) {
	c, now := cluster(t).Client, recording{}
	for _, path := range recordedPaths {
		now[path] = answer(t, c, path)
	}
	file := filepath.Join("..", "..", "web", "browser", "testdata", "cluster.json")
	if *record {
		text, err := json.MarshalIndent(now, "", " ")
		if err == nil {
			err = os.WriteFile(file, append(text, '\n'), 0o644)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatalf("%v; go test -run TestClusterRecording ./api/apitest -record writes it", err)
	}
	kept := recording{}
	if bad := json.Unmarshal(text, &kept); bad != nil {
		t.Fatal(bad)
	}
	for _, path := range recordedPaths {
		is, was := now[path], kept[path]
		if is.Status != was.Status || is.Type != was.Type || !slices.Equal(names(is.Body), names(was.Body)) {
			t.Errorf("%s is answered by %d %s with %q, the recording has %d %s with %q", path, is.Status, is.Type,
				names(is.Body), was.Status, was.Type, names(was.Body))
		}
	}
}

// names returns the names in a document, in order.
func names(body string) []string {
	_, data, stream := bytes.Cut([]byte(body), []byte("data: "))
	if !stream {
		data = []byte(body)
	}
	doc := map[string]any{}
	if err := json.Unmarshal(bytes.TrimSpace(data), &doc); err != nil {
		return []string{err.Error()}
	}
	return slices.Sorted(maps.Keys(doc))
}
