// Package controller runs the engine on Kubernetes: it loads the state from API objects, drives it with kube/driver
// while this process leads, and makes every batch durable in the API before its orders are given.
package controller
