"""A job: what its scheduler gives it, its steps, and how it stops."""

import contextlib
import glob
import math
import os
import sys
import time
from typing import Callable, Dict, Generator, Iterable, Iterator, List, Mapping, Optional, TypeVar

from . import _memory, _ranks, _sampler, _signals
from ._checkpoints import Checkpoints

T = TypeVar("T")

#: The exit code of a training that was stopped, and has saved all it did.
STOPPED = 75

# The least time between two lines of progress, in seconds.
_APART = 0.1


class Job:
    """What a scheduler gives this process. Without a scheduler all is as it is by default."""

    def __init__(self, env: Mapping[str, str]) -> None:
        self._env = env
        #: "trainyard", "slurm" or "kubernetes"; None without one.
        self.scheduler: Optional[str] = _scheduler(env)
        #: Which start of the job this is, from 1.
        self.attempt = _whole(env, "TRAINYARD_ATTEMPT") or 1
        #: Whether an earlier attempt may have left a checkpoint.
        self.resumed = env.get("TRAINYARD_RESUME") == "1" or env.get("SLURM_RESTART_COUNT", "0") not in ("0", "")
        #: GPUs, or slots, of all ranks together.
        self.gpus = _whole(env, "TRAINYARD_NUM_GPUS") or 1
        #: Samples of a step over all ranks, None where the scheduler does not decide on it.
        self.global_batch = _whole(env, "TRAINYARD_BATCH_GLOBAL")
        #: Samples that one GPU takes at a time, None where the scheduler does not decide on it.
        self.batch_per_gpu = _whole(env, "TRAINYARD_BATCH_PER_GPU")
        #: Rounds of accumulation in a step.
        self.accumulation = _whole(env, "TRAINYARD_BATCH_ACCUM") or 1
        #: Factor on the learning rate for the batch of this attempt.
        self.lr_scale = _number(env, "TRAINYARD_LR_SCALE") or 1.0
        #: Memory of each GPU, in MiB, that the job may take where it shares them; None: all. PyTorch keeps to it on the
        #: GPU of this process, from the first step on at which it uses CUDA.
        self.gpu_memory_mib = _whole(env, "TRAINYARD_GPU_MEMORY_MIB")
        #: The ranks that train together.
        self.ranks = _ranks.Ranks(env)
        #: Steps done, those of earlier attempts included: Checkpoints.load sets it.
        self.step = 0
        self._signals = _signals.StopSignals(_signals.wanted(self.scheduler))
        self._saved: Optional[int] = None
        self._complete = False
        self._spoke = 0.0
        self._told: Dict[str, float] = {}
        self._bounded = self.gpu_memory_mib is None

    @property
    def checkpoint_folder(self) -> str:
        """Where the job saves: the folder that its scheduler gives it, else ./checkpoints."""
        return self._env.get("TRAINYARD_CHECKPOINT_DIR") or "checkpoints"

    def newest_file(self, pattern: str) -> Optional[str]:
        """The file of checkpoint_folder that was written last, of those whose names fit, such as "*.ckpt"; or None."""
        files = glob.glob(os.path.join(glob.escape(self.checkpoint_folder), pattern))
        return max(files, key=lambda path: (os.path.getmtime(path), path)) if files else None

    def checkpoints(self, keep: int = 2, folder: Optional[str] = None, per_rank: bool = False) -> Checkpoints:
        """The checkpoints of this job, by default in the folder that its scheduler gives it, else ./checkpoints."""
        return Checkpoints(self, folder or self.checkpoint_folder, keep, per_rank)

    @property
    def stopping(self) -> bool:
        """Whether this process was asked to stop. Other ranks may not know yet: ``steps`` has all stop at one step."""
        return self._signals.asked

    def steps(self, data: Iterable[T], total: Optional[int] = None, save: Optional[Callable[[], object]] = None,
              every: Optional[int] = None, poll: int = 1, sampler: Optional[_sampler.ElasticSampler] = None
              ) -> Iterator[T]:
        """Yields batches. A step is done when the next one is asked for.

        total: steps in all, those of earlier attempts included; the data is read over and over until then. None: once.
        save: saves the state; called after each ``every`` steps, when the job is to stop, and after the last of total.
        poll: in how many steps the ranks ask each other once whether one was asked to stop. All stop at the same step.
        sampler: is advanced with each step; found by itself where the data is a DataLoader that has it.

        When the job is to stop, it ends here: saved, reported ready, with exit code 75.
        """
        if every is not None and every < 1 or poll < 1:
            raise ValueError("every and poll, want at least 1")
        if total is not None and self.step >= total:
            self._complete = True
            return
        sampler = sampler or _sampler.of(data)
        self._signals.install()
        passes = _passes(data, total is None)
        for batch in passes:
            if self.step % poll == 0 and self.ranks.any(self.stopping):
                del batch
                self._stop(save, passes)
            self._bound()
            yield batch
            self.step += 1
            if sampler is not None:
                sampler.advance()
            last = self.step == total
            if save is not None and (last or every is not None and self.step % every == 0):
                save()
            self._line(total, last)
            if last:
                break
        self._complete = total is None or self.step >= total

    def tell(self, **figures: object) -> None:
        """Reports figures of the training with its next line, such as ``loss=0.3``: numbers, by the words of the job
        contract (loss, epoch, samples, ...). At most ten lines a second are written."""
        for key, value in figures.items():
            if key in ("step", "total", "saved", "ready", "done"):
                raise ValueError(f"tell: {key} is reported by steps and save")
            number = float(value.item() if hasattr(value, "item") else value)  # type: ignore[arg-type]
            if math.isfinite(number) and number >= 0:  # the contract knows no others
                self._told[key] = number

    def saved(self, step: int) -> None:
        """Reports that a checkpoint of a step is on the disk. Checkpoints.save does so."""
        self._saved = step
        self._write(f"saved step={step}")

    def ready(self) -> None:
        """Reports that all that was done is saved: the job may be stopped without loss."""
        self._write("ready")

    def _done(self) -> None:
        self._write("done")

    def listen(self) -> None:
        """Handles signals from here on. ``steps`` does so; loops of other libraries call it before their first step."""
        self._signals.install()

    def agreed(self) -> bool:
        """Whether any rank was asked to stop. All ranks call it at the same step."""
        return self.ranks.any(self.stopping)

    def at(self, step: int, total: Optional[int] = None) -> None:
        """Reports that steps are done, where another library counts them."""
        self._bound()
        self.step = step
        self._line(total, step == total)

    def complete(self) -> None:
        """Says that all steps are done: ``done`` is reported when the block of ``job`` ends."""
        self._complete = True

    def stop(self) -> None:
        """Ends the process, all being saved: reports ready, and exits with 75. All ranks call it."""
        self.ranks.barrier()
        self.ready()
        self._leave()

    def _stop(self, save: Optional[Callable[[], object]], passes: "Generator[T, None, None]") -> None:
        if save is not None:
            save()
            self.ranks.barrier()
            self.ready()
        passes.close()  # the workers of a DataLoader end with it
        self._leave()

    def _leave(self) -> None:
        sys.stdout.flush()
        sys.stderr.flush()
        if self.ranks.up:  # a thread of gloo may abort Python's own end, and its exit code would be lost
            self.ranks.barrier()
            os._exit(STOPPED)
        raise SystemExit(STOPPED)

    def _bound(self) -> None:
        if not self._bounded and self.gpu_memory_mib is not None:
            self._bounded = _memory.bound(self.gpu_memory_mib, _natural(self._env, "LOCAL_RANK"))

    def _line(self, total: Optional[int], last: bool) -> None:
        now = time.monotonic()
        if now - self._spoke < _APART and not last:
            return
        self._spoke = now
        words: List[str] = [f"step={self.step}"]
        if total is not None:
            words.append(f"total={total}")
        words += [f"{key}={_figure(value)}" for key, value in self._told.items()]
        self._told.clear()
        self._write(" ".join(words))

    def _write(self, text: str) -> None:
        if self.scheduler == "trainyard" and self.ranks.first:
            print("TRAINYARD", text, flush=True)

    def _end(self, well: bool) -> None:
        self._signals.restore()
        if well and self._complete:
            self._done()


@contextlib.contextmanager
def job() -> Iterator[Job]:
    """What the scheduler gives this process, for as long as it trains."""
    j = Job(dict(os.environ))
    j._bound()
    well = False
    try:
        yield j
        well = True
    finally:
        j._end(well)


def _passes(data: Iterable[T], once: bool) -> "Generator[T, None, None]":
    """Yields the data, once or again and again. What can be read only once is read once."""
    while True:
        read = iter(data)
        some = False
        for batch in read:
            some = True
            yield batch
        if once or read is data or not some:
            return


def _scheduler(env: Mapping[str, str]) -> Optional[str]:
    for name, variable in (("trainyard", "TRAINYARD_JOB_ID"), ("slurm", "SLURM_JOB_ID"),
                           ("kubernetes", "KUBERNETES_SERVICE_HOST")):
        if env.get(variable):
            return name
    return None


def _whole(env: Mapping[str, str], name: str) -> Optional[int]:
    return _natural(env, name) or None


def _natural(env: Mapping[str, str], name: str) -> Optional[int]:
    text = env.get(name, "")
    return int(text) if text.isdigit() else None


def _number(env: Mapping[str, str], name: str) -> Optional[float]:
    try:
        value = float(env.get(name, ""))
    except ValueError:
        return None
    return value if 0 < value < float("inf") else None


def _figure(number: float) -> str:
    """A number as the contract has it."""
    return str(int(number)) if number.is_integer() and number < 1e15 else format(number, ".9g")
