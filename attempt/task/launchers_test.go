package task

import (
	"slices"
	"strings"
	"testing"
)

// Ensure that each launcher is given what it reads in no variable, where its user gave none, before its script; and
// that nothing else of a command changes.
func TestLaunched(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ command, want string }{
		{"torchrun --standalone train.py --standalone", "torchrun train.py --standalone"},
		{"/venv/bin/torchrun --nproc_per_node 2 --standalone -m pkg.train",
			"/venv/bin/torchrun --nproc_per_node 2 -m pkg.train"},
		{"torchrun --nproc-per-node=2 train.py", ""},
		{"torchrun train.py --standalone", ""},
		{"torchrun --standalone --nnodes=1:4 train.py", ""},
		{"torchrun --standalone --rdzv-backend c10d train.py", ""},
		{"torchrun --standalone --nnodes 1 train.py", "torchrun --nnodes 1 train.py"},
		{"python3.11 -u -m torch.distributed.run --standalone train.py",
			"python3.11 -u -m torch.distributed.run train.py"},
		{"python -X dev -m torch.distributed.run --standalone train.py",
			"python -X dev -m torch.distributed.run train.py"},
		{"python train.py -m torch.distributed.run --standalone", ""},
		{"accelerate launch train.py", "accelerate launch --main_process_port 20480 --num_processes 2 train.py"},
		{"accelerate launch --multi_gpu train.py --num_processes 9",
			"accelerate launch --main_process_port 20480 --num_processes 2 --multi_gpu train.py --num_processes 9"},
		{"accelerate launch --unknown train.py --num_processes 9",
			"accelerate launch --main_process_port 20480 --num_processes 2 --unknown train.py --num_processes 9"},
		{"accelerate launch --num-processes=1 train.py",
			"accelerate launch --main_process_port 20480 --num-processes=1 train.py"},
		{"accelerate launch --num_proc 1 --main_process_port 5 train.py", ""},
		{"accelerate launch --config_file a.yaml -m pkg.train",
			"accelerate launch --main_process_port 20480 --num_processes 2 --config_file a.yaml -m pkg.train"},
		{"accelerate-launch train.py", "accelerate-launch --main_process_port 20480 --num_processes 2 train.py"},
		{"python -m accelerate.commands.launch train.py",
			"python -m accelerate.commands.launch --main_process_port 20480 --num_processes 2 train.py"},
		{"accelerate config", ""},
		{"accelerate", ""},
		{"deepspeed train.py --include x", "deepspeed --master_port 20480 train.py --include x"},
		{"deepspeed --master_port 5 train.py", ""},
		{"deepspeed --no_python ./train", "deepspeed --master_port 20480 --no_python ./train"},
		{"python train.py", ""},
		{"sh -c torchrun", ""},
		{"torchrun", ""},
		{"/bin/trainyard slurm srun --label=false --ntasks 1 --input all -- accelerate launch train.py",
			"/bin/trainyard slurm srun --label=false --ntasks 1 --input all -- accelerate launch " +
				"--main_process_port 20480 --num_processes 2 train.py"},
		{"trainyard slurm srun -- python -m torch.distributed.run --standalone x.py",
			"trainyard slurm srun -- python -m torch.distributed.run x.py"},
		{"trainyard slurm srun --", ""},
	} {
		command := strings.Fields(c.command)
		kept := slices.Clone(command)
		want := c.want
		if want == "" {
			want = c.command
		}
		of := Task{Command: command}
		if got := strings.Join(of.Launched(command, 2, "20480"), " "); got != want {
			t.Errorf("%s\n got %s\nwant %s", c.command, got, want)
		}
		if !slices.Equal(command, kept) {
			t.Errorf("%s: the argument list of alike jobs was changed: %v", c.command, command)
		}
		of.Launcher = NoLauncher
		if got := strings.Join(of.Launched(command, 2, "20480"), " "); got != c.command {
			t.Errorf("launcher none: %s is %s", c.command, got)
		}
	}
}

// Ensure that DeepSpeed is refused what makes it use the GPUs of others, however that is written, and that it alone
// gets its GPUs by number by itself.
func TestCheckLauncher(t *testing.T) {
	t.Parallel()
	for command, bad := range map[string]bool{
		"deepspeed --num_gpus 2 train.py": true, "deepspeed --num_gpus=2 train.py": true,
		"deepspeed --num_g 2 x.py":                 true,
		"deepspeed --include localhost:0 train.py": true, "deepspeed -i localhost:0 train.py": true,
		"deepspeed --no_ssh --include=a:1 train.py":                        true,
		"python -m deepspeed.launcher.runner --inc a:1 x.py":               true,
		"trainyard slurm srun --ntasks 1 -- deepspeed -i localhost:0 x.py": true,
		"deepspeed train.py --num_gpus 2":                                  false,
		"deepspeed --master_port 2 train.py":                               false,
		"torchrun --include x":                                             false,
	} {
		of := Task{Command: strings.Fields(command)}
		err := of.CheckLauncher()
		const why = "want it without: with it DeepSpeed takes the first GPUs"
		if (err != nil) != bad || bad && !strings.Contains(err.Error(), why) {
			t.Errorf("%s: %v, refused %v", command, err, bad)
		}
		of.Launcher = NoLauncher
		if err := of.CheckLauncher(); err != nil {
			t.Errorf("launcher none: %s: %v", command, err)
		}
	}
	for command, want := range map[string]bool{"deepspeed x.py": true, "torchrun x.py": false,
		"trainyard slurm srun --ntasks 1 -- deepspeed x.py": true} {
		for ids, fixed := range map[string]bool{"": want, "uuid": false, "index": true} {
			if of := (Task{Command: strings.Fields(command), GPUIDs: ids}); of.ByIndex() != fixed {
				t.Errorf("%s, gpu_ids %q: by index %v, want %v", command, ids, of.ByIndex(), fixed)
			}
		}
	}
}
