package api

import (
	"fmt"
	"time"
)

// Role is what somebody may do. Roles are ordered: each may do all that a lesser one may.
type Role uint8

// Roles.
const (
	Nobody Role = iota // may do nothing
	Viewer             // may see everything but secrets
	User               // may hand in jobs as himself, and end, pause, resume, requeue and resize his own
	Admin              // may do everything, for everybody
)

var roleWords = [...]string{"nobody", "viewer", "user", "admin"}

// String returns the word of a known role.
func (r Role) String() string { return roleWords[r] }

// parseRole returns the role of a word. Nobody has none to give.
func parseRole(word string) (Role, error) {
	for r := Viewer; r <= Admin; r++ {
		if roleWords[r] == word {
			return r, nil
		}
	}
	return Nobody, fmt.Errorf("role %q, want viewer, user or admin", word)
}

// Who is somebody who asks for something.
type Who struct {
	Name string // whose jobs are his own
	Role Role
}

// rule says who may use a route, and how much it reads and lasts.
type rule struct {
	least  Role
	own    bool          // {job} must be his own unless he is an Admin
	body   int64         // bytes that may be sent; 0 = none
	within time.Duration // it is answered; 0 = patience
	stream bool          // lasts until the client has enough: it has no deadline, but there are few of them at a time
}

// Limits of what is sent to a route.
const (
	maxBody = 1 << 20
	maxJobs = 2 << 20 // of a Submission
)

// rules is the table of all that anybody may ask for. What it does not name is refused, to everybody.
var rules = map[string]rule{
	"GET /openapi.json": {least: Viewer},
	"GET /metrics":      {least: Viewer},

	"GET /v1/info":            {least: Viewer},
	"GET /v1/nodes":           {least: Viewer},
	"GET /v1/jobs":            {least: Viewer},
	"GET /v1/jobs/{job}":      {least: Viewer},
	"GET /v1/jobs/{job}/why":  {least: Viewer},
	"GET /v1/decisions/{seq}": {least: Viewer, within: explaining},
	"GET /v1/jobs/{job}/wait": {least: Viewer, stream: true},
	"GET /v1/jobs/{job}/logs": {least: Viewer, stream: true},
	"GET /v1/events":          {least: Viewer, stream: true},
	"GET /v1/log":             {least: Viewer, stream: true},

	"POST /v1/jobs":               {least: User, body: maxJobs, within: submitting},
	"POST /v1/jobs/{job}/cancel":  {least: User, own: true},
	"POST /v1/jobs/{job}/pause":   {least: User, own: true},
	"POST /v1/jobs/{job}/resume":  {least: User, own: true},
	"POST /v1/jobs/{job}/requeue": {least: User, own: true},
	"POST /v1/jobs/{job}/resize":  {least: User, own: true, body: maxBody},

	"POST /v1/nodes/drain":        {least: Admin},
	"POST /v1/nodes/undrain":      {least: Admin},
	"POST /v1/gpus/{gpu}/drain":   {least: Admin},
	"POST /v1/gpus/{gpu}/undrain": {least: Admin},
}
