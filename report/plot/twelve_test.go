package plot_test

import (
	"bytes"
	"os"
	"testing"

	"github.com/trainyard/trainyard/report"
)

// Ensure that the log made by hand gives a report of its twelve jobs. The test of pixels in a browser has it written to
// a file: no verb would, since no system decided what is in it.
func TestTwelve(t *testing.T) {
	s := runIn(t)
	if len(s.Jobs) != 12 || len(s.Timeline.Attempts) != 17 {
		t.Errorf("%d jobs, %d attempts, want 12 and 17", len(s.Jobs), len(s.Timeline.Attempts))
	}
	var page bytes.Buffer
	if _, err := (&report.Report{Systems: []report.System{s}}).Write(&page); err != nil {
		t.Fatal(err)
	}
	if path := os.Getenv("TRAINYARD_TWELVE"); path != "" {
		if err := os.WriteFile(path, page.Bytes(), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}
