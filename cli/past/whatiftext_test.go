package past

import (
	"strings"
	"testing"

	"github.com/trainyard/trainyard/sched"
	"github.com/trainyard/trainyard/whatif/whatiftest"
)

// Ensure that a table says how far not to trust it where the simulation of the system that decided is off by more than
// a twentieth, and marks what differs by less.
func TestTableSaysHowFarToTrustIt(t *testing.T) {
	h := &History{Ended: 40}
	for _, c := range []struct {
		off    float64
		marked string
		note   bool
	}{{.04, "", false}, {-.04, "", false}, {.12, "near", true}, {-.12, "near", true}, {.5, "near far", true}} {
		rows := []Row{{System: "fifo", Recorded: true, Jobs: 40, MeanJCT: 100},
			{System: "fifo", Jobs: 40, MeanJCT: 100 * (1 + c.off), Error: &Difference{MeanJCT: c.off}},
			{System: "near", Jobs: 40, MeanJCT: 106 * (1 + c.off)},
			{System: "far", Jobs: 40, MeanJCT: 70 * (1 + c.off)}}
		text, marked := whatifText(h, rows, 200), []string{}
		for _, line := range strings.Split(text, "\n") {
			if name, _, _ := strings.Cut(line, " "); strings.Contains(line, "% ?") {
				marked = append(marked, name)
			}
		}
		if got := strings.Join(marked, " "); got != c.marked || strings.Contains(text, "do not trust") != c.note {
			t.Errorf("off by %v: %q marked, want %q, and a note: %v\n%s", c.off, got, c.marked, c.note, text)
		}
		for name, want := range map[string]string{"near": "+6%", "far": "-30%"} { // from what is simulated
			_, line, _ := strings.Cut(text, "\n"+name)
			if line, _, _ = strings.Cut(line, "\n"); !strings.Contains(line, want) {
				t.Errorf("off by %v: %s%s, want %s", c.off, name, line, want)
			}
		}
		doc, near := whatifDoc(h, rows), strings.Contains(c.marked, "near")
		if doc.Rows[2].WithinError != near || doc.Rows[1].WithinError {
			t.Errorf("off by %v: %+v", c.off, doc.Rows)
		}
	}
}

// Ensure that a record in which no job has ended says so, and compares nothing.
func TestNothingHasEnded(t *testing.T) {
	s := (&whatiftest.Scene{System: "fifo"}).Node(1, 0).Job(1e4, sched.JobSpec{GPUs: sched.Rigid(1)}).
		Job(10, sched.JobSpec{GPUs: sched.Rigid(1)})
	w, _ := s.Moment(t)
	h := read(t, w.Record(t, "fifo", 1e9))
	rows, err := h.Compare(t.Context(), []Candidate{h.Itself()})
	if err != nil {
		t.Fatal(err)
	}
	want := "No job has ended: there is nothing to compare yet. 1 job running or stopped.\n"
	if got := whatifText(h, rows, 200); got != want {
		t.Errorf("%q, want %q", got, want)
	}
}
