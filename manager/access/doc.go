// Package access says who asks the manager of a machine: users at its socket, as the kernel names them, and bearers of
// tokens and certificates on the network. It opens both ways in.
package access
