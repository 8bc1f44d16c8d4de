package interference

import (
	"fmt"
	"time"
)

// ReportAlone takes the epoch time of a model alone as known from elsewhere.
func (l *Learner) ReportAlone(p Place, model string, epoch time.Duration) error {
	if err := checkSet(p, []string{model}); err != nil {
		return err
	}
	if epoch <= 0 {
		return fmt.Errorf("interference: epoch %v of %q, want > 0", epoch, model)
	}
	l.alone.time(p, model, epoch.Seconds(), 0)
	return nil
}
