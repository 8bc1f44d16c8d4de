package manager_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"

	"github.com/trainyard/trainyard/manager"
	"github.com/trainyard/trainyard/manager/jobfile"
)

// Ensure that keys of a job, as the API has them, are what an edit takes: of a plain job they make the same job again.
func TestKeysComeBack(t *testing.T) {
	r := rand.New(rand.NewPCG(24, 2))
	values := map[string][]string{
		"time_limit": {"2h", "{max: 90m, warn: 30s}", "{max: 3s, each: true}"},
		"wall_time":  {"1h", "2h", "12m3s"},
		"grace":      {"7s", "30s", "1h"},
		"retries":    {"1", "1000000"},
		"retry":      {"{max: 2, backoff: 30s}", "{max: 0, on: [exit:75, signal:KILL]}", "{max: 3}"},
		"notify": {"{mail: a@b.c}", "[{on: [failed, idle], desktop: yes}, {run: /bin/x}]",
			"{webhook: {from_file: /w}}"},
		"gpu_type":      {"a100", "[h100, '4090', any]"},
		"gpu_memory_gb": {"12", "0.1", "79.5"},
		"preemptible":   {"true", "false", "after-save"},
	}
	parse := func(keys string) jobfile.Job {
		jobs, err := jobfile.ParseJobs([]byte("jobs: [{command: [x]"+keys+"}]"), "/jobs.yaml")
		if err != nil {
			t.Fatalf("%s: %v", keys, err)
		}
		jobs[0].Spec.Task = jobs[0].Task.Encode()
		return jobs[0]
	}
	plain := parse("")
	for range 300 {
		var keys strings.Builder
		for key, of := range values {
			if r.IntN(2) == 0 && (!strings.HasPrefix(key, "retr") || !strings.Contains(keys.String(), "retr")) {
				fmt.Fprintf(&keys, ", %s: %s", key, of[r.IntN(len(of))])
			}
		}
		want := parse(keys.String())
		shown, err := json.Marshal((*manager.Site)(nil).Keys(&want.Spec))
		if err != nil {
			t.Fatal(err)
		}
		got, _, err := jobfile.Edit(plain.Spec, plain.Task, shown, "/")
		if err != nil {
			t.Fatalf("%s: %s: %v", keys.String(), shown, err)
		}
		got.Spec.Task = got.Task.Encode()
		if !reflect.DeepEqual(got.Spec, want.Spec) {
			t.Errorf("%s\nis shown as %s\nwhich makes %+v\nof        %+v", keys.String(), shown, got.Spec, want.Spec)
		}
	}
}
