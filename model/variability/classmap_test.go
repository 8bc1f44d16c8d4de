package variability

import (
	"slices"
	"strings"
	"testing"
)

var labels = []string{"A", "B", "C"}

// Ensure that names of models match as published ones do, and that models without a row are not known.
func TestClassMap(t *testing.T) {
	m, err := ReadClassMap(strings.NewReader("class,model\nB,BERT-large\nA,my_net\n"), "f.csv", labels)
	if err != nil {
		t.Fatal(err)
	}
	for model, want := range map[string]string{"bert_Large": "B", "mynet": "A", "other": "", "": ""} {
		if c, ok := m.Class(model); ok != (want != "") || c != want {
			t.Errorf("%s: %s, %v, want %s", model, c, ok, want)
		}
	}
	if _, known := (&ClassMap{}).Class("x"); known {
		t.Error("the zero map knows x")
	}
}

// Ensure that profiles put compute-bound models into the first class and memory-bound ones into the last, each kernel
// counting for its time: but for that, hybrid would be with the first.
func TestClassMapFromProfiles(t *testing.T) {
	m, err := ReadClassMap(strings.NewReader("model,seconds,dram_util,peak_fu_util\n"+
		"conv,10,20,90\nconv2,5,25,85\nhybrid,1,10,95\nhybrid,9,60,50\nmixed,1,55,55\ngraph,3,90,5\nlookup,2,85,10\n"),
		"f.csv", labels)
	if err != nil {
		t.Fatal(err)
	}
	for model, want := range map[string]string{"conv": "A", "conv2": "A", "hybrid": "B", "mixed": "B", "graph": "C",
		"lookup": "C"} {
		if c, ok := m.Class(model); !ok || c != want {
			t.Errorf("%s: %s, %v, want %s", model, c, ok, want)
		}
	}
}

func TestReadClassMapRefuses(t *testing.T) {
	const named, profiled = "model,class\n", "model,seconds,dram_util,peak_fu_util\n"
	for _, c := range []struct{ text, want string }{
		{"", `line 1: empty file, want a header line and rows`},
		{named, `line 1: no rows, want at least one`},
		{"model\n", `line 1: no column "seconds", want the columns model, seconds, dram_util, peak_fu_util`},
		{"class\nA\n", `line 1: no column "model", want the columns model, class`},
		{"model,class,note\n", `line 1: 3 columns, want the columns model, class`},
		{named + "a,A\nb,E\n", `line 3: class "E", want one of A, B, C`},
		{named + "a,b\n", `line 2: class "b" (did you mean "B"?), want one of A, B, C`},
		{named + "My-Net,A\nx,B\nmy_net,B\n", `line 4: model "my_net", want each once: it is in line 2 too`},
		{named + "-,A\n", `line 2: model "-", want a name of 1 to 256 bytes without control characters`},
		{profiled + "a,1,101,0\n", `line 2: dram_util "101", want a number in 0..100`},
		{profiled + "a,-1,0,0\n", `line 2: seconds "-1", want a number in 0..1e+09`},
		{profiled + "a,1,0,NaN\n", `line 2: peak_fu_util "NaN", want a number in 0..100`},
		{profiled + "a,0,10,10\n", `model "a": kernels that take no time, want some that do`},
		{profiled + "a,1,10,10\nb,1,20,10\n", `2 applications that differ, want at least 3 for as many classes`},
	} {
		if _, err := ReadClassMap(strings.NewReader(c.text), "f.csv", labels); err == nil ||
			err.Error() != "variability: f.csv: "+c.want {
			t.Errorf("%q:\n%v\nwant variability: f.csv: %s", c.text, err, c.want)
		}
	}
}

// FuzzReadClassMap ensures that no map makes the reader panic, that errors say where, and that every class is one of
// those there are.
func FuzzReadClassMap(f *testing.F) {
	f.Add("model,class\na,A\n", "a")
	f.Add("model,seconds,dram_util,peak_fu_util\na,1,1,1\nb,2,2,2\nc,3,9,3\n", "b")
	f.Fuzz(func(t *testing.T, text, model string) {
		m, err := ReadClassMap(strings.NewReader(text), "f", labels)
		if err != nil {
			if !strings.HasPrefix(err.Error(), "variability: f: ") {
				t.Errorf("%v", err)
			}
			return
		}
		if c, ok := m.Class(model); ok != slices.Contains(labels, c) {
			t.Errorf("class %s", c)
		}
	})
}
