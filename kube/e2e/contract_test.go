package e2e

import (
	"context"
	"strings"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	contract "github.com/trainyard/trainyard/api"
	"github.com/trainyard/trainyard/api/apitest"
	"github.com/trainyard/trainyard/api/server"
	"github.com/trainyard/trainyard/host"
	"github.com/trainyard/trainyard/metrics"
	"github.com/trainyard/trainyard/sched"

	"github.com/trainyard/trainyard/kube/api/v1alpha1"
	"github.com/trainyard/trainyard/kube/controller"
	"github.com/trainyard/trainyard/kube/internal/fakenode"
)

// asked is the host of a controller. It keeps no books of its own: figures of a cluster are those of the controller.
type asked struct{ *host.Host }

func (asked) Result() (metrics.Result, []metrics.Job) { return metrics.Result{}, nil }

// leading names the replica that decides.
type leading struct {
	apitest.ReadSite
	leader string
}

func (s leading) Describe(doc *contract.Info) { doc.Leader = s.leader }

// Ensure that the host of a controller keeps the contract of the API, as far as it is asked how jobs and nodes stand,
// and refuses the rest as the contract says; and that the replica that decides is named as its lease does.
func TestContract(t *testing.T) {
	t.Parallel()
	on, done := fakenode.Script(0, 0, 0), fakenode.Script(time.Second, 0, 0)
	r := newRig(t, 2, fakenode.Options{GPUs: 4, Run: func(p *fakenode.Process) int {
		if strings.HasPrefix(p.Pod.Name, "done") {
			return done(p)
		}
		return on(p)
	}}, v1alpha1.SchedulerPolicySpec{System: "fifo-skip"})
	type led struct {
		host   *host.Host
		leader string
	}
	hosts := make(chan led, 1)
	r.serve(func(o *controller.ServeOptions) {
		o.Host = func(h *host.Host, leader string) {
			hosts <- led{h, leader}
		}
		o.Elect, o.Lease = true, time.Hour // it is not lost, however slow the machine
	})
	r.create(r.job("train", 2))
	r.until("train", v1alpha1.Running)
	r.create(r.job("done", 1))
	r.until("done", v1alpha1.Succeeded)
	r.create(r.job("rests", 1, func(j *v1alpha1.TrainingJob) { j.Spec.Suspend = true }))
	eventually(t, "the suspended job says so", func() bool {
		st := r.status("rests")
		return st.Phase == v1alpha1.Pending && st.Reason == "suspended by its user"
	})
	r.create(r.job("wide", 8))
	r.until("wide", v1alpha1.Pending)
	first := <-hosts
	h, site := first.host, leading{leader: first.leader}
	var lease coordinationv1.Lease
	must(t, r.api.Get(t.Context(), client.ObjectKey{Namespace: "trainyard", Name: "trainyard"}, &lease))
	eventually(t, "the host knows all jobs", func() (all bool) {
		if err := h.Look(t.Context(), func(v *sched.View) { all = len(v.Jobs) == 4 }); err != nil {
			t.Fatal(err)
		}
		return all
	})
	apitest.Run(t, func(t *testing.T) apitest.World {
		answers, err := server.New(server.Options{Host: asked{h}, Site: site, Meter: server.NewMeter(),
			Version: "test"})
		if err != nil {
			t.Fatal(err)
		}
		w := apitest.World{Client: apitest.Serve(t, answers)("root"), Kind: contract.Cluster, Running: "lab.train",
			Name: "lab.train", Waiting: "lab.wide", Done: "lab.done", Node: "node-000", Width: 2}
		apitest.Eventually(t, "running", func(ctx context.Context) bool {
			j, bad := w.Client.Job(ctx, w.Running)
			return bad == nil && j.State == "running"
		})
		if j, bad := w.Client.Job(t.Context(), "lab.rests"); bad != nil || j.State != "held" ||
			j.Why != "suspended by its user" {
			t.Errorf("%+v, %v, want a job that is held by its user", j, bad)
		}
		info, err := w.Client.Info(t.Context())
		if leads := lease.Spec.HolderIdentity; err != nil || leads == nil || *leads == "" || info.Leader != *leads {
			t.Errorf("%+v, %v, want the leader of %+v", info, err, lease.Spec)
		}
		return w
	})
}
