// Package jobfile reads a list of jobs to be run on one machine from a YAML file. This is a complete file; only jobs
// and the command of each are required:
//
//	defaults:                       # any key of a job but name, count and after; env is merged, the rest replaced
//	  grace: 10s
//	  env: {OMP_NUM_THREADS: 4}
//	jobs:
//	  - name: prepare               # default job-1, job-2, ... through the file
//	    command: [python, prepare.py, --out, data]
//	  - name: resnet50              # with count: resnet50-1 ... resnet50-3
//	    count: 3                    # that many alike
//	    command: [torchrun, --standalone, train.py]  # argument by argument: no shell reads it
//	    dir: ./vision               # working directory, relative to the file's folder, which is the default
//	    env: {NCCL_DEBUG: WARN, TOKEN: {from_file: token}}  # added to the environment; a secret stands in a
//	                                                        # file, read at each start
//	    inherit_env: false          # true: it has the environment of the shell that it is submitted from
//	    gpus: {min: 1, max: 8, default: 4}  # or a number, default 1; min is 1 and default is max unless given
//	    # samples; default: the job chooses. The learning rate follows from global_min on by none, linear, sqrt or
//	    # adascale; default: as the system decides
//	    batch: {global_min: 256, global_max: 4096, per_gpu_max: 256, lr_scaling: sqrt}
//	    # how it saves: where, default a folder of its own; when asked by what, default TERM; which file it writes, in
//	    # its run directory, when all is saved, default none; which of its processes are asked: top, leader or all,
//	    # default top
//	    checkpoint: {signal: USR1, ready_file: .ckpt-done, to: top}
//	    grace: 30s                  # from SIGTERM to SIGKILL; default 30s
//	    submit: 5s                  # when it is submitted, after the start; default 0s
//	    after: [prepare]            # jobs that must be done first; a name with a count means all of its copies
//	    user: ann                   # default of user, group, model and class: unknown
//	    group: vision
//	    model: resnet50
//	    class: cv
//	    priority: 5                 # larger first, where a system looks at it; default 0
//	    # output: {file: logs/%x-%j.txt, error: logs/%x-%j.err, mode: append} has it write to files of its user: %j %x
//	    # %A %a %u; or mode truncate or once. output: {max: 1GiB} is how much of the disk what is kept may take
//	    progress: {from: tqdm}      # which of its logs has it: auto, own, tqdm, hf, lightning or steps; default auto;
//	                                # or regex: a pattern with groups such as (?P<step>...)
//	    launcher: auto              # or none: its launcher is given no options by which it keeps to the job
//	    gpu_ids: index              # how it is given its GPUs: uuid or index; default uuid, of deepspeed index
//	    # restarts after a failure of its own, the rest before each, and after which ends alone; default 0, 0s, all;
//	    # retries: 2 is the same without the others
//	    retry: {max: 2, backoff: 30s, on: [exit:75, signal:KILL]}
//	    preemptible: after-save     # may it be stopped for others: once something shows that it saves; or true, false
//	    # terminal: 30m has it run in a terminal, for trainyard attach, and end once that was idle for so long
//	    time_limit: {max: 2h, warn: 90s}  # after which it is ended; or one time; each: true is of each attempt
//	    wall_time: 10m              # how long it takes, as its submitter estimates; default unknown
//	    share: allow                # of its GPUs with other jobs: never, allow or require; default never
//	    cpus: 4                     # per GPU; default 0, no demand
//	    memory_gb: 16               # per GPU; default 0, no demand
//	    # limits: enforced has it not run where nothing holds it to these; default best-effort
//	    # gpu_type: a100 is a part of the name of the GPUs that will do, or a list of them; default any
//	    gpu_memory_gb: 12           # that each GPU has at least; default 0, unknown
//	    gpu_use: 0.4                # of each GPU when alone, 0 to 1; default 0, unknown. Who shares must say both, and
//	    epochs: 90                  # how many it trains; default unknown
//
// Reading is strict: an unknown key, a wrong type, a figure out of range, a name twice, a circle of jobs that wait for
// each other, a reserved variable, or an anchor, alias, tag or merge key is an error that says where it is, what it is
// and what is wanted:
//
//	jobfile: jobs.yaml:2:14: command "python train.py", want a list of arguments, as in
//	[python, train.py] (no shell reads it)
//
// Numbers and truth values in command and env are text, taken as written. Names are of letters, digits, dots,
// underscores and dashes, so that they can be printed anywhere. A file has at most MaxFile bytes and 100 keys in a
// mapping in block style, a list at most MaxJobs jobs; package task has the limits of a command and an environment.
//
// The package deliberately knows nothing of the machine: whether folders exist and jobs fit is found out by those who
// run them.
package jobfile
