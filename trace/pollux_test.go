package trace

import (
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/trainyard/trainyard/internal/shareddata"
	"github.com/trainyard/trainyard/sched"
)

func TestPollux(t *testing.T) {
	const text = "name,time,application,num_replicas,batch_size\ncifar10-0,53,cifar10,6,2048\n" +
		"ncf-1,487.661836,ncf,100,32768\n"
	got, err := Parse(strings.NewReader(text), "pollux.csv", Options{})
	if err != nil {
		t.Fatal(err)
	}
	want := []Job{
		with(job("cifar10-0", 53, 6, 0), func(j *Job) {
			j.Spec.Model, j.Spec.Batch = "cifar10", sched.BatchRange{Min: 2048, Max: 2048}
			j.Spec.GPUs = sched.Range{Min: 1, Want: 6, Max: 64}
		}),
		with(job("ncf-1", 487.661836, 100, 0), func(j *Job) {
			j.Spec.Model, j.Spec.Batch = "ncf", sched.BatchRange{Min: 32768, Max: 32768}
			j.Spec.GPUs = sched.Range{Min: 1, Want: 100, Max: 100}
		}),
	}
	if !got.Profiled || got.Format != "pollux" || got.Zone == "" || !reflect.DeepEqual(got.Jobs, want) {
		t.Errorf("%+v, want jobs\n%+v", got, want)
	}
}

func TestBadPollux(t *testing.T) {
	const head = "name,time,application,num_replicas,batch_size\n"
	for _, c := range []struct{ text, want string }{
		{head + "a,0,,1,8\n", `line 2: application "", want the name of one: the duration follows from its profile`},
		{head + "a,0,bert,1,\n", `line 2: batch_size "", want a whole number from 1 to 2147483647`},
		{head + "a,0,bert,1,0\n", `line 2: batch_size "0", want a whole number from 1 to 2147483647`},
		{head + "a,0,bert,0,8\n", `line 2: num_replicas "0", want a whole number from 1 to 1000000`},
		{head + "a,0,bert,1,8\na,0,bert,1,8\n", `line 3: name "a", want a name of its own: line 2 has it too`},
		{"name,time,application,num_replicas\n",
			`line 1: header "name,time,application,num_replicas", want that of a known format; nearest is pollux: ` +
				`missing batch_size`},
	} {
		_, err := Parse(strings.NewReader(c.text), "bad.csv", Options{})
		if err == nil || err.Error() != "trace: bad.csv: "+c.want {
			t.Errorf("error %v, want trace: bad.csv: %s", err, c.want)
		}
	}
}

// Ensure that all published workloads are read, with as many jobs as were counted independently.
//
// Reference: specification of BOA, 5.2, 5.3 and 5.6.
func TestPolluxWorkloads(t *testing.T) {
	dir := filepath.Join(shareddata.DataDir(t), "pollux")
	for pattern, jobs := range map[string]int{
		"osdi21/workloads/*.csv": 160, "osdi21/workloads-0.5/*.csv": 80, "osdi21/workloads-1.5/*.csv": 240,
		"osdi21/workloads-2.0/*.csv": 320, "osdi21/workloads-realistic/*.csv": 160,
		"sia/workloads/newtrace/*.csv": 960, "boa/workload-1-cbd.csv": 85,
	} {
		files, err := filepath.Glob(filepath.Join(dir, pattern))
		if err != nil || len(files) == 0 {
			t.Fatalf("%s: %d files, %v", pattern, len(files), err)
		}
		for _, file := range files {
			got, err := Read(file, Options{})
			if err != nil {
				t.Fatal(err)
			}
			if len(got.Jobs) != jobs || got.Format != "pollux" || !got.Profiled {
				t.Errorf("%s: %d jobs in format %s, want %d", file, len(got.Jobs), got.Format, jobs)
			}
		}
	}
}
