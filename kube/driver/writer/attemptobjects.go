package writer

import (
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/trainyard/trainyard/kube/driver/observer"
	"github.com/trainyard/trainyard/sched"
)

// Options say what Objects work with.
type Options struct {
	Client        client.Client      // reads from a cache, writes to the API server
	Reader        client.Reader      // reads from the API server itself
	Look          func(observer.Key) // has an object looked at; any goroutine calls it
	Made          *observer.Made     // takes note of what is made
	DeviceClass   string             // of claims
	PriorityClass string             // of pods whose template has none; "": none
}

// Objects makes, marks and deletes the objects of jobs. Its exported methods belong to one goroutine and wait for no
// write.
type Objects struct {
	o       Options
	writers *Writers
	over    []*Attempt                 // whose ends are reported, but not durable yet
	unclean map[sched.JobID][]*Attempt // of which something may be left
}

// NewObjects returns objects that these writers write.
func NewObjects(o Options, w *Writers) *Objects {
	return &Objects{o: o, writers: w, unclean: make(map[sched.JobID][]*Attempt)}
}

// Locked is the patch that makes an object of what it was, if it still is that.
func Locked(was client.Object) client.Patch {
	return client.MergeFromWithOptions(was, client.MergeFromWithOptimisticLock{})
}
