package controller

import (
	"context"
	"log/slog"
	"runtime"
	"testing"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/trainyard/trainyard/kube/api/v1alpha1"
)

// BenchmarkForgotten is what jobs cost that are done and whose objects are deleted: memory, the time to start, and the
// time of a batch.
func BenchmarkForgotten(b *testing.B) {
	for name, jobs := range map[string]int32{"none": 0, "200000": 200_000} {
		api := apiWith("tiresias-las", v1alpha1.Count, nodeOf("a")).(client.WithWatch)
		c := New(Options{Client: api, Reader: api, Namespace: "trainyard", Clock: time.Now,
			Log: slog.New(slog.DiscardHandler), Held: func() error {
				return nil
			}})
		var p v1alpha1.SchedulerPolicy
		if err := api.Get(b.Context(), client.ObjectKey{Name: PolicyName}, &p); err != nil {
			b.Fatal(err)
		}
		p.Status.Jobs = jobs
		if err := api.Status().Update(b.Context(), &p); err != nil {
			b.Fatal(err)
		}
		var l *started
		b.Run(name+"/load", func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				var err error
				if l, err = c.start(context.Background()); err != nil {
					b.Fatal(err)
				}
			}
			var m runtime.MemStats
			runtime.GC()
			runtime.ReadMemStats(&m)
			b.ReportMetric(float64(m.HeapAlloc)/(1<<20), "MiB")
		})
		b.Run(name+"/batch", func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				l.store.batch = true
				if err := l.store.EndBatch(); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
