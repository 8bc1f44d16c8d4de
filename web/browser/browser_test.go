// Package browser opens reports in a real Chromium and looks at them as a person would.
package browser

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
)

// root is the checkout.
const root = "../.."

// chromium returns the browser. Without one the tests skip, unless it is required.
func chromium(t testing.TB) string {
	t.Helper()
	for _, name := range []string{"chromium", "chromium-browser", "google-chrome"} {
		if path, err := exec.LookPath(name); err == nil {
			return path
		}
	}
	if os.Getenv("TRAINYARD_REQUIRE_BROWSER") != "" {
		t.Fatal("no chromium, want one (TRAINYARD_REQUIRE_BROWSER is set)")
	}
	t.Skip("no chromium; apt-get install chromium fonts-dejavu-core")
	return ""
}

// trainyard builds the program once, and returns its path.
func trainyard(t testing.TB) string {
	t.Helper()
	path, err := filepath.Abs(filepath.Join(root, "bin", "browser-trainyard"))
	if err != nil {
		t.Fatal(err)
	}
	build := exec.Command("go", "build", "-o", path, "./cmd/trainyard")
	build.Dir = root
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return path
}

// run runs trainyard in the checkout, and returns what it prints.
func run(t testing.TB, args ...string) []byte {
	t.Helper()
	cmd := exec.Command(trainyard(t), args...)
	cmd.Dir = root
	var stderr strings.Builder
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("trainyard %s: %v\n%s", strings.Join(args, " "), err, stderr.String())
	}
	return out
}

// browser is one Chromium with one tab.
type browser struct {
	t   testing.TB
	ctx context.Context

	lock  sync.Mutex
	asked []string // addresses of all requests, those that were refused too
	wrong []string // what the page threw
}

// patience bounds what no test waits for in earnest: a page that never becomes what it should be.
const patience = 5 * time.Minute

// open starts a browser whose window has a size in CSS pixels.
func open(t testing.TB, width, height int64, dark bool) *browser {
	t.Helper()
	options := append(chromedp.DefaultExecAllocatorOptions[:], chromedp.ExecPath(chromium(t)), chromedp.NoSandbox,
		chromedp.UserDataDir(t.TempDir()), chromedp.Flag("disable-quic", true), chromedp.WSURLReadTimeout(patience))
	ctx, stop := context.WithTimeout(context.Background(), patience)
	alloc, end := chromedp.NewExecAllocator(ctx, options...)
	tab, shut := chromedp.NewContext(alloc)
	b := &browser{t: t, ctx: tab}
	t.Cleanup(func() { _ = chromedp.Cancel(tab); shut(); end(); stop() })
	scheme := "light"
	if dark {
		scheme = "dark"
	}
	b.do(chromedp.EmulateViewport(width, height), chromedp.Func(func(ctx context.Context, _ *chromedp.Target) error {
		_, err := chromedp.Call(ctx, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{
			Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: scheme}}})
		return err
	}))
	if err := chromedp.Listen(tab, b.hear); err != nil {
		t.Fatal(err)
	}
	return b
}

func (b *browser) hear(ev any) {
	b.lock.Lock()
	defer b.lock.Unlock()
	switch e := ev.(type) {
	case *network.EventRequestWillBeSent:
		b.asked = append(b.asked, e.Request.URL)
	case *runtime.EventExceptionThrown:
		text := e.ExceptionDetails.Text
		if x := e.ExceptionDetails.Exception; x != nil {
			text += " " + x.Description
		}
		b.wrong = append(b.wrong, text)
	}
}

func (b *browser) do(steps ...chromedp.Action[chromedp.Void]) {
	b.t.Helper()
	if err := chromedp.Do(b.ctx, steps...); err != nil {
		b.t.Fatal(err)
	}
}

// show opens a file, and waits until the page says that it is ready.
func (b *browser) show(path string) {
	b.t.Helper()
	b.do(chromedp.Navigate("file://" + path))
	b.until(`document.getElementById("page").dataset.ready !== undefined`)
}

// until waits until an expression is true.
func (b *browser) until(expression string) {
	b.t.Helper()
	err := errors.New("Cannot find context: none was asked")
	for err != nil && b.ctx.Err() == nil && strings.Contains(err.Error(), "Cannot find context") { // another page came
		_, err = chromedp.Run(b.ctx, chromedp.Poll[bool](expression, chromedp.WithPollingTimeout(patience)))
	}
	if err != nil {
		b.t.Fatalf("%s: %v", expression, err)
	}
}

// goTo opens a screen by its address.
func (b *browser) goTo(hash string) {
	b.t.Helper()
	value[bool](b, "location.hash = "+quoted(hash)+", true")
	b.until(`document.querySelector("main h1, main .warn, main .note") !== null`)
	b.drawn()
}

// drawn waits until what was asked for is painted: two frames later.
func (b *browser) drawn() {
	b.t.Helper()
	if _, err := chromedp.Run(b.ctx, chromedp.Evaluate[bool](
		"new Promise(done => requestAnimationFrame(() => requestAnimationFrame(() => setTimeout(done, 0, true))))",
		chromedp.EvalAwaitPromise)); err != nil {
		b.t.Fatal(err)
	}
}

// value returns what an expression of the page is.
func value[T any](b *browser, expression string) T {
	b.t.Helper()
	x, err := chromedp.Run(b.ctx, chromedp.Evaluate[T](expression))
	if err != nil {
		b.t.Fatalf("%s: %v", expression, err)
	}
	return x
}

func quoted(text string) string {
	b, err := json.Marshal(text)
	if err != nil {
		panic(err)
	}
	return string(b)
}

// shot keeps a screenshot in bin/shots.
func (b *browser) shot(name string) {
	b.t.Helper()
	b.drawn()
	picture, err := chromedp.Run(b.ctx, chromedp.FullScreenshot(100))
	if err != nil {
		b.t.Fatal(err)
	}
	dir := filepath.Join(root, "bin", "shots")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		b.t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, name+".png"), picture, 0o644); err != nil {
		b.t.Fatal(err)
	}
}

// closed fails if a request left, or the page threw an error.
func (b *browser) closed() {
	b.t.Helper()
	b.lock.Lock()
	defer b.lock.Unlock()
	for _, url := range b.asked {
		if !strings.HasPrefix(url, "file://") && !strings.HasPrefix(url, "data:") && !strings.HasPrefix(url, "blob:") {
			b.t.Errorf("the page asked for %s, want it to ask no one", url)
		}
	}
	if len(b.asked) == 0 {
		b.t.Error("no request was seen, want that of the file: else nothing is shown")
	}
	for _, text := range b.wrong {
		b.t.Errorf("the page threw: %s", text)
	}
}

// report writes a report, and returns its path.
func report(t testing.TB, args ...string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "report.html")
	run(t, append(args, "--report", path)...)
	return path
}

// before has a script run in each page before those of its own.
func (b *browser) before(script string) {
	b.t.Helper()
	b.do(chromedp.Func(func(ctx context.Context, _ *chromedp.Target) error {
		_, err := chromedp.Call(ctx, page.AddScriptToEvaluateOnNewDocument,
			page.AddScriptToEvaluateOnNewDocumentParams{Source: script})
		return err
	}))
}
