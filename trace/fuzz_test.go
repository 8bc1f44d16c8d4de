package trace

import (
	"bytes"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/trainyard/trainyard/sched"
)

// FuzzParse ensures that no file makes Parse panic, whatever format it is said to be in, that what it accepts keeps its
// promises, and that such a trace is written and read back unchanged.
func FuzzParse(f *testing.F) {
	for _, c := range samples {
		f.Add([]byte(c.text), c.tables.jobs, c.tables.instances, int64(c.options.Unit), "", c.options.Roughly)
		f.Add([]byte(c.text), c.tables.jobs, c.tables.instances, int64(c.options.Unit), c.format, !c.options.Roughly)
	}
	f.Add([]byte(packed(samples[0].text, 1)), "", "", int64(0), "", false)
	f.Add([]byte(packed(samples[0].text, .6)), "", "", int64(0), "", false)
	f.Add([]byte(minimal+"\"a,\"\"\",1e-9,1,3155760000\nb,.0000000005,1000000,0\n"), "", "", int64(0), "", false)
	f.Add([]byte(spaced), "", "", int64(0), "", false)
	f.Add([]byte(minimal+"\" a\", 0,\t1, 2\n \"b, \"\"c\",  0, 1,1\n"), "", "", int64(0), "", true)
	f.Add([]byte("name,time,application,num_replicas,batch_size\na,0,bert,100,8\n"), "", "", int64(0), "", false)
	f.Add([]byte("\x7fELF"), "", "", int64(-1), "", false)
	f.Fuzz(func(t *testing.T, data []byte, jobs, instances string, unit int64, format string, roughly bool) {
		parse := func() (*Trace, error) {
			o := Options{Unit: time.Duration(unit), Format: format, Roughly: roughly}
			if !roughly {
				o.Steps = EveryStep(time.Second)
			}
			return Parse(bytes.NewReader(data), "fuzz.csv", tables{jobs, instances}.with(o))
		}
		got, err := parse()
		if err != nil {
			if text := err.Error(); !strings.HasPrefix(text, "trace: ") || strings.Contains(text, "\n") {
				t.Errorf("error %q, want one line that starts with trace:", text)
			}
			return
		}
		checkPromises(t, got)
		if !got.Profiled {
			roundTrip(t, got)
			swfRoundTrip(t, got)
		}
		again, err := parse()
		if err != nil || !reflect.DeepEqual(again, got) {
			t.Errorf("read twice, the trace differs (%v)", err)
		}
	})
}

// swfRoundTrip ensures that SWF keeps what it has fields for.
func swfRoundTrip(t *testing.T, from *Trace) {
	t.Helper()
	var text bytes.Buffer
	if err := from.Write(&text, "swf", false); err != nil {
		t.Fatal(err)
	}
	again, err := Parse(bytes.NewReader(text.Bytes()), "again.swf", Options{})
	if err != nil || len(again.Jobs) != len(from.Jobs) || again.Format != "swf" {
		t.Fatalf("%d jobs came back (%v) of %d in\n%.1000s", len(again.Jobs), err, len(from.Jobs), text.String())
	}
	for i := range again.Jobs {
		got, want := &again.Jobs[i], &from.Jobs[i]
		if got.Spec.Submit != want.Spec.Submit || got.Duration != want.Duration || got.Spec.GPUs != want.Spec.GPUs ||
			got.MilliGPU != want.MilliGPU || got.Spec.WallTime != want.Spec.WallTime ||
			(got.Spec.User == "") != (want.Spec.User == "") {
			t.Fatalf("job %d: %+v became %+v", i, want, got)
		}
	}
	if !from.Origin.IsZero() && from.Origin.Unix() > 0 && !again.Origin.Equal(from.Origin.Truncate(time.Second)) {
		t.Errorf("origin %v became %v", from.Origin, again.Origin)
	}
}

// FuzzReadSteps ensures that no table of step times makes ReadSteps panic, and that those it accepts are positive.
func FuzzReadSteps(f *testing.F) {
	f.Add([]byte("model,batch_size,num_gpus,step_s\nLM,20,,0.25\nA3C,,2,1e-3\n"))
	f.Add([]byte("step_s\n0\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		s, err := ReadSteps(bytes.NewReader(data), "steps.csv")
		if err != nil {
			if text := err.Error(); !strings.HasPrefix(text, "trace: ") || strings.Contains(text, "\n") {
				t.Errorf("error %q, want one line that starts with trace:", text)
			}
			return
		}
		for _, r := range s.rows {
			if r.step <= 0 || r.batch < 0 || r.gpus < 0 {
				t.Errorf("row %+v, want a step above 0", r)
			}
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
			t.Errorf("job %d: duration %v, submit %v, gpus %d, want them inside the limits", i, j.Duration,
				j.Spec.Submit, j.Spec.GPUs.Want)
		}
	}
	s := Describe(got)
	got.Doubts(&s)
	hours := 0
	for _, n := range s.Arrivals.Hours {
		hours += n
	}
	if hours != len(got.Jobs) || s.AskedFor > s.GPUTime*(1+1e-9) {
		t.Errorf("%d jobs by hour, %v of %v GPU-seconds asked for", hours, s.AskedFor, s.GPUTime)
	}
	if s.Jobs != len(got.Jobs) || !(s.OfferedLoad(1) >= 0) {
		t.Errorf("%d jobs described with load %v, want %d with a load >= 0", s.Jobs, s.OfferedLoad(1), len(got.Jobs))
	}
}
