package variability

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
)

const penalties = "model_or_class,gpus_min,level,penalty\n" +
	"PointNet,8,across,1.10\nPointNet,12,across,1.20\nPointNet,16,across,1.25\nresnet50,16,across,1.16\n" +
	"A,1,rack,1.05\nA,1,across,1.16\nA,4,node,1.01\nA,4,rack,1.1\n*,1,across,1.7\n"

func TestPenalty(t *testing.T) {
	l, err := ReadLocality(strings.NewReader(penalties), "f.csv")
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		model, class string
		gpus         int
		want         [levels]float64 // on a node, in a rack, across
	}{
		{"PointNet", "D", 16, [levels]float64{1, 1.25, 1.25}},
		{"PointNet", "D", 15, [levels]float64{1, 1.2, 1.2}},
		{"PointNet", "D", 8, [levels]float64{1, 1.1, 1.1}},
		{"PointNet", "D", 6, [levels]float64{1, 1.7, 1.7}},    // below all rows of the model: as everyone
		{"resnet50", "A", 3, [levels]float64{1, 1.05, 1.16}},  // the class
		{"resnet50", "A", 4, [levels]float64{1.01, 1.1, 1.1}}, // across is not said: as in a rack
		{"resnet50", "A", 99, [levels]float64{1, 1.16, 1.16}}, // the model comes first
		{"", "", 1, [levels]float64{1, 1.7, 1.7}},
	} {
		for level, want := range c.want {
			if got := l.Penalty(c.model, c.class, c.gpus, Level(level)); got != want {
				t.Errorf("%s, class %s, %d GPUs, level %v: %v, want %v", c.model, c.class, c.gpus, Level(level), got,
					want)
			}
		}
	}
	two, none := TwoLevel(PublishedAcross), Locality{}
	for level, want := range []float64{1, 1.7, 1.7} {
		if got := two.Penalty("any", "A", 1+level, Level(level)); got != want ||
			none.Penalty("any", "A", 4, Level(level)) != 1 {
			t.Errorf("two levels: %v on level %v, want %v, and 1 where nothing is said", got, Level(level), want)
		}
	}
	if s := fmt.Sprint(SameNode, SameRack, Across, Level(9)); s != "node rack across level 9" {
		t.Error(s)
	}
}

// Ensure that what a table leaves open for everyone is seen, and filled in without touching what it says.
func TestOrElse(t *testing.T) {
	for _, c := range []struct {
		rows  string
		whole bool
		want  [levels]float64 // of four GPUs of a model without rows, across being 1.7
	}{
		{"m,1,across,3\n", false, [levels]float64{1, 1.7, 1.7}},
		{"*,1,across,3\n", true, [levels]float64{1, 3, 3}},
		{"*,2,rack,1.2\n", true, [levels]float64{1, 1.2, 1.2}},
		{"*,4,across,3\n", false, [levels]float64{1, 3, 3}},
		{"*,1,node,2\n", false, [levels]float64{2, 2, 2}},
	} {
		l, err := ReadLocality(strings.NewReader("model_or_class,gpus_min,level,penalty\n"+c.rows), "f.csv")
		if err != nil {
			t.Fatal(err)
		}
		filled := l.OrElse(1.7)
		for level, want := range c.want {
			if got := filled.Penalty("x", "A", 4, Level(level)); got != want {
				t.Errorf("%q: %v on level %v, want %v", c.rows, got, Level(level), want)
			}
		}
		if l.Whole() != c.whole || !filled.Whole() {
			t.Errorf("%q: whole %v, filled %v", c.rows, l.Whole(), filled.Whole())
		}
	}
}

func TestReadLocalityRefuses(t *testing.T) {
	const head = "model_or_class,gpus_min,level,penalty\n"
	for _, c := range []struct{ text, want string }{
		{"", `line 1: empty file, want a header line and rows`},
		{head, `line 1: no rows, want at least one`},
		{"model_or_class,level,penalty\n",
			`line 1: no column "gpus_min", want the columns model_or_class, gpus_min, level, penalty`},
		{"note," + head, `line 1: 5 columns, want the columns model_or_class, gpus_min, level, penalty`},
		{head + ",1,node,1\n", `line 2: model_or_class "", want a name of 1 to 256 bytes without control characters`},
		{head + "a,0,node,1\n", `line 2: gpus_min "0", want a whole number in 1..1000000`},
		{head + "a,1.5,node,1\n", `line 2: gpus_min "1.5", want a whole number in 1..1000000`},
		{head + "a,1,nodes,1\n", `line 2: level "nodes" (did you mean "node"?), want one of node, rack, across`},
		{head + "a,1,rack,0.9\n", `line 2: penalty "0.9", want a number in 1..1000`},
		{head + "a,1,rack,NaN\n", `line 2: penalty "NaN", want a number in 1..1000`},
		{head + "a,1,rack,1\nb,1,rack,1\na,1,rack,1\n", `line 4: "a" from 1 GPUs on, level rack, twice, want it once`},
		{head + "a,1,rack,1.5\na,1,across,1.2\n",
			`line 3: penalty 1.2 on level across and 1.5 on level rack, want no level cheaper than a nearer one`},
		{head + "a,1,rack,1.5\na,1,node,1.7\n",
			`line 3: penalty 1.7 on level node and 1.5 on level rack, want no level cheaper than a nearer one`},
	} {
		if _, err := ReadLocality(strings.NewReader(c.text), "f.csv"); err == nil ||
			err.Error() != "variability: f.csv: "+c.want {
			t.Errorf("%q:\n%v\nwant variability: f.csv: %s", c.text, err, c.want)
		}
	}
}

// Ensure that searching for a row finds the one that going through all of them finds.
func TestPenaltyAgreesWithTwin(t *testing.T) {
	r := rand.New(rand.NewPCG(7, 1))
	names := []string{"m", "c", "*", "x"}
	for range 200 {
		var text strings.Builder
		text.WriteString("model_or_class,gpus_min,level,penalty\n")
		type row struct {
			who  string
			gpus int
		}
		rows := make(map[row]float64)
		for range 1 + r.IntN(12) {
			at, x := row{names[r.IntN(4)], 1 + r.IntN(9)}, 1+float64(r.IntN(100))/100
			if rows[at] == 0 {
				rows[at] = x
				fmt.Fprintf(&text, "%s,%d,across,%v\n", at.who, at.gpus, x)
			}
		}
		l, err := ReadLocality(strings.NewReader(text.String()), "f")
		if err != nil {
			t.Fatal(err)
		}
		for gpus := range 12 {
			want := 1.0
			for _, who := range []string{"*", "c", "m"} { // the last that speaks wins
				for n := 1; n <= gpus; n++ {
					if x, ok := rows[row{who, n}]; ok {
						want = x
					}
				}
			}
			if got := l.Penalty("m", "c", gpus, Across); got != want {
				t.Fatalf("%d GPUs: %v, want %v in\n%s", gpus, got, want, text.String())
			}
		}
	}
}

// FuzzReadLocality ensures that no table makes the reader panic, that errors say where, and that no penalty falls with
// distance or below 1.
func FuzzReadLocality(f *testing.F) {
	f.Add(penalties, "A", 4)
	f.Add("model_or_class,gpus_min,level,penalty\n*,1,node,1e3\n", "", 1)
	f.Fuzz(func(t *testing.T, text, who string, gpus int) {
		l, err := ReadLocality(strings.NewReader(text), "f")
		if err != nil {
			checkError(t, err)
			return
		}
		least := 1.0
		for level := range levels {
			x := l.Penalty(who, "", gpus, level)
			if !(x >= least && x <= MaxPenalty) {
				t.Errorf("penalty %v on level %v, %v on the one before", x, level, least)
			}
			least = x
		}
	})
}
