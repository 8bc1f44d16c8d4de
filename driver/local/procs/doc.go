// Package procs owns everything a command starts, however it tries to hide: children in sessions of their own, orphans
// of double forks, fork bombs, processes that ignore SIGTERM or are stopped.
//
// A Group is the set of processes of one attempt. There are two ways to hold it, distinguished by the root given to New
// and Open; Root says which one this machine allows.
//
//   - With a cgroup v2 directory, every process is born inside and the kernel knows the members. Kill is one write to
//     cgroup.kill, atomic against forks. Only who may write to cgroup.procs outside the directory, such as a job run as
//     root, can leave; it is still found if it carries the cookie, or while it descends from a member.
//   - Without one (root ""), members are found by looking at /proc: what descends from the process that called New,
//     which should be a subreaper (Subreap) so that orphans come back to it; what has the cookie in its first
//     environment; what descends from those or shares a session with them. After the owner's death the cookie, descent
//     and sessions remain: a process that clears its environment, leaves its session and loses its parent is then lost.
//
// In both ways a process is a member only while it lives: zombies do not count, and reaping them is the parent's
// business. Signals go only to processes found as members, through a pidfd and after comparing start times, so that a
// pid used again is not hit. The calling process, its ancestors and pid 1 are never members.
//
// A look costs what started since the group was made, not what else runs: the kernel gives pids in turn, and counts
// forks, so those with later pids are looked at alone (Mark). Where many were forked since, pids started from below, or
// the group was made by another process at an unknown time, all processes are looked at.
//
// The package does not limit resources, read exit codes or know about jobs, and it is for Linux only.
package procs
