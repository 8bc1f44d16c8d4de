package controller

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/trainyard/trainyard/eventlog"
	"github.com/trainyard/trainyard/host"
	"github.com/trainyard/trainyard/kube/api/v1alpha1"
	driverobserver "github.com/trainyard/trainyard/kube/driver/observer"
	"github.com/trainyard/trainyard/kube/record"
	"github.com/trainyard/trainyard/memory"
	"github.com/trainyard/trainyard/sched"
	"github.com/trainyard/trainyard/system"
	"github.com/trainyard/trainyard/system/key"
)

// PolicyName is the name of the one policy there is.
const PolicyName = "default"

// loaded is what the API has, ready to go on from.
type loaded struct {
	header  eventlog.Header
	from    *eventlog.Beginning // the state as it was read
	build   func() (sched.Decider, error)
	decider sched.Decider // built already; nil once it is taken
	origin  time.Time
	policy  *v1alpha1.SchedulerPolicy
	said    string // the policy's message, as read
	was     string // who decided until now
	jobs    []record.Job
	written map[sched.JobID]written
	bad     quarantine
	nodes   *inventory
	limits  v1alpha1.Limits // of the policy, as far as they can be
	gone    int             // jobs that were deleted while no one led
	renewed string          // why the system starts again; "" = it goes on
	joins   []string        // nodes that scores were numbered for as if they joined first, in this order
	scored  map[string]bool // nodes that profiles name
	inputs  inputs
	files   files           // that the settings name
	blobs   map[string]blob // of which nothing is known but the version

	head        *record.Head // of the cluster; nil: there was none, or a whole
	shardLeader int64        // the last that wrote a shard of the cluster
	side        int          // of the chunks of the memory
	lost        string       // why nodes of the cluster are lost; "": none is
}

// version returns that of the last complete batch; 0: none is known.
func (l *loaded) version() uint64 {
	if l.policy == nil {
		return 0
	}
	return uint64(l.policy.Status.Version)
}

// led returns how many have led before this one; 0: it is not known, as the policy is new.
func (l *loaded) led() int64 {
	if l.version() == 0 {
		return 0
	}
	return l.policy.Status.Leader
}

// load takes the lead, which has all that earlier leaders write refused, and reads the state that they left.
func (c *Controller) load(ctx context.Context) (*loaded, error) {
	policy, err := c.lead(ctx)
	if err != nil {
		return nil, err
	}
	l := &loaded{origin: policy.Status.Origin.Time, policy: policy, said: policy.Status.Message,
		was: policy.Status.System, blobs: make(map[string]blob)}
	switch err = c.records(ctx, l); {
	case errors.Is(err, errRecord):
		return nil, c.undecided(ctx, policy, err)
	case err != nil:
		return nil, err
	}
	jobs := l.jobs
	cl, err := c.cluster(ctx, l)
	if errors.Is(err, errCluster) {
		return nil, c.undecided(ctx, policy, err)
	}
	if err != nil {
		return nil, err
	}
	if failed := c.findAgain(ctx, l, &cl); failed != nil {
		return nil, failed
	}
	if lost := c.outrank(ctx, policy, jobs, l.shardLeader); lost != nil {
		return nil, lost
	}
	v, mended, err := record.View(jobs, cl, sched.Time(policy.Status.Now), uint64(policy.Status.Version),
		int(policy.Status.Jobs))
	if err != nil { // its nodes contradict its GPUs: of the jobs nothing of the kind is left
		return nil, c.undecided(ctx, policy, spoilt{ClusterMap, err})
	}
	for _, what := range mended {
		c.o.Log.Warn("the last batch of an earlier leader is mended", "what", what)
	}
	l.gone = gone(&policy.Status, jobs)
	return l, c.decide(ctx, l, v)
}

// lead writes the number of a new leader. A cluster without a policy gets one, as its definition fills it in: to apply
// one in the same file as the definition fails, since no one knows it by then.
func (c *Controller) lead(ctx context.Context) (*v1alpha1.SchedulerPolicy, error) {
	for {
		if lost := c.o.Held(); lost != nil && !c.o.Observe {
			return nil, fmt.Errorf("%w: %w", ErrFenced, lost)
		}
		var p v1alpha1.SchedulerPolicy
		err := c.o.Reader.Get(ctx, types.NamespacedName{Name: PolicyName}, &p)
		if apierrors.IsNotFound(err) {
			p = DefaultPolicy()
			if err = nil; !c.o.Observe {
				err = c.o.Client.Create(ctx, &p)
			}
			if apierrors.IsAlreadyExists(err) {
				continue
			}
		}
		if err != nil {
			return nil, fmt.Errorf("controller: policy: %w", err)
		}
		if is := p.Status.Schema; is > record.JobSchema {
			return nil, newer(fmt.Errorf("records of schema %d, want %d to %d", is, record.OldJobSchema,
				record.JobSchema))
		}
		p.Status.Leader++
		if p.Status.Origin == nil {
			origin, unread := c.origin(ctx)
			if unread != nil {
				return nil, unread
			}
			p.Status.Origin = &origin
		}
		if c.o.Observe {
			return &p, nil
		}
		if err = c.o.Client.Status().Update(ctx, &p); err == nil {
			return &p, nil
		}
		if !apierrors.IsConflict(err) {
			return nil, fmt.Errorf("controller: policy: %w", err)
		}
	}
}

// outrank gives a leader a higher number than those who wrote the records have, and most, as it has not where the
// policy was deleted that they led by: who finds a record of a higher one takes itself to be replaced.
func (c *Controller) outrank(ctx context.Context, p *v1alpha1.SchedulerPolicy, jobs []record.Job, most int64) error {
	for i := range jobs {
		most = max(most, jobs[i].Leader)
	}
	if p.Status.Leader > most || c.o.Observe {
		return nil
	}
	p.Status.Leader = most + 1
	if err := c.o.Client.Status().Update(ctx, p); err != nil {
		return fmt.Errorf("controller: policy: %w", err)
	}
	return nil
}

// origin is the instant that is time 0 where the policy does not say: that of the cluster, if the policy before this
// one was deleted, as the times of jobs count from it.
func (c *Controller) origin(ctx context.Context) (metav1.Time, error) {
	cl, err := c.cluster(ctx, &loaded{blobs: make(map[string]blob)})
	if errors.Is(err, errCluster) {
		err = fmt.Errorf("%w: %w", host.ErrUndecided, err)
	}
	if err != nil || !cl.Origin.IsZero() {
		return metav1.NewTime(cl.Origin), err
	}
	return metav1.NewTime(c.o.Clock().Truncate(time.Second)), nil
}

// DefaultPolicy is the policy of a cluster that has none yet: what its definition fills in.
func DefaultPolicy() (p v1alpha1.SchedulerPolicy) {
	p.Name = PolicyName
	p.Spec = v1alpha1.SchedulerPolicySpec{System: system.Default, Mode: v1alpha1.Pinned, DeviceClass: "gpu.nvidia.com",
		StartTimeout: metav1.Duration{Duration: 10 * time.Minute}, Progress: "logs",
		Limits: v1alpha1.Limits{Grace: metav1.Duration{Duration: 10 * time.Minute}, JobBytes: 64 << 10,
			JobsPerNamespace: 10_000},
		TTLAfterFinished: "168h"}
	return p
}

// written is what the object of a job has in addition to the record.
type written struct {
	version    string
	said       string
	reason     string
	memory     []byte
	lost       time.Duration
	conditions []metav1.Condition
}

// gone returns how many jobs that were not done at the last complete batch are not there any more: their records went
// with them.
func gone(s *v1alpha1.SchedulerPolicyStatus, jobs []record.Job) int {
	there := 0
	for i := range jobs {
		j := &jobs[i]
		// else it came, or was done, in that batch
		if int(j.ID) < int(s.Jobs) && (j.Job.State != sched.Done || j.Version > uint64(s.Version)) {
			there++
		}
	}
	return max(int(s.Running+s.Waiting)-there, 0)
}

// blob reads a ConfigMap of ours; nil if there is none.
func (c *Controller) blob(ctx context.Context, l *loaded, name string) ([]byte, error) {
	entries, err := c.entries(ctx, l, name)
	return entries[blobKey], err
}

// entries reads what a ConfigMap of ours has; nil if there is none. It notes the version, which another's later write
// will change.
func (c *Controller) entries(ctx context.Context, l *loaded, name string) (map[string][]byte, error) {
	var m corev1.ConfigMap
	err := c.o.Reader.Get(ctx, types.NamespacedName{Namespace: c.o.Namespace, Name: name}, &m)
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("controller: config map %s: %w", name, err)
	}
	l.blobs[name] = blob{version: m.ResourceVersion}
	return m.BinaryData, nil
}

// decide makes the header of what goes on from v, and the system that decides.
func (c *Controller) decide(ctx context.Context, l *loaded, v sched.View) error {
	p := l.policy
	in, err := c.inventory(ctx, p.Spec.Mode)
	if err != nil {
		return err
	}
	l.nodes = in
	l.limits = p.Spec.Limits
	l.limits.PriorityClasses = c.priorityClasses(ctx, l.limits.PriorityClasses, &in.wrong)
	l.header = in.header(p, &v)
	l.header.Version = c.o.Version
	l.header.Since = since(l.was, l.header.System)
	l.joins, l.scored, l.inputs = in.joins(&v, c.skipped), in.scored(), in.inputs
	for _, what := range in.wrong.profiles {
		c.o.Log.Warn("a GPUProfile is wrong in part", "what", what)
	}
	c.judgePools(ctx, in)
	l.inputs.add(p)
	known, read, wrong := c.known(ctx, &p.Spec, in.scores(in.numbered(&v, l.joins), l.header.GPUs))
	if errors.Is(wrong, errUnanswered) {
		return wrong
	}
	l.files = read
	l.build = func() (sched.Decider, error) {
		if wrong != nil {
			return nil, wrong
		}
		h := l.header
		h.Settings = maps.Clone(h.Settings)
		sys, failed := system.Live(&h, known)
		l.header = h
		return sys.Decider, failed
	}
	if l.decider, err = l.build(); errors.Is(err, system.ErrBudget) {
		err = fmt.Errorf("%w; set budgetGPUs of a GPUPool", err)
	}
	if err != nil {
		return c.undecided(ctx, p, err)
	}
	l.header.ShareLimit = max(l.header.ShareLimit, tenants(&v)) // of those who share already
	v.Types, v.Pools = l.header.Types, pools(v.Pools, l.header.Pools)
	l.from = &eventlog.Beginning{View: v}
	p.Status.System = systemLine(&l.header)
	return c.goOn(ctx, l)
}

// since returns the schema of logs of real jobs whose defaults a system has that goes on from the line of who decided
// until now; 0: that of today, as where it is new. What goes on does not look at classes, and has jobs share by what is
// stated, as it did, unless it is asked to.
func since(was, name string) int {
	has := func(key string) bool { return strings.Contains(was, " "+key+"=") }
	info, err := system.Named(name)
	switch {
	case was == "":
		return 0
	case !has(system.Priority.Name):
		return 2
	case err == nil && strings.HasPrefix(was, name+" ") && !has(system.ShareMemory.Name) &&
		info.All().Find(system.ShareMemory.Name) != nil:
		return 3
	}
	return 0
}

// goOn finds what the system is to remember, if it is the one that decided before, or says in l why it starts again.
func (c *Controller) goOn(ctx context.Context, l *loaded) error {
	rest, err := c.memory(ctx, l)
	switch is := l.policy.Status.System; {
	case err != nil || l.was == "":
		return err
	case l.was != is:
		l.renewed = eventlog.GivesWay(l.was, is)
	case l.lost != "": // GPUs have other numbers
		l.renewed = l.lost
	case l.gone > 0: // it waits for what has happened already
		l.renewed = fmt.Sprintf("%s went while no one led", counted(l.gone, "job"))
	case rest == nil:
		l.renewed = "what the system remembered is gone"
	default:
		l.from.Memory = &memory.Memory{Rest: rest, Jobs: make([][]byte, len(l.from.View.Jobs))}
		for id, w := range l.written {
			l.from.Memory.Jobs[id] = w.memory
		}
	}
	return nil
}

// checkKeys returns an error about the system's name, or about the first setting, in order of name, that it does not
// take.
func checkKeys(p *v1alpha1.SchedulerPolicySpec) error {
	info, err := system.Named(p.System)
	if err != nil {
		return err
	}
	return info.CheckKeys(p.Settings, key.Cluster)
}

// say writes at once what there is to be said of the policy, where that is another thing than was said. All else is
// written with the first batch.
func (c *Controller) say(ctx context.Context, l *loaded) error {
	if c.o.Observe || l.policy.Status.Message == l.said {
		return nil
	}
	now := l.policy.DeepCopy()
	now.Status.System = l.was
	if err := c.o.Client.Status().Update(ctx, now); err != nil && !apierrors.IsConflict(err) {
		return fmt.Errorf("controller: policy: %w", err)
	}
	l.policy.ResourceVersion = now.ResourceVersion
	return nil
}

// noneDecides stands before why.
const noneDecides = "no one decides: "

// undecided says in the policy why no one decides.
func (c *Controller) undecided(ctx context.Context, p *v1alpha1.SchedulerPolicy, why error) error {
	p.Status.Message = noneDecides + why.Error()
	if !c.o.Observe {
		if err := c.o.Client.Status().Update(ctx, p); err != nil && !apierrors.IsConflict(err) {
			return fmt.Errorf("controller: policy: %w", err)
		}
	}
	return fmt.Errorf("%w: %w", host.ErrUndecided, cmp.Or(c.pending(ctx, p.Status.Message), why))
}

// pending says in jobs of which no one has taken note why nothing becomes of them. Whoever decides
// writes over it.
func (c *Controller) pending(ctx context.Context, reason string) error {
	if c.o.Observe {
		return nil
	}
	err := driverobserver.EachPage(ctx, c.o.Reader, func(page *v1alpha1.TrainingJobList) error {
		for i := range page.Items {
			if err := c.leavePending(ctx, &page.Items[i], reason); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("controller: jobs: %w", err)
	}
	return nil
}

// leavePending says in a job of which no one has taken note why nothing becomes of it.
func (c *Controller) leavePending(ctx context.Context, j *v1alpha1.TrainingJob, reason string) error {
	if j.Status.Phase != "" {
		return nil
	}
	was := j.DeepCopy()
	j.Status.Phase, j.Status.Reason = v1alpha1.Pending, cut(reason, mostTrouble)
	err := c.o.Client.Status().Patch(ctx, j, client.MergeFromWithOptions(was, client.MergeFromWithOptimisticLock{}))
	// someone decides, or its user changes it: next time
	if client.IgnoreNotFound(err) != nil && !apierrors.IsConflict(err) {
		return fmt.Errorf("status of %s/%s: %w", j.Namespace, j.Name, err)
	}
	return nil
}

// tenants is how many targets share a GPU at most.
func tenants(v *sched.View) int {
	count, most := make([]int, len(v.GPUs)), 1
	for i := range v.Jobs {
		for _, g := range v.Jobs[i].Target {
			count[g]++
			most = max(most, count[g])
		}
	}
	return most
}

// pools are those of a header as they were, new ones behind them.
func pools(old []sched.Pool, specs []sched.PoolSpec) []sched.Pool {
	list := slices.Clone(old)
	for i := range specs {
		if i == len(list) {
			list = append(list, sched.Pool{Price: specs[i].Price})
		}
		list[i].Spec = specs[i]
	}
	return list
}

// systemLine names who decides, for one who compares.
func systemLine(h *eventlog.Header) string {
	line := h.System
	for _, key := range slices.Sorted(maps.Keys(h.Settings)) {
		line += " " + key + "=" + h.Settings[key]
	}
	if h.Budget > 0 {
		line += fmt.Sprintf(", %g GPUs on average", h.Budget)
	}
	return line
}

// ErrReload says that what the state was read from has changed.
var ErrReload = host.ErrReload

// Setup is what a driver of the loaded state needs.
type Setup struct {
	Context context.Context // of the run
	Header  eventlog.Header
	Leader  int64 // its number
	Origin  time.Time
	Policy  v1alpha1.SchedulerPolicySpec
	Limits  v1alpha1.Limits      // of the policy, as far as they can be
	Bad     map[types.UID]string // the records of jobs that are left out, as they cannot be read
	Inputs  inputs
	Stop    context.CancelCauseFunc // ends the run
	// Delayed notes what keeps the live attempt of a job from starting. It belongs to the goroutine of the engine.
	Delayed func(job sched.JobID, why string)
	// Held notes why a job is held, in the same way.
	Held func(job sched.JobID, why string)
	// Type numbers a kind of GPU that is known.
	Type func(product string) (sched.TypeID, error)
	// NewType ends the run, which starts again with a kind of GPU that is not known yet.
	NewType func(product string)
}

func (l *loaded) setup(ctx context.Context, stop context.CancelCauseFunc, s *store) Setup {
	types := l.header.Types
	return Setup{Context: ctx, Header: l.header, Leader: l.policy.Status.Leader, Origin: l.origin,
		Policy: l.policy.Spec, Limits: l.limits, Bad: l.bad, Inputs: l.inputs,
		Stop: stop, Delayed: s.delayed, Held: s.holds,
		Type: func(product string) (sched.TypeID, error) {
			if product == "" {
				return 0, nil
			}
			if i := slices.Index(types, product); i >= 0 {
				return sched.TypeID(i), nil
			}
			return 0, fmt.Errorf("none in the cluster, which has %s", quoted(types))
		},
		NewType: func(product string) { stop(fmt.Errorf("%w: %q is a new kind of GPU", ErrReload, product)) },
	}
}

// quoted names what a list has, for people, but for types that are forgotten.
func quoted(list []string) string {
	var names []string
	for _, name := range list {
		if name != "" {
			names = append(names, strconv.Quote(name))
		}
	}
	return strings.Join(names, ", ")
}
