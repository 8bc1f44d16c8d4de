package procs

// Subgroup is the name of the cgroup, below that of its unit, that a process of systemd is put in by DelegateSubgroup
// so that it may make groups with limits next to it: version 2 has no controllers below a cgroup that has processes.
const Subgroup = "serve"
