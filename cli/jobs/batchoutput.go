package jobs

import (
	"cmp"
	"os"
	"strings"
)

// writes is the key output of a job file.
func (f *batchFlags) writes() map[string]string {
	output := map[string]string{"file": ofOneTask(f.output), "mode": cmp.Or(f.openMode, "once")}
	if f.errors != "" {
		output["error"] = ofOneTask(f.errors)
	}
	return output
}

// ofOneTask puts what is known of a batch script, which is one task on one node, in the place of what a pattern has of
// steps, nodes and tasks. A script is no step: %J is its number.
func ofOneTask(pattern string) string {
	host, _ := os.Hostname()
	host, _, _ = strings.Cut(host, ".")
	return strings.NewReplacer("%%", "%%", "%J", "%j", "%N", host, "%n", "0", "%t", "0", "%s", "batch").Replace(pattern)
}
