package experiment

import (
	"bytes"
	"context"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/trainyard/trainyard/sched"
)

// Ensure that faults are where they are said to be: one a day, in its first half, over on the same day, as bad and as
// long as the scenario says, and the same again for the same seed.
func TestFaults(t *testing.T) {
	const day = sched.Time(24 * time.Hour)
	for i := range scenarios {
		s := &scenarios[i]
		faults, again := s.draw(3, 20), s.draw(3, 20)
		for d, f := range faults {
			last := f[len(f)-1]
			if f.begin()/day != sched.Time(d) || f.begin()%day >= day/2 || last.At.Sub(f.begin()) != s.last ||
				last.At/day != sched.Time(d) || last.Factor != 1 ||
				f[len(f)-2].Factor != s.worst || len(f[0].GPUs) != s.gpus || int(f[0].GPUs[0])%s.gpus != 0 {
				t.Errorf("%s, day %d: %v", s.name, d, f)
			}
			if again[d].begin() != f.begin() || again[d][0].GPUs[0] != f[0].GPUs[0] {
				t.Errorf("%s, day %d: another fault the second time", s.name, d)
			}
		}
	}
	two := scenarios[0].draw(1, 1)[0]
	if got, want := two.lost(0, day), 7200*(1-1/2.8); math.Abs(got-want) > 1e-9 {
		t.Errorf("lost %v s, want %v", got, want)
	}
	if got := two.lost(two.begin()-100e9, two.begin()+10e9); math.Abs(got-10*(1-1/2.8)) > 1e-9 {
		t.Errorf("lost %v s of ten", got)
	}
}

// Ensure that a run is the same twice, that the watcher finds faults that jobs meet and the oracle loses less than who
// does not know, and that the table is in 80 columns and says what it rests on.
func TestStragglersOutput(t *testing.T) {
	d := drawPhillyJobs(1, stragglerLoad, 700)
	faults := scenarios[1].draw(1, 2)
	p := &stragglerPart{Scenario: scenarios[1].name, Seeds: 1, Faults: len(faults)}
	for _, knows := range []string{"none", "watch", "oracle", "watch"} {
		r := stragglerRow{System: "pal", Knows: knows}
		if err := r.add(context.Background(), d, faults, 1); err != nil {
			t.Fatal(err)
		}
		p.Rows = append(p.Rows, r)
	}
	for i := range p.Rows {
		p.Rows[i].sum(&p.Rows[0], &p.Rows[2], 1)
	}
	none, watch, oracle, again := &p.Rows[0], &p.Rows[1], &p.Rows[2], &p.Rows[3]
	if watch.Found == 0 || watch.Found > watch.Met || watch.Detect50 <= 0 || oracle.lost[0] >= none.lost[0] {
		t.Errorf("rows %+v", p.Rows)
	}
	if again.jcts[0] != watch.jcts[0] || again.lost[0] != watch.lost[0] {
		t.Errorf("the second run gives %v s and %v, the first %v and %v", again.jcts, again.lost, watch.jcts,
			watch.lost)
	}
	var b bytes.Buffer
	if err := printStragglers(&b, []*stragglerPart{p}, &quietTime{GPUDays: 46720, Reports: 1e7}); err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(b.String()) {
		if len(line) > 81 {
			t.Errorf("%d columns: %s", len(line)-1, line)
		}
	}
	for _, said := range []string{"16x8, offered load 0.8", "restart 62 s", "one node 1.5x", "noise 2 %"} {
		if !strings.Contains(b.String(), said) {
			t.Errorf("%q is not said in\n%s", said, b.String())
		}
	}
}
