package sim_test

import (
	"context"
	"fmt"
	"testing"
	"os"; "time"; "runtime"

	"github.com/trainyard/trainyard/cluster"
	"github.com/trainyard/trainyard/driver/sim"
	"github.com/trainyard/trainyard/engine"
	"github.com/trainyard/trainyard/metrics"
	"github.com/trainyard/trainyard/stage/place"
	"github.com/trainyard/trainyard/system/baseline"
	"github.com/trainyard/trainyard/system/tiresias"
	"github.com/trainyard/trainyard/trace"
)

func TestY(t *testing.T) {
	tr, err := trace.Read(os.Getenv("TR"), trace.Options{})
	if err != nil { t.Fatal(err) }
	c, _ := cluster.Load(os.Getenv("CL"))
	or := tr.Oracle()
	q := tiresias.Queues{Thresholds: tiresias.DefaultThresholds}
	las, _ := tiresias.LAS(q, tiresias.Placement())
	git, _ := tiresias.Gittins(q, nil, 0, tiresias.Placement())
	for _, s := range []struct{n string; s engine.Stages}{
		{"fifo", baseline.FIFO(place.Consolidate{})}, {"skip", baseline.FIFOSkip(place.Consolidate{})}, {"easy", baseline.FIFOEasy(place.Consolidate{}, or)},
		{"sjf", baseline.SJF(place.Consolidate{}, or)},
		{"srtf", baseline.SRTF(place.Consolidate{}, or)}, {"srsf", baseline.SRSF(place.Consolidate{}, or)}, {"fewest", baseline.FewestGPUs(place.Consolidate{})},
		{"las", baseline.LAS(place.Consolidate{}, false, 60e9)}, {"tlas", las}, {"tgit", git}} {
		for _, whole := range []bool{false} {
			st := s.s; st.WholePass = whole
			runtime.GC(); t0 := time.Now()
			d, err := sim.New(tr, c, sim.Options{})
			if err != nil { t.Fatal(err) }
			var rec metrics.Recorder
			if err := engine.Run(context.Background(), engine.NewState(1), d, engine.NewPipeline(st), engine.Options{Sinks: []engine.Sink{&rec}}); err != nil { t.Fatal(err) }
			r := rec.Result(s.n)
			fmt.Printf("%.3fs %s whole=%v fin=%d avg=%.2f med=%.1f p95=%.0f mk=%.0f q=%.2f pre=%d prom=%d ev=%d busy=%.3f\n", time.Since(t0).Seconds(), s.n, whole, r.Finished, r.AvgJCT, r.P50JCT, r.P95JCT, r.Makespan, r.AvgQueue, r.Preemptions, r.Promotions, r.Events, r.GPUBusy)
		}
	}
}
