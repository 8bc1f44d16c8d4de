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

from ._checkpoints import Checkpoints
from ._job import Job, job
from ._sampler import ElasticSampler

__all__ = ["Checkpoints", "ElasticSampler", "Job", "job"]
__version__ = "0.1.0"
