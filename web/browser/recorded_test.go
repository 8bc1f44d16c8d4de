package browser

import (
	"bufio"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
)

// recordedHost answers as a pretended cluster of 500 nodes did, of which package apitest recorded it: it is no manager.
// What was not recorded it refuses. It counts what it is asked for.
type recordedHost struct {
	answers map[string]struct {
		Status     int
		Type, Body string
	}

	lock  sync.Mutex
	asked map[string]int
}

func (h *recordedHost) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	path := r.URL.RequestURI()
	h.lock.Lock()
	h.asked[r.Method+" "+path]++
	h.lock.Unlock()
	a, known := h.answers[path]
	if r.Method != http.MethodGet || !known {
		a.Status, a.Type = http.StatusForbidden, "application/problem+json"
		a.Body = `{"title":"Forbidden","status":403,"detail":"only what was recorded is answered","code":"forbidden"}`
	}
	w.Header().Set("Content-Type", a.Type)
	w.WriteHeader(a.Status)
	_, _ = w.Write([]byte(a.Body))
	if strings.HasPrefix(a.Type, "text/event-stream") { // nothing more comes
		_ = http.NewResponseController(w).Flush()
		<-r.Context().Done()
	}
}

// serveRecorded serves the recording where trainyard ui finds a host, and returns it and a link to the page.
func serveRecorded(t *testing.T) (h *recordedHost, link string) {
	t.Helper()
	chromium(t)
	text, err := os.ReadFile(filepath.Join("testdata", "cluster.json"))
	h = &recordedHost{asked: map[string]int{}}
	if err == nil {
		err = json.Unmarshal(text, &h.answers)
	}
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	way, err := net.Listen("unix", filepath.Join(dir, "control"))
	if err != nil {
		t.Fatal(err)
	}
	serves := &http.Server{Handler: h}
	go func() { _ = serves.Serve(way) }()
	t.Cleanup(func() { _ = serves.Close() })
	page := exec.Command(trainyard(t), "ui", "--state", dir)
	out, err := page.StdoutPipe()
	if err == nil {
		err = page.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = page.Process.Kill(); _ = page.Wait() })
	lines := bufio.NewScanner(out)
	if !lines.Scan() {
		t.Fatalf("ui ended: %v", lines.Err())
	}
	return h, lines.Text()
}

// Ensure that the page shows a host that is no manager: a cluster, by its recorded answers. Screens that it has no
// answers for say so, and none is asked for what the host does not name.
func TestRecordedHost(t *testing.T) {
	h, link := serveRecorded(t)
	var info struct{ Capabilities []string }
	if err := json.Unmarshal([]byte(h.answers["/v1/info"].Body), &info); err != nil {
		t.Fatal(err)
	}
	b := open(t, 1280, 900, false)
	b.visit(link)
	b.until(`document.querySelectorAll(".yard .node").length === 500`)
	if n := value[int](b, `document.querySelectorAll(".yard button").length`); n != 4000 {
		t.Errorf("%d GPUs, want 4000", n)
	}
	b.until(`document.querySelector("#queue tbody th").textContent === "wide #204"`)
	b.until(`document.querySelector("main").innerText.includes("4000")`)
	b.shot("cluster-yard")
	b.accessible("the yard of a cluster")
	for hash, wanted := range map[string]string{
		"#/job?id=204": `document.querySelector("#why")?.textContent.includes("needs 4000 GPUs")`,
		"#/job?id=0":   `document.querySelector("#actions [data-verb=requeue]") !== null`,
		"#/job?id=3":   `document.querySelector("#state")?.textContent === "finished"`,
		"#/about":      `document.querySelector("main table, main dl") !== null`,
	} {
		b.goTo(hash)
		b.until(wanted)
		b.shot("cluster-" + strings.Trim(strings.ReplaceAll(hash, "?id=", "-"), "#/"))
	}
	// What this host does not have each screen says in words.
	screens := value[[]string](b, `[...document.querySelectorAll("nav a")].map(a => a.getAttribute("href").slice(2))`)
	for _, screen := range screens {
		b.goTo("#/" + screen)
		b.until(`document.querySelector("main h1, main .note, main .warn") !== null`)
		text := value[string](b, `document.querySelector("main").innerText`)
		if len(text) < 20 || strings.Contains(text, "undefined") || strings.Contains(text, "NaN") {
			t.Errorf("%s shows %q", screen, text)
		}
		if screen != "yard" {
			b.accessible(screen + " of a cluster")
		}
	}
	// An error of the host is shown in its dialog.
	b.goTo("#/job?id=0")
	b.until(`document.querySelector("#actions [data-verb=pause]") !== null`)
	value[bool](b, `document.querySelector("#actions [data-verb=pause]").click(), true`)
	b.until(`document.querySelector("dialog[open]") !== null`)
	value[bool](b, `document.querySelector("dialog .go").click(), true`)
	b.until(`document.querySelector("dialog .warn")?.textContent.includes("only what was recorded")`)
	b.lock.Lock()
	for _, text := range b.wrong {
		t.Errorf("the page threw: %s", text)
	}
	b.lock.Unlock()
	h.lock.Lock()
	defer h.lock.Unlock()
	for _, route := range []string{"whatif", "history", "calibration", "series", "losses", "users"} {
		for asked, n := range h.asked {
			if strings.Contains(asked, "/v1/"+route) && !slices.Contains(info.Capabilities, route) {
				t.Errorf("%s was asked for %d times; the host does not name %s", asked, n, route)
			}
		}
	}
	if h.asked["POST /v1/jobs/nlp.train/pause"] != 1 {
		t.Errorf("asked was %v, want one pause", fmt.Sprint(h.asked))
	}
}
