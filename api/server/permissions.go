package server

import (
	"maps"
	"slices"
	"time"

	"github.com/trainyard/trainyard/api"
)

// rule says who may use a route, and how much it reads and lasts.
type rule struct {
	least  api.Role
	own    bool          // {job} must be his own unless he is an Admin
	body   int64         // bytes that may be sent; 0 = none
	within time.Duration // it is answered; 0 = Patience
	always bool          // it is answered by a process that does not decide at present too
	stream bool          // lasts until the client has enough: it has no deadline, but there are few of them at a time
	few    int           // of it alone; 0 = as many as of others
}

// rules is the table of all that may be asked for. What it does not name is refused to all.
var rules = map[string]rule{
	"GET /openapi.json": {least: api.Viewer, always: true},
	"GET /metrics":      {least: api.Viewer},

	"GET /v1/info":                {least: api.Viewer},
	"GET /v1/nodes":               {least: api.Viewer},
	"GET /v1/price":               {least: api.Viewer},
	"GET /v1/jobs":                {least: api.Viewer},
	"GET /v1/table":               {least: api.Viewer},
	"GET /v1/jobs/{job}":          {least: api.Viewer},
	"GET /v1/jobs/{job}/why":      {least: api.Viewer},
	"GET /v1/history":             {least: api.Viewer, within: api.Submitting},
	"GET /v1/calibration":         {least: api.Viewer, within: api.Submitting},
	"GET /v1/losses":              {least: api.Viewer, within: api.Submitting},
	"GET /v1/users":               {least: api.Viewer, within: api.Submitting},
	"GET /v1/usage":               {least: api.Viewer, within: api.Submitting},
	"GET /v1/series":              {least: api.Viewer, within: api.Submitting},
	"GET /v1/forecast":            {least: api.Viewer, within: api.Submitting},
	"GET /v1/board":               {least: api.Viewer, stream: true},
	"GET /v1/jobs/{job}/attempts": {least: api.Viewer},
	"GET /v1/decisions/{seq}":     {least: api.Viewer, within: api.Explaining},
	"GET /v1/jobs/{job}/wait":     {least: api.Viewer, stream: true},
	"GET /v1/jobs/{job}/logs":     {least: api.Viewer, stream: true},
	"GET /v1/events":              {least: api.Viewer, stream: true},
	"GET /v1/log":                 {least: api.Viewer, stream: true, few: 2},

	"POST /v1/jobs":               {least: api.User, body: api.MaxJobs, within: api.Submitting},
	"POST /v1/commands":           {least: api.User, body: api.MaxJobs, within: api.Submitting},
	"POST /v1/jobs/{job}/cancel":  {least: api.User, own: true},
	"POST /v1/jobs/{job}/pause":   {least: api.User, own: true},
	"POST /v1/jobs/{job}/resume":  {least: api.User, own: true},
	"POST /v1/jobs/{job}/requeue": {least: api.User, own: true},
	"POST /v1/jobs/{job}/resize":  {least: api.User, own: true, body: api.MaxBody},

	"POST /v1/jobs/{job}/signal": {least: api.User, own: true, body: api.MaxBody},
	"POST /v1/jobs/{job}/remedy": {least: api.User, own: true, body: api.MaxBody},

	"POST /v1/whatif":             {least: api.User, body: api.MaxBody},
	"GET /v1/whatif/{id}":         {least: api.User},
	"POST /v1/whatif/{id}/cancel": {least: api.User},

	"POST /v1/jobs/{job}/edit":     {least: api.User, own: true, body: api.MaxBody},
	"POST /v1/jobs/{job}/priority": {least: api.User, own: true, body: api.MaxBody},

	"POST /v1/clean": {least: api.Admin, body: api.MaxBody, within: api.Submitting},

	"POST /v1/nodes/drain":          {least: api.Admin},
	"POST /v1/nodes/undrain":        {least: api.Admin},
	"POST /v1/nodes/{node}/drain":   {least: api.Admin},
	"POST /v1/nodes/{node}/undrain": {least: api.Admin},
	"POST /v1/gpus/{gpu}/drain":     {least: api.Admin},
	"POST /v1/gpus/{gpu}/undrain":   {least: api.Admin},
	"POST /v1/gpus/{gpu}/forget":    {least: api.Admin},
}

// Routes lists what may be asked for: METHOD PATH, with parameters in braces.
func Routes() []string { return slices.Sorted(maps.Keys(rules)) }
