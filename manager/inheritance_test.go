package manager_test

import (
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/trainyard/trainyard/api"
	"github.com/trainyard/trainyard/driver/local/shim"
	"github.com/trainyard/trainyard/manager"
	"github.com/trainyard/trainyard/sched"
)

// Ensure that a thousand jobs of one shell share one file, that no value is in the log, which grows little by them, and
// that the file is there for as long as a job may need it, and no longer.
func TestJobsOfAShellShareItsEnvironment(t *testing.T) {
	t.Parallel()
	const n = 1000
	r := newRig(t, "fifo", 1, "jobs: [{command: [x]}]")
	s := r.serve()
	env := map[string]string{"PATH": "/bin", "SECRET": strings.Repeat("canary", 1400)}
	sizes := make(map[bool]int)
	for _, inherit := range []bool{false, true} {
		in := &api.Submission{Dir: "/", Inherit: env, File: fmt.Sprintf(
			"jobs: [{name: a%v, command: [x], count: %d, submit: 10h, inherit_env: %v}]", inherit, n, inherit)}
		jobs, err := manager.NewSite(s.m, nil).Read(t.Context(), api.Who{Name: "ann", Role: api.Admin}, in)
		if err != nil {
			t.Fatal(err)
		}
		before := len(r.log(s.m))
		if _, err = jobs.Submit(t.Context()); err != nil {
			t.Fatal(err)
		}
		sizes[inherit] = len(r.log(s.m)) - before
	}
	dir := shim.State(r.options.Dir)
	digests, err := dir.KeptEnvs()
	if err != nil || len(digests) != 1 {
		t.Errorf("%d files, %v, want one", len(digests), err)
	}
	if more := sizes[true] - sizes[false]; more > 1_200_000 || strings.Contains(r.log(s.m), "canary") {
		t.Errorf("the log grew by %d bytes more, want at most 1.2 MB and no value in it", more)
	} else {
		t.Logf("%d bytes a job", more/n)
	}
	clean := func(want int) {
		t.Helper()
		if _, failed := s.m.Clean(t.Context(), api.Clean{}); failed != nil {
			t.Fatal(failed)
		}
		if left, failed := dir.KeptEnvs(); failed != nil || len(left) != want {
			t.Errorf("%d files are left, %v, want %d", len(left), failed, want)
		}
	}
	_ = s.stop()
	s = r.serve()
	clean(1)
	var cancels sync.WaitGroup
	for part := range sched.JobID(50) { // together, so that they are made durable together
		cancels.Go(func() {
			for id := n + part; id < 2*n; id += 50 {
				if failed := s.m.Command(t.Context(), id, sched.CancelJob); failed != nil {
					t.Error(failed)
				}
			}
		})
	}
	cancels.Wait()
	clean(0)
}
