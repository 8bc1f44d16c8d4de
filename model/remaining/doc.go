// Package remaining estimates how much work jobs have left, from nothing but the events: what a job itself reports,
// else how long jobs of its class took that are as far as it is.
//
// It fits no distribution. A sample is the newest works of a class; the remaining work of a job that has done a is the
// mean of x - a over the works x > a of its sample, its mean residual life. Beyond the largest, and where nothing is
// known, it goes by Lindy's law: a job that has lasted so long lasts as long again.
//
// Source: specification of the manager, sections 5.3 and 4; where it names no formula, ours.
package remaining
