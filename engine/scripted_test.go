package engine_test

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/trainyard/trainyard/engine"
	"github.com/trainyard/trainyard/eventlog"
	"github.com/trainyard/trainyard/sched"
)

var rewriteCore = flag.Bool("rewrite", false, "write the transcripts of testdata/core again")

// A script is a file of testdata/core. Lines before "----" are commands; what the engine logs follows it. Comments
// start with '#'; the first says what the file ensures. At any instant the events are folded first, then the requests
// taken as one Desired, in the order of the file.
//
//	share N                    tenants a GPU may have (before anything else)
//	node NAME GPUS [type=T]    a node joins at time 0
//	pool NAME GPUS MIN-MAX     may be rented from, at 1 per node and hour
//	T job NAME GPUS|MIN-MAX [key=value]...  arrives: share=allow types=0,2 after=0,1 not-before=T retries=N
//	                                        batch=MIN-MAX
//	T give JOB GPU,GPU... [key=value]...  request: as=shared,trial at=epoch batch=N cap=W; no GPUs ("-") takes all away
//	T reject JOB; T watch JOB on|off; T node-target NODE STATE; T quarantine GPU [off]; T pool-target POOL NODES
//	T cancel|pause|resume|requeue JOB       a user's command
//	T change JOB GPUS|MIN-MAX [priority=N]  another request of its user
//	T started JOB [work=T] [rate=R]; T ended JOB OUTCOME; T start-failed JOB [GPUS] [not-before=T]; T epoch JOB
//	T node-left N STATE; T node-changed N STATE; T join NAME GPUS [pool=P]; T gpu-changed GPU STATE; T price POOL PRICE
//
// Times are in seconds, jobs are numbered by arrival, a report is about the latest attempt. Nothing is answered by
// itself.
type script struct {
	share   int
	nodes   []sched.NodeSpec
	pools   []sched.PoolSpec
	steps   []step
	state   *engine.State
	out     strings.Builder
	pending []step // requests of the instant under way
	now     sched.Time
	answers *rand.Rand // if set, live attempts are reported on at random
}

type step struct {
	at   sched.Time
	verb string
	args []string
	keys map[string]string
}

var requests = []string{"give", "reject", "watch", "node-target", "quarantine", "pool-target"}

func parseScript(text string) (*script, error) {
	s := &script{}
	for i, line := range strings.Split(text, "\n") {
		line, _, _ = strings.Cut(line, "#")
		f := strings.Fields(line)
		if len(f) == 0 {
			continue
		}
		var st step
		if sec, err := strconv.ParseFloat(f[0], 64); err == nil {
			st.at, f = sched.Time(sched.Seconds(sec)), f[1:]
		}
		if len(f) == 0 {
			return nil, fmt.Errorf("line %d: a time without a command", i+1)
		}
		st.verb, st.keys = f[0], map[string]string{}
		for _, w := range f[1:] {
			if k, v, ok := strings.Cut(w, "="); ok {
				st.keys[k] = v
			} else {
				st.args = append(st.args, w)
			}
		}
		switch st.verb {
		case "share":
			s.share = num(st.args[0])
		case "node":
			s.nodes = append(s.nodes, sched.NodeSpec{Name: st.args[0], GPUs: num(st.args[1]),
				Type: sched.TypeID(num(st.keys["type"])), Pool: sched.None})
		case "pool":
			lo, hi, _ := strings.Cut(st.args[2], "-")
			s.pools = append(s.pools, sched.PoolSpec{Name: st.args[0], GPUs: num(st.args[1]), Price: 1,
				Min: int32(num(lo)), Max: int32(num(hi))})
		default:
			s.steps = append(s.steps, st)
		}
	}
	slices.SortStableFunc(s.steps, func(a, b step) int { return int(a.at - b.at) })
	return s, nil
}

func num(s string) int {
	if s == "" {
		return 0
	}
	n, err := strconv.Atoi(s)
	must(err)
	return n
}

func nums(s string) (list []int) {
	for _, w := range strings.Split(s, ",") {
		if w != "" && w != "-" {
			list = append(list, num(w))
		}
	}
	return list
}

func gpus(s string) (set []sched.GPUID) {
	for _, g := range nums(s) {
		set = append(set, sched.GPUID(g))
	}
	return set
}

func secs(s string) sched.Time {
	if s == "" {
		return 0
	}
	f, err := strconv.ParseFloat(s, 64)
	must(err)
	return sched.Time(sched.Seconds(f))
}

// word finds the value of an enumeration by its word.
func word[T interface {
	~uint8
	fmt.Stringer
}](s string, last T) T {
	for x := T(0); x <= last; x++ {
		if x.String() == s {
			return x
		}
	}
	panic(fmt.Sprintf("%q is not known", s))
}

// Sync lets the nodes join.
func (s *script) Sync(context.Context, *sched.View) (events []sched.Event, err error) {
	for i := range s.nodes {
		events = append(events, sched.Event{Kind: sched.NodeJoined, NodeSpec: &s.nodes[i]})
	}
	return events, nil
}

// Next plays the steps of the next instant.
func (s *script) Next(_ context.Context, until sched.Time) ([]sched.Event, error) {
	if len(s.steps) == 0 || until < s.steps[0].at {
		if until == sched.Never || until <= s.now && len(s.steps) == 0 {
			return nil, io.EOF
		}
		s.now = max(s.now, until)
		return []sched.Event{{Time: s.now, Kind: sched.Ticked}}, nil
	}
	var events []sched.Event
	s.now, s.pending = s.steps[0].at, nil
	for len(s.steps) > 0 && s.steps[0].at == s.now {
		st := s.steps[0]
		s.steps = s.steps[1:]
		if slices.Contains(requests, st.verb) {
			s.pending = append(s.pending, st)
			continue
		}
		events = append(events, s.event(st))
	}
	if s.answers != nil {
		events = append(events, s.answer()...)
	}
	if len(events) == 0 {
		events = append(events, sched.Event{Time: s.now, Kind: sched.Ticked})
	}
	return events, nil
}

// answer reports something possible about some of the live attempts.
func (s *script) answer() (events []sched.Event) {
	for id := range s.state.View().Jobs {
		j := &s.state.View().Jobs[id]
		if !j.HoldsDevices() || s.answers.IntN(2) == 0 {
			continue
		}
		e := sched.Event{Time: s.now, Job: sched.JobID(id), Attempt: j.Attempts, WorkFrom: s.now, Rate: 1,
			Kind:    sched.AttemptEnded,
			Outcome: pick(s.answers, sched.Failed, sched.NodeLost, sched.Preempted)}
		switch {
		case j.Attempt == sched.Starting:
			if e.Kind = pick(s.answers, sched.AttemptStarted, sched.AttemptStarted,
				sched.StartFailed); e.Kind == sched.StartFailed {
				e.GPUs = slices.Clone(j.GPUs[:s.answers.IntN(2)])
			}
		case j.Attempt == sched.Running:
			e.Kind = sched.EpochEnded
		}
		events = append(events, e)
	}
	return events
}

// event makes the event of a step.
func (s *script) event(st step) sched.Event {
	e := sched.Event{Time: st.at}
	arg := func(i int) string {
		if i < len(st.args) {
			return st.args[i]
		}
		return ""
	}
	command := map[string]sched.Command{"cancel": sched.CancelJob, "pause": sched.PauseJob, "resume": sched.ResumeJob,
		"requeue": sched.RequeueJob}
	switch st.verb {
	case "job":
		e.Kind, e.Spec = sched.JobArrived, s.spec(st)
		return e
	case "node-left", "node-changed":
		e.Kind, e.Node, e.Code = sched.NodeLeft, sched.NodeID(num(arg(0))), int32(word(arg(1), sched.NodeGone))
		if st.verb == "node-changed" {
			e.Kind = sched.NodeChanged
		}
		return e
	case "join":
		e.Kind, e.NodeSpec = sched.NodeJoined, &sched.NodeSpec{Name: arg(0), GPUs: num(arg(1)),
			Type: sched.TypeID(num(st.keys["type"])), Pool: sched.None}
		if pool, ok := st.keys["pool"]; ok {
			e.NodeSpec.Pool = sched.PoolID(num(pool))
		}
		return e
	case "price":
		e.Kind, e.Pool, e.Value = sched.PriceChanged, sched.PoolID(num(arg(0))), float64(num(arg(1)))
		return e
	case "gpu-changed":
		e.Kind, e.Value, e.Code = sched.GPUChanged, float64(num(arg(0))), int32(num(arg(1)))
		return e
	}
	e.Job = sched.JobID(num(arg(0)))
	if c, ok := command[st.verb]; ok {
		e.Kind, e.Code = sched.JobCommanded, int32(c)
		return e
	}
	if st.verb == "change" {
		c := s.spec(st).Change()
		c.Priority = int32(num(st.keys["priority"]))
		e.Kind, e.Change = sched.JobChanged, &c
		return e
	}
	e.Attempt = s.state.View().Jobs[e.Job].Attempts
	e.Work, e.WorkFrom, e.Rate = time.Duration(secs(st.keys["work"])), st.at, 1
	switch st.verb {
	case "started":
		e.Kind = sched.AttemptStarted
	case "ended":
		e.Kind, e.Outcome = sched.AttemptEnded, word(arg(1), sched.RejectedJob)
	case "start-failed":
		e.Kind, e.GPUs, e.WorkFrom = sched.StartFailed, gpus(arg(1)), secs(st.keys["not-before"])
	case "epoch":
		e.Kind, e.Value = sched.EpochEnded, 1
	default:
		panic(fmt.Sprintf("%v: %q is not known", st.at, st.verb))
	}
	return e
}

func (s *script) spec(st step) *sched.JobSpec {
	lo, hi, isRange := strings.Cut(st.args[1], "-")
	spec := &sched.JobSpec{Name: st.args[0], Submit: st.at, GPUs: sched.Rigid(num(lo)),
		Retries: int32(num(st.keys["retries"])), NotBef: secs(st.keys["not-before"])}
	if isRange {
		spec.GPUs = sched.Range{Min: int32(num(lo)), Want: int32(num(lo)), Max: int32(num(hi))}
	}
	if st.keys["share"] == "allow" {
		spec.Share = sched.ShareAllow
	}
	for _, t := range nums(st.keys["types"]) {
		spec.Types = spec.Types.With(sched.TypeID(t))
	}
	for _, a := range nums(st.keys["after"]) {
		spec.After = append(spec.After, sched.JobID(a))
	}
	if lo, hi, ok := strings.Cut(st.keys["batch"], "-"); ok {
		spec.Batch = sched.BatchRange{Min: int32(num(lo)), Max: int32(num(hi))}
	}
	return spec
}

// Apply has nothing done: reports come from the file.
func (s *script) Apply(context.Context, sched.Plan) error { return nil }

// Now returns the time of the step played last.
func (s *script) Now() sched.Time { return s.now }

// Observe does nothing.
func (s *script) Observe(*sched.View, *sched.Event) {}

// Decide requests what the file says for this instant.
func (s *script) Decide(v *sched.View, d *sched.Desired) {
	for _, st := range s.pending {
		id := sched.JobID(num(st.args[0]))
		switch st.verb {
		case "give":
			t := d.Give(id, gpus(strings.Join(st.args[1:], ",")), sched.Reason{})
			if st.keys["at"] == "epoch" {
				t.At = sched.AtEpochEnd
			}
			t.Batch, t.Cap = int32(num(st.keys["batch"])), sched.Watts(num(st.keys["cap"]))
			for _, flag := range strings.Split(st.keys["as"], ",") {
				t.Trial = t.Trial || flag == "trial"
				if flag == "shared" || flag == "trial" {
					t.Share = sched.Shared
				}
			}
		case "reject":
			d.Reject = append(d.Reject, sched.Reject{Job: id})
		case "watch":
			d.Watch = append(d.Watch, sched.Watch{Job: id, On: st.args[1] == "on"})
		case "node-target":
			d.Nodes = append(d.Nodes, sched.NodeTarget{Node: sched.NodeID(id), State: word(st.args[1], sched.NodeGone)})
		case "pool-target":
			d.Pools = append(d.Pools, sched.PoolTarget{Pool: sched.PoolID(id), Count: int32(num(st.args[1]))})
		case "quarantine":
			d.GPUTargets = append(d.GPUTargets, sched.GPUTarget{GPU: sched.GPUID(id), Quarantined: len(st.args) < 2})
		}
	}
	s.pending = nil
	if len(s.steps) > 0 {
		d.WakeBy(s.steps[0].at)
	}
}

func (s *script) SaveJob(_ sched.JobID, b []byte) []byte { return b }
func (s *script) Format() string                         { return "script/1" }
func (s *script) SaveRest(b []byte) []byte               { return b }
func (s *script) LoadJob(sched.JobID, []byte) error      { return nil }
func (s *script) LoadRest([]byte) error                  { return nil }

// Log writes the transcript: what the engine itself did, and what became of a job.
func (s *script) Log(v *sched.View, e *sched.Event) {
	sec := e.Time.Seconds()
	switch e.Kind {
	case sched.Decided:
		fmt.Fprintf(&s.out, "%v decided job %d gpus %v", sec, e.Job, e.GPUs)
		if e.Target.At == sched.AtEpochEnd {
			fmt.Fprint(&s.out, " at epoch end")
		}
		if e.Target.Batch != 0 {
			fmt.Fprintf(&s.out, " batch %d", e.Target.Batch)
		}
		if e.Target.Share == sched.Shared {
			fmt.Fprint(&s.out, " shared")
		}
	case sched.Refused:
		fmt.Fprintf(&s.out, "%v refused job %d: %s", sec, e.Job, e.Text)
	case sched.Ordered:
		switch k := sched.ActionKind(e.Code); k {
		case sched.SetNode:
			fmt.Fprintf(&s.out, "%v set node %d %v", sec, e.Node, sched.NodeState(e.Value))
		case sched.WatchEpochs:
			fmt.Fprintf(&s.out, "%v watch job %d %v", sec, e.Job, v.Jobs[e.Job].Watched)
		case sched.Adjust:
			fmt.Fprintf(&s.out, "%v adjust job %d/%d to %v W", sec, e.Job, e.Attempt, e.Value)
		case sched.Rent:
			fmt.Fprintf(&s.out, "%v rent %v of pool %d", sec, e.Value, e.Pool)
		case sched.Start:
			fmt.Fprintf(&s.out, "%v start job %d/%d on %v", sec, e.Job, e.Attempt, v.Jobs[e.Job].GPUs)
		case sched.Stop:
			fmt.Fprintf(&s.out, "%v stop job %d/%d", sec, e.Job, e.Attempt)
		default:
			fmt.Fprintf(&s.out, "%v ordered %d job %d node %d", sec, k, e.Job, e.Node)
		}
	case sched.Moved:
		if len(e.GPUs) == 0 {
			return
		}
		switch e.Code {
		case sched.RestGPU:
			fmt.Fprintf(&s.out, "%v rest %v until %v", sec, e.GPUs, e.WorkFrom.Seconds())
		case sched.RestedGPU:
			fmt.Fprintf(&s.out, "%v rested %v", sec, e.GPUs)
		default:
			fmt.Fprintf(&s.out, "%v quarantined %v: %v %s", sec, e.GPUs, v.GPUs[e.GPUs[0]].Quarantined, e.Text)
		}
	case sched.Rejected, sched.Released:
		fmt.Fprintf(&s.out, "%v %v job %d", sec, e.Kind, e.Job)
	case sched.AttemptEnded, sched.StartFailed, sched.JobCommanded, sched.JobChanged:
		j := &v.Jobs[e.Job]
		fmt.Fprintf(&s.out, "%v %v job %d: %v, attempt %v %s", sec, e.Kind, e.Job, j.State, j.Attempt, j.Outcome)
	case sched.NodeJoined, sched.NodeLeft, sched.NodeChanged:
		if e.Time == 0 {
			return
		}
		n := &v.Nodes[e.Node]
		fmt.Fprintf(&s.out, "%v %v node %d: %v, generation %d, GPUs from %d", sec, e.Kind, e.Node, n.State,
			n.Generation, n.First)
	default:
		return
	}
	s.out.WriteString("\n")
}

// play runs the script under the checker and ends with how every job stands.
func (s *script) play() (out string) {
	s.state = engine.NewState(eventlog.Header{ShareLimit: s.share, Pools: s.pools})
	defer func() {
		if p := recover(); p != nil {
			out = fmt.Sprintf("%spanic: %v\n", s.out.String(), p)
		}
	}()
	if err := engine.Run(context.Background(), s.state, s, s,
		engine.Options{Sinks: []eventlog.Sink{s, &checker{scripted: true}}}); err != nil && !errors.Is(err, io.EOF) {
		return err.Error()
	}
	for id := range s.state.View().Jobs {
		j := &s.state.View().Jobs[id]
		fmt.Fprintf(&s.out, "job %d %v %v gpus %v target %v next %v attempts %d preempted %d moved %d resized %d "+
			"failed %d batch %d trial %v\n", id, j.State, j.Outcome,
			j.GPUs, j.Target, next(j), j.Attempts, j.Preemptions, j.Migrations, j.Resizes, j.Failures, j.Batch, j.Trial)
	}
	for i := range s.state.View().Pools {
		p := &s.state.View().Pools[i]
		fmt.Fprintf(&s.out, "pool %d target %d ordered %d nodes %d spent %.6f\n", i, p.Target, p.Ordered, p.Nodes,
			p.SpentNow(s.state.View().Now))
	}
	fmt.Fprintf(&s.out, "live %d\n", s.state.Live())
	return s.out.String()
}

// next returns the set that waits for an epoch end.
func next(j *sched.Job) []sched.GPUID {
	if j.Later() == nil {
		return nil
	}
	return j.Later().GPUs
}

// Ensure that each script of testdata/core is logged as it was when someone last read and understood it.
func TestCore(t *testing.T) {
	files, err := filepath.Glob("testdata/core/*.txt")
	if err != nil || len(files) == 0 {
		t.Fatalf("%d scripts, %v", len(files), err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txt"), func(t *testing.T) {
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			head, want, _ := strings.Cut(string(text), "----\n")
			if !strings.HasPrefix(head, "# Ensure that ") {
				t.Error("the first line does not say what the script ensures")
			}
			s, err := parseScript(head)
			if err != nil {
				t.Fatal(err)
			}
			got := s.play()
			if _, broken, found := strings.Cut(got, "panic: after "); found { // of the checker: no script may want that
				t.Fatalf("after %s", broken)
			}
			if *rewriteCore {
				if err := os.WriteFile(file, []byte(head+"----\n"+got), 0o644); err != nil {
					t.Fatal(err)
				}
			} else if got != want {
				t.Errorf("logged\n%s\nwant\n%s", got, want)
			}
		})
	}
}
