package driver

import (
	"log/slog"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/trainyard/trainyard/kube/api/v1alpha1"
	"github.com/trainyard/trainyard/kube/driver/attempts"
	"github.com/trainyard/trainyard/kube/driver/jobs"
	"github.com/trainyard/trainyard/kube/driver/observer"
	"github.com/trainyard/trainyard/kube/driver/pools"
	"github.com/trainyard/trainyard/sched"
)

// Options say what a Driver works with.
type Options struct {
	Client client.Client   // reads from a cache that is in step, writes to the API server
	Reader client.Reader   // reads from the API server itself
	Queue  *observer.Queue // of what changes in that cache, see Queue.Watch
	Origin time.Time       // the instant that is time 0

	Mode         v1alpha1.Mode
	DeviceClass  string        // of claims
	StartTimeout time.Duration // see SchedulerPolicySpec
	// PriorityClass is that of pods whose template has none; "": none. It should not preempt: kube-scheduler would,
	// without asking.
	PriorityClass string

	Types jobs.Types // gives the product name of a GPU its number
	// NewType is called with a product that has no number, of which there is a node: that is left out until the product
	// has one. nil: no one asks.
	NewType  func(product string)
	Provider pools.Provider    // nil: nothing can be rented
	Follower attempts.Follower // nil: no log is read, progress is reported by annotation alone
	Deaf     bool              // not even by that

	// Lease returns an error once another may lead. It is asked before each write, and an error ends the driver. nil:
	// no other may.
	Lease func() error
	// Event reports to people what happened to an object; nil: no one asks. Any goroutine calls it.
	Event func(about client.Object, reason, text string)
	// Delayed is called with what keeps the live attempt of a job from starting; "": nothing that is known. The
	// goroutine of the engine calls it, before an answer that has an event; nil: no one asks.
	Delayed func(job sched.JobID, why string)
	// Ask has the API server asked, by a dry run, whether it takes the objects of a job, before the job may be given
	// GPUs. What it refuses is held, which Held is called with in the same way as Delayed.
	Ask  bool
	Held func(job sched.JobID, why string)
	// Limits bound what jobs may ask for; nil: nothing does.
	Limits *v1alpha1.Limits
	// Bad are the records of jobs that cannot be read, by the UID of the job, about which no one decides. Mended is
	// called once one of them is another.
	Bad    map[types.UID]string
	Mended func(job string)
	// Observe has nothing written, so that nothing that is decided is done.
	Observe bool
	Every   time.Duration // reports of progress are so far apart at least; 0: 10 s
	Log     *slog.Logger  // nil: nothing is logged
}

const reportEvery = 10 * time.Second

// fill fills what is left out.
func (o *Options) fill() {
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if o.Event == nil {
		o.Event = func(client.Object, string, string) {}
	}
	if o.Held == nil {
		o.Held = func(sched.JobID, string) {}
	}
	if o.NewType == nil {
		o.NewType = func(string) {}
	}
	if o.Every == 0 {
		o.Every = reportEvery
	}
}

// api is where objects are read.
func (o *Options) api() observer.API {
	if o.Observe {
		return observer.API{Cache: o.Client}
	}
	return observer.API{Cache: o.Client, Server: o.Reader}
}
