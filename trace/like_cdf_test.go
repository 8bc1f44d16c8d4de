package trace

import (
	"encoding/csv"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"testing"

	"github.com/trainyard/trainyard/internal/shareddata"
)

// point is one of a published distribution function: so many percent are at most at.
type point struct{ at, percent float64 }

// Ensure that widths and durations are those of the distribution functions drawn in published figures, which for Seren
// is all there is, and for Venus goes beyond the clamp of its rows: at their points, to 2 percentage points more than
// the fitted law of all durations.
//
// Reference: figures of AcmeTrace and HeliosArtifact, read from their vectors; specification of traces, 3.2.
func TestLikeFigures(t *testing.T) {
	published := publishedCDFs(t)
	for _, c := range []struct {
		site, curve string
		bound       float64
		value       func(*Job) float64
	}{
		{"seren", "Acme-fig/Seren,duration_s", .007, seconds},
		{"seren", "Acme-fig/Seren,num_gpus", 0, widthAsFloat},
		{"venus", "Helios/Venus,duration_s", .009, seconds},
	} {
		points := published[c.curve]
		if len(points) < 10 {
			t.Fatalf("%s has %d points, want more", c.curve, len(points))
		}
		g, err := Like(c.site)
		if err != nil {
			t.Fatal(err)
		}
		g.Seed, g.Jobs = 1, 300_000
		below := make([]float64, len(points))
		for j := range g.All() {
			for i, p := range points {
				if c.value(&j) <= p.at {
					below[i]++
				}
			}
		}
		worst := 0.0
		for i, p := range points {
			worst = max(worst, math.Abs(below[i]/float64(g.Jobs)-p.percent/100))
		}
		t.Logf("%s: %.3f from %s", c.site, worst, c.curve)
		if worst > c.bound+margin {
			t.Errorf("%s: %.3f from %s, want at most %.3f", c.site, worst, c.curve, c.bound+margin)
		}
	}
}

func seconds(j *Job) float64      { return j.Duration.Seconds() }
func widthAsFloat(j *Job) float64 { return float64(j.Spec.GPUs.Want) }

// publishedCDFs returns the points of each curve, by source and metric.
func publishedCDFs(t *testing.T) map[string][]point {
	t.Helper()
	f, err := os.Open(filepath.Join(shareddata.DataDir(t), "traces/cdf/published_cdfs.csv"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	rows, err := csv.NewReader(f).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	curves := map[string][]point{}
	for _, row := range rows[1:] {
		at, errA := strconv.ParseFloat(row[2], 64)
		percent, errB := strconv.ParseFloat(row[3], 64)
		if errA != nil || errB != nil {
			t.Fatalf("row %q", row)
		}
		if at < 1 { // a line drawn to the axis
			continue
		}
		curves[row[0]+","+row[1]] = append(curves[row[0]+","+row[1]], point{at, percent})
	}
	return curves
}
