#!/bin/sh
# A day of a user in one or two minutes: daily.sh BIN FOLDER [PYTHON], with a manager of its own on four slots, no root, no GPU.
#
# It submits what people bring from elsewhere, changes some of it, stops a training three times and kills the manager
# once; then it checks what came of it. It ends with 1 at the first thing that is not as it should be.
set -eu
bin=$(realpath "$1") python=${3:-/usr/bin/python3}
mkdir -p "$2" && work=$(realpath "$2") && root=$(realpath "$(dirname "$0")/../..")
export TRAINYARD_STATE="$work/state" PATH="$work/links:$work/bin:$bin:$PATH" COLOUR=blue PYTHONPATH="$root/python/src"
export PYTHONDONTWRITEBYTECODE=1 OMP_NUM_THREADS=1
mkdir -p "$work/links" "$work/bin" "$work/meet" "$work/one" "$work/two"
cd "$work"

fail() { echo "daily: $*" >&2; exit 1; }
step() { echo; echo "== $*"; }
serve() {
	trainyard serve --slots 4 --set '*.min_run=0' >>serve.log 2>&1 &
	manager=$!
	for _ in $(seq 200); do trainyard nodes >nodes 2>&1 && return; sleep 0.1; done
	fail "no manager answers: $(cat serve.log)"
}
end() {
	trainyard cancel --all -y >cancelled 2>&1 || true
	kill "$manager" 2>/dev/null || true
	wait "$manager" 2>/dev/null || true
}
trap end EXIT
# longest prints the job that waited longest
longest() {
	trainyard ps --all -o jsonl | "$python" -c 'import json, sys
print(max(map(json.loads, sys.stdin), key=lambda job: job["queue_s"])["id"])'
}
# curve FOLDER: the loss of each step, of the last time that it was done
curve() { awk '{loss[$2] = $3} END {for (i in loss) print i, loss[i]}' "$1/rank-0" | sort -n; }

step 'submit: launchers, an array of Slurm and what follows it, a training, a time limit'
serve
trainyard slurm-links links >linked
printf '#!/bin/sh\necho "$@"\n' >bin/accelerate && chmod +x bin/accelerate
"$python" -c 'import torch' 2>torch || fail "no PyTorch for $python: $(tail -n 1 torch)"
launch="$python -m torch.distributed.run --redirects=9:0 --tee=9:0" # PyTorch 1.13 fails on its own 0 under Python 3.11
for name in one two; do # torchrun with neither port nor width
	trainyard submit --name "meet-$name" --model meet --gpus 2 -- \
		$launch "$root/python/tests/meet.py" "$work/meet" 2
done
limited=$(trainyard submit --name limited --model idle --time 20s --grace 1s -- sleep 1000)
accelerated=$(trainyard submit --name accelerated --gpus 2 -- accelerate launch train.py)
array=$(sbatch --parsable --array=0-7%2 -J sweep --wrap 'echo "task $SLURM_ARRAY_TASK_ID $COLOUR"; sleep 0.2')
after=$(sbatch --parsable --dependency="afterok:$array" --mem=500 -c 1 -J after --wrap 'echo after')
for name in one two; do
	trainyard submit --name "train-$name" --model points --gpus 2 --checkpoint "$work/$name.ckpt" -- \
		$launch "$root/python/tests/train.py" "$work/$name" 240
done

step 'change: edit one, raise a priority'
trainyard edit "$after" grace=5s
trainyard priority train-two 5

step 'stop the training three times, and kill the manager once'
for n in 1 2 3; do
	for _ in $(seq 3000); do [ "$(curve two 2>/dev/null | wc -l)" -ge $((n * 15)) ] && break; sleep 0.1; done
	trainyard requeue train-two
	[ "$n" != 2 ] && continue
	kill -9 "$manager" && wait "$manager" 2>/dev/null || true
	serve
done

step 'a terminal'
script -qec "trainyard run --pty --name shell -- sh -c 'tty && echo the colour is \$COLOUR'" terminal </dev/null >said || true
trainyard wait shell
trainyard logs shell | grep -q 'the colour is blue' || fail 'the terminal does not know the variables of this shell'

step 'wait for the end of all'
trainyard wait train-one train-two meet-one meet-two "$accelerated" "$after" || fail 'a job did not finish'
! trainyard wait "$limited" 2>limit || fail 'the job with a time limit finished'
trainyard ps --all
trainyard why "$(longest)"
trainyard usage --by model

step 'check'
grep -q 'time' limit || fail "the time limit: $(cat limit)"
trainyard logs "$accelerated" | grep -q -- '--main_process_port' || fail 'accelerate was given no port'
for n in 0 1 2 3 4 5 6 7; do
	cat slurm-"$array"_"$n".out | grep -q "task $n blue" || fail "task $n of the array wrote something else"
done
[ "$(sacct -n -P -o State -j "$array" | sort | uniq -c | tr -s ' ')" = ' 8 COMPLETED' ] || fail 'tasks did not finish'
stopped=$(awk '{print $1}' two/rank-0 | sort -nu | wc -l)
[ "$stopped" -ge 3 ] || fail "the training ran $stopped times, want at least three"
curve one >one.loss
curve two >two.loss
cmp one.loss two.loss || fail 'the training that was stopped has another loss than the one left alone'
echo "all is as it should be: $(wc -l <two.loss) steps, the same loss after $stopped starts"
