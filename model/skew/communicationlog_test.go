package skew

import (
	"errors"
	"fmt"
	"math/rand"
	"slices"
	"strings"
	"testing"
	"testing/iotest"
)

func parse(text string) (Profile, error) { return ParseLog(strings.NewReader(text), "f.log") }

// messages writes sizes in bytes as a message log.
func messages(sizes []int64) string {
	var b strings.Builder
	for i, s := range sizes {
		fmt.Fprintf(&b, "%d.5 %d\n", i, s)
	}
	return b.String()
}

// repeat returns n messages of the endless repetition of block, from its element from on.
func repeat(block []int64, from, n int) []int64 {
	sizes := make([]int64, n)
	for i := range sizes {
		sizes[i] = block[(from+i)%len(block)]
	}
	return sizes
}

func TestParseTensorLog(t *testing.T) {
	p, err := parse("# weights\r\n\ntensor conv 1048576\r\n  tensor fc 3145728  \n")
	if err != nil || !slices.Equal(p.Tensors, []float64{1, 3}) || p.Skew() != 0.75 {
		t.Errorf("%v, %v, want tensors of 1 and 3 MB", p, err)
	}
}

// Ensure that a clean message log gives its iteration, wherever it starts and ends.
func TestParseMessageLog(t *testing.T) {
	block := []int64{MB, 2 * MB, 2 * MB, MB, 8 * MB}
	for from := range block {
		for n := 2 * len(block); n < 4*len(block); n++ {
			p, err := parse(messages(repeat(block, from, n)))
			want := repeat(block, from, len(block))
			if err != nil || !slices.Equal(bytesOf(p), want) {
				t.Fatalf("from %d, %d messages: %v, %v, want %v", from, n, p, err, want)
			}
		}
	}
}

func bytesOf(p Profile) []int64 {
	var sizes []int64
	for _, t := range p.Tensors {
		sizes = append(sizes, int64(t*MB))
	}
	return sizes
}

// Ensure that up to 1 % of foreign messages are dropped, whether they have sizes of their own or those of tensors, and
// that the log may still be cut anywhere. The iteration may come out start elsewhere.
func TestParseMessageLogForeign(t *testing.T) {
	rng := rand.New(rand.NewSource(8))
	for round := range 200 {
		block := make([]int64, 3+rng.Intn(40))
		for i := range block {
			block[i] = int64(1+rng.Intn(6)) * 1000
		}
		block[rng.Intn(len(block))] = 9_000_000 // as in a real model, some size occurs once
		clean := repeat(block, rng.Intn(len(block)), 30*len(block)+rng.Intn(len(block)))
		var sizes []int64
		foreign := 0
		for _, s := range clean {
			if (foreign+1)*100 <= len(clean) && rng.Intn(100) == 0 {
				foreign++
				if round%2 == 0 {
					sizes = append(sizes, 64)
				} else {
					sizes = append(sizes, block[rng.Intn(len(block))])
				}
			}
			sizes = append(sizes, s)
		}
		p, err := parse(messages(sizes))
		if err != nil {
			t.Fatalf("round %d: %d tensors, %d foreign of %d: %v", round, len(block), foreign, len(sizes), err)
		}
		if !rotation(bytesOf(p), block) {
			t.Fatalf("round %d: %v, want a rotation of %v", round, bytesOf(p), block)
		}
	}
}

func rotation(a, b []int64) bool {
	if len(a) != len(b) {
		return false
	}
	for from := range b {
		if slices.Equal(a, repeat(b, from, len(b))) {
			return true
		}
	}
	return false
}

// Ensure that too much noise is refused rather than read as something else.
func TestParseMessageLogTooNoisy(t *testing.T) {
	block := []int64{1000, 2000, 2000, 9000}
	var sizes []int64
	for i, s := range repeat(block, 0, 400) {
		if i%40 == 7*(i/40)%40 {
			sizes = append(sizes, int64(64+i))
		}
		sizes = append(sizes, s)
	}
	for range 15 {
		sizes = slices.Insert(sizes, len(sizes)/3, 77)
	}
	if p, err := parse(messages(sizes)); err == nil {
		t.Errorf("%v, want an error", p)
	}
	rng := rand.New(rand.NewSource(9))
	for i := range sizes {
		sizes[i] = int64(1 + rng.Intn(5))
	}
	if p, err := parse(messages(sizes)); err == nil {
		t.Errorf("random sizes: %v, want an error", p)
	}
}

// Ensure that reading stops at MaxMessages, and that what follows is not even looked at.
func TestParseLogStops(t *testing.T) {
	text := messages(repeat([]int64{1, 2}, 0, MaxMessages)) + "rubbish\nrubbish\n"
	if p, err := parse(text); err != nil || len(p.Tensors) != 2 {
		t.Errorf("%v, %v, want 2 tensors", p, err)
	}
}

func TestParseLogRefuses(t *testing.T) {
	const line = "tensor NAME BYTES or TIMESTAMP BYTES"
	var wide strings.Builder
	for i := range MaxTensors + 1 {
		fmt.Fprintf(&wide, "tensor t%d 1\n", i)
	}
	tests := []struct{ text, want string }{
		{"", "line 0: nothing logged, want lines " + line},
		{"# only this\n", "line 1: nothing logged, want lines " + line},
		{"conv 12\n", `line 1: "conv 12", want ` + line},
		{"1.0\n", `line 1: "1.0", want ` + line},
		{"tensor conv\n", `line 1: "tensor conv", want tensor NAME BYTES`},
		{"tensor conv many\n", `line 1: "tensor conv many", want bytes, a whole number in 1..1125899906842624`},
		{"tensor conv 0\n", `line 1: "tensor conv 0", want bytes, a whole number in 1..1125899906842624`},
		{"tensor a 1\n2.5 7\n", `line 2: "2.5 7", want tensor NAME BYTES`},
		{"tensor a 1\n\ntensor a 1\n", `line 3: "tensor a 1", want each tensor once, this one is in line 1`},
		{"1 5\ntensor a 1\n", `line 2: "tensor a 1", want TIMESTAMP BYTES`},
		{"1 5\n2 5 5\n", `line 2: "2 5 5", want TIMESTAMP BYTES`},
		{"1 5\nNaN 5\n", `line 2: "NaN 5", want a finite timestamp`},
		{"2 5\n1 5\n", `line 2: "1 5", want a timestamp >= 2, that of the message above`},
		{"1 -5\n", `line 1: "1 -5", want bytes, a whole number in 1..1125899906842624`},
		{"1 5\n2 5\n3 5\n", "line 3: all 3 messages are of 5 bytes, which does not show where an iteration ends, " +
			"want lines tensor NAME BYTES"},
		{"1 5\n2 6\n3 7\n", "line 3: the sizes of 3 messages do not repeat, want two whole iterations, each tensor " +
			"as one message, and at most 1 foreign message in 100"},
		{wide.String(), `line 16385: "tensor t16384 1", want at most 16384 tensors`},
		{"tensor " + strings.Repeat("x", 300) + " 1\n", `line 1: "tensor ` + strings.Repeat("x", 73) +
			`...", want a name of at most 256 bytes`},
	}
	for _, tt := range tests {
		if _, err := parse(tt.text); err == nil || err.Error() != "skew: f.log: "+tt.want {
			t.Errorf("%.40q: %v\nwant skew: f.log: %s", tt.text, err, tt.want)
		}
	}
	many := make([]int64, MaxTensors+1)
	for i := range many {
		many[i] = int64(i + 1)
	}
	if p, err := parse(messages(repeat(many, 0, 2*len(many)))); err == nil {
		t.Errorf("%d tensors were taken", len(p.Tensors))
	}
	broken := errors.New("broken")
	if _, err := ParseLog(iotest.ErrReader(broken), "f.log"); !errors.Is(err, broken) {
		t.Errorf("%v, want one that wraps %v", err, broken)
	}
}

// Ensure that the fast search for a period agrees with trying every one.
func TestSmallestPeriodAgainstTwin(t *testing.T) {
	rng := rand.New(rand.NewSource(10))
	for range 2000 {
		block := make([]int64, 1+rng.Intn(6))
		for i := range block {
			block[i] = int64(rng.Intn(3))
		}
		sizes := repeat(block, rng.Intn(6), 1+rng.Intn(25))
		want := 1
		for ; want < len(sizes); want++ {
			if slices.Equal(sizes[want:], sizes[:len(sizes)-want]) {
				break
			}
		}
		if got := smallestPeriod(sizes); got != want {
			t.Fatalf("%v: period %d, want %d", sizes, got, want)
		}
	}
}

func FuzzParseLog(f *testing.F) {
	for _, seed := range []string{
		"tensor a 12\ntensor b 5\n", "# x\n1 5\n2 6\n3 5\n4 6\n5 5\n", "1 5\n1 5\n", "tensor\n", "0x1p3 7\n", "\x00",
		messages(append(repeat([]int64{5, 6, 900}, 1, 150),
			append([]int64{64}, repeat([]int64{5, 6, 900}, 1, 150)...)...)),
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		p, err := ParseLog(strings.NewReader(text), "f")
		if err != nil {
			if !strings.HasPrefix(err.Error(), "skew: f: line ") {
				t.Errorf("error %q names no line", err)
			}
			return
		}
		if n := len(p.Tensors); n < 1 || n > MaxTensors || slices.Min(p.Tensors) <= 0 {
			t.Errorf("%d tensors: %v", n, p)
		}
		if s := p.Skew(); !(s > 0 && s <= 1) {
			t.Errorf("skew %v, want in 0..1", s)
		}
	})
}
