// Package step prices each step of a job from one width to the next, so that one price of a GPU can divide a cluster.
//
// A job has a weight w, in job-seconds lost per second of delay, and e seconds of work left at speed 1. On k GPUs it
// runs at speed s(k); a change of width costs it R seconds. A market has a floor price mu and a horizon T, in which the
// backlog drains. Then, with lambda the price of a GPU now:
//
//	tau(k) = e/s(k) + R [k != held]           time until the job ends
//	s~(k)  = e / tau(k)                       effective speed
//	phi(k) = exp(-tau(k)/T)                   what is left of the price above the floor when it ends
//	L(k)   = mu + (lambda - mu) phi(k)        the price of a GPU when it ends
//	v      = min over k of (w + L(k) k) / s~(k)   worth of a unit of its work
//
// The upper hull of the points (k, s~(k)) has steps k0 -> k1 with c = (k1-k0) / (s~(k1)-s~(k0)). A job wants a step at
// the price lambda exactly if v(lambda) >= lambda c, and that holds up to the step's own price
//
//	nu = min over k with c s~(k) > phi(k) k of (w + mu (1-phi(k)) k) / (c s~(k) - phi(k) k)
//
// or +Inf where no k counts. It depends on no other job. Nothing iterates: jobs are served by falling nu.
//
// The package decides with arithmetic of its own: exponentials of the standard library and fused operations differ
// between processors. It knows no jobs, no cluster and no clock.
//
// Source: ours; docs/papers/combined.md has the proofs. With lambda = mu it is BOA's rule, with T infinite and mu = 0
// that of price.Clearing.
package step
