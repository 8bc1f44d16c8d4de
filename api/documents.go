package api

// Job is how one job stands.
type Job struct {
	ID       int      `json:"id" doc:"number, by which it is asked for"`
	Name     string   `json:"name"`
	User     string   `json:"user,omitempty" doc:"who submitted it"`
	Group    string   `json:"group,omitempty"`
	Model    string   `json:"model,omitempty"`
	Class    string   `json:"class,omitempty"`
	State    string   `json:"state" doc:"held, waiting, starting, running, stopping or done"`
	Outcome  string   `json:"outcome,omitempty" doc:"once done: finished, failed, cancelled or rejected"`
	ExitCode int      `json:"exit_code,omitempty" doc:"of the last attempt that ended"`
	Text     string   `json:"text,omitempty" doc:"what was said of its end"`
	Why      string   `json:"why,omitempty" doc:"in a sentence, why it does not run, is kept at its width, is on GPUs that it does not hold, or how it failed"`
	Failure  *Failure `json:"failure,omitempty" doc:"how the last attempt that ended failed, if it did"`
	Priority int      `json:"priority,omitempty"`
	Min      int      `json:"gpus_min" doc:"fewest GPUs"`
	Want     int      `json:"gpus_want" doc:"GPUs asked for"`
	Max      int      `json:"gpus_max" doc:"most GPUs"`
	GPUs     []string `json:"gpus" doc:"names of the GPUs or slots that it holds"`
	Batch    int      `json:"batch,omitempty" doc:"global batch size of the attempt, where the system chooses it"`
	Shares   []int    `json:"shares_with,omitempty" doc:"jobs on the same GPUs"`
	Array    *Task    `json:"array,omitempty" doc:"where it is a task of an array"`
	Keys     *Keys    `json:"keys,omitempty" doc:"other keys that an edit may change. Not in lists"`
	// Notices are by the ways of notify.
	Notices []NoticeState `json:"notices,omitempty" doc:"what was sent last in each way of its notify, or of its array's. Not in lists"`
	Paths   *Paths        `json:"paths,omitempty" doc:"what it runs, where, and what it writes to. Not in lists"`

	Attempt     int     `json:"attempt" doc:"number of attempts started"`
	Preemptions int     `json:"preemptions"`
	Resizes     int     `json:"resizes"`
	Submitted   string  `json:"submitted" doc:"RFC 3339"`
	Started     string  `json:"started,omitempty" doc:"first start"`
	Ended       string  `json:"ended,omitempty"`
	QueueSec    float64 `json:"queue_s" doc:"seconds without GPUs"`
	RunSec      float64 `json:"run_s" doc:"seconds with GPUs"`
	GPUSeconds  float64 `json:"gpu_seconds" doc:"attained service"`
	EnergyJ     float64 `json:"energy_j,omitempty"`
	// InUseSec and PeakGB are of the job alone, also where it shares its GPUs.
	InUseSec float64 `json:"gpu_seconds_in_use,omitempty" doc:"of gpu_seconds, those in which it used its GPUs, as measured; jobs that share a GPU have parts of its use"`
	PeakGB   float64 `json:"gpu_memory_peak_gb,omitempty" doc:"most memory that it had on one GPU, as measured"`

	Owner string `json:"owner,omitempty" doc:"whose it is: a user, or on a cluster a namespace"`
	Ref   string `json:"ref,omitempty" doc:"names it, and no other, in a request: its number, or on a cluster NAMESPACE.NAME"`

	Step  int64   `json:"step,omitempty" doc:"training steps done, as it says"`
	Total int64   `json:"total,omitempty" doc:"steps in all, as it says"`
	Speed float64 `json:"speed,omitempty" doc:"progress per time, 1 = on the GPUs asked for, alone"`
	// Worth is not in the table.
	Worth float64 `json:"worth,omitempty" doc:"of each GPU that it has, or asks for if it has none, under a system that puts a price on them; 1e308 = any price"`

	Protected bool    `json:"protected,omitempty" doc:"it is not stopped, moved or resized for others"`
	Saves     string  `json:"saves,omitempty" doc:"what shows that it keeps its work: declared, seen, proven; against it: saves-not, resumes-not; nothing = neither"`
	LostSec   float64 `json:"lost_s,omitempty" doc:"work that came to nothing by stops for others, in seconds on the GPUs asked for"`
	LostStops int     `json:"stops_for_others,omitempty" doc:"how many these were"`
	Start     *Within `json:"start,omitempty" doc:"next start, if that was asked for and is not over"`
	End       *Within `json:"end,omitempty" doc:"where that was asked for"`
	// TimeLimit and those below it are keys that lists have too.
	TimeLimit   string  `json:"time_limit,omitempty" doc:"after which it is ended, as in 1h30m0s; nothing = none"`
	Preemptible string  `json:"preemptible,omitempty" doc:"whether it may be stopped for others: true or false; nothing = after-save"`
	CPUs        float64 `json:"cpus,omitempty" doc:"of each GPU; nothing = no demand"`
	MemoryGB    float64 `json:"memory_gb,omitempty" doc:"of the host, of each GPU; nothing = no demand"`
	// UnsavedSec is what a failure of the machine would cost.
	UnsavedSec float64 `json:"unsaved_s,omitempty" doc:"seconds of work, on the GPUs asked for, in no checkpoint, where known"`
}

// Task says which task of which array a job is.
type Task struct {
	First  int `json:"first" doc:"job that is the first task: the array goes by its number"`
	Index  int `json:"index" doc:"the submitter's number of the task: FIRST_INDEX names it"`
	Size   int `json:"size" doc:"tasks in all, which have the numbers from first on"`
	AtOnce int `json:"at_once,omitempty" doc:"as many may run at once; nothing = all"`
}

// Failure is how an attempt failed.
type Failure struct {
	Attempt int      `json:"attempt" doc:"its number; 0 = it could not be started"`
	Text    string   `json:"text" doc:"exit code or what kept it from starting, in words"`
	Signal  string   `json:"signal,omitempty" doc:"that ended it, such as SIGKILL, as far as its exit code says"`
	Retries int      `json:"retries" doc:"failures after which it is tried again"`
	Left    int      `json:"retries_left" doc:"0 once it is done"`
	Tail    []string `json:"tail,omitempty" doc:"the last lines of what it wrote, as written: not safe for a terminal. Not in lists"`
}

// Jobs is a list of jobs.
type Jobs struct {
	Schema string `json:"schema" doc:"trainyard.jobs/v1"`
	Unit   string `json:"unit" doc:"what jobs hold: GPU or slot"`
	Now    string `json:"now"`
	System string `json:"system"`
	Total  int    `json:"total" doc:"jobs that fit what was asked for, listed or not"`
	Jobs   []Job  `json:"jobs" doc:"by number"`
	AsOf   string `json:"foreseen_at,omitempty" doc:"of which moment starts and ends to come are, if not of now: of more than 200 jobs that are not done they are looked for a twentieth of the time"`
}

// GPU is how one GPU or slot stands.
type GPU struct {
	Name     string  `json:"name"`
	Type     string  `json:"type,omitempty"`
	State    string  `json:"state" doc:"in-use, foreign, stuck, missing, quarantined, drained, forgotten"`
	Why      string  `json:"why,omitempty"`
	Jobs     []int   `json:"jobs"`
	MemoryMB float64 `json:"memory_mb,omitempty" doc:"in use"`
	OfMB     float64 `json:"of_mb,omitempty" doc:"in all"`
	Use      float64 `json:"use,omitempty" doc:"0 to 1"`
	Watts    float64 `json:"watts,omitempty"`
	HeldIdle bool    `json:"held_idle,omitempty" doc:"memory is held and nothing done with it"`
	By       string  `json:"by,omitempty" doc:"processes on it"`
	Node     string  `json:"node,omitempty" doc:"that it is in, where there are several"`
}

// Node is how one node stands.
type Node struct {
	Name  string   `json:"name"`
	Rack  int      `json:"rack,omitempty" doc:"nodes of a rack are near each other; nothing = unknown"`
	Type  string   `json:"type,omitempty" doc:"of its GPUs"`
	State string   `json:"state" doc:"up, asleep, draining, down or gone"`
	GPUs  []string `json:"gpus" doc:"names of its GPUs or slots, in the order of the list of all"`
}

// Nodes is what jobs may run on.
type Nodes struct {
	Schema  string `json:"schema" doc:"trainyard.nodes/v1"`
	Node    string `json:"node" doc:"the machine; on a cluster empty, see nodes"`
	Unit    string `json:"unit" doc:"GPU or slot"`
	Drained bool   `json:"drained" doc:"nothing new starts"`
	GPUs    []GPU  `json:"gpus" doc:"of all nodes"`
	Nodes   []Node `json:"nodes"`
}

// Submission are jobs to be submitted.
type Submission struct {
	File string `json:"file" doc:"a job file, in YAML"`
	Name string `json:"name,omitempty" doc:"of that file, for what is said of mistakes in it"`
	Dir  string `json:"dir,omitempty" doc:"absolute: what dir of jobs is relative to; wanted by a machine"`
	// Env are variables of the submitter that jobs inherit, of those allowed.
	Env map[string]string `json:"env,omitempty"`
	// Inherit is the environment of the submitter's shell, for jobs with inherit_env.
	Inherit map[string]string `json:"inherit,omitempty" doc:"of jobs with inherit_env: kept apart from the log, and in no answer"`
	// Scripts are the texts of scripts, by path, of jobs with snapshot: script.
	Scripts map[string]string `json:"scripts,omitempty" doc:"of jobs with snapshot: by absolute path; those not here are read where jobs run"`
	Paused  bool              `json:"paused,omitempty" doc:"each is held from the start until it is resumed, as if it were paused as it is submitted"`
	Dry     bool              `json:"dry,omitempty" doc:"only say what would become of them"`
}

// Submitted are the jobs that were submitted, durably, or would be.
type Submitted struct {
	Schema string     `json:"schema" doc:"trainyard.submitted/v1"`
	Dry    bool       `json:"dry,omitempty"`
	Jobs   []Estimate `json:"jobs"`
	Rests  string     `json:"rests_on,omitempty" doc:"what the estimates rest on; nothing if there are none"`
}

// Estimate is when and where a job is expected to run.
type Estimate struct {
	ID    int      `json:"id" doc:"-1 = none: it was not submitted or, with a ref, has no number yet"`
	Ref   string   `json:"ref,omitempty" doc:"names it, and no other, in a request, also while it has no number"`
	Name  string   `json:"name"`
	Older *int     `json:"older,omitempty" doc:"number of the latest job before it that has its name"`
	Start *Within  `json:"start,omitempty" doc:"nothing if nothing is known"`
	End   *Within  `json:"end,omitempty"`
	Notes []string `json:"notes,omitempty" doc:"what its submitter may not expect of this system, of it"`
}

// Within is an interval of time that holds in 8 of 10 cases, and its middle.
type Within struct {
	Known  bool   `json:"known" doc:"false: there is no idea yet, and no time"`
	Alone  bool   `json:"alone,omitempty" doc:"it holds if no one else submits a job"`
	Low    string `json:"low" doc:"RFC 3339; empty = not to be foreseen"`
	Median string `json:"median"`
	High   string `json:"high"`
}

// Resize is another width for a job.
type Resize struct {
	Min  int `json:"gpus_min,omitempty" maximum:"2147483647"`
	Want int `json:"gpus_want,omitempty" maximum:"2147483647"`
	Max  int `json:"gpus_max,omitempty" maximum:"2147483647"`
}

// Edit is how a job is to be from now on.
type Edit struct {
	Keys string `json:"keys" doc:"YAML or JSON: a mapping of keys as a job of a job file has them; others stay"`
	Dir  string `json:"dir,omitempty" doc:"absolute path: relative ones are of it; empty = the folder of the job"`
}

// Edited is how a job is after an edit, and from when what was changed holds.
type Edited struct {
	Schema string   `json:"schema" doc:"trainyard.edited/v1"`
	Job    Job      `json:"job"`
	Now    []string `json:"now" doc:"keys that hold at once"`
	Next   []string `json:"next" doc:"keys that hold of the next attempt: one has been started"`
	Notes  []string `json:"notes,omitempty" doc:"what its user may not expect of this system, of the job"`
}

// Commanding names jobs with each of which the same is to be done.
type Commanding struct {
	Command string   `json:"command" enum:"cancel,pause,resume,requeue"`
	Jobs    []string `json:"jobs" minItems:"1" maxItems:"100000" doc:"numbers or names, as in paths"`
}

// Commanded says what came of it for each job. On a machine what was done to them is one batch of the log: a crash
// leaves it done to all of them or to none.
type Commanded struct {
	Schema string         `json:"schema" doc:"trainyard.commanded/v1"`
	Jobs   []CommandedJob `json:"jobs" doc:"in the order of the request"`
}

// CommandedJob is how one of them stands, or why nothing was done to it.
type CommandedJob struct {
	Job     *Job     `json:"job,omitempty"`
	Problem *Problem `json:"problem,omitempty"`
}

// Priority is another priority of a job: a number, or one by which it is before or behind another job.
type Priority struct {
	Priority *int   `json:"priority,omitempty" minimum:"-2147483648" maximum:"2147483647"`
	Above    string `json:"above,omitempty" doc:"a job, by number or name"`
	Below    string `json:"below,omitempty" doc:"a job, by number or name"`
}

// Signal is a signal for processes of a job that runs.
type Signal struct {
	Name string `json:"signal" doc:"its name, such as USR1"`
	To   string `json:"to,omitempty" doc:"main: the process that was started; all; empty: all but its batch script, that is those that srun started"`
}

// Why is why a job stands as it does, and what would change that.
type Why struct {
	Schema   string     `json:"schema" doc:"trainyard.why/v1"`
	Job      Job        `json:"job"`
	Unit     string     `json:"unit" doc:"what jobs hold: GPU or slot"`
	Sentence string     `json:"sentence" doc:"the binding constraint, with its numbers"`
	Code     string     `json:"code"`
	Ahead    []Ahead    `json:"ahead" doc:"jobs before it in the order, best first: those that wait, the first 20 of them"`
	AheadAll int        `json:"ahead_total" doc:"how many there are"`
	AheadGPU int        `json:"ahead_gpus" doc:"GPUs that they want in all"`
	AheadMin int        `json:"ahead_gpus_min" doc:"fewest that they allow in all"`
	AheadMax int        `json:"ahead_gpus_max" doc:"most that they allow in all"`
	Start    *Within    `json:"start,omitempty" doc:"next start; nothing if it runs, is done, or nothing is known"`
	End      *Within    `json:"end,omitempty"`
	Draws    int        `json:"draws" doc:"simulated futures behind start and end"`
	Rests    string     `json:"rests_on,omitempty" doc:"what start and end rest on; nothing if there are none"`
	Soon     string     `json:"soon,omitempty" doc:"when the system starts it by itself if no other job comes"`
	Remedies []Remedy   `json:"remedies" doc:"changes that would start it now, each tried on a copy"`
	Tried    int        `json:"tried" doc:"changes that were tried"`
	Hurried  bool       `json:"hurried,omitempty" doc:"the time was over before all were tried"`
	Figures  []Figure   `json:"figures" doc:"what the system goes by"`
	Bid      *Bid       `json:"bid,omitempty" doc:"what GPUs are worth, and are worth to it, under a system that puts a price on them"`
	Last     *Displaced `json:"preempted,omitempty"`
	Stops    string     `json:"may_be_stopped,omitempty" doc:"whether it may be stopped for others, by what, and what is lost then; nothing where no job is"`
	StakeSec float64    `json:"at_stake_s,omitempty" doc:"time of its run that is lost if it is stopped now, in seconds"`
	Remark   string     `json:"remark,omitempty" doc:"on how it is watched: a progress pattern that was dropped"`
	Command  []string   `json:"command,omitempty" doc:"of the last attempt, as it was run: with its variables replaced and what its launcher was given"`
}

// Ahead is a job before another one.
type Ahead struct {
	ID    int    `json:"id"`
	Name  string `json:"name"`
	GPUs  int    `json:"gpus" doc:"holds or wants"`
	Held  int    `json:"gpus_held" doc:"holds, or is about to"`
	Min   int    `json:"gpus_min"`
	Max   int    `json:"gpus_max"`
	State string `json:"state"`
	Array *Task  `json:"array,omitempty" doc:"where it is a task of an array"`
}

// Remedy is a change that would start a job now.
type Remedy struct {
	ID      string   `json:"id" doc:"names it among those of its job: CHANGE:VALUE"`
	Text    string   `json:"text"`
	Change  string   `json:"change" doc:"what would change of the job, gpus, types, wall_time, share, priority, or of the machine, undrain, or of another job, requeue"`
	Value   string   `json:"value" doc:"what it would be"`
	Command string   `json:"command,omitempty" doc:"that does it; empty = it is to be submitted again"`
	Resize  *Resize  `json:"resize,omitempty"`
	GPUs    []string `json:"gpus" doc:"that it would be given"`
	Takes   []int    `json:"displaces" doc:"jobs that would have to go for it"`
}

// Figure is one of the numbers a system goes by.
type Figure struct {
	Name  string  `json:"name"`
	Value float64 `json:"value"`
	Unit  string  `json:"unit,omitempty"`
	Text  string  `json:"text,omitempty"`
}

// Displaced is how a job lost its GPUs.
type Displaced struct {
	By      int     `json:"by" doc:"the job that took them; -1 = none is named"`
	Name    string  `json:"name"`
	Rule    string  `json:"rule" doc:"word of the reason in the log"`
	Text    string  `json:"text" doc:"both in words"`
	At      string  `json:"at"`
	LostSec float64 `json:"lost_s" doc:"seconds of work that were lost"`
	Back    string  `json:"back,omitempty" doc:"when it was up again; nothing = not yet, see start"`
}

// Decision is one decision of the log, decided again.
type Decision struct {
	Schema   string   `json:"schema" doc:"trainyard.decision/v1"`
	Seq      uint64   `json:"seq"`
	Event    string   `json:"event" doc:"decided, refused, rejected or noted"`
	At       string   `json:"at"`
	System   string   `json:"system"`
	Unit     string   `json:"unit" doc:"what jobs hold: GPU or slot"`
	Job      int      `json:"job"`
	Name     string   `json:"name"`
	Sentence string   `json:"sentence"`
	Was      []string `json:"was" doc:"GPUs that it was to hold before"`
	GPUs     []string `json:"gpus" doc:"GPUs that it is to hold from then on"`
	Reason   Reason   `json:"reason"`
	Free     []string `json:"free" doc:"GPUs that were free"`
	Waited   []Ahead  `json:"waited" doc:"jobs that waited, in the order in which they were looked at where there is one"`
	Ordered  bool     `json:"ordered" doc:"there is such an order"`
	Chosen   []Chosen `json:"chosen" doc:"what the system wanted of the instant"`
	Refused  []Chosen `json:"refused" doc:"what of that was refused, and why"`
	Figures  []Figure `json:"figures" doc:"what the system went by, of this job"`
}

// Reason is why something was decided, as the log has it. What a and b are depends on the code.
type Reason struct {
	Code string  `json:"code"`
	Job  int     `json:"job" doc:"the other job, where the code has to do with one"`
	A    float64 `json:"a"`
	B    float64 `json:"b"`
	Text string  `json:"text" doc:"in words"`
}

// Chosen is a target of a job.
type Chosen struct {
	Job    int      `json:"job"`
	Name   string   `json:"name"`
	GPUs   []string `json:"gpus" doc:"none = all are taken away"`
	Reason Reason   `json:"reason"`
	Text   string   `json:"text,omitempty"`
}

// Kinds of hosts.
const (
	Machine = "machine"
	Cluster = "cluster"
)

// Info is who answers.
type Info struct {
	Schema   string            `json:"schema" doc:"trainyard.info/v1"`
	Version  string            `json:"version"`
	Host     string            `json:"host" doc:"what it decides for: machine or cluster"`
	Can      []string          `json:"capabilities" doc:"operations that are served, by their id in the description"`
	State    string            `json:"state,omitempty" doc:"folder of a machine"`
	System   string            `json:"system"`
	Settings map[string]string `json:"settings"`
	PID      int               `json:"pid,omitempty" doc:"of a machine"`
	Leader   string            `json:"leader,omitempty" doc:"of a cluster: the replica that decides, as its lease names it"`
	Since    string            `json:"since"`
	Problems []string          `json:"problems" doc:"what doctor would report"`
	You      string            `json:"you,omitempty" doc:"who asks"`
	Role     string            `json:"role,omitempty" doc:"what he may do: viewer, user or admin"`
}

// Output is a piece of what a job wrote. Pieces end anywhere, but not within a character.
type Output struct {
	Attempt int    `json:"attempt"`
	Rank    int    `json:"rank,omitempty" doc:"that wrote it"`
	Text    string `json:"text" doc:"as it was written; bytes that are no UTF-8 are U+FFFD. Not safe for a terminal"`
}

// OutputEnd says that an output was sent to its end: all that there is, or, of one that is followed, all that there
// will be.
type OutputEnd struct {
	Attempt  int    `json:"attempt"`
	State    string `json:"state" doc:"of the job"`
	Outcome  string `json:"outcome,omitempty"`
	ExitCode int    `json:"exit_code,omitempty"`
}
