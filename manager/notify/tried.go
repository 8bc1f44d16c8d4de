package notify

import (
	"cmp"
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
	mostLost  = 20  // of these that could not be sent last, that problems may name
)

// tried says what became of the notices of a key: kept over a restart.
type tried struct {
	Key    string   `json:"key"`
	Way    string   `json:"way,omitempty"`
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

// by reports whether the notices went in a way. Its user may have changed it since.
func (t *tried) by(way string) bool { return t.Way == way || t.Way == "" } // "": kept before ways were

// keyOfWay is the key of letters about a job, or array, in one of its ways.
func keyOfWay(job string, way int) string { return job + "/" + keyOf(sched.JobID(way)) }

// went remembers that a notice was sent, or could not be.
func (n *Notifier) went(r *result) {
	n.mu.Lock()
	defer n.mu.Unlock()
	this := tried{Key: r.Key, Way: "program"}
	if r.Key != hostKey {
		this.Way = wayOf(&r.To)
	}
	if i := slices.IndexFunc(n.tried, func(t tried) bool { return t.Key == r.Key }); i >= 0 {
		if n.tried[i].by(this.Way) {
			this.Sent, this.Failed = n.tried[i].Sent, n.tried[i].Failed
		}
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

// Unheard says which notices could not be sent lately, the last of those that are remembered. Why is not for all: it
// names files of users. Anyone may ask at any time.
func (n *Notifier) Unheard() []string {
	n.mu.Lock()
	defer n.mu.Unlock()
	list := []string{}
	for i := len(n.tried) - 1; i >= 0 && len(list) < mostLost; i-- {
		t := &n.tried[i]
		if !t.lost() {
			continue
		}
		why := fmt.Sprintf("`trainyard why %d` says why", t.Failed.Job)
		if t.Key == hostKey {
			why = "the manager's log says why"
		}
		list = append(list, fmt.Sprintf("job %d (%s): no one was notified (%s) by %s: %s", t.Failed.Job, t.Failed.Name,
			t.Failed.Outcome, cmp.Or(t.Way, "its notify"), why))
	}
	slices.Reverse(list)
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
		k := slices.IndexFunc(n.tried, func(t tried) bool { return t.Key == key })
		if k >= 0 && n.tried[k].by(list[i].Way) {
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
