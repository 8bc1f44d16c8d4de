package progress

import (
	"bytes"
	"flag"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"
)

var rewrite = flag.Bool("rewrite", false, "write the golden files again")

// names of facts, in the order of their bits.
var names = [fields]string{"step", "total", "epoch", "samples", "speed", "loss", "grad_sqr", "grad_var", "saved_step",
	"saved", "ready", "done"}

// written writes a reading for people.
func written(m Reading) string {
	var b strings.Builder
	values := [fields]any{m.Step, m.Total, math.Round(m.Epoch*1e6) / 1e6, m.Samples, m.Speed, m.Loss, m.GradSqr,
		m.GradVar, m.SavedStep}
	if m.Again {
		b.WriteString("again ")
	}
	for i, name := range names {
		switch {
		case m.Has&(1<<i) == 0:
		case values[i] == nil:
			b.WriteString(name + " ")
		default:
			fmt.Fprintf(&b, "%s=%v ", name, values[i])
		}
	}
	return strings.TrimSpace(b.String())
}

// readAll returns what a text in chunks of at most size bytes says.
func readAll(from From, source Source, text []byte, size int) (all []Reading) {
	r := NewReader(from)
	for b := text; len(b) > 0; b = b[min(size, len(b)):] {
		for m := range r.Read(source, b[:min(size, len(b))]) {
			all = append(all, m)
		}
	}
	if m := r.End(source); m.Has != 0 {
		all = append(all, m)
	}
	return all
}

func printAll(all []Reading) string {
	var b strings.Builder
	for _, m := range all {
		b.WriteString(written(m) + "\n")
	}
	return b.String()
}

// Ensure that the logs of testdata, made after what the trainers document, are understood as their golden files say, by
// auto and by the name that the file starts with, however they are torn.
func TestLogs(t *testing.T) {
	logs, err := filepath.Glob("testdata/*.log")
	if err != nil || len(logs) == 0 {
		t.Fatal(logs, err)
	}
	for _, path := range logs {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		golden := strings.TrimSuffix(path, ".log") + ".want"
		got := printAll(readAll(Auto, Output, text, len(text)))
		if *rewrite {
			if failed := os.WriteFile(golden, []byte(got), 0o644); failed != nil {
				t.Fatal(failed)
			}
		}
		want, err := os.ReadFile(golden)
		if err != nil {
			t.Fatal(err)
		}
		if got != string(want) {
			t.Errorf("%s:\n%swant\n%s", path, got, want)
		}
		for _, size := range []int{1, 2, 3, 7, 61, 4096} {
			if again := printAll(readAll(Auto, Errors, text, size)); again != got {
				t.Errorf("%s in parts of %d:\n%swant\n%s", path, size, again, got)
			}
		}
	}
}

// Ensure that a log that is named is understood by that name too, and not as another; and that nothing but our own
// lines is looked at if that is asked for.
func TestFrom(t *testing.T) {
	last := func(from From, file string) string {
		text, err := os.ReadFile("testdata/" + file + ".log")
		if err != nil {
			t.Fatal(err)
		}
		step := "none"
		for _, m := range readAll(from, Output, text, 100) {
			if m.Has&Step != 0 {
				step = fmt.Sprint(m.Step)
			}
		}
		return step
	}
	for _, c := range []struct {
		from From
		file string
		step string
	}{
		{Tqdm, "tqdm", "200"}, {Tqdm, "hf", "375"}, {Tqdm, "lightning", "360"}, {Tqdm, "steps", "none"},
		{HF, "hf", "375"}, {HF, "steps", "none"}, {HF, "hf-quoted", "120"},
		{Lightning, "lightning", "360"}, {Lightning, "lightning-rich", "33"}, {Lightning, "tqdm", "none"},
		{Steps, "steps", "1000"}, {Steps, "tqdm", "none"}, {Steps, "steps-bracket", "15010"},
		{Own, "own", "130"}, {Own, "tqdm", "none"}, {Own, "hf", "none"}, {Own, "steps", "none"},
		{Auto, "own", "130"}, {Steps, "own", "130"}, {HF, "own", "130"},
	} {
		if got := last(c.from, c.file); got != c.step {
			t.Errorf("%s.log from %s: step %s, want %s", c.file, c.from, got, c.step)
		}
	}
	for _, w := range words {
		if f, err := ParseFrom(w); err != nil || f.String() != w {
			t.Errorf("%s: %v, %v", w, f, err)
		}
	}
	if _, err := ParseFrom("tensorboard"); fmt.Sprint(err) !=
		`progress from "tensorboard", want auto, own, tqdm, hf, lightning or steps` {
		t.Error(err)
	}
}

// Ensure that files and sockets are read as objects, their own lines too, and never as logs.
func TestObjects(t *testing.T) {
	for _, c := range []struct{ text, want string }{
		{`{"step": 120, "total": 90000, "epoch": 1.5, "loss": 2.1, "samples": 30720, "samples_per_sec": 812.5}`,
			"step=120 total=90000 epoch=1.5 samples=30720 speed=812.5 loss=2.1"},
		{`{"step":1,"total_steps":9}`, "step=1 total=9"},
		{`{"grad_sqr": 1e-3, "grad_var": 2, "unknown": {"step": 7, "a": [{"step": 8}]}, "step": "3"}`,
			"step=3 grad_sqr=0.001 grad_var=2"},
		{`  {"step": 7, "saved": true}`, "saved_step=7 saved"},
		{`{"saved": false, "ready": true, "done": true}`, "ready done"},
		{`TRAINYARD step=4`, "step=4"},
		{`{"step": -1}`, ""}, {`{"step": 1.5}`, ""}, {`{"step": 1e3}`, ""}, {`{"step": 99999999999999999999}`, ""},
		{`{"step": null}`, ""},
		{`{"loss": NaN}`, ""}, {`{"loss": Infinity, "step": 2}`, "step=2"}, {`{"loss": 1e999}`, ""},
		{`[{"step": 1}]`, ""}, {`{`, ""}, {`{"step"`, ""}, {`{"step":`, ""}, {`{"step": 1`, ""},
		{`{"a\"}: 1, "step": 1}`, ""},
		{`{"a": {"b": "}}}"}, "step": 5}`, "step=5"}, {`{"a": [[[`, ""},
		{`step 1/10`, ""}, {` 45%|####5     | 450/1000 [00:12<00:15, 36.10it/s]`, ""},
	} {
		for _, source := range []Source{File, Socket} {
			if got := strings.TrimSpace(printAll(readAll(Auto, source, []byte(c.text+"\n"), 7))); got != c.want {
				t.Errorf("%s\ngot  %s\nwant %s", c.text, got, c.want)
			}
		}
	}
}

// Ensure that the lines of sources torn in the middle do not mix.
func TestSourcesApart(t *testing.T) {
	r := NewReader(Auto)
	got := ""
	for _, part := range []struct {
		source Source
		text   string
	}{{Output, "TRAINYARD st"}, {Errors, "TRAINYARD lo"}, {File, `{"sam`}, {Output, "ep=5\n"}, {Errors, "ss=2\n"},
		{File, "ples\": 7}\n"}, {Socket, `{"epoch": 1}`}} {
		for m := range r.Read(part.source, []byte(part.text)) {
			got += written(m) + ";"
		}
	}
	if got += written(r.End(Socket)); got != "step=5;loss=2;samples=7;epoch=1" {
		t.Error(got)
	}
}

// Ensure that a line that is too long is passed over, at little memory, and the next is read.
func TestLongLines(t *testing.T) {
	for n := MaxLine - 2; n < MaxLine+3; n++ {
		line := "TRAINYARD step=1 "
		line += strings.Repeat("x", n-len(line))
		want := "step=1\nstep=2\n"
		if n >= MaxLine {
			want = "step=2\n"
		}
		for _, size := range []int{1, 1000, 1 << 20} {
			if got := printAll(readAll(Auto, Output, []byte(line+"\nTRAINYARD step=2\n"), size)); got != want {
				t.Errorf("%d bytes in parts of %d: %q, want %q", n, size, got, want)
			}
		}
	}
	r := NewReader(Auto)
	for range 100 {
		for range r.Read(Output, bytes.Repeat([]byte("x"), 1<<16)) {
			t.Error("something was read")
		}
	}
	if c := cap(r.lines[Output].begun); c > 2*MaxLine {
		t.Errorf("%d bytes are kept", c)
	}
}

// Ensure that escape sequences go and text stays.
func TestPlainText(t *testing.T) {
	for _, c := range []struct{ in, want string }{
		{"", ""}, {"plain", "plain"}, {"\x1b[31mred\x1b[0m", "red"}, {"\x1b[A\x1b[2K\x1b[1;2Hx", "x"},
		{"a\x1b]0;title\x07b", "ab"},
		{"a\x1b]8;;http://x\x1b\\link\x1b]8;;\x1b\\b", "alinkb"}, {"a\x1b", "a"}, {"a\x1b[", "a"}, {"a\x1b]x", "a"},
		{"a\x1bMb", "ab"}, {"\x1b\x1b[31m", "[31m"},
	} {
		if got, _ := plainText(nil, []byte(c.in)); string(got) != c.want {
			t.Errorf("%q: %q, want %q", c.in, got, c.want)
		}
	}
}

// Ensure that neither a slow start nor a pause nor a burst moves the rate, wherever in the window they are.
func TestRateOfOnePause(t *testing.T) {
	for pause := range 20 {
		var r Rate
		now := 90.0 // compiles
		r.Add(0, 0, false)
		for i := range 40 {
			now += 6
			if i == 15+pause {
				now += 100
			}
			count := 30 * i
			if i == 12 {
				count += 29
			}
			r.Add(time.Duration(now*float64(time.Second)), float64(count), false)
		}
		if got, ok := r.PerSecond(); !ok || math.Abs(got-5) > 0.25 {
			t.Errorf("a pause at %d: rate %v, %v, want 5", 15+pause, got, ok)
		}
	}
}

// Ensure that pauses that come again and again move the rate by far less than their share of the time, a quarter here,
// and that a fall starts again.
func TestRate(t *testing.T) {
	var r Rate
	at := func(s float64) time.Duration { return time.Duration(s * float64(time.Second)) }
	now, count := 0.0, 0.0
	r.Add(0, 0, false)
	now = 90 // compiles
	for range 60 {
		r.Add(at(now), count, false)
		now, count = now+6, count+30
		if math.Mod(count, 300) == 0 {
			now += 20 // evaluates
		}
	}
	if got, ok := r.PerSecond(); !ok || math.Abs(got-5) > 0.25 {
		t.Errorf("rate %v, %v, want 5", got, ok)
	}
	r.Add(at(now), count-500, false)
	if got, ok := r.PerSecond(); ok {
		t.Errorf("rate %v right after a fall, want none", got)
	}
	for i := range 10 {
		r.Add(at(now+6*float64(i+1)), count-500+12*float64(i+1), false)
	}
	if got, ok := r.PerSecond(); !ok || math.Abs(got-2) > 1e-9 {
		t.Errorf("rate %v, %v, want 2", got, ok)
	}
	r.Add(at(now+1000), count+1e6, true)
	if got, ok := r.PerSecond(); ok {
		t.Errorf("rate %v when another count starts, want none", got)
	}
}

// Ensure that what is read faster than a window is fine counts all the same.
func TestRateOfQuickReadings(t *testing.T) {
	var r Rate
	for i := range 10000 {
		r.Add(time.Duration(i)*100*time.Millisecond, float64(7*i), false)
	}
	if got, ok := r.PerSecond(); !ok || math.Abs(got-70) > 1e-6 {
		t.Errorf("rate %v, %v, want 70", got, ok)
	}
	if r.n > window {
		t.Errorf("%d points", r.n)
	}
}

// FuzzReader reads any bytes in any parts: the same readings as in one, all of them in range.
func FuzzReader(f *testing.F) {
	logs, _ := filepath.Glob("testdata/*.log")
	for _, path := range logs {
		if text, err := os.ReadFile(path); err == nil {
			f.Add(text[:min(len(text), 3000)], uint16(3))
		}
	}
	f.Add([]byte(`{"step": 1, "a": [{"b"`), uint16(1))
	f.Add([]byte("Epoch 9223372036854775807/9223372036854775807: 1%| | 1/9007199254740992 [00:12<00:15, 36.10it/s]\n"),
		uint16(0))
	f.Fuzz(func(t *testing.T, text []byte, size uint16) {
		for _, source := range []Source{Output, File} {
			whole := readAll(Auto, source, text, len(text)+1)
			parts := readAll(Auto, source, text, int(size)+1)
			if printAll(whole) != printAll(parts) {
				t.Fatalf("%s, in parts %s", printAll(whole), printAll(parts))
			}
			for _, m := range whole {
				for _, n := range []int64{m.Step, m.Total, m.Samples, m.SavedStep} {
					if n < 0 {
						t.Fatalf("%+v", m)
					}
				}
				for _, x := range []float64{m.Epoch, m.Speed, m.Loss, m.GradSqr, m.GradVar} {
					if !(x >= 0 && x <= math.MaxFloat64) {
						t.Fatalf("%+v", m)
					}
				}
				if m.Has == 0 {
					t.Fatal("a reading of nothing")
				}
			}
		}
	})
}

// Lines of each kind, and some that are made to be slow: how much of a log is read per second. Nothing is allocated.
func BenchmarkRead(b *testing.B) {
	for _, c := range []struct{ name, line string }{
		{"own", "TRAINYARD step=120 total=90000 loss=2.1 samples=30720\n"},
		{"tqdm", "\rEpoch 3:  45%|████▌     | 450/1000 [00:12<00:15, 36.10it/s, v_num=0, train_loss=0.131]"},
		{"hf", "{'loss': 2.1, 'grad_norm': 1.9, 'learning_rate': 4.9e-05, 'epoch': 0.5}\n"},
		{"steps", "[2026-11-22 03:44:19] step 100/1000 | loss: 2.4000 | 812.5 samples/s | lr 3.0e-4\n"},
		{"other", "2026-11-22 03:44:19,123 INFO worker 3: the quick brown fox has read shard 17 of the data set, all " +
			"is well\n"},
		{"brackets", strings.Repeat("1/2 [00:00", 400) + "]\n"},
		{"words", strings.Repeat("epoch step samples ", 200) + "\n"},
		{"braces", "{'" + strings.Repeat("a':{'", 800) + "\n"},
		{"escapes", strings.Repeat("\x1b[1m{", 800) + "\n"},
	} {
		b.Run(c.name, func(b *testing.B) {
			r := NewReader(Auto)
			chunk := []byte(strings.Repeat(c.line, 256))
			b.SetBytes(int64(len(c.line)))
			b.ReportAllocs()
			for i := 0; i < b.N; i += 256 {
				for range r.Read(Output, chunk) {
				}
			}
		})
	}
}

// Ensure that numbers are read directly as strconv reads them.
func FuzzNumbers(f *testing.F) {
	for _, text := range []string{"", "0", "007", "90000", "+5", "-0", "2.1", ".5", "5.", ".", "1.2.3",
		"0.1234567890123", "999999999999999", "1234567890123456", "9223372036854775807",
		"9223372036854775808", "4.9e-05", "1e400", "0x10", "1_0", "nan", "3.14159265358979",
		"0000000000000000000000000000000000001"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		n, err := strconv.ParseInt(text, 10, 64)
		ok := err == nil && n >= 0 && len(text) <= longest
		if got, is := whole([]byte(text)); is != ok || is && got != n {
			t.Errorf("%q: %d, %v, want %d, %v", text, got, is, n, ok)
		}
		x, err := strconv.ParseFloat(text, 64)
		ok = err == nil && x >= 0 && len(text) <= longest && strings.Trim(text, "0123456789.eE+-") == ""
		if got, is := number([]byte(text)); is != ok || is && got != x {
			t.Errorf("%q: %v, %v, want %v, %v", text, got, is, x, ok)
		}
	})
}
