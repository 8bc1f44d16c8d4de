"""Trains a small classifier with PyTorch, the way a job of a cluster does: it saves when asked to stop, resumes by itself,
at any world size and batch size, and tells its progress.

    run.sh [flags]      by torchrun, on as many ranks as Trainyard gives
    train.py [flags]    by itself, on one rank                            (train.py -h lists the flags)

Environment, besides that of torchrun; an empty variable counts as not set:

    TRAINYARD_BATCH_GLOBAL    samples per step over all ranks (default --batch)
    TRAINYARD_BATCH_PER_GPU   samples that fit on a rank; a larger share is accumulated (default: all fit)
    TRAINYARD_LR_SCALE        factor on the learning rate (default 1)
    TRAINYARD_CHECKPOINT_DIR  where checkpoints are saved and looked for (default: none are)
    TRAINYARD_RUN_DIR         folder of progress.jsonl and of the ready file (default: neither is written)

A run begins from the newest whole checkpoint in its folder, whatever TRAINYARD_RESUME says.

Output of rank 0:

    TRAINYARD step=120 total=1600 epoch=2 loss=0.83 samples=7680    at the start, every --report-every steps, at the end;
                                                                    with --grad-stats also grad_sqr, grad_var
    TRAINYARD saved step=100                                        a checkpoint is on disk
    TRAINYARD preempted step=120                                    the last line of a run that was asked to stop
    {"steps": 1600, "accuracy": ..., "hash": ..., ...}              the result
    TRAINYARD done steps=1600 loss=0.31 accuracy=0.87 hash=...      the last line of a run that finished

loss is the mean cross-entropy of the step's batch, and of the held-out samples in the result. total is a forecast: the
length of a run is --epochs, so its steps depend on the batch sizes it is given.

Exit codes (torchrun makes 1 of all but 0):

    0     trained to the end
    1     an error: a file, another run's checkpoint, a rank that died, or a loss that is no longer finite
    2     wrong flags or environment
    75    asked to stop, and the work is saved: the ready file, .ckpt-done in the run directory, says so as well
    143   asked to stop, and there is no folder to save in
"""

import argparse
import contextlib
import hashlib
import json
import math
import os
import signal
import sys
import time
import traceback

import torch
import torch.distributed as dist
from torch.nn.functional import cross_entropy
from torch.nn.parallel import DistributedDataParallel

import checkpoint
import data
import noise
from progress import Progress

DONE, ERROR, USAGE, PREEMPTED, SIGNALLED = 0, 1, 2, 75, 143
READY = ".ckpt-done"
HIDDEN, MOMENTUM = 64, 0.9


def main(args, progress=Progress):
    """Is one rank; returns its exit code. progress makes what rank 0 tells by, of the run directory."""
    try:
        c = parse(args, os.environ)
    except ValueError as e:
        print(f"train: {e}", file=sys.stderr)
        return USAGE
    try:
        meet()
        return Training(c, progress).run()
    except Refused as e:
        print(f"train: {e}", file=sys.stderr)
    except Exception:
        traceback.print_exc()
    return ERROR


def end(code):
    """Ends the process at once, without Python's own shutdown: a thread of gloo that is late to let go of the last
    collective's tensors would ask for the interpreter in the midst of it, and abort the process (PyTorch 179291)."""
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)


class Refused(Exception):
    """An error that is told without a traceback; every rank raises it alike."""


def meet():
    """Joins the ranks that torchrun has started; alone, one rank makes a world of its own."""
    if "WORLD_SIZE" in os.environ:
        dist.init_process_group("gloo")
    else:
        dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)


def parse(args, env):
    """Returns what flags and environment ask for; a ValueError is the user's."""
    p = argparse.ArgumentParser(prog="train.py")
    p.add_argument("--epochs", type=int, default=20, help="length of the run")
    p.add_argument("--dataset", type=int, default=4096, help="samples in an epoch")
    p.add_argument("--batch", type=int, default=64, help="global batch; $TRAINYARD_BATCH_GLOBAL goes before it")
    p.add_argument("--rate", type=float, default=0.05, help="learning rate at --batch; it falls to 0 along a half cosine")
    p.add_argument("--seed", type=int, default=1, help="of the initial weights and of the order of samples")
    p.add_argument("--checkpoint-every", type=int, default=100, help="steps; 0 saves only when stopped and at the end")
    p.add_argument("--report-every", type=int, default=10, help="steps between progress lines")
    p.add_argument("--step-time", type=float, default=0, help="least seconds of a step on one rank; on n, an n-th of it")
    p.add_argument("--workers", type=int, default=0, help="processes of each rank that load samples; 0: itself")
    p.add_argument("--grad-stats", action="store_true", help="tell the statistics of the gradient; costs a second one")
    c = p.parse_args(args)
    for name, least in [("epochs", 1), ("dataset", 1), ("batch", 1), ("checkpoint_every", 0), ("report_every", 1),
                        ("step_time", 0), ("workers", 0)]:
        if getattr(c, name) < least:
            raise ValueError(f"--{name.replace('_', '-')} {getattr(c, name)}, want {least} or more")
    c.world = int(env.get("WORLD_SIZE") or 1)
    c.batch_global = whole(env, "TRAINYARD_BATCH_GLOBAL", c.batch)
    c.per_rank = whole(env, "TRAINYARD_BATCH_PER_GPU", c.batch_global)
    c.scale = factor(env, "TRAINYARD_LR_SCALE")
    c.folder, c.run_dir = env.get("TRAINYARD_CHECKPOINT_DIR"), env.get("TRAINYARD_RUN_DIR")
    if c.batch_global < (2 if c.grad_stats else 1) * c.world:
        raise ValueError(f"a batch of {c.batch_global} on {c.world} ranks, want a sample for each (two with --grad-stats)")
    return c


def whole(env, name, unset):
    """Returns a variable as a whole number > 0."""
    text = env.get(name) or str(unset)
    if not text.isdecimal() or int(text) < 1:
        raise ValueError(f"{name} {text!r}, want a whole number > 0")
    return int(text)


def factor(env, name):
    """Returns a variable as a number > 0, 1 if it is not set."""
    text = env.get(name) or "1"
    with contextlib.suppress(ValueError):
        if 0 < float(text) < math.inf:
            return float(text)
    raise ValueError(f"{name} {text!r}, want a number > 0")


class Training:
    """One rank of a run: from the start or a checkpoint to the end, or until it is asked to stop."""

    def __init__(self, c, progress=Progress):
        self.c, self.rank, self.world = c, dist.get_rank(), dist.get_world_size()
        self.step = 0  # steps done
        self.samples = 0  # samples seen in them
        self.saved = None  # step of the newest checkpoint
        self.stop = False
        self.loaded = None  # what the workers load, if there are any
        torch.manual_seed(c.seed)
        (self.inputs, self.labels), self.held_out = data.task(c.dataset)
        self.order = data.Order(c.dataset, c.seed)
        self.model = torch.nn.Sequential(
            torch.nn.Linear(data.INPUTS, HIDDEN), torch.nn.ReLU(), torch.nn.Linear(HIDDEN, data.CLASSES))
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=c.rate, momentum=MOMENTUM)
        self.progress = progress(c.run_dir) if self.rank == 0 else None

    def run(self):
        """Trains, and returns the exit code."""
        self.resume()
        self.ddp = DistributedDataParallel(self.model)
        # From here on a signal is answered at the next step. Until now there was nothing to save, and it ends the process.
        for s in (signal.SIGTERM, signal.SIGINT):
            signal.signal(s, self.asked)
        # Workers die of a signal, and a rank whose worker died raises. Trainyard asks the rank alone.
        if self.c.workers:
            self.loaded = data.loader(data.Samples(self.inputs, self.labels), list(self.pieces()), self.c.workers)
        self.tell()
        try:
            return self.steps()
        finally:
            self.loaded = None  # ends the workers

    def steps(self):
        while self.samples < self.total():
            asked = self.train()
            if asked:
                return self.preempted()
            if self.c.checkpoint_every and self.step % self.c.checkpoint_every == 0:
                self.save()
        return self.finish()

    def pieces(self):
        """Yields the indices of our share of each batch to come, in the pieces that fit."""
        first = self.samples
        while first < self.total():
            batch = self.order.take(first, min(self.c.batch_global, self.total() - first))
            first += len(batch)
            yield from data.share(batch, self.rank, self.world).split(self.c.per_rank)

    def asked(self, *_):
        self.stop = True

    def total(self):
        """Returns the samples of the whole run."""
        return self.c.epochs * self.c.dataset

    def train(self):
        """Does one step and tells of it. Returns whether any rank was asked to stop: signals reach the ranks at different
        steps, but all must stop at one."""
        began = time.monotonic()
        batch = self.order.take(self.samples, min(self.c.batch_global, self.total() - self.samples))
        mine = data.share(batch, self.rank, self.world)
        statistics = self.statistics(mine, len(batch)) if self.reports(len(batch)) else {}
        loss = self.backward(mine, len(batch))
        for group in self.optimizer.param_groups:
            group["lr"] = self.rate()
        self.optimizer.step()
        self.step, self.samples = self.step + 1, self.samples + len(batch)
        time.sleep(max(0, self.c.step_time / self.world - (time.monotonic() - began)))
        sums = torch.tensor([loss, self.stop], dtype=torch.float64)
        dist.all_reduce(sums)
        loss, asked = float(sums[0]) / len(batch), sums[1] > 0
        if not math.isfinite(loss):
            raise Refused(f"step {self.step}: loss {loss}: the learning rate is too high")
        if self.reports() or asked:
            self.tell(loss=loss, **statistics)
        return asked

    def backward(self, mine, batch):
        """Leaves the gradient of the mean loss of a batch in the parameters and returns the sum of the losses of our share.

        As DDP averages over ranks, whose shares may differ by a sample, each loss is weighted by world/batch. A share that
        does not fit is taken in pieces, of which the last one meets those of the other ranks.
        """
        self.optimizer.zero_grad()
        total, pieces = 0.0, mine.split(self.c.per_rank)
        for i, piece in enumerate(pieces):
            last = i == len(pieces) - 1
            inputs, labels = next(self.loaded) if self.loaded else (self.inputs[piece], self.labels[piece])
            with contextlib.nullcontext() if last else self.ddp.no_sync():
                loss = cross_entropy(self.ddp(inputs), labels, reduction="sum")
                (loss * (self.world / batch)).backward()
            total += loss.item()
        return total

    def rate(self):
        """Returns the learning rate of the next step. It depends on the samples seen, so that a run with other batches
        goes along the same curve."""
        return self.c.rate * self.c.scale * 0.5 * (1 + math.cos(math.pi * self.samples / self.total()))

    def statistics(self, mine, batch):
        """Returns those of the gradient, if they are wanted and the batch, which may be the rest of the run, has two samples
        for each rank."""
        if not self.c.grad_stats or batch < 2 * self.world:
            return {}
        losses = [(cross_entropy(self.model(self.inputs[half]), self.labels[half], reduction="sum"), len(half))
                  for half in mine.tensor_split(2)]
        sqr, var = noise.statistics(losses, list(self.model.parameters()), batch, self.c.batch)
        return {"grad_sqr": sqr, "grad_var": var}

    def reports(self, more=0):
        """Says whether the step just done has a progress line, or the next one, which takes so many samples more."""
        step = self.step + (more > 0)
        return step % self.c.report_every == 0 or self.samples + more >= self.total()

    def tell(self, **more):
        left = math.ceil((self.total() - self.samples) / self.c.batch_global)
        if self.progress:
            self.progress.tell(step=self.step, total=self.step + left, epoch=self.samples // self.c.dataset, **more,
                               samples=self.samples)

    def resume(self):
        """Continues from the newest checkpoint, if there is one. Rank 0 picks it, so that all have the same."""
        if not self.c.folder:
            return
        found = [checkpoint.newest(self.c.folder) if self.rank == 0 else None]
        dist.broadcast_object_list(found)
        state = found[0]
        if not state:
            return
        for name, want in (("seed", self.c.seed), ("dataset", self.c.dataset)):
            if state[name] != want:
                raise Refused(f"checkpoint of --{name} {state[name]}, want {want}")
        self.model.load_state_dict(state["model"])
        hyper = self.optimizer.state_dict()["param_groups"]  # ours, not those of the run that saved
        self.optimizer.load_state_dict({"state": state["momentum"], "param_groups": hyper})
        self.step, self.samples, self.saved = state["step"], state["samples"], state["step"]
        if self.rank == 0:
            print(f"train: resumed at step {self.step}, saved by {state['world']} ranks with batch {state['batch']}, "
                  f"now {self.world} with {self.c.batch_global}", file=sys.stderr)

    def save(self):
        """Saves on rank 0, if there is a folder for it and no checkpoint of this step; the others wait for it."""
        if not self.c.folder:
            return
        if self.rank == 0 and self.saved != self.step:
            checkpoint.save(self.c.folder, {
                "step": self.step, "samples": self.samples, "seed": self.c.seed, "dataset": self.c.dataset,
                "world": self.world, "batch": self.c.batch_global,
                "model": self.model.state_dict(), "momentum": self.optimizer.state_dict()["state"]})
            self.progress.say(f"saved step={self.step}")
        self.saved = self.step
        dist.barrier()  # a rank that left early would be a failure to torchrun, which ends the one that saves

    def preempted(self):
        self.save()
        if self.rank == 0:
            if self.c.folder and self.c.run_dir:
                text = json.dumps({"step": self.step, "checkpoint": checkpoint.file_name(self.step)}) + "\n"
                checkpoint.replace(os.path.join(self.c.run_dir, READY), lambda f: f.write(text.encode()))
            self.progress.say(f"preempted step={self.step}")
        dist.barrier()
        return PREEMPTED if self.c.folder else SIGNALLED

    def finish(self):
        """Saves, so that a run started once more ends at once with the same answer, and gives the result."""
        self.save()
        if self.rank == 0:
            inputs, labels = self.held_out
            with torch.no_grad():
                scores = self.model(inputs)
            accuracy = (scores.argmax(1) == labels).float().mean().item()
            r = {"steps": self.step, "loss": cross_entropy(scores, labels).item(), "accuracy": accuracy,
                 "hash": self.hash(), "world": self.world, "samples": self.samples}
            print(json.dumps(r), flush=True)
            self.progress.say("done steps={steps} loss={loss:.6g} accuracy={accuracy:.6g} hash={hash}".format(**r))
        dist.barrier()
        return DONE

    def hash(self):
        digest = hashlib.sha256()
        for t in self.model.state_dict().values():
            digest.update(t.contiguous().numpy().tobytes())
        return digest.hexdigest()


if __name__ == "__main__":
    end(main(sys.argv[1:]))
