package browser

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
)

// Ensure that each button of a job writes into the log what the verb of the same name writes.
func TestButtons(t *testing.T) {
	h := serveLive(t)
	h.submit("jobs: [{name: verbs, gpus: {min: 1, max: 2}, command: [sleep, 1h], grace: 1s}, " +
		"{name: buttons, gpus: {min: 1, max: 2}, command: [sleep, 1h], grace: 1s}]")
	b := open(t, 1280, 900, false)
	b.visit(h.link)
	running := func(id int) func() bool {
		return func() bool { j := h.jobs()[id]; return j.State == "running" }
	}
	steps := []struct {
		verb  string
		args  []string // of the verb, behind the job
		fill  string   // what is typed into fields first
		after string   // the state then
	}{
		{verb: "pause", after: "held"},
		{verb: "resume", after: "running"},
		{verb: "requeue", after: "running"},
		{verb: "resize", args: []string{"--gpus", "1"}, fill: "1,1", after: "running"},
		{verb: "priority", args: []string{"3"}, fill: "3", after: "running"},
		{verb: "cancel", after: "done"},
	}
	for id := range 2 {
		h.await("both run", running(id))
	}
	h.sameAsNodes(b)
	b.goTo("#/job?id=1")
	for _, s := range steps {
		attempt := h.jobs()[0].Attempt
		h.run(append([]string{s.verb, "0"}, s.args...)...)
		h.await("the verb "+s.verb+" is done", func() bool {
			j := h.jobs()[0]
			return j.State == s.after && (s.verb != "requeue" || j.Attempt > attempt)
		})
		b.until(`document.querySelector("#state")?.textContent === "` + map[bool]string{true: "held",
			false: "running"}[s.verb == "resume"] + `"`)
		if s.fill != "" {
			b.fill(s.verb, strings.Split(s.fill, ","))
		}
		b.until(`document.querySelector("#actions [data-verb=` + s.verb + `]") !== null`)
		value[bool](b, `document.querySelector("#actions [data-verb=`+s.verb+`]").click(), true`)
		b.until(`document.querySelector("dialog[open]") !== null`)
		command := value[string](b, `document.querySelector("dialog .command").textContent`)
		want := strings.Join(append([]string{"trainyard", s.verb, "1"}, s.args...), " ")
		if command != want {
			t.Errorf("the dialog says that %q does the same, want %q", command, want)
		}
		b.shot("live-button-" + s.verb)
		attempt = h.jobs()[1].Attempt
		b.confirm()
		h.await("the button "+s.verb+" is done", func() bool {
			j := h.jobs()[1]
			return j.State == s.after && (s.verb != "requeue" || j.Attempt > attempt)
		})
	}
	b.until(`document.querySelector("#state")?.textContent === "cancelled" &&
		document.querySelector("#actions") === null`)
	by := h.asked(t)
	if len(by[0]) != len(steps) || !slices.Equal(by[0], by[1]) {
		t.Errorf("the log has of verbs\n\t%s\nand of buttons\n\t%s", strings.Join(by[0], "\n\t"),
			strings.Join(by[1], "\n\t"))
	}
	h.own(b)
}

// confirm presses the button of the dialog. A job that changed since the dialog opened is left alone, and the dialog
// says so; pressed again, it is about how the job stands now.
func (b *browser) confirm() {
	b.t.Helper()
	for open := true; open; {
		value[bool](b, `document.querySelector("dialog .go")?.click(), true`)
		b.until(`document.querySelector("dialog[open]") === null || document.querySelector("dialog .warn") !== null`)
		open = value[bool](b, `document.querySelector("dialog[open]") !== null`)
	}
}

// sameAsNodes compares each slot of the yard with nodes: its name, how it stands, and the jobs on it.
func (h *host) sameAsNodes(b *browser) {
	h.t.Helper()
	var doc struct {
		GPUs []struct {
			Name, State string
			Jobs        []int
		}
	}
	if err := json.Unmarshal(h.run("nodes", "--json"), &doc); err != nil {
		h.t.Fatal(err)
	}
	want, held := "", 0
	for _, g := range doc.GPUs {
		jobs := strings.Trim(fmt.Sprint(g.Jobs), "[]")
		if held += len(g.Jobs); jobs == "" {
			jobs = "–"
		}
		if g.State == "" {
			g.State = "free"
		}
		want += g.Name + " " + g.State + " " + jobs + ";"
	}
	if len(doc.GPUs) != 4 || held == 0 {
		h.t.Fatalf("%+v, want four slots, some of them held", doc)
	}
	b.goTo("#/yard")
	b.until(`[...document.querySelector(".yard").closest("figure").querySelectorAll("details tbody tr")].map(r =>
		[...r.cells].slice(0, 3).map(c => c.textContent).join(" ") + ";").join("") === ` + quoted(want))
}

// fill types into the fields of an action: the text that they have is replaced.
func (b *browser) fill(verb string, texts []string) {
	b.t.Helper()
	fields := map[string]string{"resize": "0", "priority": "1"}[verb]
	for i, text := range texts {
		value[bool](b, fmt.Sprintf(`(e => (e.focus(), e.select(), true))(
			document.querySelectorAll("#actions .resize")[%s].querySelectorAll("input")[%d])`, fields, i))
		b.do(chromedp.KeyEvent(text))
	}
}

// asked returns what users asked of each job, as the log has it, without what differs from job to job.
func (h *host) asked(t *testing.T) map[int][]string {
	t.Helper()
	by := map[int][]string{}
	for line := range strings.Lines(string(h.run("events"))) {
		var e map[string]any
		if err := json.Unmarshal([]byte(line), &e); err != nil {
			t.Fatalf("%s: %v", line, err)
		}
		kind, _ := e["event"].(string)
		job, named := e["job"].(float64)
		if !named || kind != "command" && kind != "changed" {
			continue
		}
		for _, name := range []string{"seq", "t", "job", "time", "batch"} {
			delete(e, name)
		}
		text, err := json.Marshal(e)
		if err != nil {
			t.Fatal(err)
		}
		by[int(job)] = append(by[int(job)], string(text))
	}
	return by
}

// Ensure that ten tabs of one browser work: each that is seen follows the host, whichever it is.
func TestTenTabs(t *testing.T) {
	h := serveLive(t)
	h.submit("jobs: [{name: holds, gpus: 3, command: [sleep, 1h], grace: 1s}]")
	first := open(t, 800, 600, false)
	first.visit(h.link)
	hide := func(b *browser, hidden bool) {
		value[bool](b, fmt.Sprintf(`Object.defineProperty(document, "hidden", {value: %t, configurable: true}),
			document.dispatchEvent(new Event("visibilitychange"))`, hidden))
	}
	tabs := []*browser{first}
	address, _, _ := strings.Cut(h.link, "#")
	for len(tabs) < 10 {
		hide(tabs[len(tabs)-1], true)
		ctx, shut := chromedp.NewContext(first.ctx)
		tab := &browser{t: t, ctx: ctx}
		t.Cleanup(shut)
		if err := chromedp.Listen(ctx, tab.hear); err != nil {
			t.Fatal(err)
		}
		tab.visit(address)
		tabs = append(tabs, tab)
	}
	h.submit("jobs: [{name: waits, gpus: 4, command: [x]}]")
	tabs[9].until(`document.querySelector("#queue tbody th")?.textContent.startsWith("waits")`)
	hide(tabs[9], true)
	for i, tab := range tabs {
		hide(tab, false)
		tab.until(`document.querySelector("#contact").dataset.contact === "live" &&
			document.querySelector("#queue tbody th")?.textContent.startsWith("waits")`)
		if i == 4 { // a button works there, too
			tab.goTo("#/job?id=1")
			tab.until(`document.querySelector("#actions [data-verb=cancel]") !== null`)
			value[bool](tab, `document.querySelector("#actions [data-verb=cancel]").click(), true`)
			tab.until(`document.querySelector("dialog[open]") !== null`)
			value[bool](tab, `document.querySelector("dialog .go").click(), true`)
			tab.until(`document.querySelector("#state")?.textContent === "cancelled"`)
			h.submit("jobs: [{name: waits-too, gpus: 4, command: [x]}]")
		}
		hide(tab, true)
		h.own(tab)
	}
}
