package trace

import (
	"bytes"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/trainyard/trainyard/sched"
)

// FuzzParse ensures that no file makes Parse panic, that what it accepts keeps its promises, and that such a trace is
// written and read back unchanged.
func FuzzParse(f *testing.F) {
	for _, c := range samples {
		f.Add([]byte(c.text), int64(c.options.Unit))
	}
	f.Add([]byte(packed(samples[0].text, 1)), int64(0))
	f.Add([]byte(packed(samples[0].text, .6)), int64(0))
	f.Add([]byte(minimal+"\"a,\"\"\",1e-9,1,3155760000\nb,.0000000005,1000000,0\n"), int64(0))
	f.Add([]byte("name,time,application,num_replicas,batch_size\na,0,bert,100,8\n"), int64(0))
	f.Add([]byte("\x7fELF"), int64(-1))
	f.Fuzz(func(t *testing.T, data []byte, unit int64) {
		got, err := Parse(bytes.NewReader(data), "fuzz.csv", Options{Unit: time.Duration(unit)})
		if err != nil {
			if text := err.Error(); !strings.HasPrefix(text, "trace: ") || strings.Contains(text, "\n") {
				t.Errorf("error %q, want one line that begins with trace:", text)
			}
			return
		}
		checkPromises(t, got)
		if !got.Profiled {
			roundTrip(t, got)
		}
		again, err := Parse(bytes.NewReader(data), "fuzz.csv", Options{Unit: time.Duration(unit)})
		if err != nil || !reflect.DeepEqual(again, got) {
			t.Errorf("read twice, the trace differs (%v)", err)
		}
	})
}

// checkPromises checks what is said of every trace, whatever it came from.
func checkPromises(t *testing.T, got *Trace) {
	t.Helper()
	if len(got.Jobs) == 0 {
		t.Error("a trace without jobs")
	}
	names := make(map[string]bool)
	for i := range got.Jobs {
		j := &got.Jobs[i]
		if err := j.Spec.Validate(); err != nil {
			t.Errorf("job %d: %v", i, err)
		}
		if j.Spec.Name == "" || names[j.Spec.Name] {
			t.Errorf("job %d: name %q, want one of its own", i, j.Spec.Name)
		}
		names[j.Spec.Name] = true
		if i > 0 && j.Spec.Submit < got.Jobs[i-1].Spec.Submit {
			t.Errorf("job %d is submitted before job %d", i, i-1)
		}
		if !timeOK(j.Duration) || j.Spec.Submit > sched.Time(MaxTime) || j.Spec.GPUs.Want > MaxGPUs {
			t.Errorf("job %d: duration %v, submit %v, gpus %d, want them inside the limits", i, j.Duration, j.Spec.Submit, j.Spec.GPUs.Want)
		}
	}
	if s := Describe(got); s.Jobs != len(got.Jobs) || !(s.OfferedLoad(1) >= 0) {
		t.Errorf("%d jobs described with load %v, want %d with a load >= 0", s.Jobs, s.OfferedLoad(1), len(got.Jobs))
	}
}
