package notify

import (
	"fmt"
	"slices"
	"time"

	"github.com/trainyard/trainyard/api"
	"github.com/trainyard/trainyard/attempt/task"
	"github.com/trainyard/trainyard/sched"
)

// Limits of what is remembered of notices.
const (
	mostTried = 500 // keys
	mostLost  = 20  // of these, the last, that problems may name
)

// tried says what became of the notices of a key: kept over a restart.
type tried struct {
	Key    string   `json:"key"`
	Sent   *attempt `json:"sent,omitempty"`
	Failed *attempt `json:"failed,omitempty"` // after Sent, if Sent is not later
}

// attempt is a notice that was sent, or could not be.
type attempt struct {
	Job     int       `json:"job"`
	Name    string    `json:"name"`
	Outcome string    `json:"outcome"`
	At      time.Time `json:"at"`
	Why     string    `json:"why,omitempty"` // it could not be
}

// lost reports whether the last notice could not be sent.
func (t *tried) lost() bool {
	return t.Failed != nil && (t.Sent == nil || !t.Sent.At.After(t.Failed.At))
}

// keyOfWay is the key of letters about a job, or array, in one of its ways.
func keyOfWay(job string, way int) string { return job + "/" + keyOf(sched.JobID(way)) }

// went remembers that a notice was sent, or could not be.
func (n *Notifier) went(r *result) {
	n.mu.Lock()
	defer n.mu.Unlock()
	this := tried{Key: r.Key}
	if i := slices.IndexFunc(n.tried, func(t tried) bool { return t.Key == r.Key }); i >= 0 {
		this = n.tried[i]
		n.tried = slices.Delete(n.tried, i, i+1)
	}
	a := &attempt{Job: r.About.Job, Name: r.About.Name, Outcome: r.About.Outcome, At: time.Now().UTC()}
	if r.err == nil {
		this.Sent = a
	} else {
		a.Why, this.Failed = r.err.Error(), a
	}
	n.tried = append(n.tried[max(len(n.tried)+1-mostTried, 0):], this)
}

// keep has what became of notices be kept with the box.
func (n *Notifier) keep() {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.box.has.Tried = slices.Clone(n.tried)
}

// Unheard says which notices could not be sent lately, and why. Anyone may ask at any time.
func (n *Notifier) Unheard() []string {
	n.mu.Lock()
	defer n.mu.Unlock()
	list := []string{}
	for i := max(len(n.tried)-mostLost, 0); i < len(n.tried); i++ {
		if t := &n.tried[i]; t.lost() {
			list = append(list, fmt.Sprintf("job %d (%s): no one was notified (%s): %s", t.Failed.Job, t.Failed.Name,
				t.Failed.Outcome, t.Failed.Why))
		}
	}
	return list
}

// Tried says what was sent last in each way of a job, or of its array, of which first is the first task. Anyone may ask
// at any time.
func (n *Notifier) Tried(first sched.JobID, ways []task.Notify) []api.NoticeState {
	n.mu.Lock()
	defer n.mu.Unlock()
	list := make([]api.NoticeState, len(ways))
	for i := range ways {
		list[i].Way = wayOf(&ways[i])
		key := keyOfWay(keyOf(first), i)
		if k := slices.IndexFunc(n.tried, func(t tried) bool { return t.Key == key }); k >= 0 {
			list[i].Sent, list[i].Failed = n.tried[k].Sent.document(), n.tried[k].Failed.document()
		}
	}
	return list
}

// wayOf is the word for a way.
func wayOf(to *task.Notify) string {
	switch {
	case to.Desktop:
		return "desktop"
	case to.Mail != "":
		return "mail"
	case to.Webhook != "":
		return "webhook"
	}
	return "run"
}

func (a *attempt) document() *api.NoticeTry {
	if a == nil {
		return nil
	}
	return &api.NoticeTry{Job: a.Job, Outcome: a.Outcome, At: a.At.Format(time.RFC3339), Why: a.Why}
}
