package api

import "encoding/json"

// History is what happened so far, packed as reports hold it: see docs/guide/reports.md.
type History struct {
	Schema string          `json:"schema"` // trainyard.history/v1
	Seq    uint64          `json:"seq"`    // the last event that this has, at least
	Origin string          `json:"origin"` // when its times start
	Now    float64         `json:"now_s"`  // seconds since then
	Head   json.RawMessage `json:"head"`   // trainyard.report/v1
	Jobs   string          `json:"jobs"`   // columns
	System string          `json:"system"` // columns
}

// Users is what each user got in a span of time.
type Users struct {
	Schema string        `json:"schema" doc:"trainyard.users/v1"`
	From   string        `json:"from" doc:"RFC 3339; empty = no job was submitted yet"`
	To     string        `json:"to"`
	Hours  float64       `json:"gpu_hours" doc:"that attempts held, in all"`
	Users  []UserFigures `json:"users" doc:"who held most first"`
}

// UserFigures are those of one user. Attempts count as far as they lie in the span; what happened to jobs counts where
// it happened in the span.
type UserFigures struct {
	User      string  `json:"user" doc:"empty = of jobs that name none"`
	Jobs      int     `json:"jobs" doc:"submitted"`
	Finished  int     `json:"finished"`
	Failed    int     `json:"failed"`
	Hours     float64 `json:"gpu_hours" doc:"that attempts held; on a GPU that is shared each counts whole"`
	Share     float64 `json:"share" doc:"of the GPU-hours of all, 0 to 1"`
	Wait      float64 `json:"mean_wait_s" doc:"without GPUs, over the jobs that finished; 0 of none"`
	Preempted int     `json:"preempted" doc:"attempts that ended for others"`
	Lost      float64 `json:"lost_gpu_hours" doc:"whose work was lost when their attempts ended"`
	Energy    float64 `json:"energy_kwh,omitempty" doc:"of the jobs that finished; nothing = not measured"`
}

// UsageWords are what the rows of Usage may be by.
var UsageWords = []string{"day", "user", "group", "model", "job"}

// Usage is what jobs used in a span of time, in rows. Useful, redone, coming up and stopping sum to what attempts held;
// on a GPU that attempts share one of them counts.
type Usage struct {
	Schema string     `json:"schema" doc:"trainyard.usage/v1"`
	From   string     `json:"from" doc:"RFC 3339; empty = no job was submitted yet"`
	To     string     `json:"to"`
	By     []string   `json:"by" doc:"what the jobs of a row have in common"`
	Energy string     `json:"energy,omitempty" doc:"measured or modelled; nothing = not known"`
	Rows   []UsageRow `json:"rows" doc:"by day, then who held most first"`
}

// UsageRow is what jobs used that have a day, a user, a group, a model or a number in common. What it is not by is
// empty.
type UsageRow struct {
	Day      string             `json:"day,omitempty" doc:"YYYY-MM-DD"`
	User     string             `json:"user,omitempty"`
	Group    string             `json:"group,omitempty"`
	Model    string             `json:"model,omitempty"`
	Job      *int               `json:"job,omitempty" doc:"its number"`
	Name     string             `json:"name,omitempty" doc:"of the job"`
	Jobs     int                `json:"jobs" doc:"that held GPUs or waited"`
	Held     float64            `json:"held_gpu_hours" doc:"useful, redone, coming_up and stopping sum to it"`
	Useful   float64            `json:"useful"`
	Redone   float64            `json:"redone" doc:"in which work was done that was lost"`
	ComingUp float64            `json:"coming_up"`
	Stopping float64            `json:"stopping"`
	RedoneBy map[string]float64 `json:"redone_by" doc:"cause: stopped-for-others, stopped-by-user, failed, node-lost"`
	Wait     float64            `json:"wait_hours" doc:"without GPUs, of jobs that were not done"`
	KWh      float64            `json:"kwh,omitempty" doc:"that jobs answer for, by what each held; nothing = unknown"`
	Cost     float64            `json:"cost,omitempty" doc:"by the prices that were asked for"`
}

// Series is a figure over time.
type Series struct {
	Schema string   `json:"schema" doc:"trainyard.series/v1"`
	Name   string   `json:"name"`
	Unit   string   `json:"unit" doc:"of its values: GPUs, jobs, W, kWh, dollars an hour or dollars"`
	Known  bool     `json:"known" doc:"false: it is not measured here, and has no points"`
	From   string   `json:"from" doc:"RFC 3339; empty = no job was submitted yet"`
	To     string   `json:"to"`
	Width  float64  `json:"width_s" doc:"seconds of a point; the last may be shorter"`
	Points []Bucket `json:"points"`
}

// Bucket is a figure in a span of time. Of a figure that is known in the mean alone low and high are the mean.
type Bucket struct {
	At   string  `json:"at" doc:"when it starts, RFC 3339"`
	Low  float64 `json:"min"`
	Mean float64 `json:"mean"`
	High float64 `json:"max"`
}

// Outlook is a look into the future of all jobs that are not done.
type Outlook struct {
	Schema string     `json:"schema" doc:"trainyard.forecast/v1"`
	Seq    uint64     `json:"seq" doc:"the last event that it has, at least"`
	At     string     `json:"at" doc:"of which moment it is: of more than 200 jobs it may be an earlier one"`
	Known  bool       `json:"known" doc:"false: it was not to be had in time"`
	Draws  int        `json:"draws" doc:"simulated futures behind it"`
	Rests  string     `json:"rests_on,omitempty" doc:"what it rests on"`
	Until  string     `json:"until,omitempty" doc:"how far it looks"`
	Jobs   []Expected `json:"jobs" doc:"not done, by number"`
	Busy   []Band     `json:"busy" doc:"GPUs that these jobs hold, from their start to their end"`
	Queue  []Band     `json:"queue" doc:"of these jobs, how many wait for their start"`
}

// Expected is when a job is expected to start and end.
type Expected struct {
	ID    int     `json:"id"`
	Ref   string  `json:"ref"`
	Name  string  `json:"name"`
	State string  `json:"state"`
	GPUs  int     `json:"gpus" doc:"holds or wants"`
	Start *Within `json:"start,omitempty" doc:"nothing of one that runs"`
	End   *Within `json:"end,omitempty"`
}

// Band is a figure at a time to come: it lies between low and high in 8 of 10 simulated futures.
type Band struct {
	At     string  `json:"at"`
	Low    float64 `json:"low"`
	Median float64 `json:"median"`
	High   float64 `json:"high"`
}
