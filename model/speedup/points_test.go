package speedup

import (
	"testing"
	"testing/fstest"
)

func TestPoints(t *testing.T) {
	s, err := ReadSteps(fstest.MapFS{
		"a/placements.csv": {Data: []byte("placement,local_bsz,step_time,sync_time\n1,8,2,0\n12,8,4,1\n111,8,6,1\n" +
			"12,16,5,1\n")},
		"a/scalability.csv": {Data: []byte("num_nodes,num_replicas,local_bsz,step_time,sync_time\n4,8,16,3,2\n")},
	}, "a", "")
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		placement []int
		want      bool
	}{{[]int{1}, true}, {[]int{2, 0, 1}, true}, {[]int{1, 1}, false}, {[]int{2, 2, 2, 2}, false}} {
		if got := s.Measured(c.placement); got != c.want {
			t.Errorf("Measured(%v) = %v", c.placement, got)
		}
	}
	type point struct {
		nodes, gpus, perGPU int
		step, sync          float64
	}
	var got []point
	s.Points(func(nodes, gpus, perGPU int, step, sync float64) {
		got = append(got, point{nodes, gpus, perGPU, step, sync})
	})
	want := []point{{1, 1, 8, 2, 0}, {2, 3, 8, 4, 1}, {2, 3, 16, 5, 1}, {3, 3, 8, 6, 1}, {4, 8, 16, 3, 2}}
	if len(got) != len(want) {
		t.Fatalf("points %v, want %v", got, want)
	}
	for i := range want {
		if got[i] != want[i] {
			t.Errorf("point %v, want %v", got[i], want[i])
		}
	}
}
