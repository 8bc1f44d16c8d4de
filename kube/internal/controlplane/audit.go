package controlplane

import (
	"bufio"
	"encoding/json"
	"os"
	"strings"
	"testing"
)

// Request is one that the API server answered. Fields are empty where they do not apply: a list has no name, a URL like
// /readyz no resource.
type Request struct {
	User      string // whom the client acted as: the impersonated user, where there is one
	UserAgent string
	Verb      string // get, list, watch, create, update, patch, delete, deletecollection
	Group     string // "" for the core group
	Resource  string // with its subresource: "pods/status"
	Namespace string
	Name      string
	Code      int // HTTP status
}

// Writes says whether the request was of a kind that changes something, heeded or not.
func (r Request) Writes() bool {
	switch r.Verb {
	case "get", "list", "watch":
		return false
	}
	return r.Resource != ""
}

// Requests returns what clients from outside the control plane asked, in the order of the answers (a watch when it ends).
// The cluster must have been started with Options.Audit.
func (c *Cluster) Requests(t testing.TB) []Request {
	t.Helper()
	if !c.options.Audit {
		t.Fatal("controlplane: Requests of a cluster without Options.Audit")
	}
	file, err := os.Open(c.path("audit.log"))
	if err != nil {
		t.Fatalf("controlplane: %v", err)
	}
	defer file.Close()
	var requests []Request
	lines := bufio.NewScanner(file)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var e auditEvent
		if err := json.Unmarshal(lines.Bytes(), &e); err != nil {
			t.Fatalf("controlplane: audit.log: %v", err)
		}
		requests = append(requests, e.request())
	}
	if err := lines.Err(); err != nil {
		t.Fatalf("controlplane: audit.log: %v", err)
	}
	return requests
}

// auditEvent is the part that we read of audit.k8s.io/v1 Event.
type auditEvent struct {
	Verb, UserAgent string
	User            struct{ Username string }
	Impersonated    *struct{ Username string } `json:"impersonatedUser"`
	Object          *struct {
		APIGroup, Resource, Subresource, Namespace, Name string
	} `json:"objectRef"`
	Status struct{ Code int } `json:"responseStatus"`
}

func (e *auditEvent) request() Request {
	r := Request{User: e.User.Username, UserAgent: e.UserAgent, Verb: e.Verb, Code: e.Status.Code}
	if e.Impersonated != nil {
		r.User = e.Impersonated.Username
	}
	if o := e.Object; o != nil {
		r.Group, r.Namespace, r.Name = o.APIGroup, o.Namespace, o.Name
		r.Resource = strings.TrimSuffix(o.Resource+"/"+o.Subresource, "/")
	}
	return r
}
