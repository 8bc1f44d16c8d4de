package fakenode

import (
	"context"
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// pod is one pod that a node has heard of. A goroutine of its own, live, leads it through its life.
type pod struct {
	fleet *Fleet
	node  *node
	ctx   context.Context // done when the node is lost
	first *corev1.Pod     // as first heard: what never changes is read here
	wake  chan struct{}   // holds one: something that matters to the pod has changed
	at    *corev1.Pod     // as last heard; guarded by the fleet's mu
	gone  bool            // not in the API any more; guarded by the fleet's mu

	started metav1.Time // of the process
	journal *journal    // of what it writes
}

func (p *pod) key() string { return p.first.Namespace + "/" + p.first.Name }

// podSeen takes a pod's news to its node, unless that is deaf.
func (f *Fleet) podSeen(object *corev1.Pod) {
	f.mu.Lock()
	defer f.mu.Unlock()
	n := f.nodes[object.Spec.NodeName]
	if n == nil || n.silent || n.lost {
		return
	}
	p := f.pods[object.UID]
	if p == nil {
		p = &pod{fleet: f, node: n, ctx: n.ctx, first: object, at: object, wake: make(chan struct{}, 1),
			journal: newJournal()}
		f.pods[object.UID] = p
		f.wait.Go(p.live)
	}
	p.at = object
	p.nudge()
}

// podGone takes the end of a pod to its node, unless that is deaf.
func (f *Fleet) podGone(object *corev1.Pod) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if p := f.pods[object.UID]; p != nil && !p.node.silent {
		p.gone = true
		delete(f.pods, object.UID)
		p.nudge()
	}
}

// claimSeen wakes the pods that a claim is reserved for.
func (f *Fleet) claimSeen(claim *resourcev1.ResourceClaim) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, r := range claim.Status.ReservedFor {
		if p := f.pods[r.UID]; p != nil {
			p.nudge()
		}
	}
}

// nudge has the pod look again. Callers hold mu.
func (p *pod) nudge() {
	select {
	case p.wake <- struct{}{}:
	default:
	}
}

// live leads the pod from being bound to being gone.
func (p *pod) live() {
	switch phase := p.first.Status.Phase; {
	case phase == corev1.PodPending, phase == corev1.PodRunning && p.fleet.options.Quiet:
		if gpus, ok := p.prepare(); ok {
			p.run(gpus)
		}
	case phase == corev1.PodRunning:
		// A process of before the node was lost: no one knows how it ended.
		p.report(p.ctx, p.ended(killed, "ContainerStatusUnknown"))
	}
	p.leave()
}

// prepare waits until the pod may start, takes its GPUs and waits for the delay of the start. It says no where the pod
// is deleted before.
func (p *pod) prepare() (gpus []string, ok bool) {
	f, reported := p.fleet, ""
	for f.audible(p.ctx, p.node) {
		gpus, why, stopping := f.tryStart(p)
		if stopping {
			return nil, false
		}
		if why == "" {
			f.mu.Lock()
			delay := f.options.StartDelay + p.node.slow
			f.mu.Unlock()
			if delay > 0 && !p.pause(delay) {
				f.free(p)
				return nil, false
			}
			return gpus, true
		}
		if why != reported {
			reported = why
			p.report(p.ctx, p.waiting(why))
		}
		select {
		case <-p.wake:
		case <-p.ctx.Done():
		}
	}
	return nil, false
}

// tryStart takes the GPUs of a pod, or says why it cannot start yet, or that it is to stop.
func (f *Fleet) tryStart(p *pod) (gpus []string, why string, stopping bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if p.gone || p.at.DeletionTimestamp != nil || p.ctx.Err() != nil {
		return nil, "", true
	}
	if p.node.fails != "" {
		return nil, failing + p.node.fails, false
	}
	requests, why := f.requests(p)
	if strings.HasPrefix(why, noDevice) && !p.node.hidden {
		f.violate("pod %s is to have what its node %s has not: %s", p.key(), p.node.name, why)
	}
	if why != "" {
		return nil, why, false
	}
	return f.take(p, requests), "", false
}

// pause waits, and says whether the pod is still to start afterwards.
func (p *pod) pause(d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	for {
		select {
		case <-timer.C:
			return true
		case <-p.wake:
			if _, stopping := p.grace(); stopping {
				return false
			}
		case <-p.ctx.Done():
			return false
		}
	}
}

// grace says whether the pod is to stop, and how long its process has from SIGTERM on.
func (p *pod) grace() (d time.Duration, stopping bool) {
	p.fleet.mu.Lock()
	defer p.fleet.mu.Unlock()
	seconds := int64(30)
	if s := p.first.Spec.TerminationGracePeriodSeconds; s != nil {
		seconds = *s
	}
	if s := p.at.DeletionGracePeriodSeconds; s != nil {
		seconds = *s
	}
	return time.Duration(seconds) * time.Second, p.gone || p.at.DeletionTimestamp != nil
}

// run runs the process to its end, and reports. The GPUs are free before the end is reported.
func (p *pod) run(gpus []string) {
	p.started = metav1.Now()
	ctx, cancel := context.WithCancel(p.ctx)
	reported := make(chan struct{})
	go func() {
		defer close(reported)
		if p.first.Status.Phase == corev1.PodPending {
			// ctx keeps it from being sent, but does not cut it off on its way: it must not arrive after the end.
			p.report(ctx, func(context.Context) error { return p.running(p.ctx) })
		}
	}()
	p.fleet.count(1)
	code := p.execute(gpus)
	p.journal.end()
	p.fleet.count(-1)
	p.fleet.free(p)
	cancel() // a report that was not heard yet is out of date
	<-reported
	p.report(p.ctx, p.ended(code, ""))
}

// execute runs the process to its end and returns the exit code.
func (p *pod) execute(gpus []string) int {
	term, kill, exit := make(chan struct{}), make(chan struct{}), make(chan int, 1)
	go func() {
		exit <- p.fleet.options.Run(&Process{Pod: p.first, GPUs: gpus, Term: term, Kill: kill, journal: p.journal})
	}()
	var reported time.Time // when SIGTERM was sent
	var deadline <-chan time.Time
	for {
		grace, stopping := p.grace()
		if stopping && reported.IsZero() {
			reported = time.Now()
			close(term)
		}
		if stopping {
			deadline = time.After(time.Until(reported.Add(grace))) // a second deletion may have shortened it
		}
		select {
		case code := <-exit:
			return code
		case <-p.wake:
			continue
		case <-deadline:
		case <-p.ctx.Done():
		}
		close(kill)
		<-exit
		return killed
	}
}

// leave waits until the pod is deleted, and takes it out of the API.
func (p *pod) leave() {
	for {
		p.fleet.mu.Lock()
		gone, deleted := p.gone, p.at.DeletionTimestamp != nil
		p.fleet.mu.Unlock()
		if gone {
			return
		}
		if deleted {
			p.report(p.ctx, p.remove)
			return
		}
		select {
		case <-p.wake:
		case <-p.ctx.Done():
			return
		}
	}
}

// free gives the pod's GPUs back, and wakes those on the node that wait for some.
func (f *Fleet) free(p *pod) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.books.release(p, f.options.GPUs)
	if f.options.Plugin {
		f.nudgeAll(p.node)
	}
}

// nudgeAll has all pods of a node look again. Callers hold mu.
func (f *Fleet) nudgeAll(n *node) {
	for _, p := range f.pods {
		if p.node == n {
			p.nudge()
		}
	}
}

// count keeps the number of processes.
func (f *Fleet) count(by int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.running += by
}

// report insists on reporting something, until ctx is done.
func (p *pod) report(ctx context.Context, what func(context.Context) error) {
	p.fleet.insist(ctx, p.node, what)
}

// address returns an address for a pod that no other has.
func (f *Fleet) address() string {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.addresses++
	n := f.addresses
	return fmt.Sprintf("10.%d.%d.%d", 128+n>>16&127, n>>8&255, n&255)
}
