package metrics

import (
	"math"
	"slices"
	"time"

	"github.com/trainyard/trainyard/sched"
)

// Result is one run in figures. Averages and percentiles are over finished jobs; times are in seconds; a percentile is
// the nearest rank. JSON names are part of the command line's contract and only ever added to.
type Result struct {
	System     string  `json:"system"`
	Jobs       int     `json:"jobs"`
	Finished   int     `json:"finished"`
	Rejected   int     `json:"rejected"`
	Unfinished int     `json:"unfinished"` // neither done nor rejected when the run ended
	AvgJCT     float64 `json:"avg_jct_s"`
	GeomeanJCT float64 `json:"geomean_jct_s"` // jobs of no JCT count as a nanosecond
	P50JCT     float64 `json:"p50_jct_s"`
	P95JCT     float64 `json:"p95_jct_s"`
	P99JCT     float64 `json:"p99_jct_s"`
	AvgQueue   float64 `json:"avg_queue_s"` // time without GPUs
	MaxWait    float64 `json:"max_wait_s"`  // the longest time any job, finished or not, was without GPUs
	AvgRun     float64 `json:"avg_run_s"`   // time with GPUs
	Makespan   float64 `json:"makespan_s"`  // first arrival to last finish

	GPUAllocated   float64 `json:"gpu_allocated"`            // share of the GPU time of nodes that were up that attempts held
	GPUBusy        float64 `json:"gpu_busy"`                 // share in which work went on: less starting, restarting, stopping
	AvgActiveNodes float64 `json:"avg_active_nodes"`         // nodes with a GPU held, averaged over the run
	GPUHours       float64 `json:"gpu_hours"`                // held by attempts
	LostGPUHours   float64 `json:"lost_gpu_hours,omitempty"` // that came to nothing by stops for others
	Preemptions    int64   `json:"preemptions"`              // of all jobs, like the next three
	Promotions     int64   `json:"promotions"`
	Migrations     int64   `json:"migrations"`
	Resizes        int64   `json:"resizes"`
	Undos          int64   `json:"undos"`            // targets on trial that were taken back
	DeadlineMisses int64   `json:"deadline_misses"`  // jobs that finished after their deadline
	EnergyKWh      float64 `json:"energy_kwh"`       // of all nodes, the sum of the next three
	EnergyBusy     float64 `json:"energy_busy_kwh"`  // that jobs answer for, see Job.Energy
	EnergyIdle     float64 `json:"energy_idle_kwh"`  // of GPUs that no one held, on nodes that were up or waking
	EnergySleep    float64 `json:"energy_sleep_kwh"` // of nodes asleep
	EnergyCost     float64 `json:"energy_cost"`      // of that energy, where its price is known; no part of cost
	Carbon         float64 `json:"carbon_g"`         // grams of CO2 equivalent of that energy, where known
	Cost           float64 `json:"cost"`             // dollars
	AvgRentedGPUs  float64 `json:"avg_rented_gpus"`  // GPUs of nodes that were up
	// nodes that went down, from the first arrival to the close of the books
	NodeFailures int64  `json:"node_failures"`
	AttemptsLost int64  `json:"attempts_lost"` // attempts that ended for a node was lost
	Events       uint64 `json:"events"`        // of the log
	// microseconds, of the decisions that changed something; 0 = not measured
	DecisionP50 float64 `json:"decision_p50_us"`
	DecisionP99 float64 `json:"decision_p99_us"` // likewise
	Wall        float64 `json:"wall_s"`          // real time, as the caller measured it; 0 = not measured
}

const joules = 3.6e6 // of a kWh

// Result closes the books at the last event about a job that was not done, and sums up. A node that fails or comes back
// when all is over changes nothing.
func (r *Recorder) Result(system string) Result {
	r.settle(r.end)
	res, sum := FromJobs(system, r.All(), r.end), &r.closed
	span := r.end.Sub(r.first).Seconds()
	if sum.usable > 0 {
		res.GPUAllocated = float64(sum.busy / sum.usable)
		res.GPUBusy = float64((r.work + r.working(r.end)) / sum.usable)
	}
	if span > 0 {
		res.AvgActiveNodes = sum.nodes / span
		res.AvgRentedGPUs = float64(sum.usable) / span
	}
	res.GPUHours = float64(sum.busy) / 3600
	res.EnergyKWh = sum.energy.all() / joules
	res.EnergyBusy, res.EnergyIdle, res.EnergySleep = sum.energy.jobs/joules, sum.energy.idle/joules,
		sum.energy.sleep/joules
	res.EnergyCost, res.Carbon = sum.energyCost, sum.carbon
	res.Cost = float64(sum.cost)
	res.Undos = int64(r.Undos)
	res.DeadlineMisses = r.misses
	res.NodeFailures, res.AttemptsLost = sum.failures, r.lost
	res.Events = r.Events
	return res
}

// FromJobs sums up what became of jobs, as of time end.
func FromJobs(system string, jobs []Job, end sched.Time) Result {
	res := Result{System: system, Jobs: len(jobs)}
	jcts := make([]time.Duration, 0, len(jobs))
	var sum, queue, run, logs float64
	first, last := sched.Never, sched.Time(0)
	for i := range jobs {
		j := &jobs[i]
		first = min(first, j.Submit)
		res.LostGPUHours += float64(j.Lost) / 3600
		res.Preemptions += int64(j.Preemptions)
		res.Promotions += int64(j.Promotions)
		res.Migrations += int64(j.Migrations)
		res.Resizes += int64(j.Resizes)
		wait := end.Sub(j.Submit) - j.Run
		switch j.Outcome {
		case sched.Finished:
			wait = j.Queue()
			jcts = append(jcts, j.JCT())
			sum += j.JCT().Seconds()
			logs += math.Log(max(j.JCT(), 1).Seconds())
			queue += wait.Seconds()
			run += j.Run.Seconds()
			last = max(last, j.Finish)
		case sched.RejectedJob:
			res.Rejected++
			continue
		case sched.NoOutcome:
			res.Unfinished++
		default: // cancelled or failed: it waits no longer
			wait = j.Finish.Sub(j.Submit) - j.Run
		}
		res.MaxWait = max(res.MaxWait, wait.Seconds())
	}
	res.Finished = len(jcts)
	if n := float64(len(jcts)); n > 0 {
		slices.Sort(jcts)
		res.AvgJCT, res.AvgQueue, res.AvgRun, res.GeomeanJCT = sum/n, queue/n, run/n, math.Exp(logs/n)
		res.P50JCT, res.P95JCT, res.P99JCT = rank(jcts, .50), rank(jcts, .95), rank(jcts, .99)
		res.Makespan = last.Sub(first).Seconds()
	}
	return res
}

// rank returns the q-quantile of sorted by nearest rank, in seconds.
func rank(sorted []time.Duration, q float64) float64 {
	i := int(math.Ceil(q*float64(len(sorted)))) - 1
	return sorted[max(i, 0)].Seconds()
}
