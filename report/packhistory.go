package report

import (
	"encoding/json"
	"fmt"
)

// history is what a page needs of a run that goes on: what a file holds, of one system.
type history struct {
	Head   *headDoc `json:"head"`
	Jobs   string   `json:"jobs"`   // columns of the jobs
	System string   `json:"system"` // columns of the run
}

// Pack returns a report of one system as a document of JSON, without what a file has around it.
func (r *Report) Pack() ([]byte, error) {
	u := r.unitOf()
	jobs, err := r.packJobs(u)
	if err != nil {
		return nil, fmt.Errorf("report: %w", err)
	}
	system, err := r.packSystem(&r.Systems[0], u)
	if err != nil {
		return nil, fmt.Errorf("report: %w", err)
	}
	return json.Marshal(history{Head: r.head(u), Jobs: string(jobs), System: string(system)})
}
