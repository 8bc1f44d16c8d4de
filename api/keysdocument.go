package api

// Keys are keys of a job that an edit may change, as job files have them: those that are set. Times are as in 1h30m0s.
type Keys struct {
	TimeLimit   *TimeLimit `json:"time_limit,omitempty" doc:"after which it is ended"`
	WallTime    string     `json:"wall_time,omitempty" doc:"how long it takes, as its user estimates, where that is not its time limit"`
	Grace       string     `json:"grace,omitempty" doc:"from the signal that asks it to save to its end"`
	Retries     int        `json:"retries,omitempty" doc:"how often it is tried again, where retry does not say more"`
	Retry       *Retries   `json:"retry,omitempty"`
	Notify      []Notify   `json:"notify,omitempty" doc:"in which ways its user hears of it"`
	GPUTypes    []string   `json:"gpu_type,omitempty" doc:"parts of the names of the GPUs that will do; nothing = any will"`
	GPUMemory   float64    `json:"gpu_memory_gb,omitempty" doc:"that each GPU has at least"`
	Snapshot    string     `json:"snapshot,omitempty" doc:"of which commit of git it runs in a copy, and whether there were changes"`
	Preemptible string     `json:"preemptible,omitempty" doc:"whether it may be stopped for others: true or false; nothing = after-save"`
}

// Paths are where a job runs and what it writes to: absolute, but for a program that is looked for in PATH; and how
// many tasks srun starts in it.
type Paths struct {
	Dir     string `json:"dir"`
	Program string `json:"program,omitempty" doc:"its script, else its program; nothing = words for a shell"`
	Output  string `json:"output,omitempty" doc:"file of its user; nothing = none"`
	Error   string `json:"error,omitempty" doc:"the same, for standard error"`
	Tasks   int    `json:"tasks,omitempty" doc:"of srun in it, where that was asked for"`
	// Checkpoint is where it saves.
	Checkpoint string `json:"checkpoint,omitempty" doc:"folder of its user in which it saves; nothing = one of its own"`
}

// TimeLimit is how long a job may run.
type TimeLimit struct {
	Max  string `json:"max"`
	Warn string `json:"warn,omitempty" doc:"how long before that it is warned; nothing = its grace"`
	Each bool   `json:"each,omitempty" doc:"of each attempt; else of all together"`
}

// Retries is how often a job is tried again, after which rest, and after which ends.
type Retries struct {
	Max     int      `json:"max"`
	Backoff string   `json:"backoff,omitempty"`
	On      []string `json:"on,omitempty" doc:"ends such as exit:75; nothing = all of its own failures"`
}

// NoticeState says what was sent last in one way of notify.
type NoticeState struct {
	Way    string     `json:"way" doc:"desktop, mail, webhook or run"`
	Sent   *NoticeTry `json:"sent,omitempty" doc:"the last that was; nothing = none was"`
	Failed *NoticeTry `json:"failed,omitempty" doc:"the last that could not be"`
}

// NoticeTry is a notice that was sent, or could not be.
type NoticeTry struct {
	Job     int    `json:"job" doc:"that it was about"`
	Outcome string `json:"outcome" doc:"what it said of it: failed, finished, preempted, timeout or idle"`
	At      string `json:"at" doc:"RFC 3339"`
	Why     string `json:"why,omitempty" doc:"it could not be sent; to its user and admins alone"`
}

// Notify is one way in which the user of a job hears of it: one of desktop, mail, webhook and run is set, for its user
// and admins; others see on alone.
type Notify struct {
	On      []string `json:"on,omitempty" doc:"occasions; nothing = failed and finished"`
	Desktop bool     `json:"desktop,omitempty"`
	Mail    string   `json:"mail,omitempty" doc:"address"`
	Webhook *Webhook `json:"webhook,omitempty"`
	Run     string   `json:"run,omitempty" doc:"path of a program"`
}

// Webhook is where the address of a webhook stands.
type Webhook struct {
	File string `json:"from_file"`
}
