package browser

import (
	"encoding/json"
	"fmt"
	"math"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// whatifRow is a row of trainyard whatif --json.
type whatifRow struct {
	System   string
	Recorded bool
	Error    string
	Mean     float64 `json:"mean_jct_s"`
	Sim      *struct {
		Mean float64 `json:"mean_jct"`
	} `json:"sim_error"`
	Paired *struct{ Low, High float64 }
}

// sameAsWhatif compares what the screen shows with the rows of --json: first the simulation of the system that decided,
// then what happened, then the others, of which those are grey that differ by no more than the simulation is off.
func sameAsWhatif(b *browser, list []whatifRow) {
	b.t.Helper()
	type shown struct {
		System          string
		Recorded        bool
		Mean            float64
		Grey            bool
		Low, High, Says string
	}
	rows := value[[]shown](b, `[...document.querySelectorAll("#whatif tbody tr")].map(r => {
		const m = r.querySelector("[data-recorded]"), g = r.querySelector("[data-grey]"), i = r.querySelector("[data-low]");
		return {System: m.dataset.system, Recorded: m.dataset.recorded === "true", Mean: Number(m.dataset.value),
			Grey: g?.dataset.grey === "true", Low: i?.dataset.low ?? "", High: i?.dataset.high ?? "", Says: r.innerText}})`)
	var base *whatifRow
	want := []whatifRow{}
	for i := range list {
		switch r := &list[i]; {
		case r.Sim != nil:
			base = r
			want = append([]whatifRow{*r}, want...)
		case r.Error == "":
			want = append(want, *r)
		}
	}
	if base == nil || len(rows) != len(want) {
		b.t.Fatalf("%d rows %+v, want %d", len(rows), rows, len(want))
	}
	if off := value[float64](b, `Number(document.querySelector("#error b").dataset.value)`); off != base.Sim.Mean {
		b.t.Errorf("the simulation is off by %v, want %v as in --json", off, base.Sim.Mean)
	}
	for i := range want {
		w, r := &want[i], &rows[i]
		if r.System != w.System || r.Recorded != w.Recorded || r.Mean != w.Mean {
			b.t.Errorf("row %d: %+v, want %+v as in --json", i, r, w)
		}
		grey := i > 1 && math.Abs(w.Mean/base.Mean-1) <= math.Abs(base.Sim.Mean)
		if r.Grey != grey || strings.Contains(r.Says, "own error") != grey {
			b.t.Errorf("row %d is grey: %t, and says %q; want %t", i, r.Grey, r.Says, grey)
		}
		if w.Paired != nil && (r.Low != inPage(w.Paired.Low) || r.High != inPage(w.Paired.High)) {
			b.t.Errorf("row %d: %s to %s, want %v to %v", i, r.Low, r.High, w.Paired.Low, w.Paired.High)
		}
	}
}

// inPage writes a number as JavaScript does.
func inPage(x float64) string { return strconv.FormatFloat(x, 'g', -1, 64) }

// Ensure that a live page has a question simulated and shows what trainyard whatif --json says of the same log, says
// what is wrong with a question, and takes one back.
func TestLiveWhatIf(t *testing.T) {
	h := serveLive(t)
	file := "jobs:\n"
	for i := range 9 {
		file += fmt.Sprintf("- {name: job%d, user: ann, gpus: %d, command: [sleep, '0.%d']}\n", i, 1+i%4, 1+i%3)
	}
	h.submit(file)
	h.await("all jobs are done", func() bool {
		for _, j := range h.jobs() {
			if j.State != "done" {
				return false
			}
		}
		return true
	})
	b := open(t, 1280, 900, false)
	b.visit(h.link)
	b.goTo("#/whatif")
	b.until(`document.querySelector("#ask") !== null`)
	b.shot("live-whatif-before")
	for _, wrong := range []string{"no-such-system", `<img src=x onerror=hacked=1>`} {
		value[bool](b, `(() => { const e = document.querySelector("#systems"); e.value = `+quoted(wrong)+`;
			e.dispatchEvent(new Event("input", {bubbles: true})); return true })()`)
		b.drawn()
		value[bool](b, `document.querySelector("#ask").click(), true`)
		b.until(`document.querySelector("main .warn")?.textContent.includes(` +
			quoted("system \""+strings.Fields(wrong)[0]) + `)`)
	}
	if value[bool](b, `window.hacked !== undefined || document.images.length > 0`) {
		t.Error("a question ran as a script")
	}
	b.shot("live-whatif-wrong")
	value[bool](b, `(() => { const e = document.querySelector("#systems"); e.value = "";
		e.dispatchEvent(new Event("input", {bubbles: true})); return true })()`)
	b.drawn()
	value[bool](b, `document.querySelector("#ask").click(), true`)
	b.until(`document.querySelector("#run")?.dataset.state === "done"`)
	var doc struct{ Rows []whatifRow }
	if err := json.Unmarshal(h.run("whatif", "--json"), &doc); err != nil {
		t.Fatal(err)
	}
	sameAsWhatif(b, doc.Rows)
	if text := value[string](b, `document.querySelector("main").innerText`); strings.Contains(text, "GPU") ||
		!strings.Contains(text, "slots") {
		t.Errorf("the page of slots says %q", text)
	}
	for _, scheme := range []string{"dark", "light"} {
		value[bool](b, `document.documentElement.dataset.theme === "`+scheme+`" ||
			(document.querySelector("header button").click(), true)`)
		b.shot("live-whatif-" + scheme)
		b.accessible("what if, " + scheme)
	}

	// A decision, as explain has it.
	b.goTo("#/decision")
	b.until(`document.querySelector("#decisions tbody a") !== null`)
	b.shot("live-decisions")
	seq := value[string](b, `document.querySelector("#decisions tbody tr:last-child a").textContent`)
	b.goTo("#/decision?seq=" + seq)
	b.until(`document.querySelector("#sentence") !== null`)
	var decision struct {
		Sentence                string
		Free, GPUs              []string
		Waited, Chosen, Refused []struct{ Name string }
	}
	if err := json.Unmarshal(h.run("explain", seq, "--json"), &decision); err != nil {
		t.Fatal(err)
	}
	if got := value[string](b, `document.querySelector("#sentence").textContent`); got != decision.Sentence+"." {
		t.Errorf("the page says %q, explain %q", got, decision.Sentence)
	}
	drawn := value[[]float64](b, `["free", "chosen"].map(k => Number(document.querySelector("#drawn").dataset[k]))`)
	if drawn[0] != float64(len(decision.Free)) || drawn[1] != float64(len(decision.GPUs)) || drawn[1] == 0 {
		t.Errorf("%v free and chosen are drawn, want %d and %d", drawn, len(decision.Free), len(decision.GPUs))
	}
	for id, n := range map[string]int{"waited": len(decision.Waited), "chosen": len(decision.Chosen),
		"refused": len(decision.Refused)} {
		rows := fmt.Sprintf(`document.querySelectorAll("#%s tbody tr").length`, id)
		if got := value[float64](b, rows); got != float64(n) {
			t.Errorf("%v rows of %s, explain has %d", got, id, n)
		}
	}
	for _, scheme := range []string{"dark", "light"} {
		value[bool](b, `document.documentElement.dataset.theme === "`+scheme+`" ||
			(document.querySelector("header button").click(), true)`)
		b.shot("live-decision-" + scheme)
		b.accessible("a decision, " + scheme)
	}
	for hash, says := range map[string]string{"#/decision?seq=1": "", "#/decision?seq=99999999": "99999999",
		"#/decision?seq=x%3Cb%3E": "x<b>"} {
		b.goTo(hash)
		b.until(`document.querySelector("main .warn")?.textContent.includes(` + quoted(says) + `)`)
	}
	b.shot("live-decision-wrong")
	h.own(b)
}

// Ensure that a report has of each decision what came of it: its reason, what was free then, who waited, and the
// command that decides it again.
func TestRecordedDecision(t *testing.T) {
	b := open(t, 360, 740, true)
	b.show(report(t, testbed...))
	b.goTo("#/decision?sys=4")
	b.until(`document.querySelector("#decisions tbody a") !== null`)
	seqs := value[[]float64](b, `[...document.querySelectorAll("#decisions tbody th a")].map(
		a => Number(a.textContent))`)
	b.shot("decisions-narrow")
	busiest := 0.0
	for _, seq := range seqs[:min(len(seqs), 20)] {
		b.goTo(fmt.Sprintf("#/decision?sys=4&seq=%.0f", seq))
		b.until(fmt.Sprintf(`document.querySelector("#explain")?.textContent === "trainyard explain %.0f"`, seq))
		drawn := value[map[string]float64](b, `(() => { const n = s => document.querySelectorAll(".cells ." + s).length;
			return {chosen: n("chosen"), free: n("free"), held: n("held"), closed: n("closed"),
			says: Number(document.querySelector("#drawn").dataset.chosen)} })()`)
		if all := drawn["chosen"] + drawn["free"] + drawn["held"] + drawn["closed"]; all != 60 ||
			drawn["chosen"] == 0 || drawn["chosen"] != drawn["says"] {
			t.Errorf("event %v: %v, want 60 GPUs, of which some are chosen", seq, drawn)
		}
		busiest = max(busiest, drawn["held"])
		if value[string](b, `document.querySelector("#reason").textContent`) == "" {
			t.Errorf("event %v has no reason", seq)
		}
		if wide := value[float64](b, "document.documentElement.scrollWidth"); wide > 360 {
			t.Errorf("event %v is %v pixels wide, want at most 360", seq, wide)
		}
	}
	if busiest == 0 {
		t.Error("no GPU was held by others in any of them")
	}
	b.shot("decision-narrow")
	for _, wrong := range []string{"0", "-1", "1e99", "x", "999999999"} {
		b.goTo("#/decision?sys=4&seq=" + wrong)
		b.until(`document.querySelector("main .warn") !== null`)
	}
	b.goTo("#/whatif")
	b.until(`document.querySelector("main .note")?.textContent.includes("no what-if")`)
	b.closed()
	wide := open(t, 1280, 900, false)
	wide.show(report(t, testbed...))
	wide.goTo(fmt.Sprintf("#/decision?sys=4&seq=%.0f", seqs[len(seqs)/2]))
	wide.until(`document.querySelector("#drawn") !== null`)
	wide.shot("decision-light")
}

// Ensure that the report of whatif has the figures of its --json: the error first, what differs by less than it grey,
// and an interval for each system where there are jobs enough.
func TestRecordedWhatIf(t *testing.T) {
	log := filepath.Join(t.TempDir(), "log.jsonl")
	run(t, "simulate", "--trace", "examples/testbed.csv", "--cluster", "15x4", "--system", "tiresias-las",
		"--events-out", log)
	args := []string{"whatif", "--log", log, "--system", "fifo,srtf"}
	var doc struct{ Rows []whatifRow }
	if err := json.Unmarshal(run(t, append(args, "--json")...), &doc); err != nil {
		t.Fatal(err)
	}
	b := open(t, 360, 740, false)
	b.show(report(t, args...))
	b.goTo("#/whatif")
	b.until(`document.querySelector("#whatif") !== null`)
	sameAsWhatif(b, doc.Rows)
	if n := value[float64](b, `document.querySelectorAll("#whatif [data-low]").length`); n != 2 {
		t.Errorf("%v intervals, want one for each system", n)
	}
	if wide := value[float64](b, "document.documentElement.scrollWidth"); wide > 360 {
		t.Errorf("%v pixels wide, want at most 360", wide)
	}
	b.shot("whatif-narrow")
	b.closed()
}
