"""A callback for the Trainer of Hugging Face: save and stop when asked to, and report steps.

    with trainyard.job() as ty:
        Trainer(..., callbacks=[trainyard.hf.Callback(ty)]).train(resume_from_checkpoint=ty.resumed)

It is not tested with transformers, but by a driver that calls its hooks in the order that they are called there.
"""

from typing import Any

from ._job import Job

_Base: Any = object
try:
    _Base = __import__("transformers").TrainerCallback
except ImportError:  # tests call the hooks by themselves
    pass


class Callback(_Base):  # type: ignore[misc]
    """Has the Trainer save and stop at the end of the step in which a rank was asked to."""

    def __init__(self, job: Job) -> None:
        self._job, self._stopping = job, False

    def on_train_begin(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        """Handles signals from here on."""
        self._job.listen()

    def on_step_end(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        """Reports the step, and has the Trainer save and stop where a rank was asked to."""
        self._job.at(int(state.global_step), total=int(state.max_steps) if state.max_steps > 0 else None)
        if self._job.agreed():
            self._stopping = True
            control.should_save = control.should_training_stop = True

    def on_log(self, args: Any, state: Any, control: Any, logs: Any = None, **kwargs: Any) -> None:
        """Reports the loss with the next step."""
        if logs and isinstance(logs.get("loss"), (int, float)):
            self._job.tell(loss=logs["loss"])

    def on_save(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        """Reports what the Trainer has saved."""
        self._job.saved(int(state.global_step))

    def on_train_end(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        """Reports that all is saved where the Trainer was stopped, and ends the process; else that it has ended."""
        if self._stopping:
            self._job.stop()
        self._job.complete()
