// Package driver is the driver that runs jobs as pods of a Kubernetes cluster. The API server is all it reads and writes:
//
//   - What happened is found by looking: whatever changed is an observer.Key in an observer.Queue, and a look at its object compares what the
//     cache shows with what the View knows. A look that shows nothing new tells nothing, so keys may come late, twice or
//     together.
//   - What is to be done is written by a crew, for each attempt in order, and tried until it is done or no longer wanted: an
//     API server that restarts loses no order. All objects of an attempt have names that follow from its number, so whoever
//     comes back after a crash does the same again and finds it done.
//
// How an attempt begins:
//
//  1. The order is durable in the status of its TrainingJob before Apply hears of it.
//  2. The crew makes a headless Service, if there are several pods, and the claims of exactly its GPUs.
//  3. Once no other claim holds these devices any more (a predecessor's are given back by the controller-manager only when its
//     pods are gone) it makes the pods: one on each node. Made earlier, they would fall into the scheduler's back-off.
//  4. All pods run: the attempt has started. If that takes too long, all go, and the GPUs of those that did not come up are
//     suspects.
//
// How it ends: its pods are deleted with the grace of the job, and once their objects are gone no process is left on any
// node. That a node is silent ends nothing: its pods may well go on. Only where its object is deleted are they given up.
//
// It decides nothing.
package driver
