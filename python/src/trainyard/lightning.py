"""A callback for PyTorch Lightning: save and stop when asked to, and report steps.

    with trainyard.job() as ty:
        lightning.Trainer(callbacks=[trainyard.lightning.Callback(ty)]).fit(model, ckpt_path=ty.newest_file("*.ckpt"))

Lightning has a handler of its own that raises after the batch; this one saves before.
It is not tested with Lightning, but by a driver that calls its hooks in the order that they are called there.
"""

import os
from typing import Any

from ._job import Job

_Base: Any = object
for _module in ("lightning.pytorch", "pytorch_lightning"):
    try:
        _Base = __import__(_module, fromlist=["Callback"]).Callback
        break
    except ImportError:  # tests call the hooks by themselves
        continue


class Callback(_Base):  # type: ignore[misc]
    """Saves a checkpoint in the folder of the job at the end of the batch in which a rank was asked to stop."""

    def __init__(self, job: Job) -> None:
        self._job = job

    def on_train_start(self, trainer: Any, module: Any, **kwargs: Any) -> None:
        """Handles signals from here on."""
        self._job.listen()

    def on_train_batch_end(self, trainer: Any, module: Any, outputs: Any, batch: Any, batch_idx: int,
                           **kwargs: Any) -> None:
        """Reports the step, and saves and ends the process where a rank was asked to stop."""
        step = int(trainer.global_step)
        self._job.at(step)
        if self._job.agreed():
            self._save(trainer, step)
            self._job.stop()

    def on_train_end(self, trainer: Any, module: Any, **kwargs: Any) -> None:
        """Reports that the training has ended."""
        self._job.complete()

    def _save(self, trainer: Any, step: int) -> None:
        folder = self._job.checkpoint_folder
        os.makedirs(folder, exist_ok=True)
        path = os.path.join(folder, f"step-{step:09}.ckpt")
        trainer.save_checkpoint(path + ".part")  # all ranks call it
        if self._job.ranks.first:
            os.replace(path + ".part", path)
        self._job.saved(step)
