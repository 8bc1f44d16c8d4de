package api

import "time"

// rule says who may use a route, and how much it reads and lasts.
type rule struct {
	least  Role
	own    bool          // {job} must be his own unless he is an Admin
	body   int64         // bytes that may be sent; 0 = none
	within time.Duration // it is answered; 0 = Patience
	stream bool          // lasts until the client has enough: it has no deadline, but there are few of them at a time
}

// rules is the table of all that anybody may ask for. What it does not name is refused, to everybody.
var rules = map[string]rule{
	"GET /openapi.json": {least: Viewer},
	"GET /metrics":      {least: Viewer},

	"GET /v1/info":            {least: Viewer},
	"GET /v1/nodes":           {least: Viewer},
	"GET /v1/jobs":            {least: Viewer},
	"GET /v1/jobs/{job}":      {least: Viewer},
	"GET /v1/jobs/{job}/why":  {least: Viewer},
	"GET /v1/decisions/{seq}": {least: Viewer, within: Explaining},
	"GET /v1/jobs/{job}/wait": {least: Viewer, stream: true},
	"GET /v1/jobs/{job}/logs": {least: Viewer, stream: true},
	"GET /v1/events":          {least: Viewer, stream: true},
	"GET /v1/log":             {least: Viewer, stream: true},

	"POST /v1/jobs":               {least: User, body: MaxJobs, within: Submitting},
	"POST /v1/jobs/{job}/cancel":  {least: User, own: true},
	"POST /v1/jobs/{job}/pause":   {least: User, own: true},
	"POST /v1/jobs/{job}/resume":  {least: User, own: true},
	"POST /v1/jobs/{job}/requeue": {least: User, own: true},
	"POST /v1/jobs/{job}/resize":  {least: User, own: true, body: MaxBody},

	"POST /v1/nodes/drain":        {least: Admin},
	"POST /v1/nodes/undrain":      {least: Admin},
	"POST /v1/gpus/{gpu}/drain":   {least: Admin},
	"POST /v1/gpus/{gpu}/undrain": {least: Admin},
}
