package store

import (
	"bytes"
	"reflect"
	"testing"

	"github.com/trainyard/trainyard/explain"
	"github.com/trainyard/trainyard/sched"
)

// Ensure that forecasts are there again after a restart as they were given, that the newest alone are kept, that the
// log does not change by them, and that a manager that has lost the folder keeps none.
func TestForecasts(t *testing.T) {
	dir := t.TempDir()
	s := begin(t, dir)
	if list, err := s.Forecasts(); err != nil || len(list) != 0 {
		t.Fatalf("%v, %v, want none", list, err)
	}
	if _, err := s.NextEpoch(0); err != nil {
		t.Fatal(err)
	}
	log := func(s *Store) []byte {
		lines, err := s.Lines()
		if err != nil {
			t.Fatal(err)
		}
		defer lines.Close()
		var b bytes.Buffer
		if _, err := b.ReadFrom(lines); err != nil {
			t.Fatal(err)
		}
		return b.Bytes()
	}
	before := log(s)
	want := []explain.Foretold{
		{At: 5, Job: 3, System: "las", Start: explain.Span{P10: 6, P50: 7, P90: sched.Never, Alone: true},
			End: explain.Span{P10: 5, P50: sched.Never, P90: sched.Never, Unknown: true}},
		{At: 9, Job: 0, System: "fifo", Start: explain.Span{P10: 1, P50: 1, P90: 1, Unknown: true},
			End: explain.Span{P10: 11, P50: 12, P90: 13, Alone: true}},
	}
	for _, f := range want {
		if err := s.KeepForecast(f); err != nil {
			t.Fatal(err)
		}
	}
	closed(t, s)
	s = open(t, dir)
	if list, err := s.Forecasts(); err != nil || !reflect.DeepEqual(list, want) {
		t.Errorf("%+v, %v, want %+v", list, err, want)
	}
	if after := log(s); !bytes.Equal(before, after) {
		t.Error("the log is another")
	}
	if _, err := s.NextEpoch(0); err != nil {
		t.Fatal(err)
	}
	if _, err := s.db.Exec("update forecasts set id = ? where id = 2", MostForecasts+1); err != nil {
		t.Fatal(err)
	}
	if err := s.KeepForecast(want[0]); err != nil {
		t.Fatal(err)
	}
	if list, err := s.Forecasts(); err != nil || len(list) != 2 || list[0].At != 9 || list[1].At != 5 {
		t.Errorf("%+v, %v, want the newest %d alone", list, err, MostForecasts)
	}
	if _, err := s.db.Exec("update meta set value = '99' where name = 'epoch'"); err != nil {
		t.Fatal(err)
	}
	if err := s.KeepForecast(want[0]); err != nil {
		t.Error(err)
	}
	if list, _ := s.Forecasts(); len(list) != 2 {
		t.Error("a manager that has lost the folder keeps a forecast")
	}
}
