package jobfile

import (
	"fmt"
	"strings"
	"testing"
)

const (
	sharedKeys = "command, dir, env, inherit_env, snapshot, " +
		"gpus, batch, checkpoint, grace, submit, user, group, model, class, " +
		"output, notify, priority, progress, launcher, " +
		"gpu_ids, preemptible, retries, retry, time_limit, terminal, wall_time, share, " +
		"cpus, memory_gb, limits, gpu_type, gpu_memory_gb, gpu_use, epochs"
	arrayWords = "numbers as in 0-99, 0-99%8 or 1,3,5-9:2, at most 100000 of them"
	jobKeys    = "name, count, array, after, " + sharedKeys
	isReserved = " is reserved, want another name (Trainyard sets it, or keeps it from jobs)"
)

// Ensure that whatever is wrong is said with its position and what is wanted.
func TestErrors(t *testing.T) {
	long := strings.Repeat("x", 200)
	for _, c := range []struct{ src, want string }{
		// The document.
		{"", `1:1: empty document, want jobs`},
		{"{}", `1:1: no jobs, want a list of at least one`},
		{"defaults: {}", `1:1: no jobs, want a list of at least one`},
		{"jobs:", `1:7: jobs is empty, want a list of at least one`},
		{"jobs: []", `1:7: jobs is an empty list, want a list of at least one`},
		{"jobs: {a: {}}", `1:7: jobs is a mapping, want a list of at least one`},
		{"- command: [a]", `1:1: the document is a list, want a mapping of defaults, jobs`},
		{"job: []", `1:1: unknown key "job" (did you mean "jobs"?), want one of defaults, jobs`},
		{"jobs: [a]", `1:8: a job "a", want a mapping of ` + jobKeys},
		{"jobs:\n  - name: a", `2:5: a job without command, want a list of arguments, as in [python, train.py]`},
		{"jobs:\n  - comand: [a]", `2:5: unknown key "comand" (did you mean "command"?), want one of ` + jobKeys},
		{"jobs:\n  - command: [a]\n    command: [b]", `3:5: command given again, want it once (first on line 2)`},
		{"defaults: {name: a}\njobs: [{command: [a]}]", `1:12: unknown key "name", want one of ` + sharedKeys},
		{"defaults: {grace: 5}\njobs: [{command: [a]}]", `1:19: grace 5, want a time more than 0s and at most 1h, as ` +
			`in 30s, 10m or 1h30m`},
		{"defaults: 4\njobs: [{command: [a]}]", `1:11: defaults 4, want a mapping of ` + sharedKeys},
		{"jobs: &a [{command: [a]}]", `1:7: an anchor, want plain mappings, lists, text and numbers`},
		{"jobs: [{command: [a]}]\n---\njobs: []", `2:1: a second document, want one`},
		{"jobs: [{command: [\"a\x00\"]}]", `1:21: not text in UTF-8, want a YAML file`},
		{strings.Repeat("#", MaxFile+1), `1:1: more than 2 MiB, want less`},
		// Outputs.
		{"jobs: [{command: [a], output: {max: -1}}]", `1:37: output max -1, want a size from 64MiB to 1PiB, as in ` +
			`500MiB or 1GiB`},
		{"jobs: [{command: [a], output: {max: 63MiB}}]", `1:37: output max "63MiB", want a size from 64MiB to 1PiB, ` +
			`as in 500MiB or 1GiB`},
		{"jobs: [{command: [a], output: 1GiB}]", `1:31: output "1GiB", want a mapping of max, file, error, mode`},
		{"jobs: [{command: [a], output: {most: 1GiB}}]", `1:32: unknown key "most", want one of max, ` +
			`file, error, mode`},
		// Commands.
		{"jobs:\n  - command: python train.py", `2:14: command "python train.py", want a list of arguments, as in ` +
			`[python, train.py] (no shell reads it)`},
		{"jobs:\n  - command: a b c d e f g", `2:14: command "a b c d e f g", want a list of arguments, as in [a, b, ` +
			`c, d, e, f, ...] (no shell reads it)`},
		{"jobs:\n  - command: cd x && ./run $HOME", `2:14: command "cd x && ./run $HOME", want a list of arguments, ` +
			`as in [python, train.py] (no shell reads it)`},
		{"jobs:\n  - command: |\n      python x", `2:14: command is a block of text, want a list of arguments, as in ` +
			`[python, x] (no shell reads it)`},
		{"jobs:\n  - command: []", `2:14: command is an empty list, want a list of arguments, as in [python, ` +
			`train.py]`},
		{"jobs:\n  - command:", `2:14: command is empty, want a list of arguments, as in [python, train.py]`},
		{"jobs:\n  - command: {a: b}", `2:14: command is a mapping, want a list of arguments, as in [python, ` +
			`train.py]`},
		{"jobs:\n  - command: ['', a]", `2:15: command starts with "", want a program`},
		{"jobs:\n  - command: [a, [b]]", `2:18: command[1] is a list, want text ("" for an empty one)`},
		{"jobs:\n  - command: [a, b: c]", `2:18: command[1] is a mapping, want text ("" for an empty one)`},
		{"jobs:\n  - command: [a, ~]", `2:18: command[1] is empty, want text ("" for an empty one)`},
		{"jobs:\n  - command: [a, \"b\\0\"]", `2:18: command[1] has a NUL byte, want none`},
		{"jobs:\n  - command: [a, " + strings.Repeat("b", 1<<17) + "]",
			`2:18: command[1] takes 131072 bytes, want at most 131071`},
		{"jobs:\n  - command: [" + strings.Repeat("a,", 10001) + "]",
			`2:14: command of 10001 arguments, want at most 10000`},
		{"jobs:\n  - command: [" + strings.Repeat(strings.Repeat("b", 1<<16)+",", 16) + "]",
			`2:5: command and env of 1048592 bytes, want at most 1048576`},
		{"jobs:\n  - command: [" + strings.Repeat("b", 3000) + "]\n    count: 99999",
			`2:5: more than 256 MiB of commands and environments in all, want less`},
		// Names.
		{"jobs: [{command: [a], name: '012'}]", `1:29: name "012" is a number, want a letter, _, - or dot in it: a ` +
			`number means the job that has it`},
		{"jobs: [{command: [a], name: a/b}]", `1:29: name "a/b", want ` + nameWanted},
		{"jobs: [{command: [a], name: ..}]", `1:29: name "..", want ` + nameWanted},
		{"jobs: [{command: [a], name: a..b}]", `1:29: name "a..b", want ` + nameWanted},
		{"jobs: [{command: [a], name: -a}]", `1:29: name "-a", want ` + nameWanted},
		{"jobs: [{command: [a], name: a b}]", `1:29: name "a b", want ` + nameWanted},
		{"jobs: [{command: [a], name: é}]", `1:29: name "é", want ` + nameWanted},
		{"jobs: [{command: [a], name: \"a\\0\"}]", `1:29: name "a\x00", want printable text without blanks around it`},
		{"jobs: [{command: [a], name: 4}]", `1:29: name 4, want text (a number goes in quotes)`},
		{"jobs: [{command: [a], name: " + long[:65] + "}]", `1:29: name "` + long[:40] + `...", want ` + nameWanted},
		{"jobs: [{command: [a], count: 10, name: " + long[:62] + "}]", `1:40: name "` + long[:40] +
			`..." with -10, want at most 64 bytes`},
		{"jobs:\n  - {command: [a], name: a}\n  - {command: [a], name: a}",
			`3:26: name "a" given twice, want names of their own (first on line 2)`},
		{"jobs:\n  - {command: [a]}\n  - {command: [a], name: job-1}",
			`3:26: name "job-1" given twice, want names of their own (first on line 2)`},
		{"jobs:\n  - {command: [a], name: job-1}\n  - {command: [a]}",
			`3:5: name "job-1" given twice, want names of their own (first on line 2)`},
		{"jobs:\n  - {command: [a], name: a, count: 2}\n  - {command: [a], name: a-2}",
			`3:26: name "a-2" given twice, want names of their own (first on line 2)`},
		{"jobs:\n  - {command: [a], name: a, count: 2}\n  - {command: [a], name: a}",
			`3:26: name "a" given twice, want names of their own (first on line 2)`},
		{"jobs: [{command: [a], count: 0}]", `1:30: count 0, want a whole number from 1 to 100000`},
		{"jobs: [{command: [a], count: 100000}, {command: [a]}]", `1:39: 100001 jobs in all, want at most 100000`},
		// Waiting.
		{"jobs: [{command: [a], after: b}]", `1:30: after "b", want a list of jobs, as in [job-1, ok:job-2, 12]`},
		{"jobs: [{command: [a], after: [1]}]", `1:31: after "1", want the name of a job`},
		{"jobs: [{command: [a], after: [no:b]}]", `1:31: after "no:b", want any:JOB, ok:JOB or fail:JOB`},
		{"jobs: [{command: [a], after: ['ok:']}]", `1:31: after "ok:", want the name or number of a job`},
		{"jobs: [{command: [a], name: b}, {command: [a], after: [b, ok:b]}]",
			`1:59: after "b" given again, want it once`},
		{"jobs: [{command: [a], after: [99999999999]}]",
			`1:31: after "99999999999", want the number of a job, as ps lists it`},
		{"jobs: [{command: [a], array: 0-199999}]", `1:30: array 0-199999, want ` + arrayWords},
		{"jobs: [{command: [a], array: 3-1}]", `1:30: array 3-1, want ` + arrayWords},
		{"jobs: [{command: [a], array: 0-1%0}]", `1:30: array "0-1%0", want ` + arrayWords},
		{"jobs: [{command: [a], array: []}]", `1:30: array is an empty list, want ` + arrayWords},
		{"jobs: [{command: [a], array: 0-1, count: 2}]", `1:35: count next to array, want one of them`},
		{"jobs: [{command: [a], array: 0-1, checkpoint: {dir: x}}]",
			`1:8: checkpoint dir of 2 jobs alike, want none: each has a folder of its own`},
		{"jobs: [{command: [a], name: resnet50}, {command: [a], after: [resnet5]}]",
			`1:63: after "resnet5" (did you mean "resnet50"?), want the name of a job`},
		{"jobs: [{command: [a], name: xyz, count: 2}, {command: [a], after: [xy]}]",
			`1:68: after "xy" (did you mean "xyz"?), want the name of a job`},
		{"jobs: [{command: [a], name: b}, {command: [a], after: [b, b]}]", `1:59: after "b" given again, want it once`},
		{"jobs: [{command: [a], name: b, after: [b]}]", `1:40: after "b" is the job itself, want another`},
		{"jobs: [{command: [a], name: b, count: 3, after: [b-1]}]",
			`1:50: after "b-1" is the job itself, want another`},
		{"jobs: [{command: [a], name: a, submit: 1m}, {command: [a], submit: 5s, after: [a]}]",
			`1:80: after "a", which is submitted later (at 1m0s, this one at 5s), want one that is not`},
		{"jobs:\n  - {command: [x], name: d, after: [a]}\n  - {command: [x], name: a, after: [b]}\n  - {command: " +
			"[x], name: b, after: [c]}\n  - {command: [x], name: c, after: [a]}",
			`3:36: after makes a circle: a after b after c after a, want none`},
		{"jobs:\n  - {command: [x], name: a, count: 2, after: [b]}\n  - {command: [x], name: b, after: [a-2]}",
			`3:36: after makes a circle: b after a-2 after b, want none`},
		{"jobs: [{command: [x], name: a, count: 2000}, {command: [x], name: b, count: 2000, after: [a]}]",
			`1:91: more than 1000000 pairs of a job and one it waits for, want less`},
		// Folders and environments.
		{"jobs: [{command: [a], dir: ~/x}]", `1:28: dir "~/x", want a path without ~ (no shell reads it; ./~ is a ` +
			`folder of that name)`},
		{"jobs: [{command: [a], dir: ''}]", `1:28: dir "", want a path (a number goes in quotes)`},
		{"jobs: [{command: [a], dir: 4}]", `1:28: dir 4, want a path (a number goes in quotes)`},
		{"jobs: [{command: [a], dir: \"a\\0\"}]", `1:28: dir has a NUL byte, want none`},
		{"jobs: [{command: [a], dir: " + strings.Repeat("/x", 2500) + "}]",
			`1:28: dir of 5000 bytes, want at most 4095`},
		{"jobs: [{command: [a], env: [A=b]}]", `1:28: env is a list, want a mapping of variables`},
		{"jobs: [{command: [a], env: {A-B: 1}}]", `1:29: env "A-B", want a name of letters, digits and _`},
		{"jobs: [{command: [a], env: {1A: 1}}]", `1:29: env "1A", want a name of letters, digits and _`},
		{"jobs: [{command: [a], env: {A: 1, A: 2}}]", `1:35: A given again, want it once (first on line 1)`},
		{"jobs: [{command: [a], env: {A: }}]", `1:31: env A is empty, want text ("" for an empty one)`},
		{"jobs: [{command: [a], env: {A: [1]}}]", `1:32: env A is a list, want text ("" for an empty one)`},
		{"jobs: [{command: [a], env: {A: \"\\0\"}}]", `1:32: env A has a NUL byte, want none`},
		{"jobs: [{command: [a], env: {A: " + strings.Repeat("b", 1<<17) + "}}]",
			`1:32: env A takes 131074 bytes, want at most 131071`},
		{"jobs: [{command: [a], env: {TRAINYARD_JOB_ID: 1}}]", `1:29: env TRAINYARD_JOB_ID` + isReserved},
		{"jobs: [{command: [a], env: {CUDA_VISIBLE_DEVICES: 1}}]", `1:29: env CUDA_VISIBLE_DEVICES` + isReserved},
		{"jobs: [{command: [a], env: {CUDA_DEVICE_ORDER: 1}}]", `1:29: env CUDA_DEVICE_ORDER` + isReserved},
		{"jobs: [{command: [a], env: {MASTER_ADDR: 1}}]", `1:29: env MASTER_ADDR` + isReserved},
		{"jobs: [{command: [a], env: {MASTER_PORT: 1}}]", `1:29: env MASTER_PORT` + isReserved},
		{"jobs: [{command: [a], env: {TORCH_ELASTIC_SHUTDOWN_TIMEOUT: 1}}]",
			`1:29: env TORCH_ELASTIC_SHUTDOWN_TIMEOUT` + isReserved},
		{"defaults: {env: {LD_PRELOAD: x.so}}\njobs: [{command: [a]}]", `1:18: env LD_PRELOAD` + isReserved},
		// Widths and batches.
		{"jobs: [{command: [a], gpus: 0}]", `1:29: gpus 0, want a whole number from 1 to 1024`},
		{"jobs: [{command: [a], gpus: 1.5}]", `1:29: gpus 1.5, want a whole number from 1 to 1024`},
		{"jobs: [{command: [a], gpus: {min: 2}}]", `1:29: gpus without max, want a whole number from 1 to 1024`},
		{"jobs: [{command: [a], gpus: {min: 4, max: 2}}]",
			`1:29: gpus 4..2 with default 2, want min <= default <= max`},
		{"jobs: [{command: [a], gpus: {max: 2, default: 3}}]",
			`1:29: gpus 1..2 with default 3, want min <= default <= max`},
		{"jobs: [{command: [a], gpus: {max: 2, want: 3}}]", `1:38: unknown key "want", want one of min, max, default`},
		{"jobs: [{command: [a], batch: 4}]", `1:30: batch 4, want a mapping of global_min, global_max, per_gpu_max, ` +
			`lr_scaling`},
		{"jobs: [{command: [a], batch: {per_gpu_max: 4}}]", `1:30: batch without global_min or global_max, want both ` +
			`(alike for one size)`},
		{"jobs: [{command: [a], batch: {global_min: 4, global_max: 3}}]",
			`1:30: batch 4..3, want global_min <= global_max`},
		{"jobs: [{command: [a], gpus: 2, batch: {global_min: 9, global_max: 9, per_gpu_max: 4}}]",
			`1:8: batch of at least 9 on at most 2 x 4, want per_gpu_max times GPUs to reach global_min`},
		{"jobs: [{command: [a], batch: {global_min: 4, global_max: 8, lr_scaling: sqr}}]",
			`1:73: lr_scaling "sqr" (did you mean "sqrt"?), want one of none, linear, sqrt, adascale`},
		// Checkpoints.
		{"jobs: [{command: [a], checkpoint: ckpt}]", `1:35: checkpoint "ckpt", want a mapping of dir, signal, ` +
			`ready_file, to`},
		{"jobs: [{command: [a], checkpoint: {folder: ckpt}}]",
			`1:36: unknown key "folder", want one of dir, signal, ready_file, to`},
		{"jobs: [{command: [a], checkpoint: {dir: 4}}]",
			`1:41: checkpoint dir 4, want a path (a number goes in quotes)`},
		{"jobs: [{command: [a], checkpoint: {dir: ~/x}}]",
			`1:41: checkpoint dir "~/x", want a path without ~ (no shell reads it; ./~ is a folder of that name)`},
		{"jobs: [{command: [a], count: 2, checkpoint: {dir: x}}]",
			`1:8: checkpoint dir of 2 jobs alike, want none: each has a folder of its own`},
		{"jobs: [{command: [a], checkpoint: {signal: KILL}}]",
			`1:44: checkpoint signal "KILL", want one of TERM, INT, HUP, USR1, USR2`},
		{"jobs: [{command: [a], checkpoint: {signal: [TERM]}}]",
			`1:44: checkpoint signal is a list, want one of TERM, INT, HUP, USR1, USR2`},
		{"jobs: [{command: [a], checkpoint: {to: rank}}]",
			`1:40: checkpoint to "rank", want one of top, leader, all`},
		{"jobs: [{command: [a], checkpoint: {to: ''}}]", `1:40: checkpoint to "", want one of top, leader, all`},
		{"jobs: [{command: [a], checkpoint: {ready_file: ../x}}]",
			`1:48: checkpoint ready_file "../x", want a file in the run directory, or an absolute path, cleaned`},
		{"jobs: [{command: [a], checkpoint: {ready_file: ''}}]",
			`1:48: checkpoint ready_file "", want a file in the run directory, or an absolute path, cleaned`},
		{"jobs: [{command: [a], time_limit: 0s}]", `1:35: time_limit "0s", want a time more than 0s and at most ` +
			`8760h, as in 30s, 10m or 1h30m`},
		{"jobs: [{command: [a], time_limit: {max: 1m, warn: 2m}}]",
			`1:35: time_limit warn 2m0s, want at most its max of 1m0s`},
		{"jobs: [{command: [a], time_limit: {warn: 2m}}]",
			`1:35: time_limit without max, want the time after which it is ended`},
		{"jobs: [{command: [a], inherit_env: yes}]", `1:36: inherit_env "yes", want true or false`},
		// Launchers.
		{"jobs: [{command: [a], launcher: torchrun}]", `1:33: launcher "torchrun", want one of auto, none`},
		{"jobs: [{command: [a], gpu_ids: pci}]", `1:32: gpu_ids "pci", want one of uuid, index`},
		{"jobs: [{command: [deepspeed, --num_gpus, 2, train.py]}]", `1:8: command with --num_gpus of deepspeed, ` +
			`want it without: with it DeepSpeed takes the first GPUs of the machine, those of other jobs too; leave ` +
			`it out: the job's GPUs are all that it sees (launcher: none leaves the command alone)`},
		// Progress and retries.
		{"jobs: [{command: [a], progress: {from: tqm}}]",
			`1:40: progress from "tqm" (did you mean "tqdm"?), want one of auto, own, tqdm, hf, lightning, steps`},
		{"jobs: [{command: [a], progress: tqdm}]", `1:33: progress "tqdm", want a mapping of from, regex`},
		{"jobs: [{command: [a], retry: {on: exit:75}}]",
			`1:35: retry on "exit:75", want a list, as in [exit:75, signal:KILL]`},
		{"jobs: [{command: [a], retry: {on: [exit:75, exit:0]}}]", `1:45: retry on "exit:0", want exit:N from 1 to ` +
			`255, or signal:NAME as in signal:KILL, or time (node_fail and preempted always are)`},
		{"jobs: [{command: [a], retry: {on: [signal:NONE]}}]", `1:36: retry on "signal:NONE", want exit:N from 1 to ` +
			`255, or signal:NAME as in signal:KILL, or time (node_fail and preempted always are)`},
		{"jobs: [{command: [a], retry: {on: [exit:75, exit:75]}}]",
			`1:45: retry on "exit:75" given again, want it once`},
		{"jobs: [{command: [a], retry: {on: [preempted]}}]",
			`1:35: retry on nothing but what always is retried, want exit:N or signal:NAME too, or leave it out`},
		{"jobs: [{command: [a], progress: {from: hf, regex: x}}]", `1:44: regex next to from, want one of them`},
		{"jobs: [{command: [a], progress: {regex: 'it (?P<stop>.)'}}]", `1:41: progress regex: pattern with the ` +
			`group "stop", want some of step, total, epoch, samples, samples_per_sec, loss`},
		{"jobs: [{command: [a], env: {X: {}}}]", `1:32: env X is a mapping without from_file, want the path of a file`},
		{"jobs: [{command: [a], env: {X: {file: y}}}]", `1:33: unknown key "file", want one of from_file`},
		{"jobs: [{command: [a], env: {X: {from_file: ~/y}}}]",
			`1:44: env X from_file "~/y", want a path without ~ (no shell reads it; ./~ is a folder of that name)`},
		{"jobs: [{command: [a], retry: 3}]", `1:30: retry 3, want a mapping of max, backoff, on`},
		{"jobs: [{command: [a], retry: {backoff: 25h}}]",
			`1:40: backoff "25h", want a time from 0s to 24h, as in 30s, 10m or 1h30m`},
		{"jobs: [{command: [a], retry: {max: 3}, retries: 3}]", `1:40: retries next to retry, want one of them`},
		{"defaults: {retries: 1, retry: {}}\njobs: [{command: [a]}]", `1:24: retry next to retries, want one of them`},
		// Times, figures and words.
		{"jobs: [{command: [a], grace: 0s}]", `1:30: grace "0s", want a time more than 0s and at most 1h, as in 30s, ` +
			`10m or 1h30m`},
		{"jobs: [{command: [a], grace: 61m}]", `1:30: grace "61m", want a time more than 0s and at most 1h, as in ` +
			`30s, 10m or 1h30m`},
		{"jobs: [{command: [a], submit: -1s}]", `1:31: submit "-1s", want a time from 0s to 8760h, as in 30s, 10m or ` +
			`1h30m`},
		{"jobs: [{command: [a], submit: 2d}]", `1:31: submit "2d", want a time from 0s to 8760h, as in 30s, 10m or ` +
			`1h30m`},
		{"jobs: [{command: [a], wall_time: [1s]}]", `1:34: wall_time is a list, want a time more than 0s and at most ` +
			`8760h, as in 30s, 10m or 1h30m`},
		{"jobs: [{command: [a], priority: 2147483648}]",
			`1:33: priority 2147483648, want a whole number from -2147483648 to 2147483647`},
		{"jobs: [{command: [a], retries: -1}]", `1:32: retries -1, want a whole number from 0 to 1000000`},
		{"jobs: [{command: [a], share: alow}]", `1:30: share "alow" (did you mean "allow"?), want one of never, ` +
			`allow, require`},
		{"jobs: [{command: [a], share: true}]", `1:30: share true, want one of never, allow, require`},
		{"jobs: [{command: [a], cpus: -1}]", `1:29: cpus -1, want a number from 0 to 1e9`},
		{"jobs: [{command: [a], memory_gb: .inf}]", `1:34: memory_gb .inf, want a number from 0 to 1e9`},
		{"jobs: [{command: [a], user: \"a\\nb\"}]", `1:29: user "a\nb", want printable text without blanks around it`},
		{"jobs: [{command: [a], model: " + long + "x}]", `1:30: model of 201 bytes, want at most 200`},
	} {
		_, err := Parse([]byte(c.src), "f.yaml")
		if got, want := fmt.Sprint(err), "jobfile: f.yaml:"+c.want; got != want {
			t.Errorf("%.100q:\n got %s\nwant %s", c.src, got, want)
		}
	}
}
