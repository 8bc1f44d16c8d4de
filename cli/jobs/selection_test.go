package jobs

import (
	"strconv"
	"strings"
	"testing"

	"github.com/trainyard/trainyard/api"
)

// Ensure that verbs about one job find a task of an array by its number, also once it is done, and leave names alone.
func TestOneTask(t *testing.T) {
	list := []api.Job{{ID: 0, Name: "7_3"},
		{ID: 16, Name: "a_b_2", State: "done", Array: &api.Task{First: 16, Index: 2}},
		{ID: 17, Name: "a_b_5", State: "running", Array: &api.Task{First: 16, Index: 5}}}
	for _, c := range []struct{ arg, want, bad string }{
		{arg: "16_2", want: "16"}, {arg: "16_5", want: "17"}, {arg: "7_3", want: "7_3"}, {arg: "16", want: "16"},
		{arg: "16_3", bad: "no such job"}, {arg: "16_*", bad: "means 2 jobs, want one"},
		{arg: "16_x", bad: "want tasks"},
		{arg: "a_b_[2]", want: "16"}, {arg: "a_b_*", bad: "means 2 jobs, want one"},
		{arg: "a_b_[x]", bad: "want tasks"},
		{arg: "a_c_[2]", want: "a_c_[2]"},
	} {
		got, err := oneOf(list, c.arg)
		if got != c.want || (err != nil) != (c.bad != "") || err != nil && !strings.Contains(err.Error(), c.bad) {
			t.Errorf("%s: %q, %v; want %q, %q", c.arg, got, err, c.want, c.bad)
		}
	}
}

// Ensure that the name under which a list has an array selects its tasks that are not done, unless a job has the name
// or two arrays that go on have it.
func TestNameOfArray(t *testing.T) {
	t.Parallel()
	task := func(first, index int, name, state string) api.Job {
		return api.Job{ID: first + index, Name: name + "_" + strconv.Itoa(index), State: state,
			Array: &api.Task{First: first, Index: index, Size: 3}}
	}
	list := []api.Job{task(0, 0, "sweep", "done"), task(0, 1, "sweep", "done"), task(10, 0, "sweep", "done"),
		task(10, 1, "sweep", "running"), task(10, 2, "sweep", "waiting"),
		{ID: 20, Name: "alone", User: "ann", State: "waiting"},
		task(30, 0, "alone", "waiting"), task(40, 0, "two", "waiting"), task(50, 0, "two", "waiting"),
		task(60, 0, "old", "done"), {ID: 70, Name: "bad", User: "ann", State: "done", Outcome: "failed"}}
	for _, c := range []struct {
		arg  string
		of   selection
		want string
		bad  string
	}{
		{arg: "sweep", want: "11 12"}, {arg: "sweep", of: selection{done: true}, want: "10 11 12"},
		{arg: "alone", want: "alone"}, {arg: "none", want: "none"},
		{arg: "two", want: "two", bad: "arrays 40 and 50 have that name"},
		{arg: "old", of: selection{done: true}, want: "60"}, {arg: "old", want: ""},
		{arg: "10_[0-2%8]", want: "10 11 12"},
		{arg: "sweep", of: selection{status: []string{"running"}}, want: "11"},
		{of: selection{all: true, done: true}, want: "11 12 20 30 40 50"},
		{of: selection{user: "ann", done: true}, want: "20"},
		{of: selection{user: "ann", status: []string{"failed"}, done: true}, want: "70"},
	} {
		got, err := c.of.match(list, c.arg)
		if strings.Join(got, " ") != c.want || (err != nil) != (c.bad != "") ||
			err != nil && !strings.Contains(err.Error(), c.bad) {
			t.Errorf("%s, %+v: %q, %v; want %q, %q", c.arg, c.of, got, err, c.want, c.bad)
		}
	}
}

// BenchmarkSelection selects the even ones of 100,000 tasks by their indices.
func BenchmarkSelection(b *testing.B) {
	const many = 100_000
	list := make([]api.Job, many)
	for i := range list {
		list[i] = api.Job{ID: i, State: "waiting", Array: &api.Task{Index: i, Size: many}}
	}
	for b.Loop() {
		if found, err := new(selection).match(list, "0_[0-99999:2]"); err != nil || len(found) != many/2 {
			b.Fatal(len(found), err)
		}
	}
}
