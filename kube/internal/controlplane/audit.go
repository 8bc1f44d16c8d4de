package controlplane

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"strings"
	"testing"
	"time"
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

// Writes says whether the request was of a kind that changes something, followed or not.
func (r Request) Writes() bool {
	switch r.Verb {
	case "get", "list", "watch":
		return false
	}
	return r.Resource != ""
}

// Requests returns what clients from outside the control plane asked, in the order of the answers (a watch when it
// ends). The cluster must have been started with Options.Audit.
func (c *Cluster) Requests(t testing.TB) []Request {
	t.Helper()
	if !c.options.Audit {
		t.Fatal("controlplane: Requests of a cluster without Options.Audit")
	}
	log, err := c.auditLog()
	if err != nil {
		t.Fatalf("controlplane: %v", err)
	}
	var requests []Request
	for line := range bytes.Lines(log) {
		var e auditEvent
		if err := json.Unmarshal(line, &e); err != nil {
			t.Fatalf("controlplane: audit.log: %v", err)
		}
		requests = append(requests, e.request())
	}
	return requests
}

// auditLog returns the log at a moment when its last line is whole: the API server may be writing one.
func (c *Cluster) auditLog() ([]byte, error) {
	for end := time.Now().Add(10 * time.Second); ; time.Sleep(time.Millisecond) {
		log, err := os.ReadFile(c.path("audit.log"))
		if err != nil || len(log) == 0 || log[len(log)-1] == '\n' {
			return log, err
		}
		if time.Now().After(end) {
			return nil, errors.New("audit.log: its last line stays half written")
		}
	}
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
