package controller

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/trainyard/trainyard/kube/api/v1alpha1"
	driverpools "github.com/trainyard/trainyard/kube/driver/pools"
)

// wrong is what objects say that cannot be, for those who look after the cluster.
type wrong struct {
	profiles []string          // lines of the log
	pools    map[string]string // by pool
	classes  []string          // what the policy's limits allow, and cannot
}

// check compares profiles with the GPUs that nodes have, and pools with each other and with their nodes. A profile may
// name a node that is not there, or has no GPUs yet.
func (in *inventory) check(profiles []v1alpha1.GPUProfile, nodes []corev1.Node) wrong {
	w := wrong{pools: make(map[string]string)}
	of := make(map[string]string) // profile, by UUID
	for i := range profiles {
		p := &profiles[i]
		for g := range p.Spec.GPUs {
			uuid := p.Spec.GPUs[g].UUID
			if other, twice := of[uuid]; twice {
				w.profiles = append(w.profiles,
					fmt.Sprintf("GPUProfile %s names GPU %s, of which GPUProfile %s says as well; the last of "+
						"them holds", p.Name, uuid, other))
			}
			of[uuid] = p.Name
			if has := in.nodes[p.Name].UUIDs; len(has) > 0 && !slices.Contains(has, uuid) {
				w.profiles = append(w.profiles,
					fmt.Sprintf("GPUProfile %s names GPU %s, which the node does not have", p.Name, uuid))
			}
		}
	}
	rents := make(map[v1alpha1.ProviderRef]string)
	for i := range in.pools {
		p := &in.pools[i]
		if strings.HasPrefix(p.Status.Message, driverpools.Mistyped) {
			w.pools[p.Name] = p.Status.Message
			continue
		}
		if other, twice := rents[p.Spec.Provider]; twice && p.Spec.Provider.Kind != "fake" {
			w.pools[p.Name] = fmt.Sprintf("rents from %s %s as pool %s does; want one pool for each",
				p.Spec.Provider.Kind, p.Spec.Provider.Name, other)
			continue
		}
		rents[p.Spec.Provider] = p.Name
		for n := range nodes {
			name, gpus := nodes[n].Name, in.nodes[nodes[n].Name].GPUs
			if nodes[n].Labels[v1alpha1.LabelPool] == p.Name && gpus > 0 && gpus != int(p.Spec.GPUsPerNode) {
				w.pools[p.Name] = fmt.Sprintf("node %s has %d GPUs, the pool says %d", name, gpus, p.Spec.GPUsPerNode)
			}
		}
	}
	return w
}

// newsFor is how long the policy says that a system starts again.
const newsFor = time.Minute

// remark is what the message of the policy says, and whether that is over.
type remark struct {
	text string
	over func(context.Context, *store) bool
}

// remarks are what is to be said of a policy whose system starts again for a reason, "" where it goes on, and on a
// cluster that cannot do what the policy wants of it.
func (c *Controller) remarks(ctx context.Context, p *v1alpha1.SchedulerPolicySpec, in *inventory,
	renewed string) (list []remark) {
	if renewed != "" { // once it was there to be read it is no news any more
		since := c.o.Clock()
		list = append(list, remark{renewed, func(_ context.Context, s *store) bool {
			return s.clock().Sub(since) >= newsFor
		}})
	}
	if text, _ := c.noClass(ctx, p); text != "" { // jobs go on, whatever is in the way of asking
		list = append(list, remark{text, func(ctx context.Context, _ *store) bool {
			now, err := c.noClass(ctx, p)
			return now == "" && err == nil
		}})
	}
	if len(in.wrong.classes) > 0 {
		text := "limits.priorityClasses allows less than it names: " + strings.Join(in.wrong.classes, ", ")
		list = append(list, remark{text, func(context.Context, *store) bool { return false }}) // until it is read again
	}
	if text := in.noGPUs(p.Mode); text != "" {
		list = append(list, remark{text, func(_ context.Context, s *store) bool { return s.v.Capacity() > 0 }})
	}
	return list
}

// priorityClasses returns those of the classes that the limits of a policy name which templates may have: who is
// preempted is for the policy to say, and not for kube-scheduler. The others it notes in w.
func (c *Controller) priorityClasses(ctx context.Context, names []string, w *wrong) (list []string) {
	for _, name := range names {
		var class schedulingv1.PriorityClass
		err := c.o.Reader.Get(ctx, client.ObjectKey{Name: name}, &class)
		switch {
		case apierrors.IsNotFound(err):
			w.classes = append(w.classes, fmt.Sprintf("there is no PriorityClass %s", name))
		case err != nil:
			w.classes = append(w.classes, err.Error())
		case class.PreemptionPolicy == nil || *class.PreemptionPolicy != corev1.PreemptNever:
			w.classes = append(w.classes, fmt.Sprintf("PriorityClass %s preempts", name))
		default:
			list = append(list, name)
		}
	}
	return list
}

// noClass says why claims of a device class cannot be met; "" = nothing is known to be in the way. An error says that
// it could not be asked for.
func (c *Controller) noClass(ctx context.Context, p *v1alpha1.SchedulerPolicySpec) (text string, err error) {
	if c.o.Observe {
		return "", nil
	}
	switch p.Mode {
	case v1alpha1.Direct: // who allocates watches them
		err = c.o.Reader.List(ctx, &resourcev1.DeviceClassList{}, client.Limit(1))
		if apierrors.IsForbidden(err) {
			return "no job starts: the mode dra-direct needs the ClusterRole trainyard-direct; bind it to the " +
				"controller's account", nil
		}
		if err != nil {
			return "", err
		}
		fallthrough
	case v1alpha1.Pinned:
		err = c.o.Reader.Get(ctx, client.ObjectKey{Name: p.DeviceClass}, &resourcev1.DeviceClass{})
	}
	if apierrors.IsNotFound(err) {
		return fmt.Sprintf("no job starts: there is no DeviceClass %q; install the DRA driver that brings it, or set "+
			"deviceClass", p.DeviceClass), nil
	}
	return "", client.IgnoreNotFound(err)
}

// noGPUs says where GPUs are looked for in a mode, if there are none; "" = there are, or may be rented.
func (in *inventory) noGPUs(mode v1alpha1.Mode) string {
	for _, n := range in.nodes {
		if n.GPUs > 0 {
			return ""
		}
	}
	if len(in.pools) > 0 {
		return ""
	}
	where := "no ResourceSlice of a node names one; is the DRA driver at work?"
	switch mode {
	case v1alpha1.Visible:
		where = "no node bears the annotation " + v1alpha1.AnnotationGPUs
	case v1alpha1.Count:
		where = "no node offers nvidia.com/gpu; is the device plugin at work?"
	}
	return fmt.Sprintf("there are no GPUs: the mode is %s, and %s", mode, where)
}

// remind drops the remarks that are over.
func (s *store) remind() {
	s.remarks = slices.DeleteFunc(s.remarks, func(r remark) bool { return r.over(s.ctx, s) })
}

// message is what the policy's status says.
func message(list []remark) string {
	texts := make([]string, len(list))
	for i := range list {
		texts[i] = list[i].text
	}
	return strings.Join(texts, "; ")
}
