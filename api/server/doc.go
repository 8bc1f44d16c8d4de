// Package server answers the requests of package api over a host and its Site, of a machine or of a cluster: guard,
// routes, streams and figures. The bytes that it reads are bounded; what the table of rules does not allow is refused.
// It opens no listener: on a machine manager/access does.
package server
