package export

import (
	"bufio"
	"fmt"
	"os"

	"github.com/trainyard/trainyard/api"
	"github.com/trainyard/trainyard/cli/term"
	"github.com/trainyard/trainyard/report/plot"
)

// calibrationKind is the kind that shows how often forecasts came true.
const calibrationKind = "calibration"

// readCalibration reads a document of GET /v1/calibration: all systems together, by lead time.
func readCalibration(path string) (*plot.Coverage, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	var doc api.Calibration
	err = decode(bufio.NewReader(file), path, "trainyard.calibration/v1", "GET /v1/calibration", &doc)
	if err != nil {
		return nil, err
	}
	if !(doc.Expected >= 0 && doc.Expected <= 1) {
		return nil, term.Malformed(fmt.Errorf("%s: expected %g, want a share from 0 to 1", path, doc.Expected))
	}
	c, at := &plot.Coverage{Expected: doc.Expected}, map[float64]int{}
	for i := range doc.Rows {
		r := &doc.Rows[i]
		if r.System != "" {
			continue
		}
		if r.Judged < 0 || r.Inside < 0 || r.Inside > r.Judged {
			return nil, term.Malformed(fmt.Errorf("%s: row %d: %d of %d inside, want no more than there are", path, i+1,
				r.Inside, r.Judged))
		}
		k, known := at[r.Lead]
		if !known {
			k = len(c.Leads)
			at[r.Lead] = k
			c.Leads = append(c.Leads, leadText(r.Lead))
			c.Starts, c.Ends = append(c.Starts, plot.Judged{}), append(c.Ends, plot.Judged{})
		}
		list := c.Ends
		if r.Of == "start" {
			list = c.Starts
		}
		list[k] = plot.Judged{All: r.Judged, Inside: r.Inside}
	}
	return c, nil
}

// leadText says how far ahead forecasts of a row were said, at most.
func leadText(seconds float64) string {
	switch {
	case seconds == 0:
		return "all"
	case seconds > 1e9:
		return "longer"
	case seconds < 3600:
		return fmt.Sprintf("to %g min", seconds/60)
	case seconds < 86400:
		return fmt.Sprintf("to %g h", seconds/3600)
	}
	return fmt.Sprintf("to %g d", seconds/86400)
}
