package sched

import "testing"

// Ensure that a task of an array is found by its user's number, the whole array by its first task, and nothing else.
func TestTask(t *testing.T) {
	v := &View{Jobs: make([]Job, 5)}
	for id := range v.Jobs {
		v.Jobs[id].Spec = &JobSpec{}
	}
	for place, index := range []int32{2, 5, 9} {
		v.Jobs[1+place].Spec.Ties.Array = Array{Place: int32(place), Index: index, Size: 3}
	}
	for _, c := range []struct {
		text string
		id   JobID
		ok   bool
	}{
		{"1_2", 1, true}, {"1_9", 3, true}, {"1_3", 0, false}, {"2_5", 0, false}, {"0_2", 0, false}, {"7_2", 0, false},
		{"1", 0, false}, {"1_", 0, false}, {"_2", 0, false}, {"1_-2", 0, false}, {"1_2_3", 0, false},
	} {
		first, index, ok := ParseTask(c.text)
		var id JobID
		if ok {
			id, ok = v.Task(first, index)
		}
		if ok != c.ok || ok && id != c.id {
			t.Errorf("%s: job %d, %v, want %d, %v", c.text, id, ok, c.id, c.ok)
		}
	}
	if end, ok := v.Tasks(1); !ok || end != 4 {
		t.Errorf("array 1 ends before %d, %v", end, ok)
	}
	for _, id := range []JobID{0, 2, 4, 5} {
		if _, ok := v.Tasks(id); ok {
			t.Errorf("job %d is taken for an array", id)
		}
	}
}

// Ensure that a job whose end is wanted and that is not waited for is found, wherever it stands.
func TestUntied(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		after, ok, fail []JobID
		want            JobID
	}{
		{nil, nil, nil, None},
		{[]JobID{3, 1}, nil, nil, None},
		{[]JobID{3, 1, 2}, []JobID{1, 3}, []JobID{2}, None},
		{[]JobID{3, 1}, []JobID{1, 3, 2}, nil, 2},
		{[]JobID{3, 1}, []JobID{1}, []JobID{3, 4}, 4},
		{nil, nil, []JobID{0}, 0},
	} {
		s := JobSpec{After: c.after, Ties: Ties{AfterOK: c.ok, AfterFail: c.fail}}
		if got := s.Untied(); got != c.want {
			t.Errorf("after %v, ok %v, fail %v: %v, want %v", c.after, c.ok, c.fail, got, c.want)
		}
	}
}

// Ensure that a job misses an end that is not the one that it wants, and no other.
func TestMisses(t *testing.T) {
	s := JobSpec{After: []JobID{1, 2, 3}, Ties: Ties{AfterOK: []JobID{1}, AfterFail: []JobID{2}}}
	for _, c := range []struct {
		job  JobID
		end  Outcome
		want bool
	}{{1, Finished, false}, {1, Failed, true}, {1, Cancelled, true}, {2, Finished, true}, {2, Failed, false},
		{2, Cancelled, false}, {3, Finished, false}, {3, Failed, false}} {
		if got := s.Misses(c.job, c.end); got != c.want {
			t.Errorf("job %d ends %v: misses %v, want %v", c.job, c.end, got, c.want)
		}
	}
}
