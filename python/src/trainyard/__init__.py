"""Make a training safe to stop, and go on where it stopped.

    with trainyard.job() as ty:
        ck = ty.checkpoints(keep=2)
        state = ck.load(torch.load) or fresh()
        sampler = trainyard.ElasticSampler(len(data), batch=ty.global_batch or 256, seed=1, state=state.sampler)
        loader = DataLoader(data, batch_sampler=sampler, num_workers=2)
        for batch in ty.steps(loader, total=90_000, save=lambda: ck.save(state, torch.save), every=500):
            train_step(state, batch)

Without a scheduler it sets no handler, and writes no line and no file but what ``save`` writes. Importing it imports
neither PyTorch nor anything else that is not part of Python.
"""

from typing import TYPE_CHECKING, Any, List

from ._checkpoints import Checkpoints
from ._errors import (Busy, Conflict, Forbidden, NoManager, NotFound, NotHere, Refused, TrainyardError, Unknown)
from ._job import Job, job
from ._sampler import ElasticSampler

if TYPE_CHECKING:
    from ._client import Client

__all__ = ["Busy", "Checkpoints", "Client", "Conflict", "ElasticSampler", "Forbidden", "Job", "NoManager", "NotFound",
           "NotHere", "Refused", "TrainyardError", "Unknown", "job"]
__version__ = "0.1.0"


def __getattr__(name: str) -> Any:
    """Imports the client when it is first asked for: a training needs no HTTP."""
    if name == "Client":
        from ._client import Client
        return Client
    raise AttributeError(f"module 'trainyard' has no attribute {name!r}")


def __dir__() -> List[str]:
    return __all__
