package eventlog_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/trainyard/trainyard/eventlog"
	"github.com/trainyard/trainyard/sched"
)

func ExampleWriter() {
	w := eventlog.NewWriter(os.Stdout, eventlog.Header{Version: "0.1", Trace: "jobs.csv", Cluster: "1x4", System: "las",
		Settings: map[string]string{"unit": "seconds", "quantum": "60"}, Seed: 7})
	started := sched.Reason{Code: sched.WhyStarted}
	half := sched.Time(500 * time.Millisecond)
	for i, e := range []sched.Event{
		{Kind: sched.NodeJoined, NodeSpec: &sched.NodeSpec{Name: "n0", GPUs: 4, Pool: sched.None}},
		{Kind: sched.JobArrived, Time: half, Spec: &sched.JobSpec{Name: "a", GPUs: sched.Rigid(2)}},
		{Kind: sched.Decided, Time: half, GPUs: []sched.GPUID{0, 1}, Target: &sched.Target{Trial: true, Why: started},
			Why: started},
		{Kind: sched.Ordered, Time: half, Attempt: 1, Code: int32(sched.Start)},
		{Kind: sched.AttemptStarted, Time: 3 * half, Attempt: 1, WorkFrom: 3 * half, Rate: 1},
		{Kind: sched.AttemptEnded, Time: 9 * half, Attempt: 1, Outcome: sched.Finished, Work: 3 * time.Second},
	} {
		if e.Seq = uint64(i + 1); i == 0 || e.Time == half && !e.Kind.Own() || e.Time > half {
			w.BeginBatch()
		}
		w.Log(nil, &e)
	}
	if err := w.Close(); err != nil {
		fmt.Println(err)
	}
	// Output:
	// {"schema":"trainyard.log/v4","version":"0.1","trace":"jobs.csv","cluster":"1x4","system":"las","settings":{"quantum":"60","unit":"seconds"},"seed":7}
	// {"seq":1,"time":0,"batch":1,"event":"node-joined","node":0,"node_spec":{"name":"n0","gpus":4}}
	// {"seq":2,"time":0.5,"batch":2,"event":"arrived","job":0,"spec":{"name":"a","gpus":2}}
	// {"seq":3,"time":0.5,"batch":2,"event":"decided","job":0,"gpus":[0,1],"target":{"trial":true},"why":{"code":"started"}}
	// {"seq":4,"time":0.5,"batch":2,"event":"ordered","job":0,"attempt":1,"action":"start"}
	// {"seq":5,"time":1.5,"batch":3,"event":"started","job":0,"attempt":1,"from":1.5,"rate":1}
	// {"seq":6,"time":4.5,"batch":4,"event":"ended","job":0,"attempt":1,"outcome":"finished","work":3}
}

// drawing draws values for a field: zero often, then ordinary and extreme ones.
type drawing struct{ *rand.Rand }

func (d drawing) int(least, most int64) int64 {
	switch d.IntN(6) {
	case 0:
		return max(least, 0)
	case 1:
		return least
	case 2:
		return most
	}
	return max(least, min(most, int64(d.IntN(100))))
}

func (d drawing) i32() int32 { return int32(d.int(math.MinInt32, math.MaxInt32)) }

func (d drawing) duration() time.Duration {
	if d.IntN(2) == 0 {
		return time.Duration(d.int(0, math.MaxInt64))
	}
	return time.Duration(d.Int64N(1e15)) / time.Duration(1+d.IntN(2)*999)
}

func (d drawing) float() float64 {
	return []float64{0, math.Copysign(0, -1), 1, 1.0 / 3, -2.5e-300, 1e300, 5e-324, math.Inf(1), math.Inf(-1),
		math.NaN(),
		math.Float64frombits(d.Uint64() &^ (1 << 62))}[d.IntN(11)]
}

// amount draws a number a specification may have.
func (d drawing) amount() float32 { return []float32{0, .1, 3, 1e30, 1e-45}[d.IntN(5)] }

func (d drawing) text() string {
	return []string{"", "a", `quote " \ slash`, "line\nnul\x00del\x7f", "héllo 世界 🚂", "broken \xff\xc3( utf-8",
		"\xed\xb2\x80",
		"\u2028\ufffd", strings.Repeat("long", 1+d.IntN(1000))}[d.IntN(9)]
}

func drawIDs[T ~int32](d drawing) (ids []T) {
	for range d.IntN(4) * d.IntN(10) {
		ids = append(ids, T(d.i32()))
	}
	return ids
}

func (d drawing) reason() sched.Reason {
	return sched.Reason{Code: sched.ReasonCode(d.int(0, 255)), Job: sched.JobID(d.i32()), A: d.float(), B: d.float()}
}

func (d drawing) jobSpec() *sched.JobSpec {
	s := &sched.JobSpec{Name: d.text(), User: d.text(), Group: d.text(), Model: d.text(), Class: d.text(),
		Submit: sched.Time(d.duration()), Priority: d.i32(), GPUs: sched.Rigid(1 + d.IntN(9)),
		Types: sched.TypeSet(d.Uint64()),
		CPUs:  d.amount(), MemoryGB: d.amount(), GPUMemGB: d.amount(), Share: sched.Consent(d.IntN(3)),
		Retries: int32(d.int(0, math.MaxInt32)), WallTime: d.duration(), Deadline: sched.Time(d.duration()),
		NotBef: sched.Time(d.duration()), After: drawIDs[sched.JobID](d), Epochs: int32(d.IntN(3)),
		Util: float32(d.IntN(3)) / 3, Key: d.text()}
	if d.IntN(2) == 0 {
		s.GPUs.Max += 5
		s.Batch = sched.BatchRange{Min: int32(d.IntN(3)), Max: 64, PerGPU: d.i32()}
	}
	return s
}

func (d drawing) nodeSpec() *sched.NodeSpec {
	s := &sched.NodeSpec{Name: d.text(), GPUs: 1 + d.IntN(16), Type: sched.TypeID(d.IntN(64)), Rack: d.i32(),
		Pool: sched.PoolID(d.int(-1, math.MaxInt16)), Sharing: sched.Mechanism(d.IntN(3)), CPUs: d.amount(),
		MemoryGB: d.amount(), GPUMemGB: d.amount(),
		IdleW: sched.Watts(d.amount()), BusyGPUW: sched.Watts(d.amount()), SleepW: 1.0 / 3,
		DollarsHr: sched.Dollars(d.amount())}
	switch d.IntN(3) {
	case 0:
		s.Curve = sched.PowerCurve{Scale: 1.0 / 3, Exponent: 1.55}
	case 1:
		s.Curve.Points = []sched.PowerPoint{{Use: 0, Watts: s.IdleW}, {Use: 1.0 / 3, Watts: s.IdleW},
			{Use: 1, Watts: 2e30}}
		s.Wake = d.duration()
	}
	for i := 0; i < s.GPUs && s.GPUs < 4; i++ {
		s.Devices = append(s.Devices, d.text())
	}
	return s
}

func (d drawing) poolSpec() *sched.PoolSpec {
	return &sched.PoolSpec{Name: d.text(), GPUs: 1 + d.IntN(16), Type: sched.TypeID(d.IntN(64)),
		Price: sched.Dollars(d.amount()), Billing: time.Duration(d.IntN(1e9)),
		Boot: d.duration(), Min: int32(d.IntN(3)), Max: int32(3 + d.IntN(9)), FromJoin: d.IntN(2) == 0}
}

// event draws an event of the given kind, with values in all fields, whether they mean something for it or not.
func (d drawing) event(kind sched.EventKind) *sched.Event {
	e := &sched.Event{Kind: kind, Job: sched.JobID(d.int(0, 99)), Attempt: d.i32(), Outcome: sched.Outcome(d.IntN(7)),
		Node: sched.NodeID(d.int(0, 99)), Code: d.i32(), Work: d.duration(), WorkFrom: sched.Time(d.duration()),
		Rate: d.float(),
		Pool: sched.PoolID(d.int(-1, math.MaxInt16)), MemGB: d.amount(), Value: d.float(),
		GPUs: drawIDs[sched.GPUID](d), Why: d.reason(), Text: d.text()}
	if d.IntN(2) == 0 && (kind == sched.Ordered || kind == sched.Moved) {
		e.Job, e.Node = sched.None, sched.None
	}
	switch kind {
	case sched.JobArrived:
		e.Spec = d.jobSpec()
	case sched.JobChanged:
		c := d.jobSpec().Change()
		if d.IntN(2) == 0 {
			c.Spec = d.jobSpec()
		}
		e.Change = &c
	case sched.NodeJoined:
		e.NodeSpec = d.nodeSpec()
	case sched.PoolChanged:
		e.PoolSpec = d.poolSpec()
	case sched.Decided:
		e.Target = &sched.Target{Job: e.Job, Want: d.i32(),
			Config: sched.Config{Batch: d.i32(), Accum: int16(d.int(math.MinInt16, math.MaxInt16)),
				LRScale: float32(d.float()), Share: sched.Share(d.IntN(2)), Cap: sched.Watts(d.float())},
			Trial: d.IntN(2) == 0,
			At:    sched.Boundary(d.IntN(2)), Why: e.Why}
		if d.IntN(2) == 0 {
			e.Target.Job, e.Target.Why = sched.JobID(d.i32()), d.reason()
		}
	}
	return e
}

// Ensure that every event reads back as it was written, whatever its fields hold.
func TestLogRoundTrip(t *testing.T) {
	d := drawing{rand.New(rand.NewPCG(1, 2))}
	var log bytes.Buffer
	var written, read eventlog.Hash
	head := eventlog.Header{Version: d.text(), Zone: "a\xffb", Preset: `"`,
		Settings: map[string]string{"": "\n", "k": ""}, ShareLimit: 3, Round: 90 * time.Second, Budget: 2.5,
		NodeGPUs: 8, GPUs: 24, Seed: math.MaxUint64,
		Types: []string{"a", "\""}, Pools: []sched.PoolSpec{*d.poolSpec(), *d.poolSpec()}}
	w := eventlog.NewWriter(&log, head)
	now, n := sched.Time(0), uint64(0)
	for range 300 {
		for kind := range sched.EventKinds {
			if d.IntN(3) == 0 {
				w.BeginBatch()
			}
			e := d.event(kind)
			now += sched.Time(d.Int64N(1e10)) * sched.Time(d.IntN(2))
			n++
			e.Time, e.Seq = now, n
			w.Log(nil, e)
			written.Log(nil, e)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	text := log.String()
	again, err := rewritten(text, &read)
	if err != nil {
		t.Fatal(err)
	}
	if again != text || written.Sum() != read.Sum() {
		t.Errorf("what was read is not what was written: hash %s, want %s", read.Sum(), written.Sum())
	}
}

// rewritten reads a log and returns it written again.
func rewritten(text string, sinks ...eventlog.Sink) (string, error) {
	r, err := eventlog.NewReader(strings.NewReader(text), "log")
	if err != nil {
		return "", err
	}
	var log bytes.Buffer
	w := eventlog.NewWriter(&log, r.Header())
	b := log.Bytes()
	for rec, err := range r.Records() {
		if err != nil {
			return "", err
		}
		b = append(eventlog.AppendEvent(b, rec.Batch, &rec.Event), '\n')
		for _, s := range sinks {
			s.Log(nil, &rec.Event)
		}
	}
	if err := w.Close(); err != nil {
		return "", err
	}
	return log.String() + string(b), nil
}

const (
	headLine = `{"schema":"trainyard.log/v4"}` + "\n"
	tickLine = `{"seq":1,"time":0,"batch":1,"event":"tick"}` + "\n"
)

// Ensure that what a reader must not accept is refused, with the line and what is wanted.
func TestReadLogRefuses(t *testing.T) {
	tick := func(seq, time, batch string) string {
		return `{"seq":` + seq + `,"time":` + time + `,"batch":` + batch + `,"event":"tick"}` + "\n"
	}
	event := func(rest string) string { return headLine + `{"seq":1,"time":0,"batch":1,"event":` + rest + "}\n" }
	for _, c := range []struct{ text, want string }{
		{"", "log: x: line 1: nothing there, want a header"},
		{"\n", `line 1: schema "", want a header that starts with {"schema":"trainyard.log/v4"`},
		{`{"version":"1","schema":"trainyard.log/v4"}` + "\n", "want a header that starts with"},
		{`{"schema":"trainyard.log/v5","new":1}` + "\n", "schema trainyard.log/v5 was written by a newer Trainyard, " +
			"want trainyard.log/v4 or older"},
		{`{"schema":"trainyard.log/v0"}` + "\n", `schema "trainyard.log/v0", want`},
		{`{"schema":"trainyard.log/v4","colour":1}` + "\n", `line 1: header: key "colour" is not known`},
		{`{"schema":"trainyard.log/v4","seed":-1}` + "\n", "seed: -1, want a whole number >= 0"},
		{`{"schema":"trainyard.log/v4","share_limit":-1}` + "\n", "share_limit: out of range, want >= 0"},
		{`{"schema":"trainyard.log/v4"}`, "line 1: cut short, want a newline at its end"},
		{headLine + tickLine + tickLine[:10], "line 3: cut short"},
		{headLine + tickLine + strings.TrimSuffix(tickLine, "\n"), "line 3: cut short"},
		{headLine + "\n", "line 2: \"\", want '{'"},
		{headLine + tick("2", "0", "1"), "line 2: seq 2, want 1"},
		{headLine + tickLine + tick("3", "0", "1"), "line 3: seq 3, want 2"},
		{headLine + tickLine + tick("2", "-0.000000001", "1"), "line 3: time -0.000000001s after 0s"},
		{headLine + tick("1", "0", "3") + tick("2", "0", "2"), "line 3: batch 2, want at least 3"},
		{headLine + tick("1", "0", "0"), "batch 0, want at least 1"},
		{headLine + tick("1", "1e3", "1"), "time: 1e3, want seconds with at most 9 decimals"},
		{headLine + tick("1", "0.0000000001", "1"), "want seconds with at most 9 decimals"},
		{headLine + tick("1", "9223372036.854775808", "1"), "want seconds"},
		{headLine + tick("1.5", "0", "1"), "seq: 1.5, want a whole number"},
		{headLine + tick("01", "0", "1"), `seq: "01,`},
		{headLine + strings.Replace(tickLine, "}", "}}", 1), `"}" is left over`},
		{headLine + `{"seq":1,"time":0,"event":"tick"}` + "\n", "no batch, want one"},
		{headLine + `{"seq":1,"time":0,"batch":1}` + "\n", "no event, want one"},
		{event(`"tock"`), `event: "tock", want one of none, ended`},
		{event(`"tick","tick":1`), `key "tick" is not known`},
		{event(`"tick","seq":1`), `key "seq" is there twice`},
		{event(`"tick","epoch":1`), `tick with key "epoch", want "value"`},
		{event(`"tick","work":"1"`), `work: "\"1\"}", want a number`},
		{event(`"tick","work":1,`), `"}", want '"'`},
		{event(`"tick","text":"\ud800"`), `text: "\\ud800" is no escape`},
		{event(`"tick","text":"` + "\xff" + `"`), "want UTF-8"},
		{event(`"tick","text":"` + "\t" + `"`), "want UTF-8 without control characters"},
		{event(`"tick","text":"\x"`), "is no escape"},
		{event(`"tick","target":{}`), "tick with target true"},
		{event(`"tick","why":{"code":"whim"}`), `why: code: "whim", want one of`},
		{event(`"ended"`), "ended of job -1, want a job"},
		{event(`"ended","job":0,"outcome":"lost"`), `outcome: "lost", want one of`},
		{event(`"node-left","node":0,"state":"quarantined"`), `state "quarantined", want one of up, asleep`},
		{event(`"gpu-changed","state":"in-use"`), `with key "", want "gpu"`},
		{event(`"gpu-changed","gpu":0,"state":"up"`), `state "up", want one of in-use, foreign`},
		{event(`"gpu-changed","gpu":0,"price":1`), "both it and gpu, want one of them"},
		{event(`"command","job":0,"command":"sing"`), `command "sing", want one of`},
		{event(`"arrived","job":0`), "arrived with spec false"},
		{event(`"arrived","job":0,"spec":{"gpus":0}`), "spec: gpus 0, want > 0"},
		{event(`"arrived","job":0,"spec":{"gpus":[1,2]}`), "gpus: 2 numbers, want 3"},
		{event(`"arrived","job":0,"spec":{"gpus":1,"mips":1}`), `spec: key "mips" is not known`},
		{event(`"node-joined","node":0,"node_spec":{"gpus":9999999}`), "gpus: out of range, want at most 1048576"},
		{event(`"node-joined","node":0,"node_spec":{"gpus":1,"type":256}`), "type: out of range, want 0 to 63"},
		{event(`"decided","job":0,"gpus":[]`), "decided with target false"},
		{event(`"decided","job":0,"gpus":[4294967296],"target":{}`), "want a whole number of 32 bits"},
	} {
		_, err := readAll(strings.NewReader(c.text))
		if err == nil || !strings.Contains(err.Error(), c.want) || !strings.HasPrefix(err.Error(), "log: x: line ") {
			t.Errorf("%.100q: got %v, want an error with %q", c.text, err, c.want)
		}
	}
}

// readAll reads a log called x and returns the number of its events.
func readAll(from io.Reader) (n int, err error) {
	r, err := eventlog.NewReader(from, "x")
	if err != nil {
		return 0, err
	}
	for _, err := range r.Records() {
		if err != nil {
			if _, again := r.Next(); !errors.Is(again, err) {
				return n, fmt.Errorf("the error does not stay: %w, then %w", err, again)
			}
			return n, err
		}
		n++
	}
	return n, nil
}

// Ensure that a caller recognises a log that a crash cut short, and gets all whole lines of it.
func TestReadLogCutShort(t *testing.T) {
	n, err := readAll(strings.NewReader(headLine + tickLine + `{"seq":2,`))
	if n != 1 || !errors.Is(err, eventlog.ErrCutShort) {
		t.Errorf("got %d events, %v, want 1 and ErrCutShort", n, err)
	}
}

// Ensure that lines may be long, but not longer than 16 MiB, on either side.
func TestLogLongLines(t *testing.T) {
	fits := `{"seq":1,"time":0,"batch":1,"event":"tick","text":"`
	fits += strings.Repeat("x", 16<<20-len(fits)-2) + `"}` + "\n"
	if n, err := readAll(strings.NewReader(headLine + fits)); n != 1 || err != nil {
		t.Errorf("a line of 16 MiB: got %d events, %v", n, err)
	}
	_, err := readAll(strings.NewReader(headLine + " " + fits))
	if err == nil || !strings.Contains(err.Error(), "line 2: more than 16777216 bytes") {
		t.Errorf("a line of 16 MiB and one byte: got %v", err)
	}
	w := eventlog.NewWriter(io.Discard, eventlog.Header{})
	w.Log(nil, &sched.Event{Kind: sched.Ticked, Text: strings.Repeat("x", 16<<20)})
	if err := w.Close(); err == nil || !strings.Contains(err.Error(), "want at most 16777216") {
		t.Errorf("writing more than 16 MiB: got %v", err)
	}
}

// Ensure that spaces, order of keys and escapes of other writers of JSON are no matter.
func TestReadLogLenient(t *testing.T) {
	text := "\ufeff" + headLine + `{ "gpus" : [ 3 , 4 ],"job":1, "why":{"code":"st\u0061rted"} , ` +
		`"target":{},"event":"decided","seq":1,"batch":1,"time":1.50 } ` + "\r\n"
	want := headLine + `{"seq":1,"time":1.5,"batch":1,"event":"decided","job":1,"gpus":[3,4],"target":{},` +
		`"why":{"code":"started"}}` + "\n"
	if got, err := rewritten(text); got != want || err != nil {
		t.Errorf("got %s, %v\nwant %s", got, err, want)
	}
}

type brokenWriter struct{ calls int }

func (w *brokenWriter) Write([]byte) (int, error) {
	w.calls++
	return 0, errors.New("disk full")
}

// Ensure that the first write error is reported at the end, and that nothing is written after it.
func TestLogWriterError(t *testing.T) {
	var to brokenWriter
	w := eventlog.NewWriter(&to, eventlog.Header{})
	for range 10_000 {
		w.Log(nil, &sched.Event{Kind: sched.Ticked})
	}
	if err := w.Close(); err == nil || err.Error() != "log: write: disk full" || to.calls != 1 {
		t.Errorf("got %v after %d writes, want the first error after one", err, to.calls)
	}
}

// Ensure that the words of the log are those of all values the vocabulary has: a new one needs a word here too.
func TestLogWordsComplete(t *testing.T) {
	for name, word := range map[string]func() string{
		"outcome":    func() string { return (sched.RejectedJob + 1).String() },
		"node state": func() string { return (sched.NodeGone + 1).String() },
		"kind":       func() string { return sched.EventKinds.String() },
	} {
		func() {
			defer func() { _ = recover() }()
			t.Errorf("%s has a word %q that logs do not know", name, word())
		}()
	}
}

// everyKind returns events as they are in a run, all with sets and floats that cost something.
func everyKind() []sched.Event {
	spec := &sched.JobSpec{Name: "job-1", User: "ann", Model: "resnet50", Submit: 1e9, GPUs: sched.Rigid(4)}
	gpus := []sched.GPUID{4, 5, 6, 7}
	return []sched.Event{
		{Kind: sched.JobArrived, Spec: spec, Job: 12},
		{Kind: sched.Decided, Job: 12, GPUs: gpus, Target: &sched.Target{Job: 12},
			Why: sched.Reason{Code: sched.WhyStarted}},
		{Kind: sched.Ordered, Job: 12, Attempt: 1, Code: int32(sched.Start)},
		{Kind: sched.AttemptStarted, Job: 12, Attempt: 1, WorkFrom: 123456789012, Rate: 1.0 / 3},
		{Kind: sched.Noted, Job: 12, Why: sched.Reason{Code: sched.WhyDemoted, A: 1, B: 3250}},
		{Kind: sched.AttemptEnded, Job: 12, Attempt: 1, Outcome: sched.Finished, Work: 98765432101},
		{Kind: sched.Ticked},
	}
}

// Ensure that writing and hashing allocate nothing.
func TestLogAllocations(t *testing.T) {
	events := everyKind()
	for name, sink := range map[string]eventlog.Sink{"writer": eventlog.NewWriter(io.Discard, eventlog.Header{}),
		"hash": new(eventlog.Hash)} {
		for i := range events {
			e := &events[i]
			e.Time = 1234567890123
			if n := testing.AllocsPerRun(1000, func() { sink.Log(nil, e) }); n != 0 {
				t.Errorf("%s: %v allocations for %v, want none", name, n, e.Kind)
			}
		}
	}
}

func benchmarkSink(b *testing.B, s eventlog.Sink) {
	events := everyKind()
	b.ReportAllocs()
	for i := range b.N {
		e := &events[i%len(events)]
		e.Seq, e.Time = uint64(i), sched.Time(i)*1e6
		s.Log(nil, e)
	}
}

func BenchmarkHash(b *testing.B) { benchmarkSink(b, new(eventlog.Hash)) }

func BenchmarkWriter(b *testing.B) {
	w := eventlog.NewWriter(io.Discard, eventlog.Header{})
	benchmarkSink(b, w)
	if err := w.Close(); err != nil {
		b.Fatal(err)
	}
}

func BenchmarkReader(b *testing.B) {
	var log bytes.Buffer
	w := eventlog.NewWriter(&log, eventlog.Header{})
	events := everyKind()
	const many = 70_000
	for i := range many {
		e := &events[i%len(events)]
		e.Seq, e.Time = uint64(i+1), sched.Time(i)*1e6
		w.Log(nil, e)
	}
	if err := w.Close(); err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	b.SetBytes(int64(log.Len()))
	for b.Loop() {
		if n, err := readAll(bytes.NewReader(log.Bytes())); n != many || err != nil {
			b.Fatal(n, err)
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/many, "ns/event")
}

// FuzzReadLog reads anything: it may refuse, but what it accepts it reads again from what it wrote.
func FuzzReadLog(f *testing.F) {
	d := drawing{rand.New(rand.NewPCG(3, 4))}
	for kind := range sched.EventKinds {
		e := d.event(kind)
		e.Seq, e.Text = 1, "a\xff\n"
		f.Add(headLine + string(eventlog.AppendEvent(nil, 1, e)) + "\n")
	}
	f.Add(headLine + tickLine)
	f.Add(`{"schema":"trainyard.log/v4","settings":{"a":"b"},"share_limit":2,"seed":1}` + "\n")
	f.Add(headLine + `{"seq":1,"time":0,"batch":1,"event":"moved","node":1,"gpus":[5],"state":"quarantined"}` + "\n")
	f.Add(headLine + `{"seq":1,"time":0,"batch":1,"event":"moved","pool":1,"count":2}` + "\n")
	f.Fuzz(func(t *testing.T, text string) {
		var first, second eventlog.Hash
		once, err := rewritten(text, &first)
		if err != nil {
			return
		}
		twice, err := rewritten(once, &second)
		if err != nil || once != twice || first.Sum() != second.Sum() {
			t.Errorf("written as %q, then %q, %v", once, twice, err)
		}
	})
}

// Ensure that the header of a log names settings in the order of their names: the same run has the same log.
func TestHeaderIsSorted(t *testing.T) {
	settings := make(map[string]string)
	for _, name := range "zyxwvutsrq" {
		settings[string(name)] = "1"
	}
	const want = `"settings":{"q":"1","r":"1","s":"1","t":"1","u":"1","v":"1","w":"1","x":"1","y":"1","z":"1"}`
	if line := string(eventlog.AppendHeader(nil, eventlog.Header{Settings: settings})); !strings.Contains(line, want) {
		t.Errorf("%s, want %s", line, want)
	}
}
