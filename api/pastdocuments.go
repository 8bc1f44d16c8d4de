package api

// Attempt is one attempt of a job. Times are RFC 3339; nothing where it did not come to that.
type Attempt struct {
	Number  int      `json:"attempt" doc:"from 1"`
	Ordered string   `json:"ordered" doc:"its GPUs are held from here on"`
	Up      string   `json:"up,omitempty" doc:"all its processes ran"`
	Work    string   `json:"work_from,omitempty" doc:"it worked from here on"`
	Stopped string   `json:"stopped,omitempty" doc:"it was ordered to stop"`
	Ended   string   `json:"ended,omitempty" doc:"its GPUs were free again"`
	GPUs    []string `json:"gpus"`
	Batch   int      `json:"batch,omitempty"`
	Given   uint64   `json:"given,omitempty" doc:"number of the event by which its GPUs were decided: see decisions"`
	Outcome string   `json:"outcome,omitempty"`
	Reason  string   `json:"reason" doc:"of the decision that took its GPUs away; of the one that gave them while it has them"`
	By      *int     `json:"by,omitempty" doc:"the job that it had to do with"`
	Lost    float64  `json:"lost_s" doc:"seconds in which it did what was lost"`
	Marks   []string `json:"marks" doc:"resized, moved, shared, no-start"`
}

// Attempts are those of a job.
type Attempts struct {
	Schema   string    `json:"schema" doc:"trainyard.attempts/v1"`
	Job      int       `json:"job"`
	Attempts []Attempt `json:"attempts"`
}

// Losses says in which class every GPU was, from the first arrival to the last event about a job. The classes sum to
// all GPU-hours.
type Losses struct {
	Schema string             `json:"schema" doc:"trainyard.losses/v1"`
	From   string             `json:"from"`
	To     string             `json:"to"`
	Hours  float64            `json:"gpu_hours"`
	By     map[string]float64 `json:"by_class" doc:"GPU-hours by class"`
	Users  []UserHours        `json:"users" doc:"who had most first"`
}

// UserHours are the GPU-hours of a user's attempts.
type UserHours struct {
	User     string  `json:"user"`
	Useful   float64 `json:"useful"`
	Redone   float64 `json:"redone"`
	ComingUp float64 `json:"coming_up"`
	Stopping float64 `json:"stopping"`
}

// Board is how all jobs stand that are not done, and the last 200 that are, or what has changed of that.
type Board struct {
	Schema string `json:"schema" doc:"trainyard.board/v1"`
	Seq    uint64 `json:"seq" doc:"the last event that this has"`
	Now    string `json:"now"`
	Unit   string `json:"unit"`
	System string `json:"system"`
	Jobs   []Row  `json:"jobs,omitempty" doc:"by number; of a delta those that changed"`
	Gone   []int  `json:"gone,omitempty" doc:"jobs that are no longer shown"`
	GPUs   []GPU  `json:"gpus,omitempty" doc:"all of them; of a delta nothing, where none changed"`
	Nodes  []Node `json:"nodes,omitempty" doc:"of a delta nothing, where none changed"`
	Tiles  Tiles  `json:"tiles"`
}

// Row is a job of a board: what changes by events alone.
type Row struct {
	ID          int      `json:"id"`
	Ref         string   `json:"ref"`
	Name        string   `json:"name"`
	User        string   `json:"user,omitempty"`
	State       string   `json:"state"`
	Outcome     string   `json:"outcome,omitempty"`
	Priority    int      `json:"priority,omitempty"`
	Min         int      `json:"gpus_min"`
	Want        int      `json:"gpus_want"`
	Max         int      `json:"gpus_max"`
	GPUs        []string `json:"gpus"`
	Attempt     int      `json:"attempt"`
	Preemptions int      `json:"preemptions"`
	Submitted   string   `json:"submitted"`
	Started     string   `json:"started,omitempty"`
	Ended       string   `json:"ended,omitempty"`
}

// Tiles are the figures of a board.
type Tiles struct {
	GPUs    int     `json:"gpus" doc:"that are there"`
	Busy    int     `json:"busy" doc:"that jobs hold"`
	Running int     `json:"running" doc:"jobs that hold some"`
	Waiting int     `json:"waiting" doc:"jobs that wait"`
	Asked   int     `json:"waiting_gpus" doc:"that they ask for"`
	Watts   float64 `json:"watts,omitempty" doc:"drawn by GPUs; nothing = unknown"`
}
