package fakenode_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/trainyard/trainyard/kube/internal/fakenode"
)

// clients is how many pods are created at once: as many as keep two processors busy.
const clients = 16

// BenchmarkPinned fills 100 nodes of 8 GPUs with 400 pods of two pinned GPUs each, from no claim to all running. A
// naive client did 90 per second on two processors.
func BenchmarkPinned(b *testing.B) {
	benchmark(b, "bench-pinned", func(w *world, name, node string, i, j int) {
		w.pinned(name, node, i, j)
		w.create(w.pod(name, node, name))
	})
}

// BenchmarkDirect does the same without the scheduler. A naive client did 138 per second on two processors.
func BenchmarkDirect(b *testing.B) {
	benchmark(b, "bench-direct", func(w *world, name, node string, i, j int) {
		w.claim(name, 2, "")
		w.direct(name, w.create(w.unscheduled(name, node, name)), node, i, j)
	})
}

func benchmark(b *testing.B, prefix string, place func(w *world, name, node string, i, j int)) {
	const nodes, gpus = 100, 8
	round := 0
	for b.Loop() {
		b.StopTimer()
		round++
		w := open(b, fmt.Sprint(prefix, round), nodes, fakenode.Options{GPUs: gpus})
		b.StartTimer()
		var group sync.WaitGroup
		limit := make(chan struct{}, clients)
		for k := range nodes * gpus / 2 {
			limit <- struct{}{}
			group.Go(func() {
				defer func() { <-limit }()
				i := k % (gpus / 2)
				place(w, fmt.Sprint("job-", k), w.nodes[k/(gpus/2)], gpus-1-i, i)
			})
		}
		group.Wait()
		w.untilAllRun(nodes * gpus / 2)
	}
	b.ReportMetric(float64(b.N*nodes*gpus/2)/b.Elapsed().Seconds(), "placements/s")
}

// untilAllRun waits until n pods are reported as running.
func (w *world) untilAllRun(n int) {
	w.Helper()
	ctx, cancel := context.WithTimeout(w.Context(), limit)
	defer cancel()
	for {
		pods, err := w.client.CoreV1().Pods(w.ns).List(ctx,
			metav1.ListOptions{FieldSelector: "status.phase=" + string(corev1.PodRunning)})
		w.must(err)
		if len(pods.Items) >= n {
			return
		}
		time.Sleep(50 * time.Millisecond)
	}
}
