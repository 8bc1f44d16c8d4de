package plan

import (
	"fmt"
	"strings"

	"github.com/trainyard/trainyard/cli/inputs"
	"github.com/trainyard/trainyard/cli/term"
	"github.com/trainyard/trainyard/model/elastic"
	"github.com/trainyard/trainyard/model/speedup"
	"github.com/trainyard/trainyard/sched"
	"github.com/trainyard/trainyard/simulate"
	"github.com/trainyard/trainyard/trace"
)

// elasticPlan is what each GPU is worth to jobs that all run at once.
type elasticPlan struct {
	Schema   string       `json:"schema"`
	Workload string       `json:"workload"`
	Jobs     int          `json:"jobs"`
	Least    int          `json:"min_gpus"` // on which all can run
	GPUs     []elasticGPU `json:"gpus"`
}

// elasticGPU is a number of GPUs.
type elasticGPU struct {
	GPUs int     `json:"gpus"`
	Sum  float64 `json:"sum_of_factors"` // the largest that there is, P(J, K)
	Adds float64 `json:"one_more_adds"`
}

// maxElasticCells bounds the dynamic programme, which takes 8 bytes for each pair of job and GPU.
const maxElasticCells = 1 << 26

func (f *planFlags) validateElastic() error {
	switch {
	case f.workload == "" || f.trace.profiles == "":
		return term.Usagef("--elastic needs a trace and how fast its models train, want --workload and --profiles")
	case f.budget != "" || f.continuous || f.method != methodExact || f.reserve != "" || f.rent != "" || f.verify ||
		f.trace.window != "" || f.trace.restart != "":
		return term.Usagef("--elastic takes no more than --workload, --profiles, --max-gpus, " +
			"--gpus-per-node and --json")
	case f.elastic < 1 || f.elastic >= elastic.MaxGPUs:
		return term.Usagef("--elastic %d, want GPUs, from 1 to %d", f.elastic, elastic.MaxGPUs-1)
	}
	return nil
}

// planElastic fills the table of the dynamic programme for all jobs of a trace at once, each in its first phase.
func planElastic(f *planFlags) (*elasticPlan, error) {
	if err := f.validateElastic(); err != nil {
		return nil, err
	}
	jobs, err := f.elasticJobs()
	if err != nil {
		return nil, err
	}
	p := &elasticPlan{Schema: "trainyard.plan-elastic/v1", Workload: f.workload, Jobs: len(jobs)}
	for i := range jobs {
		least, _ := jobs[i].Least()
		p.Least += least
	}
	if p.Least > f.elastic {
		return nil, term.Refusedf("--elastic %d: the %s of %s do not all run on so few, want at least %d", f.elastic,
			term.Counted(p.Jobs, "job"), f.workload, p.Least)
	}
	var t elastic.Table
	t.Fill(jobs, f.elastic+1)
	for k := p.Least; k <= f.elastic; k++ {
		sum, _ := t.At(len(jobs), k)
		more, _ := t.At(len(jobs), k+1)
		p.GPUs = append(p.GPUs, elasticGPU{k, sum, more - sum})
	}
	return p, nil
}

// elasticJobs reads the jobs with their scaling factors.
func (f *planFlags) elasticJobs() ([]elastic.Job, error) {
	apps, err := simulate.ReadApps(f.trace.profiles)
	if err != nil {
		return nil, inputs.AppsError(err)
	}
	t, err := simulate.ReadTrace(f.workload, trace.Options{})
	if err != nil {
		return nil, err
	}
	if n := len(t.Jobs); n > elastic.MaxJobs || (n+1)*(f.elastic+2) > maxElasticCells {
		return nil, term.Usagef("--elastic %d for the %s of %s is too much at once, want GPUs times jobs below %d",
			f.elastic, term.Counted(n, "job"), f.workload, maxElasticCells)
	}
	widest, err := parseByModel("max-gpus", f.trace.widest, 0)
	if err != nil {
		return nil, err
	}
	factors, jobs := map[string][]float64{}, []elastic.Job(nil)
	for i := range t.Jobs {
		spec := &t.Jobs[i].Spec
		app, ok := apps[spec.Model]
		if !ok {
			return nil, term.Usagef("--profiles %s: no profile of the application %q of %s, want one", f.trace.profiles,
				spec.Model, f.workload)
		}
		if factors[spec.Model] == nil {
			chain := speedup.ChainOf(app, f.trace.nodeGPUs(), min(f.elastic+1, maxWidth), sched.BatchRange{})
			factors[spec.Model] = elastic.Factors(nil, chain[0].Speed)
		}
		j := elastic.Job{S: factors[spec.Model], Min: int(spec.GPUs.Min), Max: int(spec.GPUs.Max)}
		if most := int(widest.of(spec.Model)); most > 0 {
			j.Min, j.Max = 1, most
		}
		if _, ok := j.Least(); !ok {
			return nil, term.Refusedf("--elastic %d: job %s of %s can run on none of the GPUs that it may have, up "+
				"to so many", f.elastic, spec.Name, f.workload)
		}
		jobs = append(jobs, j)
	}
	return jobs, nil
}

// text writes the plan; numbers of GPUs beyond which one more is worth the same stand on one line.
func (p *elasticPlan) text(width int) string {
	var b strings.Builder
	b.WriteString(term.Entry("workload", fmt.Sprintf("%s: %s, all at once", p.Workload, term.Counted(p.Jobs, "job")),
		width))
	b.WriteString(term.Entry("method", "elastic: the largest sum of scaling factors", width))
	b.WriteString(term.Entry("least", term.Counted(p.Least, "GPU")+": each job at its fewest", width) + "\n")
	t := &term.Table{}
	t.Add("GPUs", "sum", "one more adds")
	for i := 0; i < len(p.GPUs); {
		n := i
		for n+1 < len(p.GPUs) && short(p.GPUs[n+1].Adds) == short(p.GPUs[i].Adds) {
			n++
		}
		gpus, sum := fmt.Sprint(p.GPUs[i].GPUs), short(p.GPUs[i].Sum)
		if n > i {
			gpus = fmt.Sprintf("%s-%d", gpus, p.GPUs[n].GPUs)
			if last := short(p.GPUs[n].Sum); last != sum {
				sum += "-" + last
			}
		}
		t.Add(gpus, sum, short(p.GPUs[i].Adds))
		i = n + 1
	}
	return b.String() + t.Text(width)
}
