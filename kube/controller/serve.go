package controller

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"log/slog"
	"math"
	"os"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/selection"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
	"k8s.io/client-go/tools/reference"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/healthz"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/metrics"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/trainyard/trainyard/host"
	"github.com/trainyard/trainyard/kube/api/v1alpha1"
	"github.com/trainyard/trainyard/kube/driver"
	driverattempts "github.com/trainyard/trainyard/kube/driver/attempts"
	driverobserver "github.com/trainyard/trainyard/kube/driver/observer"
	"github.com/trainyard/trainyard/kube/logs"
	"github.com/trainyard/trainyard/kube/provider"
	"github.com/trainyard/trainyard/sched"
)

// ServeOptions say how a process takes part.
type ServeOptions struct {
	Namespace string // of the lease and of the controller's ConfigMaps
	Elect     bool   // others may lead; false = this process is the only one
	// Lease is how long a leader that says nothing keeps the lead, in whole seconds: after a crash nothing is decided
	// for so long.
	Lease   time.Duration
	Metrics string // address of the metrics; "" = none
	Health  string // address of /healthz, which fails once decisions are stuck, and /readyz; "" = none
	Observe bool   // decides and reports, and writes nothing
	// RecordSchema is that in which records of jobs are written, as record.Read knows them; 0: the newest.
	RecordSchema int
	Version      string
	Log          *slog.Logger
	Record       io.Writer // see Options
	// PriorityClass is that of pods whose template names none; "" = none.
	PriorityClass string
	Report        time.Duration // how often progress is reported, at most; 0 = the driver's default
	// Host is called with what answers those who ask how jobs stand, see Options, and with the name under which this
	// process holds the lease, "" where there is no election; nil: no one asks.
	Host func(h *host.Host, leader string)

	pulse *pulse // of the leader
}

// Scheme knows all types that are used.
func Scheme() *runtime.Scheme {
	s := runtime.NewScheme()
	if err := clientgoscheme.AddToScheme(s); err != nil {
		panic(err) // the types of Kubernetes contradict each other
	}
	if err := v1alpha1.AddToScheme(s); err != nil {
		panic(err)
	}
	return s
}

// Serve takes part in the lead of the cluster until ctx ends.
func Serve(ctx context.Context, config *rest.Config, o ServeOptions) error {
	config = rest.CopyConfig(config)
	if o.Observe { // a lease is a write, too
		o.Elect = false
	}
	config.QPS = -1 // the number of writers bounds what is under way
	ctrl.SetLogger(logr.FromSlogHandler(o.Log.Handler()))
	lock, err := o.lock(config)
	if err != nil {
		return err
	}
	if lock != nil { // which has a client of its own
		guarded(config, lock.held)
	}
	m, err := ctrl.NewManager(config, o.manager(lock))
	if err != nil {
		return fmt.Errorf("controller: %w", err)
	}
	if err := defined(m.GetRESTMapper()); err != nil {
		return err
	}
	o.pulse = &pulse{clock: time.Now}
	figures := NewMetrics()
	if o.Metrics != "" {
		if err := metrics.Registry.Register(figures); err != nil {
			return fmt.Errorf("controller: metrics: %w", err)
		}
		defer metrics.Registry.Unregister(figures)
	}
	if o.Health != "" {
		if err := m.AddHealthzCheck("decisions", o.pulse.check); err != nil {
			return err
		}
		if err := m.AddReadyzCheck("ping", healthz.Ping); err != nil {
			return err
		}
	}
	if err := m.Add(manager.RunnableFunc(
		func(ctx context.Context) error { return lead(ctx, m, lock, figures, o) })); err != nil {
		return err
	}
	return m.Start(ctx)
}

// lock is the lease that leaders hold; nil where there is no election.
func (o *ServeOptions) lock(config *rest.Config) (*lease, error) {
	if !o.Elect {
		return nil, nil
	}
	host, err := os.Hostname()
	if err != nil {
		return nil, err
	}
	id := resourcelock.ResourceLockConfig{Identity: fmt.Sprintf("%s-%d-%d", host, os.Getpid(), time.Now().UnixNano())}
	in, err := resourcelock.NewFromKubeconfig(resourcelock.LeasesResourceLock, o.Namespace, "trainyard", id, config,
		o.Lease*2/3)
	if err != nil {
		return nil, fmt.Errorf("controller: lease: %w", err)
	}
	return &lease{Interface: in, lasts: o.Lease}, nil
}

// manager are the options of the manager.
func (o *ServeOptions) manager(lock *lease) ctrl.Options {
	renew, retry := o.Lease*2/3, o.Lease/5
	ours, err := labels.NewRequirement(v1alpha1.LabelJob, selection.Exists, nil)
	if err != nil {
		panic(err)
	}
	lean := cache.TransformStripManagedFields()
	if !o.Observe { // who looks on may not read again what is left out
		lean = driver.Lean
	}
	m := ctrl.Options{
		Scheme: Scheme(), Metrics: metricsserver.Options{BindAddress: cmp.Or(o.Metrics, "0")},
		HealthProbeBindAddress: o.Health,
		LeaderElection:         o.Elect, LeaderElectionReleaseOnCancel: true, LeaseDuration: &o.Lease,
		RenewDeadline: &renew,
		RetryPeriod:   &retry,
		Cache: cache.Options{DefaultTransform: lean,
			ByObject: map[client.Object]cache.ByObject{&corev1.Pod{}: {Label: labels.NewSelector().Add(*ours)}}},
	}
	if lock != nil {
		m.LeaderElectionResourceLockInterface = lock
	}
	return m
}

// lead decides until ctx ends.
func lead(ctx context.Context, m ctrl.Manager, lock *lease, figures *Metrics, o ServeOptions) error {
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	held, leader := func() error { return ctx.Err() }, ""
	if lock != nil {
		held, leader = lock.held, lock.Identity()
		lock.work(true)
		defer lock.work(false)
	}
	pods, err := logs.Client(m.GetConfig())
	if err != nil {
		return fmt.Errorf("controller: logs: %w", err)
	}
	follower := logs.New(pods) // one for all starts: its connections stay
	reported := newReporter(m.GetClient(), o.Log)
	if !o.Observe {
		go reported.run(ctx)
	}
	var asked func(*host.Host)
	if o.Host != nil {
		asked = func(h *host.Host) { o.Host(h, leader) }
	}
	c := New(Options{Client: m.GetClient(), Reader: m.GetAPIReader(), Namespace: o.Namespace, Version: o.Version,
		Clock: time.Now, Log: o.Log,
		Record: o.Record, RecordSchema: o.RecordSchema, Held: held, Observe: o.Observe, Metrics: figures,
		Host: asked, report: reported.report,
		Driver: func(s Setup) (Driver, error) { return drive(m, s, held, follower, reported, o) }})
	return c.Run(ctx)
}

// drive makes the driver of a loaded state.
func drive(m ctrl.Manager, s Setup, held func() error, follower driverattempts.Follower, reported *reporter,
	o ServeOptions) (Driver, error) {
	q := driverobserver.NewQueue()
	if err := q.Watch(s.Context, m.GetCache(), s.Policy.Mode); err != nil {
		return nil, err
	}
	leader := s.Leader
	if o.Observe { // whoever leads
		leader = math.MaxInt64
	}
	if err := s.Inputs.watch(s.Context, m.GetCache(), leader, s.Stop); err != nil {
		return nil, err
	}
	report := func(about client.Object, reason, text string) {
		if o.Observe {
			o.Log.Info("would report", "about", client.ObjectKeyFromObject(about).String(), "reason", reason, "text",
				text)
			return
		}
		ref, err := reference.GetReference(m.GetScheme(), about)
		if err != nil {
			o.Log.Warn("no one knows what this is about", "reason", reason, "text", text, "error", err)
			return
		}
		reported.report(note{about: *ref, kind: corev1.EventTypeWarning, reason: reason, text: text})
	}
	d := driver.Options{Client: m.GetClient(), Reader: m.GetAPIReader(), Queue: q, Origin: s.Origin,
		Mode:        s.Policy.Mode,
		DeviceClass: s.Policy.DeviceClass, StartTimeout: s.Policy.StartTimeout.Duration, Types: s.Type,
		NewType: s.NewType, Lease: held, Observe: o.Observe, Log: o.Log, Event: report,
		Provider: provider.New(m.GetClient(), m.GetAPIReader(), time.Now), PriorityClass: o.PriorityClass,
		Every: o.Report, Deaf: s.Policy.Progress == "none", Limits: &s.Limits,
		Bad: s.Bad, Mended: func(job string) { s.Stop(fmt.Errorf("%w: the record of %s is another", ErrReload, job)) }}
	if !o.Observe {
		d.Delayed, d.Ask, d.Held = s.Delayed, true, s.Held
		if err := q.WatchSpaces(s.Context, m.GetCache()); err != nil {
			return nil, err
		}
	}
	if s.Policy.Progress == "logs" && !o.Observe {
		d.Follower = follower
	}
	return &beating{driver.New(d), o.pulse}, nil
}

var _ sched.Driver = (*driver.Driver)(nil)
