package experiment

import (
	"context"
	"fmt"
	"maps"

	"github.com/trainyard/trainyard/eventlog"
	"github.com/trainyard/trainyard/metrics"
	"github.com/trainyard/trainyard/sched"
	"github.com/trainyard/trainyard/simulate"
	"github.com/trainyard/trainyard/trace"
)

// eacoRow is one system with or without the sleep rule. Figures are means over seeds; ratios are over fifo with the
// same rule, and over fifo without it.
type eacoRow struct {
	System     string            `json:"system"`
	Sleep      bool              `json:"sleep"`          // idle nodes draw nothing; else 650 W
	With       string            `json:"with,omitempty"` // what else is set
	KWh        float64           `json:"energy_kwh"`
	Nodes      float64           `json:"avg_active_nodes"`
	JCT        float64           `json:"avg_jct_s"`
	Run        float64           `json:"avg_run_s"`
	Undos      float64           `json:"undos"`
	Unfinished int               `json:"unfinished"`
	Energy     simulate.Interval `json:"energy_over_fifo_same_rule"`
	Total      simulate.Interval `json:"energy_over_fifo_awake"`
	Runtime    simulate.Interval `json:"run_over_fifo"`
	Active     simulate.Interval `json:"active_nodes_over_fifo"`
	JTT        simulate.Interval `json:"jct_over_fifo"`
	Companies  []eacoCompany     `json:"companies,omitempty"` // of eaco without caps, those that cost most first

	settings map[string]string
	caps     simulate.CapCurves
	partner  companies
	results  []metrics.Result // by seed
}

// eacoSystems are the systems compared; the first is the base of ratios.
var eacoSystems = []string{"fifo", "fifo-packed", "gandiva", "eaco"}

// eacoCap is how much longer a job may take under its power cap.
const eacoCap = "1.2"

// eacoRows are all systems awake, then asleep; eaco with other limits on what a job may be slowed; and systems under
// power caps: those of the models that capped knows, and, for want of better, ResNet-50's for all four.
func eacoRows(capped simulate.CapCurves) (rows []eacoRow) {
	for _, sleep := range []bool{false, true} {
		for _, name := range eacoSystems {
			rows = append(rows, eacoRow{System: name, Sleep: sleep})
		}
	}
	for _, limit := range []string{"1.05", "inf"} {
		rows = append(rows, eacoRow{System: "eaco", Sleep: true, With: "limit " + limit,
			settings: map[string]string{"slowdown_limit": limit}})
	}
	one := capped.Of("ResNet-50")
	for _, c := range []struct {
		with string
		caps simulate.CapCurves
	}{{"ResNet-50 capped", simulate.CapCurves{"resnet50": one}},
		{"all capped", simulate.CapCurves{"alexnet": one, "resnet18": one, "resnet50": one, "vgg16": one}}} {
		for _, name := range eacoSystems {
			rows = append(rows, eacoRow{System: name, Sleep: true, With: c.with,
				settings: map[string]string{"power_cap": eacoCap}, caps: c.caps})
		}
	}
	return rows
}

// run fills in the rows: every system on the same draws.
func (p *eacoPart) run(ctx context.Context, tables *simulate.Sharing, arrivals func(seed uint64) []sched.Time) error {
	c, err := eacoCluster(p.Nodes)
	if err != nil {
		return err
	}
	for seed := range uint64(p.Seeds) {
		t := eacoTrace(seed+1, arrivals(seed+1))
		p.Load += trace.Describe(t).OfferedLoad(c.GPUs()) / float64(p.Seeds)
		for i := range p.Rows {
			err := p.Rows[i].run(ctx, simulate.Request{Trace: t, Cluster: c, Sharing: tables})
			if err != nil {
				return err
			}
		}
	}
	awake, asleep := p.Rows[0].results, p.Rows[len(eacoSystems)].results
	for i := range p.Rows {
		r := &p.Rows[i]
		base := awake
		if r.Sleep {
			base = asleep
		}
		r.sum(base, awake)
	}
	return nil
}

// run simulates the row's system on one draw.
func (r *eacoRow) run(ctx context.Context, s simulate.Request) error {
	s.System, s.Caps, s.Settings = r.System, r.caps,
		map[string]string{"sleep": "inf", "restart_overhead": fmt.Sprint(restart.Seconds())}
	if r.Sleep {
		s.Settings["sleep"] = "0"
	}
	maps.Copy(s.Settings, r.settings)
	if r.System == "eaco" {
		r.partner.begin()
		s.Sinks = []eventlog.Sink{&r.partner}
	}
	out, err := s.Run(ctx)
	if err != nil {
		return err
	}
	r.results = append(r.results, out.Result)
	return nil
}

// sum takes means, and ratios over fifo with the same rule and over fifo awake.
func (r *eacoRow) sum(base, awake []metrics.Result) {
	n := float64(len(r.results))
	for i := range r.results {
		x := &r.results[i]
		r.KWh += x.EnergyKWh / n
		r.Nodes += x.AvgActiveNodes / n
		r.JCT += x.AvgJCT / n
		r.Run += x.AvgRun / n
		r.Undos += float64(x.Undos) / n
		r.Unfinished += x.Unfinished
	}
	ratio := func(base []metrics.Result, f func(*metrics.Result) float64) simulate.Interval {
		var list []float64
		for i := range r.results {
			list = append(list, f(&r.results[i])/f(&base[i]))
		}
		return simulate.Bootstrap(list)
	}
	energy := func(x *metrics.Result) float64 { return x.EnergyKWh }
	r.Energy, r.Total = ratio(base, energy), ratio(awake, energy)
	r.Runtime = ratio(base, func(x *metrics.Result) float64 { return x.AvgRun })
	r.Active = ratio(base, func(x *metrics.Result) float64 { return x.AvgActiveNodes })
	r.JTT = ratio(base, func(x *metrics.Result) float64 { return x.AvgJCT })
	if r.caps == nil { // a cap slows jobs as well
		r.Companies = r.partner.list()
	}
}
