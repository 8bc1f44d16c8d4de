# What the plays of this folder share. They run with the words of a real Slurm, or with those of trainyard, in PATH.

# ended JOB...: waits until these jobs, or all tasks of an array, have ended, and prints their numbers.
ended() {
	local tries=0
	for n in "$@"; do
		while [ -n "$(squeue -h -j "$n" -o %i 2>/dev/null)" ]; do
			tries=$((tries + 1))
			if [ "$tries" -gt 600 ]; then
				echo "job $n does not end"
				exit 1
			fi
			sleep 0.2
		done
	done
	echo "$@"
}

# field JOB NAME: one field of `scontrol show job`.
field() {
	scontrol -o show job "$1" | tr ' ' '\n' | sed -n "s/^$2=//p" | head -n 1
}

# shown JOB: how it has ended.
shown() {
	echo "$(field "$1" JobState) $(field "$1" ExitCode)"
}
