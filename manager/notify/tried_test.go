package notify

import (
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/trainyard/trainyard/attempt/task"
	"github.com/trainyard/trainyard/driver/local/shim"
	"github.com/trainyard/trainyard/sched"
)

// Ensure that what was sent in each way of a job, and what could not be, is known after a restart too.
func TestTried(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	works := filepath.Join(dir, "works")
	writeProgram(t, works, "#!/bin/sh\n")
	ways := []task.Notify{{Run: works}, {Run: filepath.Join(dir, "gone")},
		{On: []string{task.OnIdle}, Mail: "a@b.example"}}
	spec := asking("a", ways...)
	v := &sched.View{Jobs: []sched.Job{{Spec: spec, State: sched.Done, Outcome: sched.Failed, Attempts: 1}}}
	o := Options{Dir: dir, Log: slog.New(slog.DiscardHandler)}
	n := started(o)
	n.Log(v, &sched.Event{Kind: sched.AttemptEnded, Job: 0, Outcome: sched.Failed, Code: 3})
	_ = n.EndBatch()
	check := func(when string) {
		eventually(t, when, func() bool {
			list := n.Tried(0, ways)
			return list[0].Sent != nil && list[0].Failed == nil && list[0].Sent.Outcome == task.OnFailed &&
				list[1].Sent == nil && list[1].Failed != nil && strings.Contains(list[1].Failed.Why, "gone") &&
				list[2].Sent == nil && list[2].Failed == nil && list[2].Way == "mail" &&
				len(n.Unheard()) == 1
		})
	}
	check("sent")
	n.Stop()
	n = started(o)
	defer n.Stop()
	check("known after a restart")
	n.went(&result{letter{Key: "0/1"}, nil})
	if list := n.Tried(0, ways); list[1].Sent == nil || list[1].Failed == nil || len(n.Unheard()) > 0 {
		t.Errorf("%+v, %q, want that one was sent at last", list[1], n.Unheard())
	}
	for i := range 2 * mostTried {
		n.went(&result{letter{Key: keyOf(sched.JobID(i))}, errors.New("no")})
	}
	if len(n.tried) != mostTried {
		t.Errorf("%d are kept, want %d", len(n.tried), mostTried)
	}
}

// Ensure that what could not be sent is found behind what was sent since, that all may read of it, without the files of
// users; and that a way that its user changed has nothing of the one before it.
func TestUnheard(t *testing.T) {
	t.Parallel()
	n := New(Options{})
	n.once.Do(func() { close(n.over) })
	hook := task.Notify{Webhook: "/home/ann/secret"}
	n.went(&result{letter{Key: "7/0", To: hook, About: Notice{Job: 7, Name: "a", Outcome: task.OnFailed}},
		errors.New("webhook of /home/ann/secret: no")})
	for i := range mostLost {
		n.went(&result{letter{Key: keyOfWay(keyOf(sched.JobID(10+i)), 0)}, nil})
	}
	const want = "job 7 (a): no one was notified (failed) by webhook: `trainyard why 7` says why"
	if list := n.Unheard(); len(list) != 1 || list[0] != want {
		t.Errorf("%q, want %q", list, want)
	}
	list := n.Tried(7, []task.Notify{hook})
	if list[0].Failed == nil || !strings.Contains(list[0].Failed.Why, "secret") {
		t.Errorf("%+v, want why", list)
	}
	mail := task.Notify{Mail: "a@b.example"}
	if list = n.Tried(7, []task.Notify{mail}); list[0].Way != "mail" || list[0].Sent != nil || list[0].Failed != nil {
		t.Errorf("%+v, want nothing by mail", list)
	}
	n.went(&result{letter{Key: "7/0", To: mail}, nil})
	if list = n.Tried(7, []task.Notify{mail}); list[0].Sent == nil || list[0].Failed != nil || len(n.Unheard()) > 0 {
		t.Errorf("%+v, want one sent by mail alone", list)
	}
}

// Ensure that a mail says whose job it is, how it stands and ran, why it ended, what to do, and what it wrote last.
func TestDetails(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	run := shim.State(dir).RunDir(7, 2)
	if err := os.MkdirAll(string(run), 0o700); err != nil {
		t.Fatal(err)
	}
	wrote := "hidden\nstep 1\x1b[31m\n" + strings.Repeat("a\n", mailLines-1)
	if err := os.WriteFile(run.Output(), []byte(wrote), 0o600); err != nil {
		t.Fatal(err)
	}
	n := New(Options{Dir: dir})
	n.once.Do(func() { close(n.over) })
	text := n.details(&letter{About: Notice{Job: 7, Name: "train", User: "ann", Outcome: task.OnFailed, ExitCode: 3},
		Attempt: 2, Ran: 90 * time.Minute})
	for _, want := range []string{"Job     7", "Name    train", "User    ann", "State   failed",
		"Ran     1h30m0s, in 2 attempts", "Why     exit code 3", "Next    `trainyard logs 7`",
		"\n\n  step 1 [31m\n  a\n"} {
		if !strings.Contains(text, want) {
			t.Errorf("%s\nlacks %s", text, want)
		}
	}
	if strings.Contains(text, "hidden") {
		t.Errorf("%s\nhas more than the last lines", text)
	}
}
