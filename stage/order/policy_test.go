package order_test

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"testing"
	"text/tabwriter"
	"time"

	"github.com/trainyard/trainyard/internal/policytest"
	"github.com/trainyard/trainyard/model/dist"
	"github.com/trainyard/trainyard/sched"
	"github.com/trainyard/trainyard/stage/order"
)

// Ensure that each example of testdata comes out as it did when someone last read and understood it.
//
// A file says what it ensures, then:
//
//	rule RULE [KEY=VALUE]...                      makes a rule with its settings; one that remembers jobs must be made
//	                                              before the first job, any other is made by its first rank
//	job NAME [gpus=N] [priority=N] [work=SEC]     a job arrives and waits; work is on its GPUs alone
//	start NAME... [rate=R] [restart=SEC]          they come to hold GPUs in this order, and work at this rate, after the
//	                                              restart
//	keep NAME...                                  they go on holding GPUs in this order, after a demotion say
//	stop NAME...                                  they lose their GPUs in one walk, and wait
//	finish NAME...                                they are done
//	at SEC                                        the time is now this
//	rank RULE                                     ranks all jobs that are not done; '*' marks those that hold GPUs
//
// rank prints the key of each job, best first, and until when it holds; then what the rule noted.
func TestPolicies(t *testing.T) {
	policytest.Run(t, func() policytest.Handler { return (&ranking{made: map[string]sched.Orderer{}}).do })
}

// rules makes each rule from what it may know of work, and from its settings.
var rules = map[string]func(work sched.Remainer, c *policytest.Command) (sched.Orderer, error){
	"fifo":        fixed(order.FIFO{}),
	"fewest":      fixed(order.FewestGPUs{}),
	"las":         fixed(order.LAS{}),
	"las-seconds": fixed(order.LAS{Seconds: true}),
	"sjf": func(work sched.Remainer, _ *policytest.Command) (sched.Orderer, error) {
		return order.SJF{Work: work}, nil
	},
	"srtf": func(work sched.Remainer, _ *policytest.Command) (sched.Orderer, error) {
		return order.SRTF{Work: work}, nil
	},
	"srsf": func(work sched.Remainer, _ *policytest.Command) (sched.Orderer, error) {
		return order.SRSF{Work: work}, nil
	},
	// limits=GPUSEC,... knob=K
	"mlfq": func(_ sched.Remainer, c *policytest.Command) (sched.Orderer, error) {
		return order.NewMLFQ(c.Numbers("limits"), false, c.Number("knob", 0), nil)
	},
	// sizes=GPUSEC,... limits=GPUSEC,... delta=GPUSEC
	"gittins": func(_ sched.Remainer, c *policytest.Command) (sched.Orderer, error) {
		sizes, err := dist.NewEmpirical(c.Numbers("sizes"))
		if err != nil {
			return nil, err
		}
		limits := c.Numbers("limits")
		return order.NewMLFQ(limits, false, 0, order.NewGittinsIndex(sizes, limits, c.Number("delta", 0)))
	},
}

// fixed is for a rule that knows nothing and has no settings.
func fixed(o sched.Orderer) func(sched.Remainer, *policytest.Command) (sched.Orderer, error) {
	return func(sched.Remainer, *policytest.Command) (sched.Orderer, error) { return o, nil }
}

// ranking is the jobs of one data file and the rules that its data file names. It knows the true work.
type ranking struct {
	v     sched.View
	work  []time.Duration // by job
	made  map[string]sched.Orderer
	turns []sched.Turns // the rules that remember, in the order in which they were made
}

// Remaining is the truth.
func (r *ranking) Remaining(v *sched.View, j sched.JobID) time.Duration {
	return r.work[j] - v.Jobs[j].WorkNow(v.Now)
}

func (r *ranking) do(c *policytest.Command) string {
	switch c.Verb {
	case "rule":
		r.rule(c)
	case "job":
		gpus := c.Number("gpus", 1)
		r.v.Jobs = append(r.v.Jobs, sched.Job{State: sched.Waiting, Arrived: r.v.Now,
			Spec: &sched.JobSpec{Name: c.Word("a name"), GPUs: sched.Rigid(int(gpus)),
				Priority: int32(c.Number("priority", 0))}})
		r.work = append(r.work, sched.Seconds(c.Number("work", 0)))
		for _, o := range r.turns { // a rule that remembers is asked as jobs arrive
			o.(sched.Orderer).Key(&r.v, sched.JobID(len(r.v.Jobs)-1))
		}
	case "start":
		rate, restart := c.Number("rate", 1), sched.Seconds(c.Number("restart", 0))
		r.each(c, sched.Waiting, func(j *sched.Job, id sched.JobID) {
			j.Settle(r.v.Now)
			j.State, j.Attempt, j.Up, j.GPUs = sched.Active, sched.Running, true, make([]sched.GPUID, j.Spec.GPUs.Want)
			j.WorkFrom, j.Rate = r.v.Now.Add(restart), rate
			r.report(func(o sched.Turns) { o.Took(&r.v, id) })
		})
	case "keep":
		r.each(c, sched.Active, func(_ *sched.Job, id sched.JobID) {
			r.report(func(o sched.Turns) {
				o.Took(&r.v,
					id)
			})
		})
	case "stop":
		r.each(c, sched.Active, func(j *sched.Job, id sched.JobID) {
			r.end(j, sched.Waiting)
			r.report(func(o sched.Turns) { o.Lost(&r.v, id) })
		})
	case "finish":
		r.each(c, sched.Active, func(j *sched.Job, id sched.JobID) {
			r.end(j, sched.Done)
			r.report(func(o sched.Turns) { o.Left(id) })
		})
	case "at":
		now := sched.Time(sched.Seconds(c.Float("time", c.Word("a time in seconds"))))
		if now < r.v.Now {
			c.Fail("%v is past, it is %v", now, r.v.Now)
		}
		r.v.Now = now
	case "rank":
		return r.rank(c)
	default:
		c.Fail("no such command")
	}
	return ""
}

// rule returns the rule that the next word names, made now if it has not been.
func (r *ranking) rule(c *policytest.Command) sched.Orderer {
	name := c.Word("a rule")
	if r.made[name] == nil {
		newRule := rules[name]
		if newRule == nil {
			c.Fail("no rule %s", name)
		}
		o, err := newRule(r, c)
		if err != nil {
			c.Fail("%v", err)
		}
		r.made[name] = o
		if turns, ok := o.(sched.Turns); ok {
			if len(r.v.Jobs) > 0 {
				c.Fail("%s is to know every job from its arrival", name)
			}
			r.turns = append(r.turns, turns)
		}
	}
	return r.made[name]
}

// each does something to the named jobs, which must be in the given state.
func (r *ranking) each(c *policytest.Command, state sched.JobState, f func(j *sched.Job, id sched.JobID)) {
	r.v.Version++ // a walk
	for again := true; again; again = c.More() {
		name := c.Word("a job")
		id := slices.IndexFunc(r.v.Jobs, func(j sched.Job) bool { return j.Spec.Name == name })
		if id < 0 || r.v.Jobs[id].State != state {
			c.Fail("job %s is not there, or not %v", name, state)
		}
		f(&r.v.Jobs[id], sched.JobID(id))
	}
}

func (r *ranking) report(f func(o sched.Turns)) {
	for _, o := range r.turns {
		f(o)
	}
}

// end ends the attempt of a job.
func (r *ranking) end(j *sched.Job, state sched.JobState) {
	j.Settle(r.v.Now)
	j.Work, j.WorkFrom = j.WorkNow(r.v.Now), r.v.Now
	j.State, j.Attempt, j.Up, j.GPUs = state, sched.Ended, false, nil
}

func (r *ranking) rank(c *policytest.Command) string {
	type row struct {
		id    sched.JobID
		key   sched.Key
		until sched.Time
	}
	o, rows := r.rule(c), []row{}
	for id := range r.v.Jobs {
		if r.v.Jobs[id].State != sched.Done {
			k, until := o.Key(&r.v, sched.JobID(id))
			rows = append(rows, row{sched.JobID(id), k, until})
		}
	}
	slices.SortFunc(rows, func(a, b row) int { // as the documentation of sched.Key says
		return cmp.Or(cmp.Compare(a.key.Level, b.key.Level), cmp.Compare(a.key.Value, b.key.Value),
			cmp.Compare(a.key.Seq, b.key.Seq), cmp.Compare(a.id, b.id))
	})
	var b strings.Builder
	w := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "job\tlevel\tvalue\tslope\tseq\tuntil")
	for _, x := range rows {
		j, mark, until := &r.v.Jobs[x.id], "", "never"
		if j.State == sched.Active {
			mark = "*"
		}
		if x.until != sched.Never {
			until = fmt.Sprintf("%.9gs", x.until.Seconds())
		}
		// Adding 0 makes -0 a plain one.
		fmt.Fprintf(w, "%s%s\t%d\t%.6g\t%.6g\t%d\t%s\n", j.Spec.Name, mark, x.key.Level, x.key.Value+0, x.key.Slope+0,
			x.key.Seq, until)
	}
	w.Flush()
	if turns, ok := o.(sched.Turns); ok {
		for _, n := range turns.Notes() {
			fmt.Fprintf(&b, "%s %v: %.6g, %.6g\n", r.v.Jobs[n.Job].Spec.Name, n.Why.Code, n.Why.A, n.Why.B)
		}
	}
	return b.String()
}
