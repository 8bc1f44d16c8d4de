package task

import (
	"math/rand/v2"
	"testing"
	"time"
)

// Ensure that the time limit that is read alone is that of the task, whatever its words are.
func TestTimeLimitOf(t *testing.T) {
	words := []string{"x", `"time_limit_ns":7`, `{"time_limit_ns":7}`, "time_limit_ns", `\`, `\"time_limit_ns\":8,`}
	r := rand.New(rand.NewPCG(1, 2))
	word := func() string { return words[r.IntN(len(words))] }
	for range 2000 {
		task := Task{Command: []string{word(), word()}, Dir: "/" + word(), Grace: time.Minute,
			Env: map[string]string{"time_limit_ns": word()}, TimeLimit: time.Duration(r.IntN(3)) * time.Hour}
		text := task.Encode()
		if got := TimeLimitOf(text); got != task.TimeLimit {
			t.Fatalf("%s: %v, want %v", text, got, task.TimeLimit)
		}
	}
}
