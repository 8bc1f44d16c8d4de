package serve

import (
	"fmt"
	"strconv"

	"github.com/trainyard/trainyard/cli/term"
	"github.com/trainyard/trainyard/manager/probe"
	"github.com/trainyard/trainyard/model/variability"
)

// probeText is the table of scores, and where they are kept.
func probeText(r *probe.Result, path string, width int) string {
	t := &term.Table{Left: 2}
	t.Add("class", "GPU", "score", "low", "high", "runs", "spread")
	for c := range r.Classes {
		m := &r.Classes[c]
		for i := range m.GPUs {
			e := &m.GPUs[i]
			t.Add(m.Class, e.GPU, fmt.Sprintf("%.3f", e.Score), fmt.Sprintf("%.3f", e.Low), fmt.Sprintf("%.3f", e.High),
				strconv.Itoa(e.Count), term.Percent(probe.Spread(e)))
		}
	}
	t.Cut(1, width)
	first := &r.Classes[0].GPUs[0]
	about := fmt.Sprintf("Score 1 is the median GPU, larger is slower; that of many runs lies between low and high "+
		"with a chance of %s. "+
		"Spread is by how much the slowest run of a GPU was slower than its median. ", term.Percent(first.Coverage))
	if path == "" {
		about += "Nothing was written: --out FILE.csv keeps the scores for `simulate --variability`."
	} else {
		about += "`simulate --variability " + path + "` reads the scores."
	}
	return t.Text(width) + "\n" + term.Wrap(about, width, 0) + "\n"
}

// probeWarnings names what the scores do not say.
func probeWarnings(r *probe.Result) []string {
	var list []string
	for c := range r.Classes {
		m := &r.Classes[c]
		for i := range m.GPUs {
			if e := &m.GPUs[i]; probe.Spread(e) > probe.Unsteady {
				list = append(list, fmt.Sprintf("class %s, %s: its slowest run took %s longer than its median: "+
					"unsteady, measure again or with more --runs",
					m.Class, e.GPU, term.Percent(probe.Spread(e))))
			}
		}
	}
	return list
}

// probeDoc is the document of probe --json. Names are only ever added.
type probeDoc struct {
	Schema   string          `json:"schema"`
	Node     string          `json:"node"`
	Parallel bool            `json:"parallel"`
	Classes  []probeClassDoc `json:"classes"`
}

type probeClassDoc struct {
	Class string        `json:"class"`
	Kind  string        `json:"kind"`     // what was read: wall time, seconds=, ...
	Norm  float64       `json:"median_s"` // reading of the median GPU
	GPUs  []probeGPUDoc `json:"gpus"`
}

type probeGPUDoc struct {
	GPU      string  `json:"gpu"`
	Score    float64 `json:"score"`
	Low      float64 `json:"low"`
	High     float64 `json:"high"`
	Coverage float64 `json:"coverage"` // chance that the score of many runs is from low to high
	StdErr   float64 `json:"std_error"`
	Spread   float64 `json:"spread"`
	Unsteady bool    `json:"unsteady"`
	Runs     int     `json:"runs"`
	At       float64 `json:"measured_at"` // the last run, seconds of Unix time
}

func newProbeDoc(r *probe.Result, o *probe.Options) *probeDoc {
	d := &probeDoc{Schema: "trainyard.probe/v1", Node: o.Node, Parallel: o.Parallel}
	for c := range r.Classes {
		m := &r.Classes[c]
		doc := probeClassDoc{Class: m.Class, Kind: m.Kind, Norm: m.Norm}
		for i := range m.GPUs {
			doc.GPUs = append(doc.GPUs, newProbeGPUDoc(&m.GPUs[i]))
		}
		d.Classes = append(d.Classes, doc)
	}
	return d
}

func newProbeGPUDoc(e *variability.Estimate) probeGPUDoc {
	spread := probe.Spread(e)
	return probeGPUDoc{GPU: e.GPU, Score: e.Score, Low: e.Low, High: e.High, Coverage: e.Coverage, StdErr: e.StdErr,
		Spread: spread, Unsteady: spread > probe.Unsteady, Runs: e.Count, At: e.Newest.Seconds()}
}
