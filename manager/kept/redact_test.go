package kept

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/trainyard/trainyard/attempt/task"
	"github.com/trainyard/trainyard/eventlog"
	"github.com/trainyard/trainyard/sched"
)

// FuzzRedact finds lines whose variables are reported.
func FuzzRedact(f *testing.F) {
	f.Add("A", "b", "x")
	f.Add("A", `"task":"`, `"task":{`)
	f.Fuzz(func(t *testing.T, name, arg, user string) {
		const canary = "canary-7f3a9c"
		if strings.Contains(name+arg+user, "canary") {
			return
		}
		spec := sched.JobSpec{GPUs: sched.Rigid(1), Name: "n", User: user, Task: encoded(name, arg, canary)}
		line := eventlog.AppendEvent(nil, 1, &sched.Event{Seq: 1, Kind: sched.JobArrived, Spec: &spec})
		if got := Redact(line); bytes.Contains(got, []byte(canary)) {
			t.Errorf("%s", got)
		}
	})
}

// encoded is a task with a variable of that value.
func encoded(name, arg, value string) string {
	tk := task.Task{Command: []string{"x", arg}, Dir: "/", Env: map[string]string{name: value}, Grace: time.Second}
	if tk.Validate() != nil {
		tk = task.Task{Command: []string{"x"}, Dir: "/", Env: map[string]string{"A": value}, Grace: time.Second}
	}
	return tk.Encode()
}

// Ensure that of an arrival that cannot be read nothing is shown, where it could hold the value of a variable.
func TestRedactDamaged(t *testing.T) {
	const canary = "canary-7f3a9c"
	for _, task := range []string{`"` + canary, canary, `{"env":"` + canary + `"}`, `"not a task ` + canary + `"`} {
		if got := Redact([]byte(`{"seq":2,"event":"arrived","task":` + task)); bytes.Contains(got, []byte(canary)) {
			t.Errorf("%s: %s", task, got)
		}
	}
}
