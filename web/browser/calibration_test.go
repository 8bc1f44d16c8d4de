package browser

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"path/filepath"
	"strings"
	"testing"
)

// got returns what a host answers over its socket.
func (h *host) got(path string) []byte {
	h.t.Helper()
	dial := func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "unix", filepath.Join(h.dir, "control"))
	}
	way := &http.Client{Transport: &http.Transport{DialContext: dial}}
	defer way.CloseIdleConnections()
	resp, err := way.Get("http://localhost" + path)
	if err != nil {
		h.t.Fatal(err)
	}
	defer resp.Body.Close()
	out, err := io.ReadAll(resp.Body)
	if err != nil || resp.StatusCode != http.StatusOK {
		h.t.Fatalf("%s: %s: %s (%v)", path, resp.Status, out, err)
	}
	return out
}

type calibrating struct {
	Of, System     string
	Lead           float64 `json:"lead_s"`
	Judged, Inside int
}

// Ensure that forecasts that were given survive a manager that is killed, that the log without them is decided again to
// the same, and that the page has the coverage of the route.
func TestCalibration(t *testing.T) {
	h := serveLive(t)
	b := open(t, 1280, 900, false)
	b.visit(h.link)
	b.goTo("#/calibration")
	b.until(`document.querySelector("main").innerText.includes("No forecast was given yet")`)
	var past strings.Builder
	for i := range 12 {
		fmt.Fprintf(&past, "{name: past-%d, gpus: 4, command: ['true']},", i)
	}
	h.submit("jobs: [" + past.String() + "]")
	over := func() bool {
		for _, j := range h.jobs() {
			if j.State != "done" {
				return false
			}
		}
		return true
	}
	h.await("the past is over", over)
	for i := range 6 {
		h.submit(fmt.Sprintf("jobs: [{name: later-%d, gpus: 4, command: [sleep, '1']}]", i))
	}
	for i := range 6 {
		h.run("why", fmt.Sprint("later-", i), "--json")
	}
	_ = h.serves.Process.Kill()
	_ = h.serves.Wait()
	h.start()
	h.await("all is over", over)
	var doc struct {
		Kept int
		Rows []calibrating
	}
	if err := json.Unmarshal(h.got("/v1/calibration"), &doc); err != nil {
		t.Fatal(err)
	}
	judged := map[string]int{}
	for _, r := range doc.Rows {
		if r.System == "" && r.Lead == 0 {
			judged[r.Of] = r.Judged
		}
	}
	if doc.Kept < 2 || judged["end"] < 2 || judged["start"] < 1 {
		t.Fatalf("%d forecasts are kept, and %v judged, want those that were given before the kill", doc.Kept, judged)
	}
	log := written(t, "log.jsonl", string(h.got("/v1/log")))
	if out := string(run(t, "replay", log)); !strings.Contains(out, "is the same") {
		t.Errorf("decided again: %s", out)
	}
	b.until(`document.querySelector("#contact").dataset.contact === "live"`)
	b.until(`document.querySelector("#calibration-end [data-judged]")?.dataset.judged === "` +
		fmt.Sprint(judged["end"]) + `"`)
	for _, of := range []string{"start", "end"} {
		var want []string
		for _, r := range doc.Rows {
			if r.Of == of && r.System == "" {
				want = append(want, fmt.Sprintf("%v %d %d", r.Lead, r.Judged, r.Inside))
			}
		}
		got := value[[]string](b, `[...document.querySelectorAll("#calibration-`+of+` tbody tr")].map(r =>
			[r.querySelector("[data-lead]").dataset.lead, r.querySelector("[data-judged]").dataset.judged,
			r.querySelector("[data-inside]").dataset.inside].join(" "))`)
		if len(got) > 0 && strings.Join(got, ";") != strings.Join(want, ";") {
			t.Errorf("%s: the page has %q, want %q", of, got, want)
		}
	}
	for _, scheme := range []string{"light", "dark"} {
		value[bool](b, `document.documentElement.dataset.theme === "`+scheme+`" ||
			(document.querySelector("header button").click(), true)`)
		b.shot("live-calibration-" + scheme)
		b.accessible("calibration, " + scheme)
	}
	b.goTo("#/energy")
	b.until(`document.querySelector("main").innerText.includes("Power is not measured here")`)
	b.shot("live-energy")
	h.own(b)
	h.anotherSystem(b)
}

// anotherSystem has another system go on, and looks whether the report of the log names both.
func (h *host) anotherSystem(b *browser) {
	h.t.Helper()
	_ = h.serves.Process.Kill()
	_ = h.serves.Wait()
	h.flags = []string{"--system", "fifo"}
	h.start()
	h.submit("jobs: [{name: after, gpus: 4, command: ['true']}]")
	h.await("it is done", func() bool { list := h.jobs(); return list[len(list)-1].State == "done" })
	b.show(report(h.t, "replay", written(h.t, "both.jsonl", string(h.got("/v1/log")))))
	for _, want := range []string{"tiresias-las, then fifo", "CPU slots", "lost, slot-h"} {
		if text := value[string](b, `document.querySelector("main").innerText`); !strings.Contains(text, want) {
			h.t.Errorf("the report says %.900q, want %q in it", text, want)
		}
	}
}
