package browser

import (
	"fmt"
	"testing"
)

var testbed = []string{"simulate", "--trace", "examples/testbed.csv", "--cluster", "15x4", "--system",
	"fifo,fifo-skip,srtf,las,tiresias-las,tiresias-gittins"}

// Ensure that every screen opens, light and dark, wide and narrow, that no request leaves the file and that nothing is
// thrown. The screenshots stay in bin/shots, for people.
func TestScreens(t *testing.T) {
	path := report(t, testbed...)
	for _, size := range []struct {
		name          string
		width, height int64
		dark          bool
	}{{"light", 1280, 900, false}, {"dark", 1280, 900, true}, {"narrow", 360, 740, false}} {
		t.Run(size.name, func(t *testing.T) {
			b := open(t, size.width, size.height, size.dark)
			b.show(path)
			for name, hash := range map[string]string{"compare": "#/compare", "time": "#/time?sys=4",
				"jobs": "#/jobs?sys=2", "job": "#/job?id=200&sys=4", "losses": "#/losses?sys=4", "people": "#/people",
				"about": "#/about",
				"bars":  "#/time?sys=4&t0=9000&t1=12000&by=model", "heat": "#/time?sys=4&level=heat"} {
				b.goTo(hash)
				b.shot(fmt.Sprint(name, "-", size.name))
				if wide := value[float64](b, "document.documentElement.scrollWidth"); wide > float64(size.width) {
					t.Errorf("%s is %v pixels wide, want at most the window's %d", name, wide, size.width)
				}
			}
			b.closed()
		})
	}
}
