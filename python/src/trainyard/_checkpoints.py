"""Checkpoints that a crash at any moment, or a full disk, leaves whole.

A checkpoint is a folder ``step-000000500`` with a file ``data``, or one ``rank-0``, ``rank-1``, ... for each rank, and a
mark ``COMPLETE``: JSON with the step, the ranks, and size and CRC-32 of each file. It is written under a hidden name,
synced, marked, renamed, and then its folder is synced.
"""

import json
import os
import pickle
import re
import shutil
import sys
import zlib
from typing import IO, TYPE_CHECKING, Any, Callable, Dict, List, Optional

if TYPE_CHECKING:
    from ._job import Job

MARK = "COMPLETE"
_NAME = re.compile(r"(?:replaced-)?step-(\d{9,})")
_CHUNK = 1 << 20


class Checkpoints:
    """The checkpoints of a job, in one folder; the ``keep`` newest stay.

    Rank 0 writes, or each rank its part where ``per_rank`` is set. Then all ranks call ``save`` and ``load`` together.
    """

    def __init__(self, job: "Job", folder: str, keep: int = 2, per_rank: bool = False) -> None:
        if keep < 1:
            raise ValueError(f"keep {keep}, want at least 1")
        self._job, self.folder, self.keep, self.per_rank = job, folder, keep, per_rank
        self._at: Optional[int] = None  # the step that this process saved or loaded last

    def save(self, state: Any, dump: Callable[[Any, IO[bytes]], object] = pickle.dump) -> None:
        """Saves a state at the step that the job is at, by ``dump(state, file)``, as ``torch.save`` is.

        When it returns, the checkpoint is on the disk. Where it raises, nothing is reported saved, and the checkpoints
        before are as they were. A step that this process saved or loaded is not saved again.
        """
        step, ranks = self._job.step, self._job.ranks
        if step == self._at:
            return
        if self.per_rank and ranks.count > 1 and not ranks.up:
            raise RuntimeError("per_rank: the ranks cannot wait for each other, want torch.distributed initialised")
        hidden = os.path.join(self.folder, f".tmp-step-{step:09}")
        final = os.path.join(self.folder, f"step-{step:09}")
        self._together(lambda: self._prepare(hidden), first=True)
        self._together(lambda: self._write(hidden, state, dump), first=not self.per_rank)
        self._together(lambda: self._complete(hidden, final, step), first=True)
        self._at = step
        self._job.saved(step)

    def load(self, read: Callable[[IO[bytes]], Any] = pickle.load) -> Any:
        """Returns the state of the newest checkpoint that is whole, by ``read(file)``, as ``torch.load`` is; None where
        there is none. The job goes on at its step. Those that are torn or altered are passed over, and named on stderr.
        """
        ranks = self._job.ranks
        name = ranks.from_first(self._newest() if ranks.first else None)
        if name is None:
            return None
        path = os.path.join(self.folder, name)
        mark = _mark(path)
        if self.per_rank and mark["ranks"] != ranks.count:
            raise ValueError(f"{path}: saved by {mark['ranks']} ranks, each its part; these are {ranks.count}")
        with open(os.path.join(path, self._file()), "rb") as f:
            state = read(f)
        self._job.step = self._at = int(mark["step"])
        return state

    def steps(self) -> List[int]:
        """The steps of the checkpoints that are there, whole or not, ascending."""
        names = os.listdir(self.folder) if os.path.isdir(self.folder) else []
        return sorted({int(m[1]) for m in map(_NAME.fullmatch, names) if m})

    def _together(self, do: Callable[[], None], first: bool) -> None:
        """Has rank 0, or each rank, do something. Where one fails, all raise."""
        error: Optional[BaseException] = None
        if self._job.ranks.first or not first:
            try:
                do()
            except Exception as e:
                error = e
        self._job.ranks.all_well(error)

    def _file(self) -> str:
        return f"rank-{self._job.ranks.number}" if self.per_rank else "data"

    def _prepare(self, hidden: str) -> None:
        os.makedirs(self.folder, exist_ok=True)
        for name in os.listdir(self.folder):  # what attempts before left unfinished
            if name.startswith(".tmp-step-"):
                shutil.rmtree(os.path.join(self.folder, name))
        os.mkdir(hidden)

    def _write(self, hidden: str, state: Any, dump: Callable[[Any, IO[bytes]], object]) -> None:
        try:
            with open(os.path.join(hidden, self._file()), "wb") as f:
                dump(state, f)
                f.flush()
                os.fsync(f.fileno())
        except BaseException:
            if not self.per_rank:
                shutil.rmtree(hidden, ignore_errors=True)  # room for others on a full disk
            raise

    def _complete(self, hidden: str, final: str, step: int) -> None:
        ranks = self._job.ranks.count
        names = [f"rank-{n}" for n in range(ranks)] if self.per_rank else ["data"]
        files: Dict[str, Dict[str, int]] = {}
        for name in names:
            path = os.path.join(hidden, name)
            files[name] = {"size": os.path.getsize(path), "crc32": _crc(path)}
        with open(os.path.join(hidden, MARK), "w", encoding="utf-8") as f:
            json.dump({"step": step, "ranks": ranks, "files": files}, f)
            f.flush()
            os.fsync(f.fileno())
        _sync(hidden)
        aside = os.path.join(self.folder, f"replaced-step-{step:09}")
        if os.path.lexists(final):  # torn, or of a training that this one does not go on with
            shutil.rmtree(aside, ignore_errors=True)
            os.rename(final, aside)
        os.rename(hidden, final)
        _sync(self.folder)
        shutil.rmtree(aside, ignore_errors=True)
        for old in self.steps()[:-self.keep]:
            if old != step:
                shutil.rmtree(os.path.join(self.folder, f"step-{old:09}"), ignore_errors=True)
                shutil.rmtree(os.path.join(self.folder, f"replaced-step-{old:09}"), ignore_errors=True)

    def _newest(self) -> Optional[str]:
        for step in reversed(self.steps()):
            name = f"step-{step:09}"
            if self._whole(os.path.join(self.folder, name)):
                return name
            if self._whole(os.path.join(self.folder, "replaced-" + name)):  # a crash while that was replaced
                return "replaced-" + name
            print(f"trainyard: {os.path.join(self.folder, name)} is not whole: passed over", file=sys.stderr)
        return None

    def _whole(self, path: str) -> bool:
        """Says whether a folder is a checkpoint of which every byte is as it was written."""
        try:
            mark = _mark(path)
            return all(os.path.getsize(os.path.join(path, name)) == file["size"]
                       and _crc(os.path.join(path, name)) == file["crc32"] for name, file in mark["files"].items())
        except (OSError, ValueError):
            return False


def _mark(path: str) -> Dict[str, Any]:
    """Reads the mark of a checkpoint. ValueError where it is none."""
    with open(os.path.join(path, MARK), encoding="utf-8") as f:
        mark = json.load(f)
    if not (isinstance(mark, dict) and _count(mark.get("step")) and _count(mark.get("ranks"))):
        raise ValueError(f"{path}: the mark is damaged")
    files = mark.get("files")
    if not isinstance(files, dict) or not files:
        raise ValueError(f"{path}: the mark names no files")
    for name, file in files.items():
        if os.path.basename(name) != name or not (isinstance(file, dict) and _count(file.get("size"))
                                                  and _count(file.get("crc32"))):
            raise ValueError(f"{path}: the mark is damaged at {name!r}")
    return mark


def _count(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0


def _crc(path: str) -> int:
    crc = 0
    with open(path, "rb") as f:
        while chunk := f.read(_CHUNK):
            crc = zlib.crc32(chunk, crc)
    return crc


def _sync(folder: str) -> None:
    """Makes the names in a folder durable."""
    fd = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)
