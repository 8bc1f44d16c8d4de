package jobfile

import (
	"fmt"
	"reflect"
	"strings"
	"testing"

	"github.com/trainyard/trainyard/sched"
)

// Ensure that numbers of arrays are read as Slurm writes them, in order and each once.
func TestParseArray(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]Array{
		"0-3":       {Indices: []int32{0, 1, 2, 3}},
		"7":         {Indices: []int32{7}},
		"5-9:2,1,5": {Indices: []int32{1, 5, 7, 9}},
		"0-2%2":     {Indices: []int32{0, 1, 2}, AtOnce: 2},
	} {
		if got, err := ParseArray(text); err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%s: %v %v, want %v", text, got, err, want)
		}
	}
	for _, text := range []string{"", "a", "-1", "1-", "3-1", "1:0", "0-3%", "0-3%x", "0-100000", "0-99999,0-5", "1,,2",
		"16777216", "1.5", " 1"} {
		if got, err := ParseArray(text); err == nil {
			t.Errorf("%q: %v, want an error", text, got)
		}
	}
}

// Ensure that tasks of an array have consecutive numbers, whatever waits for one of them, and that jobs which exist
// already are kept apart from those of the list.
func TestTasksInOrder(t *testing.T) {
	t.Parallel()
	list, err := ParseJobs([]byte(`
jobs:
  - {name: early, command: [a], after: [ok:t_3, 12, fail:old]}
  - {name: t, command: [a], array: "3,5,9%2", after: [last]}
  - {name: last, command: [a]}
  - {name: all, command: [a], after: [any:t]}
`), "f.yaml")
	if err != nil {
		t.Fatal(err)
	}
	got := ""
	for id := range list {
		s := &list[id].Spec
		got += fmt.Sprintln(s.Name, s.After, s.Ties.AfterOK, s.Ties.AfterFail, s.Ties.Array, list[id].Existing)
	}
	want := `last [] [] [] {0 0 0 0} []
t_3 [0] [] [] {0 3 3 2} []
t_5 [0] [] [] {1 5 3 2} []
t_9 [0] [] [] {2 9 3 2} []
early [1] [1] [] {0 0 0 0} [{12 any} {old fail}]
all [1 2 3] [] [] {0 0 0 0} []
`
	if got != want {
		t.Errorf("got\n%swant\n%s", got, want)
	}
	list[4].Wait([][]sched.JobID{{7, 8}, {1}})
	if s := &list[4].Spec; fmt.Sprint(s.After, s.Ties.AfterOK, s.Ties.AfterFail) != "[1 7 8] [1] [1]" {
		t.Errorf("waits for %v, %v, %v", s.After, s.Ties.AfterOK, s.Ties.AfterFail)
	}
}

// Ensure that pairs of a job and one that exists already are counted too: each is a number in memory and in the log.
func TestPairsWithExistingJobs(t *testing.T) {
	t.Parallel()
	for most, want := range map[string]string{"0-99999": "more than 1000000 pairs", "0-90908": ""} {
		after := make([]string, 11)
		for i := range after {
			after[i] = fmt.Sprint("ok:", i)
		}
		_, err := ParseJobs(fmt.Appendf(nil, "jobs: [{command: [a], array: %s, after: [%s]}]", most,
			strings.Join(after, ", ")), "f.yaml")
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("array %s: %v, want %q", most, err, want)
		}
	}
}
