package browser

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
)

// axe returns the program that looks for what keeps people out, as npm installed it.
func axe(t testing.TB) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root, "web", "node_modules", "axe-core", "axe.min.js"))
	if err != nil {
		if os.Getenv("TRAINYARD_REQUIRE_BROWSER") != "" {
			t.Fatalf("%v; npm ci in web installs it", err)
		}
		t.Skipf("no axe-core: %v; npm ci in web installs it", err)
	}
	return string(text)
}

// accessible fails if axe-core finds anything on the page as it stands. DevTools put it there: the page's own policy
// refuses scripts of others.
func (b *browser) accessible(name string) {
	b.t.Helper()
	program := axe(b.t)
	if !value[bool](b, "typeof axe !== 'undefined'") {
		value[bool](b, program+"\n;true")
	}
	found, err := chromedp.Run(b.ctx, chromedp.Evaluate[[]string](`axe.run(document, {preload: false,
		resultTypes: ["violations"]}).then(r => r.violations.flatMap(v => v.nodes.slice(0, 3).map(n =>
		v.id + ": " + n.target.join(" ") + ": " + (n.any.concat(n.all, n.none)[0]?.message ?? v.help).slice(0, 200))))`,
		chromedp.EvalAwaitPromise))
	if err != nil {
		b.t.Fatalf("%s: axe-core: %v", name, err)
	}
	if len(found) > 0 {
		b.t.Errorf("%s: axe-core finds\n\t%s", name, strings.Join(found, "\n\t"))
	}
}

// Ensure that axe-core finds nothing on the screens of a report, light and dark.
func TestAccessible(t *testing.T) {
	path := report(t, testbed...)
	for _, dark := range []bool{false, true} {
		b := open(t, 1280, 900, dark)
		b.show(path)
		for _, hash := range []string{"#/compare", "#/time?sys=4", "#/time?sys=4&t0=9000&t1=12000&by=model",
			"#/jobs?sys=2", "#/job?id=200&sys=4", "#/losses?sys=4", "#/people", "#/about"} {
			b.goTo(hash)
			b.accessible(hash)
		}
		b.closed()
	}
}
