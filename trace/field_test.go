package trace

import (
	"math/big"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/trainyard/trainyard/sched"
)

func TestParseTime(t *testing.T) {
	for _, c := range []struct {
		text string
		unit time.Duration
		want time.Duration
	}{
		{"0", time.Second, 0},
		{"12", time.Second, 12 * time.Second},
		{"007", time.Second, 7 * time.Second},
		{".5", time.Second, time.Second / 2},
		{"5.", time.Second, 5 * time.Second},
		{"1.000000001", time.Second, time.Second + 1},
		{"1.0000000004", time.Second, time.Second},
		{"1.0000000005", time.Second, time.Second + 1},
		{"3155760000", time.Second, MaxTime},
		{"3155759999.999999999", time.Second, MaxTime - 1},
		{"0.30000000000000000000000001", time.Second, 300 * time.Millisecond},
		{"0000000000000000000000000000001", time.Second, time.Second},
		{"1e3", time.Second, 1000 * time.Second},
		{"2.5E-3", time.Second, 2500 * time.Microsecond},
		{"+1", time.Second, time.Second},
		{"-0.0", time.Second, 0},
		{"1500", time.Millisecond, 1500 * time.Millisecond},
		{"0.25", time.Hour, 15 * time.Minute},
		{"876600", time.Hour, MaxTime},
		{"0.4", 1, 0},
	} {
		if got, ok := parseTime(c.text, c.unit); !ok || got != c.want {
			t.Errorf("parseTime(%q, %v) = %v, %v, want %v", c.text, c.unit, got, ok, c.want)
		}
	}
}

// Ensure that what FormatSeconds prints is read back exactly, and that rounding is that of exact fractions.
func TestParseTimeIsExact(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for range 20000 {
		want := time.Duration(r.Int64N(int64(MaxTime) + 1))
		if r.IntN(2) == 0 {
			want >>= r.IntN(60)
		}
		if got, ok := parseTime(sched.FormatSeconds(want), time.Second); !ok || got != want {
			t.Fatalf("%s s is read as %v, %v", sched.FormatSeconds(want), got, ok)
		}
		unit := time.Duration(1 + r.Int64N(int64(time.Minute)))
		text := sched.FormatSeconds(want >> 32)
		if got, ok := parseTime(text, unit); !ok || got != exact(text, unit) {
			t.Fatalf("%s times %d ns is read as %d ns, %v, want %d ns", text, unit, got, ok, exact(text, unit))
		}
	}
}

// exact is parseTime in fractions of any length.
func exact(text string, unit time.Duration) time.Duration {
	x, _ := new(big.Rat).SetString(text)
	x.Mul(x, new(big.Rat).SetInt64(int64(unit)))
	x.Add(x, big.NewRat(1, 2))
	return time.Duration(new(big.Int).Quo(x.Num(), x.Denom()).Int64())
}

func TestSplit(t *testing.T) {
	for _, c := range []struct {
		line string
		want string // fields joined by |
		ok   bool
	}{
		{"", "", true},
		{"a", "a", true},
		{"a,b,", "a|b|", true},
		{",,", "||", true},
		{`"a,b",c`, "a,b|c", true},
		{`"",""`, "|", true},
		{`"say ""x"""`, `say "x"`, true},
		{`a"b,c`, `a"b|c`, true},
		{`"a",`, "a|", true},
		{` a , b	,"c " ,	" d"	, `, "a|b|c | d|", true},
		{`"a`, "", false},
		{`"a" b`, "", false},
		{`"a"b`, "", false},
		{`"a""`, "", false},
	} {
		got, ok := split(c.line, nil)
		if ok != c.ok || ok && strings.Join(got, "|") != c.want {
			t.Errorf("split(%q) = %q, %v, want %q, %v", c.line, got, ok, c.want, c.ok)
		}
	}
}

// Ensure that blanks around cells that are not quoted are no part of them, in headers too, and that those of a quoted
// one, and of a name that is written, are kept.
func TestBlanksAroundCells(t *testing.T) {
	plain := "job_id,submit_s,num_gpus,duration_s,user,model\na,0,1,2,al,\nb,1,2,3.5,,\"m, n\"\n"
	want, err := Parse(strings.NewReader(plain), "jobs.csv", Options{})
	if err != nil {
		t.Fatal(err)
	}
	got, err := Parse(strings.NewReader(spaced), "jobs.csv", Options{})
	if err != nil || !reflect.DeepEqual(got.Jobs, want.Jobs) {
		t.Fatalf("with blanks: %+v, %v\nwant %+v", got, err, want)
	}
	for _, name := range []string{" a", "a "} {
		got, err = Parse(strings.NewReader(minimal+`"`+name+"\" ,0,1 ,2\n"), "jobs.csv", Options{})
		if err != nil || got.Jobs[0].Spec.Name != name {
			t.Fatalf("a quoted blank: %+v, %v", got, err)
		}
		roundTrip(t, got)
	}
}
