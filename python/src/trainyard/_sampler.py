"""Batches of a data set whose order does not depend on how many ranks train, nor on where a training was stopped."""

import array
import random
from typing import Any, Dict, Iterator, List, MutableMapping, Optional, Sequence, cast

from . import _ranks


class ElasticSampler:
    """A batch sampler for ``DataLoader(data, batch_sampler=...)``: it yields lists of indices, the share of this rank in
    each global batch.

    The order of an epoch follows from the seed and the number of the epoch alone. The state is how many samples were
    trained on: ``Job.steps`` counts a batch once the step is done, so what a DataLoader has read ahead is not counted.
    A training that goes on with other ranks, or another batch, goes on with the next sample.

    The last batch of an epoch holds what is left. Where that is fewer samples than ranks, each of the ranks that would
    have none gets one of the first samples of the epoch once more; ``padded`` counts them.

    size: samples of the data set. batch: samples of a global batch, at least one for each rank.
    state: a dict that is kept up to date, to be saved and passed again; a new one, ``sampler.state``, where it is None.
    """

    def __init__(self, size: int, batch: int, seed: int = 0, state: Optional[MutableMapping[str, Any]] = None,
                 rank: Optional[int] = None, ranks: Optional[int] = None) -> None:
        here = _ranks.of_process()
        self.size, self.batch, self.seed = size, batch, seed
        self.rank = here.number if rank is None else rank
        self.ranks = here.count if ranks is None else ranks
        if size < 1:
            raise ValueError(f"size {size}, want at least 1")
        if not 0 <= self.rank < self.ranks:
            raise ValueError(f"rank {self.rank} of {self.ranks}")
        if batch < self.ranks:
            raise ValueError(f"batch {batch}, want at least one sample for each of {self.ranks} ranks")
        self.padded = 0
        self.state: MutableMapping[str, Any] = {} if state is None else state
        for key, value in {"size": size, "seed": seed}.items():
            if self.state.setdefault(key, value) != value:
                raise ValueError(f"{key} {value}, but the state was saved with {self.state[key]}")
        self.state.setdefault("consumed", 0)

    @property
    def consumed(self) -> int:
        """Samples trained on, in all epochs."""
        return int(self.state["consumed"])

    @property
    def epoch(self) -> int:
        """Epochs complete."""
        return self.consumed // self.size

    def __len__(self) -> int:
        """Batches left of the epoch."""
        left = self.size - self.consumed % self.size
        return (left + self.batch - 1) // self.batch

    def __iter__(self) -> Iterator[List[int]]:
        """Yields what is left of the epoch."""
        epoch, at = divmod(self.consumed, self.size)
        order = self._order(epoch)
        while at < self.size:
            end = min(at + self.batch, self.size)
            yield self._share(order, at, end)
            at = end

    def advance(self) -> None:
        """Counts a global batch as trained on. ``Job.steps`` does so after each step."""
        left = self.size - self.consumed % self.size
        self.state["consumed"] = self.consumed + min(self.batch, left)

    def state_dict(self) -> Dict[str, Any]:
        """A copy of the state."""
        return dict(self.state)

    def load_state_dict(self, state: MutableMapping[str, Any]) -> None:
        """Goes on where a state was saved; it is copied."""
        if (state["size"], state["seed"]) != (self.size, self.seed):
            raise ValueError(f"size {self.size} and seed {self.seed}, but the state was saved with {state['size']} and "
                             f"{state['seed']}")
        self.state["consumed"] = int(state["consumed"])

    def _order(self, epoch: int) -> "array.array[int]":
        order = array.array("q", range(self.size))
        random.Random(f"{self.seed}/{epoch}").shuffle(cast("List[int]", order))
        return order

    def _share(self, order: Sequence[int], at: int, end: int) -> List[int]:
        """The indices of this rank in the global batch [at, end): shares differ by one at most, as n-th parts do."""
        n = end - at
        share = list(order[at + n * self.rank // self.ranks:at + n * (self.rank + 1) // self.ranks])
        if not share:
            self.padded += 1
            share = [order[self.rank % self.size]]
        return share


def of(data: Any) -> Optional[ElasticSampler]:
    """The sampler that a loader takes its batches from, None if it has none of ours."""
    for at in (data, getattr(data, "batch_sampler", None), getattr(data, "sampler", None)):
        if isinstance(at, ElasticSampler):
            return at
    return None
