package browser

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
)

// host is a manager of slots, which may be killed and started again, and a page of it.
type host struct {
	t      *testing.T
	bin    string
	dir    string
	serves *exec.Cmd
	flags  []string // of serve, more than usual
	link   string   // to the page, once
	enter  func() string
}

// serveLive starts a manager of four slots and the page of it.
func serveLive(t *testing.T, uiArgs ...string) *host {
	t.Helper()
	return serveAs(t, nil, uiArgs...)
}

// serveAs is serveLive with more flags of serve.
func serveAs(t *testing.T, flags []string, uiArgs ...string) *host {
	t.Helper()
	chromium(t)
	h := &host{t: t, bin: trainyard(t), dir: filepath.Join(t.TempDir(), "state"), flags: flags}
	h.start()
	t.Cleanup(h.stop)
	page := exec.Command(h.bin, append([]string{"ui", "--state", h.dir}, uiArgs...)...)
	in, err := page.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := page.StdoutPipe()
	if err == nil {
		err = page.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = page.Process.Kill(); _ = page.Wait() })
	lines := bufio.NewScanner(out)
	next := func() string {
		if !lines.Scan() {
			t.Fatalf("ui ended: %v", lines.Err())
		}
		return lines.Text()
	}
	h.link = next()
	h.enter = func() string {
		if _, err := fmt.Fprintln(in); err != nil {
			t.Fatal(err)
		}
		return next()
	}
	return h
}

func (h *host) start() {
	h.t.Helper()
	h.serves = exec.Command(h.bin, append([]string{"serve", "--slots", "4", "--state", h.dir}, h.flags...)...)
	if err := h.serves.Start(); err != nil {
		h.t.Fatal(err)
	}
	h.await("the manager answers", func() bool { return exec.Command(h.bin, "ps", "--state", h.dir).Run() == nil })
}

// stop ends all jobs, and the manager.
func (h *host) stop() {
	for _, j := range h.jobs() {
		if j.State != "done" {
			_ = exec.Command(h.bin, "cancel", "--state", h.dir, fmt.Sprint(j.ID)).Run()
		}
	}
	h.await("all jobs ended", func() bool {
		for _, j := range h.jobs() {
			if j.State != "done" {
				return false
			}
		}
		return true
	})
	_ = h.serves.Process.Signal(syscall.SIGTERM)
	_ = h.serves.Wait()
}

func (h *host) await(what string, f func() bool) {
	h.t.Helper()
	for end := time.Now().Add(patience); !f(); time.Sleep(100 * time.Millisecond) {
		if time.Now().After(end) {
			h.t.Fatalf("not: %s", what)
		}
	}
}

// run runs a verb, and returns what it prints.
func (h *host) run(args ...string) []byte {
	h.t.Helper()
	cmd := exec.Command(h.bin, append(args, "--state", h.dir)...)
	out, err := cmd.Output()
	if err != nil {
		exit := (*exec.ExitError)(nil)
		errors.As(err, &exit)
		h.t.Fatalf("trainyard %s: %v\n%s", strings.Join(args, " "), err, exit.Stderr)
	}
	return out
}

type liveJob struct {
	ID, Attempt          int
	Name, State, Outcome string
	GPUs                 []string
	Want                 int `json:"gpus_want"`
}

func (h *host) jobs() []liveJob {
	h.t.Helper()
	var doc struct{ Jobs []liveJob }
	if err := json.Unmarshal(h.run("ps", "--all", "--json"), &doc); err != nil {
		h.t.Fatal(err)
	}
	return doc.Jobs
}

func (h *host) submit(yaml string) {
	h.t.Helper()
	h.run("submit", written(h.t, "jobs.yaml", yaml))
}

// visit opens a link, and waits until the page shows how things stand.
func (b *browser) visit(link string) {
	b.t.Helper()
	b.do(chromedp.Navigate(link))
	b.until(`document.getElementById("page").dataset.ready !== undefined`)
	b.until(`document.querySelector("#contact")?.dataset.contact === "live" &&
		document.querySelector("#tiles") !== null`)
}

const hostileName = `"</script><img src=x onerror=alert(1)>"`

// Ensure that a live page follows jobs, has the same figures as ps, goes on when the manager was killed, does what its
// buttons say after a dialog, and asks its own host alone. The screenshots stay in bin/shots.
func TestLive(t *testing.T) {
	h := serveLive(t)
	h.submit(`jobs: [{name: holds, user: ann, gpus: 3, command: [sleep, 1h], grace: 1s},
		{name: wide, user: bob, gpus: {min: 2, max: 2}, command: [sleep, 1h], grace: 1s},
		{name: short, user: ann, gpus: 1, command: [sh, -c, 'echo one two three; sleep 1']},
		{name: odd, user: ` + hostileName + `, gpus: 4, command: [x]}]`)
	h.await("a job is done", func() bool { return h.jobs()[2].State == "done" })
	b := open(t, 1280, 900, false)
	b.visit(h.link)
	if address := value[string](b, "location.href"); strings.Contains(address, "k=") {
		t.Errorf("the address is %s, want it without the secret", address)
	}
	b.until(`document.querySelectorAll("#queue tbody tr").length === 2`)
	h.screens(b, "live", 1280)
	h.sameAsPS(b)

	// The manager dies and comes back: the page goes on.
	_ = h.serves.Process.Kill()
	_ = h.serves.Wait()
	b.until(`document.querySelector("#contact").dataset.contact === "away"`)
	h.start()
	h.submit("jobs: [{name: later, gpus: 1, command: ['true']}]")
	b.goTo("#/yard")
	b.until(`[...document.querySelectorAll("#done tbody th")].some(x => x.textContent.includes("later"))`)
	h.sameAsPS(b)

	// A remedy, as a button, starts the job that waits.
	b.goTo("#/job?id=1")
	b.until(`document.querySelector("#remedies button") !== null`)
	b.shot("live-job-remedies")
	b.accessible("remedies")
	value[bool](b, `document.querySelector("#remedies button").click(), true`)
	b.until(`document.querySelector("dialog[open]") !== null`)
	b.shot("live-dialog")
	value[bool](b, `document.querySelector("dialog .go").click(), true`)
	h.await("the job that waited runs", func() bool {
		j := h.jobs()[1]
		return j.State == "running" && len(j.GPUs) == 1
	})
	b.until(`document.querySelector("#state").textContent === "running"`)

	// A dialog that was opened before its job changed does nothing.
	value[bool](b, `document.querySelector("#actions [data-verb=cancel]").click(), true`)
	b.until(`document.querySelector("dialog[open]") !== null`)
	h.run("requeue", "1")
	h.await("the job runs again", func() bool { j := h.jobs()[1]; return j.State == "running" && j.Attempt == 2 })
	value[bool](b, `document.querySelector("dialog .go").click(), true`)
	b.until(`document.querySelector("dialog .warn")?.textContent.includes("has changed meanwhile")`)
	if j := h.jobs()[1]; j.State != "running" {
		t.Errorf("a stale dialog changed the job: %+v", j)
	}
	b.shot("live-stale")
	b.confirm()
	h.await("the job is cancelled as it stands now", func() bool { return h.jobs()[1].State == "done" })
	h.own(b)
}

// screens opens every screen, light and dark, wide and narrow.
func (h *host) screens(b *browser, name string, width float64) {
	h.t.Helper()
	for screen, ready := range map[string]string{"yard": "#queue", "time": ".gantt", "jobs": "#shown",
		"job?id=0": "#why", "job?id=2": ".strip", "losses": "#losses", "people": "table", "energy": "h1",
		"about": "table"} {
		b.goTo("#/" + screen)
		b.until(`document.querySelector("` + ready + `") !== null`)
		for _, scheme := range []string{"light", "dark"} {
			value[bool](b, `document.documentElement.dataset.theme === "`+scheme+`" ||
				(document.querySelector("header button").click(), true)`)
			b.shot(fmt.Sprintf("%s-%s-%s", name, strings.ReplaceAll(screen, "?id=", "-"), scheme))
			b.accessible(screen + ", " + scheme)
		}
		if wide := value[float64](b, "document.documentElement.scrollWidth"); wide > width {
			h.t.Errorf("%s is %v pixels wide, want at most %v", screen, wide, width)
		}
	}
	b.goTo("#/yard")
}

// sameAsPS compares what the yard shows with ps.
func (h *host) sameAsPS(b *browser) {
	h.t.Helper()
	b.goTo("#/yard")
	want := ""
	for _, j := range h.jobs() {
		if j.State == "waiting" || j.State == "running" {
			want += fmt.Sprintf("%d %s;", j.ID, j.State)
		}
	}
	b.until(`["#queue", "#running"].flatMap(t => [...document.querySelectorAll(t + " tbody tr")].map(r => [
		Number(r.querySelector("th").textContent.match(/#(\d+)$/)[1]), t === "#queue" ? "waiting" :
		r.cells[1].textContent]))
		.sort((a, b) => a[0] - b[0]).map(x => x[0] + " " + x[1] + ";").join("") === ` + quoted(want))
}

// own fails if the page asked for anything but its own host, or threw.
func (h *host) own(b *browser) {
	h.t.Helper()
	b.lock.Lock()
	defer b.lock.Unlock()
	origin, _, _ := strings.Cut(h.link, "/#")
	for _, url := range b.asked {
		if !strings.HasPrefix(url, origin+"/") && !strings.HasPrefix(url, "data:") {
			h.t.Errorf("the page asked for %s, want its own host alone", url)
		}
	}
	for _, text := range b.wrong {
		h.t.Errorf("the page threw: %s", text)
	}
}

// Ensure that a narrow page in the dark fits, that one which may only look has no buttons that change anything, and
// that a hidden tab holds no stream.
func TestLiveReadOnlyAndHidden(t *testing.T) {
	h := serveLive(t, "--read-only")
	h.submit("jobs: [{name: holds, gpus: 4, command: [sleep, 1h], grace: 1s}, {name: waits, gpus: 1, command: [x]}]")
	b := open(t, 360, 740, true)
	b.visit(h.link)
	b.until(`document.querySelectorAll("#queue tbody tr").length === 1`)
	for screen, ready := range map[string]string{"yard": "#queue", "time": ".gantt", "job?id=1": "#remedies",
		"losses": "#losses"} {
		b.goTo("#/" + screen)
		b.until(`document.querySelector("` + ready + `") !== null`)
		b.shot("live-narrow-" + strings.ReplaceAll(screen, "?id=", "-"))
		if wide := value[float64](b, "document.documentElement.scrollWidth"); wide > 360 {
			t.Errorf("%s is %v pixels wide, want at most 360", screen, wide)
		}
		if n := value[float64](b, `document.querySelectorAll("[data-verb]").length`); n > 0 {
			t.Errorf("%s has %v buttons that change something", screen, n)
		}
	}
	streams := func() int {
		var n int
		for _, line := range strings.Split(string(metrics(t, h)), "\n") {
			if _, err := fmt.Sscanf(line, "trainyard_streams %d", &n); err == nil {
				return n
			}
		}
		t.Fatal("no figure trainyard_streams")
		return 0
	}
	if n := streams(); n != 1 {
		t.Errorf("%d streams of a page that is seen, want 1", n)
	}
	hide := func(hidden bool) {
		value[bool](b, fmt.Sprintf(`Object.defineProperty(document, "hidden", {value: %t, configurable: true}),
			document.dispatchEvent(new Event("visibilitychange"))`, hidden))
	}
	hide(true)
	h.await("the hidden tab let its stream go", func() bool { return streams() == 0 })
	h.submit("jobs: [{name: meanwhile, gpus: 1, command: [x]}]")
	hide(false)
	b.goTo("#/yard")
	b.until(`document.querySelectorAll("#queue tbody tr").length === 2`)

	// Another link opens another tab; a spent one says so.
	other := open(t, 360, 740, false)
	other.do(chromedp.Navigate(h.link))
	other.until(`document.querySelector("main .warn")?.textContent.includes("opened before")`)
	other.shot("live-spent")
	other.visit(strings.Replace(h.enter(), "127.0.0.1", "localhost", 1))
}

// metrics returns the figures of a host.
func metrics(t *testing.T, h *host) []byte {
	t.Helper()
	dial := func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "unix", filepath.Join(h.dir, "control"))
	}
	way := &http.Client{Transport: &http.Transport{DialContext: dial}}
	defer way.CloseIdleConnections()
	resp, err := way.Get("http://localhost/metrics")
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	out, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return out
}
