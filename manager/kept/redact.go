package kept

import (
	"bytes"
	"encoding/json"

	"github.com/trainyard/trainyard/attempt/task"
)

// hidden stands for the value of a variable.
const hidden = "(hidden)"

// Redact returns a line of the log without the values of the variables that a job's environment is given: passwords and
// tokens are among them; and without where its notices go. It is the same to all who replay it, but for those who would
// start processes.
func Redact(line []byte) []byte {
	if !bytes.Contains(line, []byte(`"event":"arrived"`)) && !bytes.Contains(line, []byte(`"event":"changed"`)) {
		return line
	}
	const key = `"task":`
	from := bytes.Index(line, []byte(key))
	if from < 0 {
		return line
	}
	from += len(key)
	d := json.NewDecoder(bytes.NewReader(line[from:]))
	text := ""
	if d.Decode(&text) != nil {
		return []byte(`{"event":"arrived","task":"` + hidden + `"}`) // a line that we did not write
	}
	to := from + int(d.InputOffset())
	b, _ := json.Marshal(redactTask(text))
	return append(append(bytes.Clone(line[:from]), b...), line[to:]...)
}

// redactTask returns the encoding of a task without the values of its variables and where its notices go.
func redactTask(text string) string {
	t, err := task.DecodeTask(text)
	if err != nil {
		return hidden
	}
	env := make(map[string]string, len(t.Env))
	for name := range t.Env {
		env[name] = hidden
	}
	t.Env = env
	for i := range t.Notify {
		conceal(&t.Notify[i])
	}
	return t.Encode()
}

// conceal hides where a notice goes.
func conceal(way *task.Notify) {
	for _, to := range []struct {
		text   *string
		hidden string
	}{{&way.Mail, "hidden@example.invalid"}, {&way.Webhook, "/hidden"}, {&way.Run, "/hidden"}} {
		if *to.text != "" {
			*to.text = to.hidden
		}
	}
}
