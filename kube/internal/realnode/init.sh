# Process 1 of a node: makes its file system, then does what its standard input says, one command a line, words apart by tabs, and
# answers each with a line: "ok", or what went wrong. When the input ends, so does the node, with all that runs on it.
#
#   bash init.sh FOLDER CGROUP
set -u
folder=$1 cgroup=$2

# The rest of the machine sees none of these mounts, and they go with the last process of the node.
mount --make-rprivate /
mount -t proc proc /proc
mount -t tmpfs node /run
mkdir -p /run/cdi "$folder"/{kubelet,containerd,log,sysctl}
mount -t tmpfs node /var/lib
mkdir /var/lib/kubelet /var/lib/containerd
mount --bind "$folder/kubelet" /var/lib/kubelet
mount --bind "$folder/containerd" /var/lib/containerd
mount --bind "$folder/log" /var/log

# A kubelet sets these for the whole machine. It finds them set.
while read -r name value; do
	echo "$value" >"$folder/sysctl/$name"
	mount --bind "$folder/sysctl/$name" "/proc/sys/${name//.//}"
done <<-END
	vm.overcommit_memory 1
	vm.panic_on_oom 0
	kernel.panic 10
	kernel.panic_on_oops 1
	kernel.keys.root_maxkeys 1000000
	kernel.keys.root_maxbytes 25000000
END

# All cgroups of the node lie below one of its own, in each hierarchy.
mapfile -t hierarchies < <(awk '$3 == "cgroup" || $3 == "cgroup2" { print $2 }' /proc/self/mounts)
for h in "${hierarchies[@]}"; do
	mkdir "$h/$cgroup"
	if [ -e "$h/cpuset.cpus" ] && [ -e "$h/cpuset.mems" ]; then
		cat "$h/cpuset.cpus" >"$h/$cgroup/cpuset.cpus"
		cat "$h/cpuset.mems" >"$h/$cgroup/cpuset.mems"
	fi
done
echo ok

declare -A pids
while IFS=$'\t' read -r -a words; do
	what=${words[0]} name=${words[1]}
	set -- "${words[@]:2}"
	case $what in
	start) # NAME PROGRAM ARGUMENT...: goes on
		"$@" </dev/null >>"$folder/$name.log" 2>&1 &
		pids[$name]=$!
		echo ok
		;;
	stop) # NAME: is killed, and gone
		{ kill -KILL "${pids[$name]}" && wait "${pids[$name]}"; } 2>/dev/null
		echo ok
		;;
	run) # NAME PROGRAM ARGUMENT...: to its end
		if "$@" </dev/null >>"$folder/$name.log" 2>&1; then echo ok; else echo "$name: exit status $?"; fi
		;;
	*) echo "unknown command $what" ;;
	esac
done

kill -KILL -1 2>/dev/null # all others
wait
for h in "${hierarchies[@]}"; do
	for _ in {1..100}; do # until the last process has left
		find "$h/$cgroup" -depth -type d -exec rmdir {} + 2>/dev/null
		[ -e "$h/$cgroup" ] || break
		sleep 0.1
	done
done
