package observer

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/trainyard/trainyard/sched"
)

func newObserver() (*Observer, *Queue) {
	q := NewQueue()
	return New(q, slog.New(slog.DiscardHandler)), q
}

func jobKey(name string) Key { return Key{JobKey, types.NamespacedName{Namespace: "lab", Name: name}} }

// Ensure that keys are looked at once each, kind by kind and by name, and that events come in that order with the time.
func TestLookGoesKindByKind(t *testing.T) {
	o, q := newObserver()
	q.Push(jobKey("b"), KeyOfNode("n"), jobKey("a"), KeyOfPool("p"), KeyOfNode("n"))
	var seen []string
	events := o.Look(7, o.Take(), Steps{
		Object: func(k Key) (f Found, err error) {
			seen = append(seen, k.Name)
			f.Report(sched.Event{Text: k.Name})
			return f, nil
		},
		Kind: func(k Kind) (f Found) {
			f.Report(sched.Event{Text: fmt.Sprint("kind ", k)})
			return f
		},
	})
	if want := []string{"p", "n", "a", "b"}; !slices.Equal(seen, want) {
		t.Errorf("looked at %v, want %v", seen, want)
	}
	var texts []string
	for _, e := range events {
		if texts = append(texts, e.Text); e.Time != 7 {
			t.Errorf("event %s is of %v, want 7", e.Text, e.Time)
		}
	}
	want := []string{"p", "kind 0", "kind 1", "kind 2", "n", "kind 3", "kind 4", "kind 5", "a", "b", "kind 6"}
	if !slices.Equal(texts, want) {
		t.Errorf("events %v, want %v", texts, want)
	}
	if o.Waits() || len(o.Take()) > 0 {
		t.Error("keys are left")
	}
}

// Ensure that an object is looked at again in the same look if its turn is yet to come, else in the next look.
func TestLookAgain(t *testing.T) {
	o, _ := newObserver()
	counts := map[string]int{}
	look := func(keys []Key) {
		o.Look(0, keys, Steps{
			Object: func(k Key) (f Found, err error) {
				if counts[k.Name]++; k == KeyOfNode("n") && counts["n"] == 1 {
					f.LookAgain(jobKey("later kind"), KeyOfNode("same kind"), KeyOfPool("earlier kind"))
				}
				return f, nil
			},
			Kind: func(Kind) Found { return Found{} },
		})
	}
	look([]Key{KeyOfNode("n")})
	if counts["later kind"] != 1 || counts["same kind"] != 0 || counts["earlier kind"] != 0 || !o.Waits() {
		t.Errorf("after the first look: %v", counts)
	}
	look(o.Take())
	if counts["later kind"] != 1 || counts["same kind"] != 1 || counts["earlier kind"] != 1 || o.Waits() {
		t.Errorf("after the second look: %v", counts)
	}
}

// Ensure that an object whose look fails keeps what was found and is looked at again a second later.
func TestLookThatFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o, q := newObserver()
		events := o.Look(0, []Key{jobKey("a")}, Steps{
			Object: func(Key) (f Found, err error) {
				f.Report(sched.Event{Kind: sched.JobChanged})
				return f, errors.New("the API server does not answer")
			},
			Kind: func(Kind) Found { return Found{} },
		})
		if len(events) != 1 || len(q.Take()) > 0 {
			t.Errorf("events %v, want the one found and no key yet", events)
		}
		time.Sleep(retryAfter)
		synctest.Wait()
		if keys := q.Take(); !slices.Equal(keys, []Key{jobKey("a")}) {
			t.Errorf("keys %v a second later", keys)
		}
	})
}

// Ensure that a queue wakes whoever waits once, however many keys are pushed, and not for none.
func TestQueueIsReady(t *testing.T) {
	q := NewQueue()
	if q.Push(); len(q.Ready()) != 0 {
		t.Error("ready without a key")
	}
	q.Push(jobKey("a"))
	q.Push(jobKey("a"), jobKey("b"))
	if len(q.Ready()) != 1 || len(q.Take()) != 2 {
		t.Error("want it ready once, with two keys")
	}
}

// Ensure that a pod leads to its job, and that an object of no interest leads to nothing.
func TestKeysOf(t *testing.T) {
	p := &corev1.Pod{}
	p.Namespace, p.Name = "lab", "train-1-0"
	if keys := KeysOf(p); keys != nil {
		t.Errorf("a pod of others: %v", keys)
	}
	p.Labels = map[string]string{"trainyard.dev/job": "train"}
	want := []Key{{PodKey, types.NamespacedName{Namespace: "lab", Name: "train-1-0"}}, jobKey("train")}
	if keys := KeysOf(p); !slices.Equal(keys, want) {
		t.Errorf("%v, want %v", keys, want)
	}
	if keys := KeysOf(&corev1.Secret{}); keys != nil {
		t.Errorf("a secret: %v", keys)
	}
}

// answers is a reader of one answer.
type answers struct {
	client.Reader

	err error
}

func (a answers) Get(context.Context, client.ObjectKey, client.Object, ...client.GetOption) error {
	return a.err
}

// Ensure that what is not there is no error, and that a driver that only looks on asks no server.
func TestAPI(t *testing.T) {
	none, broken := apierrors.NewNotFound(schema.GroupResource{}, "x"), errors.New("broken")
	for _, c := range []struct {
		cache, server      error
		found, asked       bool
		failed, askedFails bool
	}{
		{nil, none, true, false, false, false},
		{none, nil, false, true, false, false},
		{broken, broken, false, false, true, true},
	} {
		a := API{Cache: answers{err: c.cache}, Server: answers{err: c.server}}
		if found, err := a.Get(t.Context(), types.NamespacedName{}, nil); found != c.found || (err != nil) != c.failed {
			t.Errorf("%v: found %v, %v", c.cache, found, err)
		}
		found, err := a.Ask(t.Context(), types.NamespacedName{}, nil)
		if found != c.asked || (err != nil) != c.askedFails {
			t.Errorf("%v: asked %v, %v", c.server, found, err)
		}
	}
	looksOn := API{Cache: answers{}}
	if found, err := looksOn.Ask(t.Context(), types.NamespacedName{}, nil); found || err != nil {
		t.Errorf("a driver that only looks on: %v, %v", found, err)
	}
}
