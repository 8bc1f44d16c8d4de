package variability

import (
	"bytes"
	"errors"
	"math"
	"reflect"
	"strings"
	"testing"
	"testing/iotest"
)

func TestReadScores(t *testing.T) {
	want := &Scores{Name: "f.csv", GPUs: []GPU{{"0", "n0"}, {"x,1", ""}}, Classes: []string{"A", "B"},
		PM: [][]float64{{1, .5}, {2, 1.25}}}
	for _, text := range []string{
		"gpu,node,pm_classA,pm_classB\n0,n0,1,2\n\"x,1\",,.5,1.25\n",
		"\ufeffgpu,node,pm_classA,pm_classB\r\n0,n0,1,2\r\n\r\n\"x,1\",,5e-1,1.25",
		"sf_classA,pm_classA,pm_classB,gpu,sf_classB,node\n9,1,2,0,what,n0\n,.5,1.25,\"x,1\",,\n",
		",GPU_ID,GPU_UUID,Local_GPU_ID,Node_ID,IP_addr,IN_USE,JOB_IDS,PerfVar_classA,PerfVar_classB\n" +
			"0,0,0,0,n0,::,False,,1,2\n,,\"x,1\",,,,,,.5,1.25\n",
	} {
		got, err := ReadScores(strings.NewReader(text), "f.csv")
		if err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%q: %+v, %v", text, got, err)
		}
	}
}

func TestReadScoresRefuses(t *testing.T) {
	const head = "gpu,node,pm_classA,pm_classB\n"
	for _, c := range []struct{ text, want string }{
		{"", `line 1: empty file, want a header line and rows`},
		{head, `line 1: no GPUs, want a row for each`},
		{"gpu,pm_classA\n", `line 1: no column "node", want the columns gpu, node`},
		{"GPU_UUID,PerfVar_classA\n", `line 1: no column "Node_ID", want the columns GPU_UUID, Node_ID`},
		{"gpu,node\n", `line 1: no scores, want a column pm_classA or the like`},
		{"gpu,node,pm_class\n", `line 1: column "pm_class", want a name of 1 to 256 bytes without control characters ` +
			`behind pm_class`},
		{"gpu,node,pm_classA,power\n", `line 1: unknown column "power", want gpu, node and scores in pm_class...`},
		{"gpu,node,pm_classA,pm_classA\n", `line 1: column "pm_classA" twice, want it once`},
		{head + "0,0,1,0\n", `line 2: pm_classB "0" of GPU "0", want a number > 0`},
		{head + "0,0,1,-2\n", `line 2: pm_classB "-2" of GPU "0", want a number > 0`},
		{head + "0,0,NaN,1\n", `line 2: pm_classA "NaN" of GPU "0", want a number > 0`},
		{head + "0,0,1,1\n1,0,1,+Inf\n", `line 3: pm_classB "+Inf" of GPU "1", want a number in 1e-06..1e+06`},
		{head + "0,0,1e400,1\n", `line 2: pm_classA "1e400" of GPU "0", want a number in 1e-06..1e+06`},
		{head + "0,0,,1\n", `line 2: pm_classA "" of GPU "0", want a number > 0`},
		{head + "0,0,fast,1\n", `line 2: pm_classA "fast" of GPU "0", want a number > 0`},
		{head + "0,0,1\n", `line 2: 3 fields, want 4 as in the header`},
		{head + "0,0,1,1\n\n0,1,1,1\n", `line 4: GPU "0", want each once: it is in line 2 too`},
		{head + ",0,1,1\n", `line 2: GPU "", want a name of 1 to 256 bytes without control characters`},
		{head + "0,\"a\nb\",1,1\n", `line 2: node "a\nb", want a name of 1 to 256 bytes without control characters`},
		{head + "\"0,0,1,1\n", `line 2: extraneous or missing " in quoted-field, want comma-separated values`},
	} {
		if _, err := ReadScores(strings.NewReader(c.text), "f.csv"); err == nil ||
			err.Error() != "variability: f.csv: "+c.want {
			t.Errorf("%q:\n%v\nwant variability: f.csv: %s", c.text, err, c.want)
		}
	}
	broken := errors.New("broken")
	if _, err := ReadScores(iotest.ErrReader(broken), "f.csv"); !errors.Is(err, broken) {
		t.Errorf("%v, want one that wraps %v", err, broken)
	}
}

// good returns a small valid table.
func good() *Scores {
	return &Scores{Name: "table", GPUs: []GPU{{"a", "n"}, {"b", ""}}, Classes: []string{"A", "hybrid"},
		PM: [][]float64{{1, 1.5}, {.9, 1}}}
}

func TestValidate(t *testing.T) {
	for _, c := range []struct {
		change func(*Scores)
		want   string
	}{
		{func(s *Scores) { s.GPUs = nil }, `0 GPUs, want 1..131072`},
		{func(s *Scores) { s.PM = s.PM[:1] }, `2 classes and scores for 1, want as many, in 1..64`},
		{func(s *Scores) { s.GPUs[1].Name = "" }, `GPU "", want a name of 1 to 256 bytes without control characters`},
		{func(s *Scores) { s.GPUs[1].Name = "a" }, `GPU "a" twice, want it once`},
		{func(s *Scores) { s.GPUs[1].Node = "\x00" },
			`node "\x00" of GPU "b", want a name of 1 to 256 bytes without control characters`},
		{func(s *Scores) { s.Classes[1] = "A" }, `class "A" twice, want it once`},
		{func(s *Scores) { s.Classes[0] = "\xff" },
			`class "\xff", want a name of 1 to 256 bytes without control characters`},
		{func(s *Scores) { s.PM[1] = s.PM[1][:1] }, `class "hybrid" has 1 scores, want one for each of 2 GPUs`},
		{func(s *Scores) { s.PM[1][0] = 0 }, `class "hybrid", GPU "a": score 0, want a number in 1e-06..1e+06`},
		{func(s *Scores) { s.PM[0][1] = math.NaN() }, `class "A", GPU "b": score NaN, want a number in 1e-06..1e+06`},
		{func(s *Scores) { s.PM[0][1] = math.Inf(1) }, `class "A", GPU "b": score +Inf, want a number in 1e-06..1e+06`},
	} {
		s := good()
		c.change(s)
		if err := s.Validate(); err == nil || err.Error() != "variability: table: "+c.want {
			t.Errorf("%v, want variability: table: %s", err, c.want)
		}
		if err := s.WriteCSV(new(bytes.Buffer)); err == nil {
			t.Errorf("a table is written where %s", c.want)
		}
	}
	if err := good().Validate(); err != nil {
		t.Error(err)
	}
}

func TestClassAndSelect(t *testing.T) {
	s := good()
	if c, err := s.Class("hybrid"); c != 1 || err != nil {
		t.Errorf("class %d, %v", c, err)
	}
	if _, err := s.Class("hybird"); err == nil ||
		err.Error() != `variability: table: no class "hybird" (did you mean "hybrid"?), want one of A, hybrid` {
		t.Error(err)
	}
	got, err := s.Select([]string{"b", "a"})
	want := &Scores{Name: "table", GPUs: []GPU{{"b", ""}, {"a", "n"}}, Classes: s.Classes,
		PM: [][]float64{{1.5, 1}, {1, .9}}}
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("%+v, %v", got, err)
	}
	if _, err := s.Select([]string{"a", "c"}); err == nil ||
		err.Error() != `variability: table: no scores of GPU "c", want a row for each GPU of the cluster` {
		t.Error(err)
	}
	if _, err := s.Select([]string{"a", "a"}); err == nil {
		t.Error("a GPU was selected twice")
	}
}

// Ensure that the list of nodes that the released code ships is read: 8 nodes of 4 GPUs, B and C alike.
func TestReadPlainTable(t *testing.T) {
	s := readScores(t, "variability", "32gpu-variability.csv")
	if len(s.GPUs) != 32 || len(s.Classes) != 4 || s.GPUs[31].Node != "7" || !reflect.DeepEqual(s.PM[1], s.PM[2]) ||
		s.PM[0][0] != 1.014469743078943 || s.GPUs[0].Name != "GPU-0f4b2b1e-8297-a5c6-d9f9-1c2635c4cc92" {
		t.Errorf("%d GPUs of %q, last on node %s, first %v with %v", len(s.GPUs), s.Classes, s.GPUs[31].Node, s.GPUs[0],
			s.PM[0][0])
	}
}

// FuzzReadScores ensures that no table makes the reader panic, that errors say where, and that what is accepted is
// valid, is written and read back unchanged, and can be binned.
func FuzzReadScores(f *testing.F) {
	for _, seed := range []string{
		"gpu,node,pm_classA,sf_classA\n0,0,1,1\n1,0,2.5,1\n", "gpu,node,pm_class\n",
		"\ufeffgpu,node,pm_classA B\r\n\"0\",\" \",1e-6\r\n",
		",GPU_ID,GPU_UUID,Local_GPU_ID,Node_ID,IP_addr,IN_USE,JOB_IDS,PerfVar_classA\n0,0,u,0,0,,,,1\n", "\"", "",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		s, err := ReadScores(strings.NewReader(text), "f")
		if err != nil {
			checkError(t, err)
			return
		}
		var out bytes.Buffer
		if err = s.WriteCSV(&out); err != nil { // it validates
			t.Fatal(err)
		}
		again, err := ReadScores(&out, "f")
		if err != nil || !reflect.DeepEqual(again, s) {
			t.Fatalf("%+v changed in writing and reading to %+v, %v", s, again, err)
		}
		for c, b := range (Rule{}).All(s) {
			checkBins(t, s.PM[c], b)
		}
	})
}

// checkError checks that the error of a reader is one line and names file and line.
func checkError(t *testing.T, err error) {
	t.Helper()
	if text := err.Error(); !strings.HasPrefix(text, "variability: f: line ") || strings.Contains(text, "\n") {
		t.Errorf("error %q, want one line with file and line", text)
	}
}
