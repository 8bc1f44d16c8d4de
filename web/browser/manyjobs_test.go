package browser

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
)

// Ensure that a page that was open while 200 jobs came and went, and the manager was killed three times, ends equal to
// ps and nodes.
func TestManyJobs(t *testing.T) {
	h := serveLive(t)
	b := open(t, 1280, 900, false)
	b.before(`URL.createObjectURL = blob => { blob.text().then(text => { window.saved = text }); return "data:," }`)
	b.visit(h.link)
	var file strings.Builder
	for i := range 200 {
		fmt.Fprintf(&file, "{name: j%d, user: u%d, gpus: %d, command: [sh, -c, 'exit %d']},", i, i%5, 1+i%3, i%7/6)
	}
	h.submit("jobs: [" + file.String() + "]")
	done := func(n int) func() bool {
		return func() bool {
			for _, j := range h.jobs() {
				if j.State == "done" {
					n--
				}
			}
			return n <= 0
		}
	}
	for _, n := range []int{20, 80, 140} {
		h.await(fmt.Sprint(n, " jobs are done"), done(n))
		_ = h.serves.Process.Kill()
		_ = h.serves.Wait()
		h.start()
	}
	h.await("all jobs are done", done(200))
	b.until(`document.querySelector("#contact").dataset.contact === "live" &&
		document.querySelector("#queue") === null && document.querySelector("#running") === null`)
	var nodes struct {
		GPUs []struct {
			Name, State string
			Jobs        []int
		}
	}
	if err := json.Unmarshal(h.run("nodes", "--json"), &nodes); err != nil {
		t.Fatal(err)
	}
	want := ""
	for _, g := range nodes.GPUs {
		if want += g.Name + ": free;"; len(g.Jobs) > 0 {
			t.Errorf("%s holds %v after all jobs are done", g.Name, g.Jobs)
		}
	}
	b.until(`[...document.querySelectorAll(".yard button")].map(x => x.title + ";").join("") === ` + quoted(want))
	b.goTo("#/jobs")
	b.until(`document.querySelector("#shown")?.textContent.startsWith("200 of 200 jobs")`)
	want = ""
	for _, j := range h.jobs() {
		want += j.Name + " " + j.Outcome + ";"
	}
	// What happened is read again after the last event: a moment later it is all there.
	h.await("the page has the outcomes of ps", func() bool {
		value[bool](b, `(window.saved = undefined, [...document.querySelectorAll(".bar button")].find(
			x => x.textContent === "save as CSV").click(), true)`)
		b.until(`window.saved !== undefined`)
		got := ""
		for _, row := range table(t, value[string](b, "window.saved")) {
			got += row["job"] + " " + row["state"] + ";"
		}
		return got == want
	})
	h.own(b)
}
