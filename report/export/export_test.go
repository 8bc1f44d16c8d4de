package export

import (
	"bytes"
	"encoding/csv"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/trainyard/trainyard/metrics"
	"github.com/trainyard/trainyard/metrics/timeline"
	"github.com/trainyard/trainyard/sched"
)

const hostile = "=cmd|'</script>\"\n\x00\u202e"

func at(s float64) sched.Time { return sched.Time(s * float64(time.Second)) }

// run is a hand-made run of two nodes: attempts in turn and at one instant, one that shares GPUs, one of no length, one
// preempted with lost work, and one under way.
func run() (*timeline.Timeline, []metrics.Job) {
	none := sched.Time(sched.None)
	a := func(job sched.JobID, n int32, from, work, kept, stop, end sched.Time, o sched.Outcome, runs ...timeline.Run,
	) timeline.Attempt {
		return timeline.Attempt{Job: job, Number: n, Ordered: from, Up: work, Work: work, Kept: kept, Stopped: stop,
			Ended: end, GPUs: runs, Outcome: o}
	}
	t := &timeline.Timeline{Nodes: []timeline.Node{{Name: "n0", First: 0, GPUs: 4}, {Name: hostile, First: 4, GPUs: 2}},
		Jobs: []timeline.Job{{Name: "a", User: "ann", GPUs: sched.Rigid(2)}, {Name: hostile, User: hostile,
			GPUs: sched.Rigid(1)}, {Name: "c", GPUs: sched.Rigid(6)}}}
	t.Attempts = []timeline.Attempt{
		a(0, 1, at(0), at(1), at(5), at(8), at(9), sched.Preempted, timeline.Run{First: 0, Count: 2}),
		a(1, 1, at(2), at(3), none, none, at(20), sched.Failed, timeline.Run{First: 1, Count: 1}),
		a(1, 2, at(20), none, none, none, at(20), sched.Failed, timeline.Run{First: 1, Count: 1}),
		a(0, 2, at(20), at(21), none, none, at(30), sched.Finished, timeline.Run{First: 5, Count: 1},
			timeline.Run{First: 0, Count: 2}, timeline.Run{First: 2, Count: 1}),
		a(2, 1, at(30), at(31), none, none, none, sched.NoOutcome, timeline.Run{First: 0, Count: 6}),
	}
	jobs := []metrics.Job{{Name: "a", Start: at(0), Finish: at(30), Outcome: sched.Finished},
		{Name: hostile, Start: at(2), Finish: at(20), Outcome: sched.Failed},
		{Name: "c", Start: at(30), Finish: none}}
	return t, jobs
}

// message reads a message by its numbers of fields, independently of how it was written.
func message(t *testing.T, b []byte) map[int][]any {
	t.Helper()
	fields := map[int][]any{}
	for len(b) > 0 {
		n, kind, used := protowire.ConsumeTag(b)
		if used < 0 {
			t.Fatal(protowire.ParseError(used))
		}
		b = b[used:]
		var x any
		switch kind {
		case protowire.VarintType:
			x, used = protowire.ConsumeVarint(b)
		case protowire.Fixed64Type:
			x, used = protowire.ConsumeFixed64(b)
		case protowire.BytesType:
			x, used = protowire.ConsumeBytes(b)
		default:
			t.Fatalf("field %d of type %v", n, kind)
		}
		if used < 0 {
			t.Fatal(protowire.ParseError(used))
		}
		fields[int(n)], b = append(fields[int(n)], x), b[used:]
	}
	return fields
}

// Ensure that a reader of protobuf finds a track for each GPU below its node, slices that nest and end where attempts
// do, all of their time, flows, and names as they are.
func TestPerfetto(t *testing.T) {
	line, _ := run()
	var out bytes.Buffer
	if err := Perfetto(&out, line); err != nil {
		t.Fatal(err)
	}
	type slice struct {
		name string
		from uint64
	}
	names, parents := map[uint64]string{}, map[uint64]uint64{}
	open, last := map[uint64][]slice{}, map[uint64]uint64{}
	sum, flows := map[string]uint64{}, map[uint64]int{}
	for _, p := range message(t, out.Bytes())[1] {
		packet := message(t, p.([]byte))
		if d := packet[60]; d != nil {
			track := message(t, d[0].([]byte))
			names[track[1][0].(uint64)] = string(track[2][0].([]byte))
			if track[5] != nil {
				parents[track[1][0].(uint64)] = track[5][0].(uint64)
			}
			continue
		}
		event, when := message(t, packet[11][0].([]byte)), packet[8][0].(uint64)
		track := event[11][0].(uint64)
		if _, known := names[track]; !known || when < last[track] {
			t.Fatalf("an event at %d on track %d, known %t, behind one at %d", when, track, known, last[track])
		}
		last[track] = when
		switch event[9][0].(uint64) {
		case 1:
			open[track] = append(open[track], slice{string(event[23][0].([]byte)), when})
			for _, f := range event[47] {
				flows[f.(uint64)]++
			}
		case 2:
			n := len(open[track])
			if n == 0 {
				t.Fatalf("track %s ends what has not started", names[track])
			}
			top := open[track][n-1]
			sum[top.name] += when - top.from
			open[track] = open[track][:n-1]
		}
	}
	for track, list := range open {
		if len(list) > 0 {
			t.Errorf("track %s leaves %v open", names[track], list)
		}
	}
	want := map[string]uint64{"a #0": 2*9 + 4*10, hostile + " #1": 18, "c #2": 0, "coming up": 2 + 1 + 4,
		"work": 2*4 + 17 + 4*9, "redone": 2 * 3, "stopping": 2}
	for name, seconds := range want {
		if sum[name] != seconds*1e9 {
			t.Errorf("%q takes %v GPU-seconds, want %d", name, float64(sum[name])/1e9, seconds)
		}
	}
	if flows[1] != 6 || flows[2] != 2 || flows[3] != 6 {
		t.Errorf("flows %v, want one for each slice of a job", flows)
	}
	below := map[string]int{}
	for _, parent := range parents {
		below[names[parent]]++
	}
	// GPU 1 is shared: it has a second track.
	if below["n0"] != 5 || below[hostile] != 2 {
		t.Errorf("%v tracks below nodes, want 5 and 2", below)
	}
}

func rows(t *testing.T, write func(*bytes.Buffer) error) [][]string {
	t.Helper()
	var out bytes.Buffer
	if err := write(&out); err != nil {
		t.Fatal(err)
	}
	list, err := csv.NewReader(&out).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	return list
}

// Ensure that the sets of Evalys have as many GPUs as it says, that times sum, and that jobs have all their GPUs.
func TestEvalys(t *testing.T) {
	line, jobs := run()
	for _, byJob := range []bool{false, true} {
		list := rows(t, func(b *bytes.Buffer) error { return Evalys(b, "fifo", line, jobs, byJob) })
		if !slices.Equal(list[0], evalysColumns) {
			t.Errorf("columns %v", list[0])
		}
		held := 0.0
		for _, r := range list[1:] {
			n := 0
			for _, part := range strings.Fields(r[12]) {
				var from, to int
				if _, err := fmt.Sscanf(part, "%d-%d", &from, &to); err != nil {
					if _, err = fmt.Sscan(part, &from); err != nil {
						t.Fatal(part, err)
					}
					to = from
				}
				n += to - from + 1
			}
			f := func(i int) float64 { x, _ := strconv.ParseFloat(r[i], 64); return x }
			if !byJob && r[3] != strconv.Itoa(n) {
				t.Errorf("%v: %d GPUs in its set", r, n)
			}
			if f(6)+f(7) != f(8) || f(9)+f(7) != f(10) || f(8)-f(2) != f(10) || f(7) > 0 && f(11) != f(10)/f(7) {
				t.Errorf("%v: times do not sum", r)
			}
			held += float64(n) * f(7)
		}
		if !byJob && held != 2*9+18+4*10 {
			t.Errorf("%v GPU-seconds, want those of attempts that ended", held)
		}
		if byJob && (len(list) != 3 || list[1][12] != "0-2 5") {
			t.Errorf("jobs %v, want two that ended, and the first on 0-2 5", list[1:])
		}
	}
}

// Ensure that no cell of CSV is a formula, and that what never came is empty.
func TestCSV(t *testing.T) {
	line, jobs := run()
	for _, table := range Tables {
		list := rows(t, func(b *bytes.Buffer) error { return CSV(b, table, line, jobs) })
		for _, r := range list {
			for _, c := range r {
				if c != "" && strings.ContainsRune("=+@", rune(c[0])) {
					t.Errorf("%s: cell %q is a formula", table, c)
				}
			}
		}
	}
	list := rows(t, func(b *bytes.Buffer) error { return CSV(b, "attempts", line, jobs) })
	if len(list) != 6 || list[1][7] != "3" || list[5][6] != "" || list[4][13] != "0-2 5" {
		t.Errorf("%v", list)
	}
	if x := math.Inf(1); number(x) != "+Inf" {
		t.Error(number(x))
	}
}
