package speedup

// Additive is a Timer without overlap: an update takes the time of its micro-batches on each GPU, and that of one
// all-reduce.
//
// Source: specification of elastic scaling, 2.1.
type Additive struct {
	Process Process
	Reduce  Reducer // nil = it costs nothing
}

// Process is the time of a micro-batch on one GPU.
type Process interface {
	// Seconds returns the time for so many samples; 0 = unknown.
	Seconds(samples int) float64
}

// Reducer is the time of an all-reduce of the gradients.
type Reducer interface {
	// Seconds returns the time on so many GPUs, > 1, on so many nodes.
	Seconds(gpus, nodes int) float64
}

var _ Timer = Additive{}

// Update returns accum times the time of a micro-batch, and an all-reduce where there are several GPUs.
func (a Additive) Update(gpus, nodes, perGPU, accum int) float64 {
	process := a.Process.Seconds(perGPU)
	if process <= 0 {
		return 0
	}
	seconds := float64(accum) * process
	if gpus > 1 && a.Reduce != nil {
		seconds += a.Reduce.Seconds(gpus, nodes)
	}
	return seconds
}

// Affine is a Process of a fixed part and one per sample.
type Affine struct{ Fixed, PerSample float64 } // seconds

// Seconds returns the sum of both parts.
func (a Affine) Seconds(samples int) float64 { return a.Fixed + float64(a.PerSample*float64(samples)) }

// Ring is a Reducer by ring all-reduce, whose speed is that of its slowest link.
type Ring struct {
	Bytes          float64 // of the gradients
	Bandwidth      float64 // bytes per second within a node
	Latency        float64 // seconds of a hop
	Network        float64 // bytes per second between nodes; 0 = Bandwidth
	NetworkLatency float64 // of a hop where there are several nodes; 0 = Latency
}

// Seconds returns 2 (k-1)/k bytes/bandwidth + 2 (k-1) latency.
func (r Ring) Seconds(gpus, nodes int) float64 {
	bandwidth, latency := r.Bandwidth, r.Latency
	if nodes > 1 && r.Network > 0 {
		bandwidth = r.Network
	}
	if nodes > 1 && r.NetworkLatency > 0 {
		latency = r.NetworkLatency
	}
	hops := 2 * float64(gpus-1)
	return float64(hops/float64(gpus)*(r.Bytes/bandwidth)) + float64(hops*latency)
}
