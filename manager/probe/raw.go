package probe

import (
	"encoding/csv"
	"fmt"
	"io"
	"slices"
	"strconv"

	"github.com/trainyard/trainyard/model/variability"
	"github.com/trainyard/trainyard/sched"
)

// WriteRuns writes the runs of one class, a row for each, as variability.ReadRuns reads them: the node is called
// cabinet, with number 0, and a device by its number among devices.
func (m *Measured) WriteRuns(w io.Writer) error {
	out := csv.NewWriter(w)
	_ = out.Write([]string{"uuid", "perf", "cabinet", "node", "device", "ts"}) // the first error sticks until Flush
	for i := range m.Runs {
		r := &m.Runs[i]
		device := slices.IndexFunc(m.GPUs, func(e variability.Estimate) bool { return e.GPU == r.GPU })
		_ = out.Write([]string{r.GPU, strconv.FormatFloat(r.Perf, 'g', -1, 64), r.Node, "0", strconv.Itoa(device),
			string(sched.AppendSeconds(nil, r.At.Sub(0)))})
	}
	out.Flush()
	if err := out.Error(); err != nil {
		return fmt.Errorf("probe: write: %w", err)
	}
	return nil
}
