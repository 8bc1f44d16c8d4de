package export

import (
	"encoding/json"
	"fmt"
	"io"
)

// Dashboards are those that Grafana writes.
var Dashboards = []string{"machine", "cluster"}

// graph is a panel of a dashboard: a number, or lines over time.
type graph struct {
	title, says string
	unit        string // of Grafana
	wide        int    // of 24 columns
	stat        bool   // a number alone
	stacked     bool
	queries     []query
}

// query is an expression of PromQL, and what its lines are called.
type query struct{ expr, legend string }

// chosen restricts a metric to the processes that the reader of a dashboard chose.
func chosen(metric string) string { return metric + `{instance=~"$instance"}` }

// rate is how fast a counter grows, a second.
func rate(metric string) string { return "rate(" + chosen(metric) + "[$__rate_interval])" }

// hourly is by how much a counter grew in an hour.
func hourly(metric string) string { return "increase(" + chosen(metric) + "[1h])" }

// decisions are the times that decisions took.
var decisions = graph{title: "Decisions that changed something", says: "How long they took.", unit: "s", wide: 12,
	queries: []query{
		{"histogram_quantile(0.5, sum by (le) (" + rate("trainyard_decision_seconds_bucket") + "))", "median"},
		{"histogram_quantile(0.99, sum by (le) (" + rate("trainyard_decision_seconds_bucket") + "))", "p99"},
	}}

// sum adds up over processes, by a label where one is named.
func sum(expr string, by string) string {
	if by == "" {
		return "sum(" + expr + ")"
	}
	return "sum by (" + by + ") (" + expr + ")"
}

// boards are the panels of each dashboard, from left to right and then downwards.
var boards = map[string][]graph{
	"machine": {
		{title: "GPUs at work", says: "Share of the GPUs or slots that jobs hold.", unit: "percentunit", wide: 6,
			stat: true, queries: []query{{sum(`trainyard_gpus{instance=~"$instance",state="busy"}`, "") + " / " +
				sum(chosen("trainyard_gpus"), ""), "busy"}}},
		{title: "Jobs that run", unit: "short", wide: 6, stat: true,
			queries: []query{{sum(`trainyard_jobs{instance=~"$instance",state="running"}`, ""), "running"}}},
		{title: "Jobs that wait", unit: "short", wide: 6, stat: true,
			queries: []query{{sum(chosen("trainyard_queue_length"), ""), "waiting"}}},
		{title: "On GPUs of others",
			says: "Jobs with a process on a GPU that they do not hold; trainyard doctor names them.", unit: "short",
			wide: 6, stat: true, queries: []query{{sum(chosen("trainyard_jobs_on_gpus_of_others"), ""), "jobs"}}},
		{title: "GPUs by state", unit: "short", wide: 12, stacked: true,
			queries: []query{{sum(chosen("trainyard_gpus"), "state") + " > 0", "{{state}}"}}},
		{title: "Jobs by state", says: "Without those that are done.", unit: "short", wide: 12, stacked: true,
			queries: []query{{sum(`trainyard_jobs{instance=~"$instance",state!="done"}`, "state"), "{{state}}"}}},
		{title: "GPU time attained and lost",
			says: "GPUs that jobs held on average, and those whose work came to nothing, by cause.", unit: "short",
			wide: 12, queries: []query{
				{sum(rate("trainyard_gpu_seconds_total"), ""), "attained"},
				{sum(rate("trainyard_lost_gpu_seconds_total"), "cause"), "lost: {{cause}}"}}},
		{title: "Power of the GPUs", says: "As far as it is measured.", unit: "watt", wide: 12,
			queries: []query{{sum(rate("trainyard_energy_joules_total"), ""), "power"}}},
		{title: "Jobs done in an hour", unit: "short", wide: 12, stacked: true,
			queries: []query{{sum(hourly("trainyard_jobs_done_total"), "outcome"), "{{outcome}}"}}},
		{title: "Stops and starts in an hour", says: "Preemptions, other widths, attempts beyond a job's first.",
			unit: "short", wide: 12, queries: []query{
				{sum(hourly("trainyard_preemptions_total"), ""), "preemptions"},
				{sum(hourly("trainyard_resizes_total"), ""), "resizes"},
				{sum(hourly("trainyard_restarts_total"), ""), "restarts"}}},
		decisions,
		{title: "Events of the log", says: "By kind; and batches of them made durable.", unit: "ops", wide: 12,
			queries: []query{{sum(rate("trainyard_events_total"), "kind") + " > 0", "{{kind}}"},
				{sum(rate("trainyard_commits_total"), ""), "batches"}}},
		{title: "Memory of the manager", unit: "bytes", wide: 12,
			queries: []query{{chosen("process_resident_memory_bytes"), "{{instance}}"}}},
		{title: "Open streams", says: "Of pages and of verbs that follow.", unit: "short", wide: 12,
			queries: []query{{sum(chosen("trainyard_streams"), ""), "streams"}}},
	},
	"cluster": {
		{title: "GPUs at work", says: "Share of the GPUs that jobs hold.", unit: "percentunit", wide: 6, stat: true,
			queries: []query{{sum(`trainyard_gpus{instance=~"$instance",state="busy"}`, "") + " / " +
				sum(chosen("trainyard_gpus"), ""), "busy"}}},
		{title: "Jobs that run", unit: "short", wide: 6, stat: true,
			queries: []query{{sum(`trainyard_jobs{instance=~"$instance",phase="Running"}`, ""), "running"}}},
		{title: "Jobs that wait", unit: "short", wide: 6, stat: true,
			queries: []query{{sum(`trainyard_jobs{instance=~"$instance",phase="Pending"}`, ""), "pending"}}},
		{title: "Controllers that decide", says: "1 where all is well: one replica leads.", unit: "short", wide: 6,
			stat: true, queries: []query{{sum(chosen("trainyard_deciding"), ""), "deciding"}}},
		{title: "GPUs by state", unit: "short", wide: 12, stacked: true,
			queries: []query{{sum(chosen("trainyard_gpus"), "state"), "{{state}}"}}},
		{title: "Jobs by phase", says: "Those that are not done.", unit: "short", wide: 12, stacked: true,
			queries: []query{{sum(chosen("trainyard_jobs"), "phase"), "{{phase}}"}}},
		{title: "Attempts that ended in an hour", unit: "short", wide: 12, stacked: true,
			queries: []query{{sum(hourly("trainyard_attempts_ended_total"), "outcome"), "{{outcome}}"}}},
		{title: "Preemptions and failed starts in an hour", unit: "short", wide: 12, queries: []query{
			{sum(hourly("trainyard_preemptions_total"), ""), "preemptions"},
			{sum(hourly("trainyard_start_failures_total"), ""), "failed starts"}}},
		{title: "Nodes of pools", says: "Rented ones are there; wanted ones are what the policy wants.", unit: "short",
			wide: 12, queries: []query{{sum(chosen("trainyard_pool_nodes"), "pool, state"), "{{pool}}, {{state}}"}}},
		{title: "What pools cost an hour", says: "In the currency of their prices.", unit: "short", wide: 12,
			stacked: true,
			queries: []query{{sum(hourly("trainyard_pool_spend_total"), "pool"), "{{pool}}"}}},
		decisions,
		{title: "Memory of the controller", unit: "bytes", wide: 12,
			queries: []query{{chosen("process_resident_memory_bytes"), "{{instance}}"}}},
	},
}

// object is a JSON object; its names are written in order of the alphabet.
type object map[string]any

// Grafana writes one of Dashboards for Grafana 10 or later. Its data source is a variable, and it has no uid: an import
// gives it one.
func Grafana(w io.Writer, name string) error {
	graphs, ok := boards[name]
	if !ok {
		return fmt.Errorf("export: no dashboard %q, want one of %v", name, Dashboards)
	}
	source := object{"type": "prometheus", "uid": "${datasource}"}
	panels, x, y, tall := []object{}, 0, 0, 0
	for i := range graphs {
		g := &graphs[i]
		h := 8
		if g.stat {
			h = 4
		}
		if x+g.wide > 24 {
			x, y, tall = 0, y+tall, 0
		}
		p := g.panel(source)
		p["id"], p["gridPos"] = i+1, object{"x": x, "y": y, "w": g.wide, "h": h}
		panels, x, tall = append(panels, p), x+g.wide, max(tall, h)
	}
	board := object{
		"title": "Trainyard: " + name, "tags": []string{"trainyard"}, "schemaVersion": 39, "editable": true,
		"time": object{"from": "now-6h", "to": "now"}, "refresh": "30s", "timezone": "browser", "graphTooltip": 1,
		"templating": object{"list": []object{
			{"name": "datasource", "label": "Data source", "type": "datasource", "query": "prometheus"},
			{"name": "instance", "label": "Process", "type": "query", "datasource": source, "refresh": 2, "sort": 1,
				"multi": true, "includeAll": true, "allValue": ".*",
				"current": object{"text": "All", "value": "$__all"},
				"query":   "label_values(trainyard_jobs, instance)"}}},
		"panels": panels,
	}
	text, err := json.MarshalIndent(board, "", "  ")
	if err != nil {
		return err
	}
	_, err = w.Write(append(text, '\n'))
	return err
}

// panel returns a panel without its place.
func (g *graph) panel(source object) object {
	targets := []object{}
	for i, q := range g.queries {
		targets = append(targets, object{"refId": string(rune('A' + i)), "datasource": source, "expr": q.expr,
			"legendFormat": q.legend})
	}
	defaults := object{"unit": g.unit, "min": 0}
	if g.unit == "percentunit" {
		defaults["max"] = 1
	}
	p := object{"title": g.title, "description": g.says, "type": "timeseries", "datasource": source, "targets": targets,
		"fieldConfig": object{"defaults": defaults, "overrides": []object{}}}
	if g.stat {
		p["type"] = "stat"
		p["options"] = object{"reduceOptions": object{"calcs": []string{"lastNotNull"}}, "graphMode": "area"}
		return p
	}
	custom := object{"drawStyle": "line", "lineWidth": 1, "fillOpacity": 10, "showPoints": "never"}
	if g.stacked {
		custom["fillOpacity"], custom["stacking"] = 40, object{"mode": "normal", "group": "A"}
	}
	defaults["custom"] = custom
	p["options"] = object{"legend": object{"displayMode": "list", "placement": "bottom"},
		"tooltip": object{"mode": "multi", "sort": "desc"}}
	return p
}
