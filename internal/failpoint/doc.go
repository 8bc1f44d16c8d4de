// Package failpoint lets tests kill a program between two durable steps. Programs built with -tags failpoints send
// themselves SIGKILL when they pass the point named by the environment variable TRAINYARD_FAILPOINT for the n-th time,
// as in "commit.after:3" (n defaults to 1), and say so on stderr. In other builds a point costs nothing.
package failpoint

// Variable is the environment variable that arms a point.
const Variable = "TRAINYARD_FAILPOINT"
