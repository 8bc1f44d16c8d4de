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
		if err := s.KeepForecasts([]explain.Foretold{f}); err != nil {
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
	if err := s.KeepForecasts(want[:1]); err != nil {
		t.Fatal(err)
	}
	if list, err := s.Forecasts(); err != nil || len(list) != 2 || list[0].At != 9 || list[1].At != 5 {
		t.Errorf("%+v, %v, want the newest %d alone", list, err, MostForecasts)
	}
	if _, err := s.db.Exec("update meta set value = '99' where name = 'epoch'"); err != nil {
		t.Fatal(err)
	}
	if err := s.KeepForecasts(want[:1]); err != nil {
		t.Error(err)
	}
	if list, _ := s.Forecasts(); len(list) != 2 {
		t.Error("a manager that has lost the folder keeps a forecast")
	}
}

// Ensure that more forecasts than are read at once come back in order, each once, also where some were let go of, and
// that a list of which one cannot be kept leaves nothing.
func TestManyForecasts(t *testing.T) {
	s := begin(t, t.TempDir())
	if _, err := s.NextEpoch(0); err != nil {
		t.Fatal(err)
	}
	for _, n := range []int{readAtOnce - 1, 1, 1, 2 * readAtOnce} {
		had, err := s.Forecasts()
		if err != nil {
			t.Fatal(err)
		}
		list := make([]explain.Foretold, n)
		for i := range list {
			list[i] = explain.Foretold{At: sched.Time(len(had) + i), Job: sched.JobID(i), System: "las"}
		}
		if bad := s.KeepForecasts(list); bad != nil {
			t.Fatal(bad)
		}
		got, err := s.Forecasts()
		if err != nil || !reflect.DeepEqual(got, append(had, list...)) {
			t.Fatalf("%d forecasts after %d and %d more, %v, want all of them in order", len(got), len(had), n, err)
		}
	}
	if _, err := s.db.Exec("delete from forecasts where id % 3 = 0"); err != nil {
		t.Fatal(err)
	}
	got, err := s.Forecasts()
	if want := 3*readAtOnce + 1 - (3*readAtOnce+1)/3; err != nil || len(got) != want {
		t.Errorf("%d forecasts, %v, want %d", len(got), err, want)
	}
	if _, err = s.db.Exec("create unique index one on forecasts(at) where at >= 99990"); err != nil {
		t.Fatal(err)
	}
	if err = s.KeepForecasts([]explain.Foretold{{At: 99990}, {At: 99990}}); err == nil {
		t.Error("a forecast that cannot be kept is no error")
	}
	if after, failed := s.Forecasts(); failed != nil || !reflect.DeepEqual(after, got) {
		t.Errorf("%d forecasts, %v, want the %d from before", len(after), failed, len(got))
	}
}
