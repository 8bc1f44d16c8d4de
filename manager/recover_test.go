package manager_test

import (
	"context"
	"database/sql"
	"encoding/binary"
	"errors"
	"hash/crc32"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/trainyard/trainyard/manager"
	"github.com/trainyard/trainyard/sched"
)

// blocked is jobs of which fifo starts the first, and fifo-skip the third as well.
const blocked = "jobs: [{name: first, command: WAITING}, {name: wide, gpus: 2, command: ['true']}, {name: slim, " +
	"command: ['true']}]"

// How they stand once the first is up, and in the end.
const (
	firstUp = "first active  1, wide waiting  0, slim waiting  0"
	allDone = "first done finished 1, wide done finished 1, slim done finished 1"
)

// execute changes the database of a folder behind the back of its managers.
func (r *rig) execute(statement string, args ...any) {
	r.Helper()
	db, err := sql.Open("sqlite", filepath.Join(r.options.Dir, "trainyard.db"))
	if err != nil {
		r.Fatal(err)
	}
	result, err := db.Exec(statement, args...)
	if err == nil {
		if n, _ := result.RowsAffected(); n == 0 {
			err = errors.New("nothing changed")
		}
	}
	if err = errors.Join(err, db.Close()); err != nil {
		r.Fatalf("%s: %v", statement, err)
	}
}

// sums gives the rows of the log without a checksum theirs, as a version with a fault would have written them: nothing
// says that they are damaged.
func (r *rig) sums() {
	r.Helper()
	db, err := sql.Open("sqlite", filepath.Join(r.options.Dir, "trainyard.db"))
	if err != nil {
		r.Fatal(err)
	}
	defer db.Close()
	db.SetMaxOpenConns(1)
	rows, err := db.Query("select seq, batch, line from log where sum is null")
	if err != nil {
		r.Fatal(err)
	}
	sums := make(map[int64]int64)
	for rows.Next() {
		var seq, batch int64
		var line []byte
		if err := rows.Scan(&seq, &batch, &line); err != nil {
			r.Fatal(err)
		}
		of := binary.LittleEndian.AppendUint64(binary.LittleEndian.AppendUint64(nil, uint64(seq)), uint64(batch))
		sums[seq] = int64(crc32.Checksum(append(of, line...), crc32.MakeTable(crc32.Castagnoli)))
	}
	if err := rows.Close(); err != nil {
		r.Fatal(err)
	}
	for seq, sum := range sums {
		if _, err := db.Exec("update log set sum = ? where seq = ?", sum, seq); err != nil {
			r.Fatal(err)
		}
	}
}

// Ensure that a manager takes up where the last one left off: the same log up to there, the same attempts, and in the
// end every decision can be taken again.
func TestGoesOn(t *testing.T) {
	r := newRig(t, "fifo", 2, blocked)
	r.runUntil(sched.AttemptStarted, 0)
	m := r.open()
	if !m.Resumed() || rows(m) != firstUp {
		t.Errorf("resumed %v with %s", m.Resumed(), rows(m))
	}
	before := r.log(m)
	r.finish(m)
	if after := r.log(m); !strings.HasPrefix(after, before) || len(after) == len(before) {
		t.Errorf("the log does not go on:\n%s\n%s", before, after)
	}
	r.close(m)
	m = r.open() // replays all of it
	if got := rows(m); got != allDone || r.said.Len() > 0 {
		t.Errorf("%s; said %s", got, r.said)
	}
	r.close(m)
}

// Ensure that where this version decides otherwise than the one that wrote the log, what was decided holds: the
// difference is reported, the jobs that run are taken over and all come to their end.
func TestDecidesOtherwise(t *testing.T) {
	r := newRig(t, "fifo", 2, blocked)
	r.runUntil(sched.AttemptStarted, 0)
	r.execute(`update meta set value = replace(value, '"system":"fifo"', '"system":"fifo-skip"') where name = 'header'`)
	r.options.System = "fifo-skip"
	m := r.open()
	for _, want := range []string{"level=WARN", "decides otherwise than the one that wrote the log",
		"the replay differs", "recorded: ", "replayed: "} {
		if !strings.Contains(r.said.String(), want) {
			t.Errorf("not said: %q\n%s", want, r.said)
		}
	}
	if got := rows(m); got != firstUp {
		t.Errorf("the jobs stand at %s", got)
	}
	r.finish(m)
	if got := rows(m); got != allDone {
		t.Errorf("in the end %s", got)
	}
	r.close(m)
	r.close(r.open()) // and again, of the whole log
}

// Ensure that a line which contradicts the others is an error that says where, that nothing is started or lost by it,
// and that the run goes on once the line is put back: where it can be read, where what it stands for cannot be known
// from those after it, and where only the fold comes to it, because this version decides otherwise before.
func TestPoisoned(t *testing.T) {
	for _, c := range []struct {
		name, want string
		line       func(was string) string
		otherwise  bool
	}{
		{"no JSON", "line 6", func(string) string { return "\x00\x00 oops" }, false},
		{"cut", "line 6", func(was string) string { return was[:len(was)/2] }, false},
		{"number", "line 6: seq 50, want 5",
			func(was string) string { return strings.Replace(was, `"seq":5`, `"seq":50`, 1) }, false},
		{"no such job", "seq 5: decided of job 77, want one of the 3", func(was string) string {
			return strings.Replace(was, `"job":0`, `"job":77`, 1)
		}, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := newRig(t, "fifo", 2, blocked)
			r.runUntil(sched.AttemptStarted, 0)
			m := r.open()
			lines := strings.Split(r.log(m), "\n")
			r.close(m)
			was := lines[5] // the header is line 0
			if !strings.Contains(was, `"seq":5,`) || !strings.Contains(was, `"event":"decided"`) {
				t.Fatalf("line 6 is %s", was)
			}
			r.execute("update log set line = cast(? as blob), sum = null where seq = 5", c.line(was))
			r.sums()
			if c.otherwise {
				r.execute(`update meta set value = replace(value, '"system":"fifo"', '"system":"fifo-skip"') where ` +
					`name = 'header'`)
				r.options.System = "fifo-skip"
			}
			for range 2 { // an error each time, and no crash
				bad, err := manager.Open(t.Context(), r.options)
				if err == nil {
					r.close(bad)
				}
				if err == nil || !strings.Contains(err.Error(), c.want) ||
					!strings.Contains(err.Error(), r.options.Dir) {
					t.Fatalf("got %v, want an error about %s with %q", err, r.options.Dir, c.want)
				}
			}
			r.execute("update log set line = cast(? as blob), sum = null where seq = 5", was)
			r.sums()
			m = r.open()
			r.finish(m)
			if got := rows(m); got != allDone {
				t.Errorf("in the end %s", got)
			}
			r.close(m)
		})
	}
}

// Ensure that the log of one folder in another is refused while attempts run of which it does not know: who decides by
// it starts jobs twice.
func TestOlderLog(t *testing.T) {
	r := newRig(t, "fifo", 2, blocked)
	r.runUntil(sched.AttemptStarted, 0)
	r.execute("delete from log")
	m := r.open()
	defer r.close(m)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if err := m.Run(ctx); err == nil || !strings.Contains(err.Error(), "the log is older than the folder") {
		t.Errorf("got %v, want an error that says that the log is too old", err)
	}
}
