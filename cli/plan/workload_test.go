package plan

import (
	"fmt"
	"strings"
	"testing"

	"github.com/trainyard/trainyard/model/price"
)

// Ensure that a table of classes is taken as written.
func TestParseWorkload(t *testing.T) {
	w, err := parseWorkload([]byte(`
classes:
  - name: x
    rate_per_hour: 2
    restart_seconds: 36
    weight: 3
    max_gpus: 4
    gpu_types: {b: {speed: 2, speedup: {power: {exponent: 0}}}, a: 1}
    speedup: {table: {8: 5, 1: 1, 4: 3}}
    epochs:
      - {size_hours: 6}
      - {size_hours: 3, speedup: {table: {2: 1.5}}, gpu_types: {a: 1}}
gpu_types: [{name: a, price: 1}, {name: b, price: 0.5}]
`), "f")
	if err != nil {
		t.Fatal(err)
	}
	got := fmt.Sprint(w.classes())
	want := "[{x 2 3 0.01 [{0 1 1} {0 2 1} {0 4 1} {1 1 0.5} {1 2 0.5} {1 3 0.5} {1 4 0.5}] [[6 +Inf 2 3 3 3 3] " +
		"[+Inf 2 +Inf +Inf +Inf +Inf +Inf]]}]"
	if got != want {
		t.Errorf("got %s\nwant %s", got, want)
	}
}

func TestWorkloadErrors(t *testing.T) {
	class := func(keys string) string { return "classes: [{name: a, " + keys + "}]" }
	for _, c := range []struct{ src, want string }{
		{"", "1:1: empty document, want classes"},
		{"classes: []", "1:10: classes is an empty list, want a list of at least one"},
		{"gpu_types: [{name: a, price: 1}]", "1:1: no classes, want a list of at least one"},
		{"class: 1", `1:1: unknown key "class" (did you mean "classes"?), want one of gpu_types, classes`},
		{"classes: [{rate_per_hour: 1}]", "1:11: a class without a name, want one"},
		{class("size_hours: 1, speedup: {power: {exponent: 0.5}}"),
			"1:11: class a without rate_per_hour, want a number from 1e-6 to 1e9"},
		{class("rate_per_hour: 1"), "1:11: class a with both size_hours and epochs or neither, want one of them"},
		{class("rate_per_hour: 1, size_hours: 1"), "1:11: class a without speedup, want one"},
		{class("rate_per_hour: 0, size_hours: 1"), "1:36: rate_per_hour 0, want a number from 1e-6 to 1e9"},
		{class("rate_per_hour: 1, size_hours: .nan"), "1:51: size_hours .nan, want a number from 1e-6 to 1e9"},
		{class("rate_per_hour: 1, epochs: []"), "1:47: epochs is an empty list, want a list of at least one"},
		{class("rate_per_hour: 1, epochs: [{speedup: {power: {exponent: 0.5}}}]"),
			"1:48: an epoch without size_hours, want a number from 1e-6 to 1e9"},
		{class("speedup: {power: {exponent: 1}}"), "1:49: exponent 1, want a number from 0 to 0.9999"},
		{class("speedup: {amdahl: {}}"), "1:39: amdahl without parallel, want it"},
		{class("speedup: {}"), "1:30: 0 speedup curves, want one of amdahl, power, table"},
		{class("speedup: {amdahl: {parallel: 0.1}, power: {exponent: 0.1}}"),
			"1:30: 2 speedup curves, want one of amdahl, power, table"},
		{class("speedup: {table: {0: 1}}"), `1:39: "0" GPUs, want a whole number from 1 to 1024`},
		{class("speedup: {table: {1: 0}}"), "1:42: 1 0, want a number from 1e-6 to 1e9"},
		{class("speedup: {table: {1: 1, 1: 2}}"), "1:45: 1 given again, want it once (first on line 1)"},
		{class("speedup: {table: {}}"), "1:38: table is a mapping, want GPUs to speeds"},
		{class("rate_per_hour: 1, size_hours: 1, max_gpus: 2, speedup: {table: {4: 1}}"),
			"1:11: class a has no speed on 2 GPUs or fewer, want a width up to max_gpus"},
		{class("gpu_types: {t4: 1}"), `1:33: GPU type "t4", want one of the document's gpu_types`},
		{"gpu_types: [{name: a}]\nclasses: [{name: a}]",
			"1:13: GPU type a without a price, want a number from 1e-6 to 1e9"},
		{"gpu_types: [{name: a, price: 1}, {name: a, price: 2}]\nclasses: [{name: a}]",
			`1:34: name "a" given again, want GPU types of different names`},
		{"gpu_types: [{name: a, price: 1}]\n" + class("rate_per_hour: 1, size_hours: 1, speedup: {power: "+
			"{exponent: 0.5}}"), "2:11: class a without gpu_types, want the speed of one GPU of each type it can use"},
	} {
		_, err := parseWorkload([]byte(c.src), "f")
		if got, want := fmt.Sprint(err), "workload: f:"+c.want; got != want {
			t.Errorf("%q:\n got %s\nwant %s", c.src, got, want)
		}
	}
}

// FuzzWorkload checks that no table makes the reader panic, and that one that was read can be planned for.
func FuzzWorkload(f *testing.F) {
	f.Add("classes: [{name: a, rate_per_hour: 0.4, size_hours: 1, speedup: {amdahl: {parallel: 0.8}}}]")
	f.Add("classes: [{name: a, rate_per_hour: 3, restart_seconds: 9, epochs: [{size_hours: 1}, {size_hours: 2, " +
		"speedup: {table: {1: 1, 2: 1.8}}}], max_gpus: 4, speedup: {power: {exponent: 0.5}}}]")
	f.Add("gpu_types: [{name: t, price: 2}]\nclasses: [{name: a, weight: 2, rate_per_hour: 3, size_hours: 1, " +
		"gpu_types: {t: {speed: 2, speedup: {table: {4: 1}}}}}]")
	f.Fuzz(func(t *testing.T, src string) {
		w, err := parseWorkload([]byte(src), "f")
		if err != nil {
			if msg := err.Error(); !strings.HasPrefix(msg, "workload: f:") || !strings.Contains(msg, ", want ") ||
				strings.Contains(msg, "\n") {
				t.Fatalf("error %q", msg)
			}
			return
		}
		x, err := price.NewExact(w.classes())
		if err != nil {
			t.Fatal(err)
		}
		if p, err := x.At(x.Frontier().Most()); err != nil || !(p.Usage <= x.Frontier().Most()*(1+1e-9)) {
			t.Fatal(p, err)
		}
	})
}
