"""The ranks of a training, by PyTorch where it is up, else by the variables that launchers set."""

import os
import sys
from typing import Any, Mapping, Optional

# What launchers call the number of a rank, and of all: torchrun and Accelerate, Open MPI, PMI, Slurm.
_RANK = ("RANK", "OMPI_COMM_WORLD_RANK", "PMI_RANK", "SLURM_PROCID")
_WORLD = ("WORLD_SIZE", "OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "SLURM_NTASKS")


class Ranks:
    """The ranks that train together.

    A group of their own by gloo carries what they agree on: no GPU waits for it. It is made at the first agreement,
    which all ranks reach together.
    """

    def __init__(self, env: Mapping[str, str]) -> None:
        self._env = env
        self._group: Any = None

    @property
    def number(self) -> int:
        """This rank, from 0."""
        dist = _distributed()
        return int(dist.get_rank()) if dist else self._from(_RANK, 0)

    @property
    def count(self) -> int:
        """How many ranks train together, at least 1."""
        dist = _distributed()
        return int(dist.get_world_size()) if dist else max(self._from(_WORLD, 1), 1)

    @property
    def first(self) -> bool:
        """Whether this rank speaks for all."""
        return self.number == 0

    @property
    def up(self) -> bool:
        """Whether the ranks can agree on something: PyTorch's process group is up."""
        return _distributed() is not None

    def any(self, flag: bool) -> bool:
        """Whether a flag is set at any rank. All ranks call it, and get one answer."""
        dist = _distributed()
        if dist is None or dist.get_world_size() == 1:
            return flag
        torch = sys.modules["torch"]
        word = torch.tensor([int(flag)], dtype=torch.int32)
        dist.all_reduce(word, op=dist.ReduceOp.MAX, group=self._own(dist))
        return bool(word.item())

    def barrier(self) -> None:
        """Returns once all ranks have called it. An error that one met stays its own: see all_well."""
        self.any(False)

    def all_well(self, error: Optional[BaseException]) -> None:
        """Raises at all ranks where one met an error: its own there, a RuntimeError at the others."""
        failed = self.any(error is not None)
        if error is not None:
            raise error
        if failed:
            raise RuntimeError("another rank could not save its part")

    def from_first(self, value: Any) -> Any:
        """The value that rank 0 has, at all ranks."""
        dist = _distributed()
        if dist is None or dist.get_world_size() == 1:
            return value
        box = [value]
        dist.broadcast_object_list(box, src=0, group=self._own(dist))
        return box[0]

    def _own(self, dist: Any) -> Any:
        if self._group is None:
            self._group = dist.new_group(backend="gloo")
        return self._group

    def _from(self, names: "tuple[str, ...]", default: int) -> int:
        for name in names:
            text = self._env.get(name, "")
            if text.isdigit():
                return int(text)
        return default


def _distributed() -> Any:
    """torch.distributed where somebody imported it and its process group is up, else None."""
    dist = sys.modules.get("torch.distributed")
    if dist is None or not dist.is_available() or not dist.is_initialized():
        return None
    return dist


def of_process() -> Ranks:
    """The ranks that this process is one of."""
    return Ranks(os.environ)
