package provision

import (
	"slices"

	"github.com/trainyard/trainyard/sched"
)

// Present lists the jobs that are not done, in order of arrival. It follows from the View: there is nothing to
// remember.
type Present struct {
	known   int    // jobs of the View looked at
	version uint64 // of the View that list is as of
	list    []sched.JobID
}

// Jobs brings the list up to date and returns it. It is valid until the next call.
func (p *Present) Jobs(v *sched.View) []sched.JobID {
	if p.version == v.Version && p.known == len(v.Jobs) {
		return p.list
	}
	p.version = v.Version
	for ; p.known < len(v.Jobs); p.known++ {
		p.list = append(p.list, sched.JobID(p.known))
	}
	p.list = slices.DeleteFunc(p.list, func(j sched.JobID) bool { return v.Jobs[j].State == sched.Done })
	return p.list
}
