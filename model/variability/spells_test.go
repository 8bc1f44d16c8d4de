package variability

import (
	"slices"
	"strings"
	"testing"

	"github.com/trainyard/trainyard/sched"
)

const someSpells = "gpu,from_s,to_s,factor\n3,3600,10800,2.8\n1,60,,1.15\n3,10800,10801.5,2\n0,60,61,0.5\n"

// Ensure that spells come in order of time and GPU, that one may start when another of its GPU ends, and that what has
// no end lasts for ever.
func TestReadSpells(t *testing.T) {
	const s = sched.Time(1e9)
	got, err := ReadSpells(strings.NewReader(someSpells), "slow.csv", 4)
	want := []Spell{{0, 60 * s, 61 * s, .5}, {1, 60 * s, sched.Never, 1.15}, {3, 3600 * s, 10800 * s, 2.8},
		{3, 10800 * s, 10801*s + s/2, 2}}
	if err != nil || !slices.Equal(got, want) {
		t.Errorf("%v, %v\nwant %v", got, err, want)
	}
}

func TestReadSpellsRefuses(t *testing.T) {
	for _, c := range []struct{ rows, want string }{
		{"4,0,1,2", `line 2: gpu "4", want the number of one, 0..3`},
		{"-1,0,1,2", `line 2: gpu "-1", want the number of one, 0..3`},
		{"g,0,1,2", `line 2: gpu "g", want the number of one, 0..3`},
		{"0,-1,1,2", `line 2: from_s "-1", want a number in 0..3.15576e+09`},
		{"0,NaN,1,2", `line 2: from_s "NaN", want a number in 0..3.15576e+09`},
		{"0,0,1e30,2", `line 2: to_s "1e30", want a number in 0..3.15576e+09, or nothing`},
		{"0,5,5,2", `line 2: to_s "5", want more than from_s "5"`},
		{"0,0,1,0", `line 2: factor "0", want a number > 0`},
		{"0,0,1,NaN", `line 2: factor "NaN", want a number > 0`},
		{"0,10,20,2\n0,15,,2", `line 3: GPU 0, want one spell at a time: line 2 is at the same time`},
		{"0,10,20,2\n1,0,,2\n0,5,11,2", `line 4: GPU 0, want one spell at a time: line 2 is at the same time`},
		{"0,10,,2\n0,0,10,2\n0,90,91,2", `line 4: GPU 0, want one spell at a time: line 2 is at the same time`},
	} {
		_, err := ReadSpells(strings.NewReader("gpu,from_s,to_s,factor\n"+c.rows+"\n"), "slow.csv", 4)
		if want := "variability: slow.csv: " + c.want; err == nil || err.Error() != want {
			t.Errorf("%v\nwant %s", err, want)
		}
	}
}

// FuzzReadSpells ensures that no table makes the reader panic, that errors say where, and that spells are in order, of
// GPUs there are, and of one GPU never at the same time.
func FuzzReadSpells(f *testing.F) {
	f.Add(someSpells)
	f.Fuzz(func(t *testing.T, text string) {
		list, err := ReadSpells(strings.NewReader(text), "f", 4)
		if err != nil {
			checkError(t, err)
			return
		}
		var end [4]sched.Time
		for i, s := range list {
			if i > 0 && s.From < list[i-1].From || s.From < end[s.GPU] || s.To <= s.From || !(s.Factor > 0) {
				t.Fatalf("spell %d of %v", i, list)
			}
			end[s.GPU] = s.To
		}
	})
}
