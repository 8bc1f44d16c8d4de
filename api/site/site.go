// Package site is what a server of the API needs of the world that its host decides for: one machine, or a cluster. A
// host decides alike in both; who asks, what a submission becomes, where output lies and what is seen of devices
// differ. It imports the contract and the vocabulary of the core alone, so that a Site links no server and a server no
// Site.
package site

import (
	"context"
	"net/http"
	"time"

	"github.com/trainyard/trainyard/api"
	"github.com/trainyard/trainyard/sched"
)

// Site is one world. Its methods may be called by any goroutine at any time. Errors that it returns wrap those of
// package api or of its host; other errors are faults.
type Site interface {
	Door
	Names
	Works
	Outputs

	// Describe fills in what info reports of this world: state, process, problems and the like.
	Describe(*api.Info)
	// Ready returns why this process cannot answer about jobs at present, such as api.ErrNotLeading; nil = it can.
	Ready() error
	// Missing reports that an operation is not served here, and what to use instead. Operations are named by their id
	// in the description, as in "events".
	Missing(operation string) (instead string, missing bool)
	// Measure adds what is seen of devices to their documents, which are those of all GPUs, by number.
	Measure([]api.GPU)
	// Redact returns a line of the log without what only the job may see. It does not change the line that it is given.
	Redact(line []byte) []byte
}

// Door says who asks and what he may do.
type Door interface {
	// Known reports whether this server goes by the name under which a request was sent. Others are refused: a page in
	// a browser may have made them.
	Known(r *http.Request, name string) bool
	// Identify says who asks, and how to ask again while a stream lasts; a Who without a role is refused.
	Identify(r *http.Request) (who api.Who, again func() bool)
	// Hint says to someone who is not identified how to be.
	Hint(r *http.Request) string
	// May refuses, with an error, what the one who asks may not do. It is asked before the job of a request is looked
	// for, with Right.Job None, and again once it was found.
	May(ctx context.Context, who api.Who, right Right) error
}

// Right is what a request takes.
type Right struct {
	Operation string   // by its id in the description: jobs, cancel, drain
	Least     api.Role // on a host that goes by roles
	Own       bool     // the job must be his own, unless he is an Admin; on a host that goes by roles
	Job       sched.JobID
	Owner     func(context.Context) (string, error) // of the job: user, or namespace. It takes a look at the state
}

// Names says how jobs are named here.
type Names interface {
	// Kind is api.Machine or api.Cluster.
	Kind() string
	// Unit is what jobs hold: GPU or slot.
	Unit() string
	// Widest is the largest number of GPUs that a job may name.
	Widest() int
	// Split takes a text that is no number for the owner and the name of a job; owner "" = any.
	Split(text string) (owner, name string)
	// Ref returns the text that names a job and no other, in a request.
	Ref(id sched.JobID, spec *sched.JobSpec) string
	// Expected reports whether a job of that text is known that has no number yet.
	Expected(text string) bool
}

// Works carries out what users want. All of it is durable when a method returns without an error.
type Works interface {
	// Read returns the jobs of a submission as those of the one who asks, or why they are not taken.
	Read(ctx context.Context, who api.Who, in *api.Submission) (Batch, error)
	Command(ctx context.Context, who api.Who, job sched.JobID, c sched.Command) error
	// Change gives change what may be changed of a job, as it is, to make it what it is to be.
	Change(ctx context.Context, who api.Who, job sched.JobID, change func(*sched.JobChange)) error
	// Drain has nothing new start on nodes, or lifts that; nil = on all.
	Drain(ctx context.Context, who api.Who, nodes []sched.NodeID, on bool) error
	DrainGPUs(ctx context.Context, who api.Who, gpus []sched.GPUID, on bool) error
}

// Batch is a list of jobs that may be submitted, all of them or none.
type Batch interface {
	// Names are those of the jobs.
	Names() []string
	// Submit submits them.
	Submit(ctx context.Context) ([]Accepted, error)
}

// Accepted is a job that was submitted.
type Accepted struct {
	ID  sched.JobID // None = it is durable, and has no number yet
	Ref string      // that names it; "" = its number does
}

// Outputs are what jobs write.
type Outputs interface {
	// Open returns what a rank of an attempt wrote; nil = nothing yet.
	Open(ctx context.Context, from Source) (Output, error)
	// Last returns when a rank of an attempt last wrote; false = it is not known.
	Last(from Source) (time.Time, bool)
	// Tail returns at most so many of the last lines that an attempt wrote, as written but for bytes that are no UTF-8.
	Tail(job sched.JobID, attempt int32, lines int) []string
	// Place reads a place inside an output that a client sends back.
	Place(text string) error
}

// Source is one writer of output.
type Source struct {
	Job     sched.JobID
	Attempt int32
	Rank    int32
}

// Output is what one rank of an attempt writes, for one reader. Places are words of the Output's own,
// but for Start.
type Output interface {
	// Next returns the next piece behind a place, and the place behind that; an empty piece = nothing more so far. A
	// piece does not end within a character unless over, which says that nothing more will be written. It is valid
	// until the next call.
	Next(place string, over bool) (text []byte, behind string, err error)
	// Tail returns the place where the last lines start that lie behind a place.
	Tail(place string, lines int) string
	Close() error
}
