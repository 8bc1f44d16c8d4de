package browser

import (
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
)

// tabTo presses Tab until what has the focus is as wanted, an expression about e.
func (b *browser) tabTo(wanted string) {
	b.t.Helper()
	for range 150 {
		b.do(chromedp.KeyEvent(kb.Tab))
		if value[bool](b, `(e => e !== document.body && Boolean(`+wanted+`))(document.activeElement)`) {
			return
		}
	}
	b.t.Fatalf("no Tab leads to %s", wanted)
}

// Ensure that keys alone lead to every screen of a live page and to a job, and do there what a button does: the dialog
// has the focus, keeps it, gives it back at Esc, and its button cancels the job.
func TestKeyboardAlone(t *testing.T) {
	h := serveLive(t)
	h.submit("jobs: [{name: holds, gpus: 4, command: [sleep, 1h], grace: 1s}, {name: waits, gpus: 1, command: [x]}]")
	h.await("one runs", func() bool { return h.jobs()[0].State == "running" })
	b := open(t, 1280, 900, false)
	b.visit(h.link)
	b.until(`document.querySelectorAll("#queue tbody tr").length === 1`)

	// Tab leads to each screen, and Enter opens it.
	names := value[[]string](b, `[...document.querySelectorAll("nav a")].map(a => a.textContent)`)
	for _, name := range names {
		b.tabTo(`e.closest("nav") && e.textContent === ` + quoted(name))
		b.do(chromedp.KeyEvent(kb.Enter))
		b.until(`document.querySelector("nav a[aria-current]")?.textContent === ` + quoted(name) + ` &&
			document.querySelector("main h1, main .note, main .warn") !== null`)
	}
	if len(names) < 10 {
		t.Errorf("the screens are %q, want all of them", names)
	}

	// A slot is drained and taken back, from the yard.
	b.do(chromedp.KeyEvent("1"))
	b.tabTo(`e.closest(".yard") && e.title.startsWith("slot-3")`)
	b.do(chromedp.KeyEvent(kb.Enter))
	b.until(`document.querySelector("#picked") !== null`)
	for _, verb := range []string{"drain", "undrain"} {
		b.tabTo(`e.dataset.verb === ` + quoted(verb))
		b.do(chromedp.KeyEvent(kb.Enter))
		b.until(`document.querySelector("dialog[open]") !== null`)
		b.tabTo(`e.classList.contains("go")`)
		b.do(chromedp.KeyEvent(kb.Enter))
		b.until(`document.querySelector("dialog[open]") === null &&
			document.querySelector("#picked [data-verb=` + verb + `]") === null`)
	}

	// The job that waits is opened from the queue, its dialog left by Esc, and then done.
	b.tabTo(`e.closest("#queue") && e.textContent.startsWith("waits")`)
	b.do(chromedp.KeyEvent(kb.Enter))
	b.until(`document.querySelector("#actions [data-verb=cancel]") !== null`)
	b.tabTo(`e.dataset.verb === "cancel"`)
	b.do(chromedp.KeyEvent(kb.Enter))
	b.until(`document.querySelector("dialog[open]")?.contains(document.activeElement)`)
	b.accessible("a dialog")
	for range 6 {
		b.do(chromedp.KeyEvent(kb.Tab))
		if !value[bool](b, `(e => e === document.body || e.closest("dialog") !== null)(document.activeElement)`) {
			t.Error("Tab leads out of a dialog that is open")
		}
	}
	b.do(chromedp.KeyEvent(kb.Escape))
	b.until(`document.querySelector("dialog[open]") === null && document.activeElement?.dataset.verb === "cancel"`)
	if state := h.jobs()[1].State; state != "waiting" {
		t.Errorf("a dialog that was left made the job %s", state)
	}
	b.do(chromedp.KeyEvent(kb.Enter))
	b.until(`document.querySelector("dialog[open]") !== null`)
	b.tabTo(`e.classList.contains("go")`)
	b.do(chromedp.KeyEvent(kb.Enter))
	h.await("the job is cancelled", func() bool { return h.jobs()[1].Outcome == "cancelled" })
	b.until(`document.querySelector("#state")?.textContent === "cancelled"`)

	// The chart of slots is moved and zoomed, rows too, and an attempt is opened from it.
	b.do(chromedp.KeyEvent("2"))
	b.tabTo(`e.classList.contains("gantt")`)
	b.do(chromedp.KeyEvent("]"), chromedp.KeyEvent("+"))
	b.until(`document.querySelector(".said").textContent.startsWith("Job holds") && location.hash.includes("t0=")`)
	b.do(chromedp.KeyEvent(kb.Enter))
	b.until(`document.querySelector("h1")?.textContent.startsWith("Job holds")`)
	h.own(b)
}
