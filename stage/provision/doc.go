// Package provision holds the rules by which nodes are rented, let go, put to sleep and woken, once it is decided which
// jobs get which GPUs. A rule is a sched.Provisioner: it can be given to any system.
package provision
