package serve

import (
	"bytes"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/trainyard/trainyard/sched"
)

// writeProgram makes a script. Another process writes it: a file that this one has open for writing might be handed on
// to whatever a test that runs at the same time starts, and cannot be run meanwhile.
func writeProgram(t *testing.T, path, text string) {
	t.Helper()
	cmd := exec.Command("sh", "-c", `cat > "$0" && chmod 700 "$0"`, path)
	cmd.Stdin = strings.NewReader(text)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
}

// Ensure that a program hears of each end and preemption once, when the batch is durable, and of nothing else, and
// that one that fails is reported in the log.
func TestNotify(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	program, reported := filepath.Join(dir, "say"), filepath.Join(dir, "said")
	writeProgram(t, program, "#!/bin/sh\nread line\necho \"$TRAINYARD_JOB_ID $TRAINYARD_OUTCOME "+
		"$TRAINYARD_EXIT_CODE $line\" >> "+reported+"\n")
	var log bytes.Buffer
	n := newNotifier(program, slog.New(slog.NewTextHandler(&log, nil)))
	spec := &sched.JobSpec{Name: "$(touch x); a", User: "ann"}
	v := &sched.View{Jobs: []sched.Job{{Spec: spec, State: sched.Done, Outcome: sched.Failed},
		{Spec: spec, State: sched.Waiting},
		{Spec: spec, State: sched.Done, Outcome: sched.Cancelled, End: 5}}}
	for _, e := range []sched.Event{
		{Kind: sched.AttemptEnded, Job: 0, Outcome: sched.Failed, Code: 3, Text: "it is over"},
		{Kind: sched.Progressed, Job: 0},
		{Kind: sched.AttemptEnded, Job: 1, Outcome: sched.Preempted, Code: 75},
		{Kind: sched.AttemptEnded, Job: 1, Outcome: sched.Failed, Code: 1}, // it is tried again
		{Kind: sched.JobCommanded, Job: 2, Code: int32(sched.CancelJob), Time: 5},
		{Kind: sched.JobCommanded, Job: 2, Code: int32(sched.CancelJob), Time: 6}, // once more
		{Kind: sched.NodeChanged, Job: sched.None},
	} {
		n.Log(v, &e)
	}
	if _, err := os.Stat(reported); err == nil {
		t.Error("said before it is durable")
	}
	for range 2 {
		if err := n.EndBatch(); err != nil {
			t.Fatal(err)
		}
	}
	n.stop()
	text, _ := os.ReadFile(reported)
	const want = `0 failed 3 {"schema":"trainyard.notice/v1","job":0,"name":"$(touch x); a","user":"ann","outcome":"failed","exit_code":3,"text":"it is over"}
1 preempted 75 {"schema":"trainyard.notice/v1","job":1,"name":"$(touch x); a","user":"ann","outcome":"preempted","exit_code":75}
2 cancelled 0 {"schema":"trainyard.notice/v1","job":2,"name":"$(touch x); a","user":"ann","outcome":"cancelled","exit_code":0}
`
	if string(text) != want || log.Len() > 0 {
		t.Errorf("said\n%slogged %s\nwant\n%s", text, &log, want)
	}
	n = newNotifier(filepath.Join(dir, "gone"), slog.New(slog.NewTextHandler(&log, nil)))
	n.batch = make([]notice, 1)
	_ = n.EndBatch()
	if n.stop(); !strings.Contains(log.String(), "no one was notified") {
		t.Errorf("logged %q", log.String())
	}
}
