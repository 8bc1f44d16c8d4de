package task

import (
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/trainyard/trainyard/sched"
)

func sample() Task {
	return Task{Command: []string{"python", "-c", "print('<é>')\n", ""}, Dir: "/lab",
		Env: map[string]string{"B": "", "A": "1 2"}, Grace: 30 * time.Second}
}

// Ensure that the stored text is what we think, and that it reads back.
func TestEncode(t *testing.T) {
	want := `{"command":["python","-c","print('<é>')\n",""],"dir":"/lab",` +
		`"env":{"A":"1 2","B":""},"grace_ns":30000000000}`
	got := sample().Encode()
	if got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	back, err := DecodeTask(got)
	if err != nil || !reflect.DeepEqual(back, sample()) {
		t.Errorf("%+v, %v", back, err)
	}
}

// Ensure that the longest task that is valid can be stored and read, whatever it is made of.
func TestLongest(t *testing.T) {
	k := sample()
	k.Env = nil
	k.Command = []string{"x"}
	for k.Size() < MaxSize {
		k.Command = append(k.Command, strings.Repeat("\x01", min(MaxText, MaxSize-k.Size()-1)))
	}
	k.Dir = "/" + strings.Repeat("\x02", MaxDir-1)
	if s := k.Encode(); len(s) > maxStored {
		t.Errorf("%d bytes stored, limit %d", len(s), maxStored)
	} else if back, err := DecodeTask(s); err != nil || !reflect.DeepEqual(back, k) {
		t.Error(err)
	}
	k.Command[0] += "x"
	if err := k.Validate(); fmt.Sprint(err) != "command and env of 1048577 bytes, want at most 1048576" {
		t.Error(err)
	}
}

// Ensure that what is wrong is said with the field, the value and what is wanted.
func TestValidate(t *testing.T) {
	for _, c := range []struct {
		change func(*Task)
		want   string
	}{
		{func(t *Task) { t.Command = nil }, `command of no arguments, want a program`},
		{func(t *Task) { t.Command = make([]string, MaxArgs+1) }, `command of 10001 arguments, want at most 10000`},
		{func(t *Task) { t.Command[0] = "" }, `command starts with "", want a program`},
		{func(t *Task) { t.Command[1] = "a\x00b" }, `command[1] has a NUL byte, want none`},
		{func(t *Task) { t.Command[1] = "\xff" }, `command[1] is not text in UTF-8, want text`},
		{func(t *Task) { t.Command[1] = strings.Repeat("x", MaxText+1) },
			`command[1] takes 131072 bytes, want at most 131071`},
		{func(t *Task) { t.Grace = 0 }, `grace 0s, want more than 0s and at most 1h`},
		{func(t *Task) { t.Grace = MaxGrace + 1 }, `grace 1h0m0.000000001s, want more than 0s and at most 1h`},
		{func(t *Task) { t.Checkpoint.To = "rank" }, `checkpoint to "rank", want one of top, leader, all`},
		{func(t *Task) { t.Checkpoint.Signal = "KILL" },
			`checkpoint signal "KILL", want one of TERM, INT, HUP, USR1, USR2`},
		{func(t *Task) { t.Dir = "" }, `dir "", want an absolute path, cleaned`},
		{func(t *Task) { t.Dir = "lab" }, `dir "lab", want an absolute path, cleaned`},
		{func(t *Task) { t.Dir = "/lab/../etc" }, `dir "/lab/../etc", want an absolute path, cleaned`},
		{func(t *Task) { t.Dir = "/a\x00" }, `dir has a NUL byte, want none`},
		{func(t *Task) { t.Dir = "/\xff" }, `dir "/\xff" is not text in UTF-8, want text`},
		{func(t *Task) { t.Dir = "/" + strings.Repeat("x", MaxDir) }, `dir of 4096 bytes, want at most 4095`},
		{func(t *Task) { t.Env = map[string]string{"A=B": ""} }, `env "A=B", want a name of letters, digits and _`},
		{func(t *Task) { t.Env = map[string]string{"1A": ""} }, `env "1A", want a name of letters, digits and _`},
		{func(t *Task) { t.Env = map[string]string{"": ""} }, `env "", want a name of letters, digits and _`},
		{func(t *Task) { t.Env = map[string]string{strings.Repeat("A", 201): ""} },
			`env name of 201 bytes, want at most 200`},
		{func(t *Task) { t.Env = map[string]string{"TRAINYARD_X": ""} },
			`env TRAINYARD_X is reserved, want another name (Trainyard sets it, or keeps it from jobs)`},
		{func(t *Task) { t.Env = map[string]string{"LD_PRELOAD": "x.so"} },
			`env LD_PRELOAD is reserved, want another name (Trainyard sets it, or keeps it from jobs)`},
		{func(t *Task) { t.Env = map[string]string{"A": "\x00"} }, `env A has a NUL byte, want none`},
		{func(t *Task) { t.Env = map[string]string{"A": strings.Repeat("x", MaxText-1)} },
			`env A takes 131072 bytes, want at most 131071`},
		{func(t *Task) {
			for i := range MaxEnv {
				t.Env[fmt.Sprint("V", i)] = ""
			}
		}, `env of 1002 variables, want at most 1000`},
	} {
		k := sample()
		c.change(&k)
		if got := fmt.Sprint(k.Validate()); got != c.want {
			t.Errorf("got  %s\nwant %s", got, c.want)
		}
	}
}

// Ensure that a task that is not valid is never stored.
func TestEncodePanics(t *testing.T) {
	defer func() {
		if got := recover(); got != "task: encode: command of no arguments, want a program" {
			t.Error(got)
		}
	}()
	_ = Task{}.Encode()
}

// Ensure that nothing but what Encode writes is read.
func TestDecodeErrors(t *testing.T) {
	good := `{"command":["a"],"dir":"/","grace_ns":1}`
	if _, err := DecodeTask(good); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ s, want string }{
		{"", `task: EOF, want what was encoded`},
		{good[:20], `task: unexpected EOF, want what was encoded`},
		{`{"command":["a"],"dir":"/","grace_ns":1,"user":"x"}`,
			`task: json: unknown field "user", want what was encoded`},
		{`{"command":"a","dir":"/","grace_ns":1}`, `task: json: cannot unmarshal string into Go struct field ` +
			`Task.command of type []string, want what was encoded`},
		{`{"command":["a"],"dir":"/","grace_ns":0}`, `task: grace 0s, want more than 0s and at most 1h`},
		{`null`, `task: command of no arguments, want a program`},
		{good + " ", `task: "{\"command\":[\"a\"],\"dir\":\"/\",\"grace_ns\":1} ", want the very text that was ` +
			`encoded`},
		{good + good, `task: "{\"command\":[\"a\"],\"dir\":\"/\",\"grace_ns\":1}{\"command\":[\"a\"],\"di...", want ` +
			`the very text that was encoded`},
		{`{"command":["a"],"dir":"/","dir":"/","grace_ns":1}`,
			`task: "{\"command\":[\"a\"],\"dir\":\"/\",\"dir\":\"/\",\"grace_ns\":1}", want the very text that was ` +
				`encoded`},
		{`{"Command":["a"],"dir":"/","grace_ns":1}`, `task: "{\"Command\":[\"a\"],\"dir\":\"/\",\"grace_ns\":1}", ` +
			`want the very text that was encoded`},
		{strings.Repeat(" ", maxStored+1), `task: 8388609 bytes, want at most 8388608`},
	} {
		if _, err := DecodeTask(c.s); fmt.Sprint(err) != c.want {
			t.Errorf("%.60q\n got %v\nwant %s", c.s, err, c.want)
		}
	}
}

// FuzzDecodeTask checks that no text makes DecodeTask panic, and that what it takes is what Encode writes.
func FuzzDecodeTask(f *testing.F) {
	f.Add(sample().Encode())
	f.Add(`{"command":["a"],"dir":"/","grace_ns":1}`)
	f.Add(`{"command":["\ud800"],"dir":"/..","env":null,"grace_ns":1e3}`)
	f.Fuzz(func(t *testing.T, s string) {
		k, err := DecodeTask(s)
		switch {
		case err != nil && strings.Contains(err.Error(), "\n"):
			t.Fatalf("error %q", err)
		case err == nil && (k.Encode() != s || strings.Contains(s, "\n")):
			t.Fatalf("%q encodes as %q", s, k.Encode())
		}
	})
}

// Ensure that only a job that shares its GPUs, and states how much of their memory it takes, is given a bound.
func TestMemoryIsBoundWhereShared(t *testing.T) {
	for _, c := range []struct {
		share sched.Share
		gb    float32
		want  string
	}{{sched.Shared, 20, "TRAINYARD_GPU_MEMORY_MIB=20480"}, {sched.Shared, 0, ""}, {sched.Exclusive, 20, ""}} {
		v := Variables{GPUs: 1, GPUMemGB: c.gb, Config: sched.Config{Share: c.share}}
		got := ""
		for _, kv := range v.Environment() {
			if strings.HasPrefix(kv, "TRAINYARD_GPU_MEMORY") {
				got = kv
			}
		}
		if got != c.want {
			t.Errorf("%+v: %q", c, got)
		}
	}
}
