// Package price puts one price on GPU time and has every job buy as much of it as is worth while.
//
// A way to do a piece of work is a Point: what it costs in GPU time (or money) and how long it takes. Only the
// lower-left convex chain of the points matters (Hull): at a price mu per unit of cost a job takes the point that makes
// weight x delay + mu x cost least, and as mu falls it walks down the chain. So
//
//   - Frontier sorts the steps of all chains by what they save per cost: the least mean delay for every budget, the
//     price at which a budget is spent, and what one more GPU would save;
//   - Class is a kind of job that goes through phases and loses time at every start and change of width; Class.Best and
//     Class.Paths find its optimal paths, and Exact a plan for all classes;
//   - Glue and EqualWidth are other ways to choose widths, to compare with;
//   - Continuous lets widths be fractions, for laws such as Power and Amdahl;
//   - Controller, Month and Diffuse are for those who pay: a price that follows the spending measured, a budget by
//     calendar month, and whole jobs in the place of shares; Holding and Reserve say how many GPUs to reserve.
//
// The package knows no jobs, no cluster and no clock. The unit of time is the caller's; rates are per that unit, and
// budgets are costs per unit of time, which are GPUs where every GPU has price 1.
//
// Source: Li, Berg, Mukhopadhyay, Harchol-Balter, "How to Rent GPUs on a Budget" (EPEW 2024, arXiv 2406.15560), for the
// problem and why fixed widths solve it. The solution by chains and the treatment of restarts are our own.
package price
