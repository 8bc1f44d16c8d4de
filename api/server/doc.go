// Package server answers the requests of package api over a manager: guard, routes, streams, tokens and figures. The
// bytes that it reads are bounded; what the table of rules does not allow is refused. It listens on a unix socket in
// the state folder and, if asked to, on the network.
package server
