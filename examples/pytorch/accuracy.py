"""What elastic resizing does to the test accuracy: runs that are stopped, and go on with other numbers of ranks and other
batch sizes, against runs left alone, of the same seeds.

    accuracy.py [--seeds 5] [flags of train.py]

prints one JSON document: the accuracies by seed, the mean of the differences (resized - left alone), and the half-width
of its 95 % interval by Student's t.

Each run is trained by processes of its own, as under torchrun; rank 0 gets SIGTERM when it has come far enough.
They are forked from this one, which has imported PyTorch already: that takes longer than the training.
"""

import argparse
import contextlib
import json
import os
import signal
import socket
import statistics
import sys
import tempfile

import torch

import train

# What a run goes through: ranks, global batch, factor on the learning rate, and the share of its samples after which it
# is stopped. Batches are up to four times the 64 that the rate is meant for, with the square root as factor.
ALONE = [(2, 64, 1, 1)]
RESIZED = [(2, 64, 1, 0.2), (3, 128, 2**0.5, 0.4), (1, 32, 0.5**0.5, 0.6), (4, 256, 2, 0.8), (2, 64, 1, 1)]

# 97.5 % points of Student's t by degrees of freedom.
STUDENT = {1: 12.71, 2: 4.303, 3: 3.182, 4: 2.776, 5: 2.571, 6: 2.447, 7: 2.365, 8: 2.306, 9: 2.262}


def main(args):
    p = argparse.ArgumentParser(prog="accuracy.py")
    p.add_argument("--seeds", type=int, default=5, choices=range(2, 11), metavar="2..10")
    c, flags = p.parse_known_args(args)
    torch.set_num_threads(1)
    rows = []
    for seed in range(1, c.seeds + 1):
        alone, resized = (trained(phases, flags + ["--seed", str(seed)]) for phases in (ALONE, RESIZED))
        rows.append({"seed": seed, "alone": alone["accuracy"], "resized": resized["accuracy"],
                     "steps_alone": alone["steps"], "steps_resized": resized["steps"]})
    differences = [r["resized"] - r["alone"] for r in rows]
    half = STUDENT[c.seeds - 1] * statistics.stdev(differences) / c.seeds**0.5
    print(json.dumps({"schema": "trainyard.accuracy/v1", "seeds": rows, "difference": statistics.mean(differences),
                      "half_width": half}))


def trained(phases, flags):
    """Trains one run through its phases and returns its result."""
    c = train.parse(flags, {})
    with tempfile.TemporaryDirectory() as folder:
        for world, batch, scale, until in phases:
            env = {"TRAINYARD_BATCH_GLOBAL": str(batch), "TRAINYARD_LR_SCALE": str(scale),
                   "TRAINYARD_CHECKPOINT_DIR": os.path.join(folder, "checkpoint"),
                   "WORLD_SIZE": str(world), "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(free_port())}
            stop = until * c.epochs * c.dataset if until < 1 else None
            pids = [fork(folder, flags, {**env, "RANK": str(rank)}, stop) for rank in range(world)]
            for pid in pids:
                code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
                if code != (train.PREEMPTED if stop else train.DONE):
                    with open(os.path.join(folder, "output")) as f:
                        sys.exit(f"{world} ranks, batch {batch}: one ended with exit code {code}:\n{f.read()}")
        with open(os.path.join(folder, "output")) as f:
            return json.loads([line for line in f if line.startswith("{")][-1])


def fork(folder, flags, env, stop):
    """Starts a rank and returns its pid. It writes to the file output in folder."""
    pid = os.fork()
    if pid:
        return pid
    code = train.ERROR
    try:
        os.environ.update(env)
        with open(os.path.join(folder, "output"), "a") as out, \
                contextlib.redirect_stdout(out), contextlib.redirect_stderr(out):
            code = train.main(flags + ["--report-every", "1"], lambda run_dir: Stopping(run_dir, stop))
    finally:
        os._exit(code)


class Stopping(train.Progress):
    """Sends its own process SIGTERM once a number of samples is done."""

    def __init__(self, run_dir, stop):
        super().__init__(run_dir)
        self.stop = stop

    def tell(self, **fields):
        super().tell(**fields)
        if self.stop is not None and fields["samples"] >= self.stop:
            os.kill(os.getpid(), signal.SIGTERM)


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


if __name__ == "__main__":
    main(sys.argv[1:])
