"""Signals that ask a training to save and stop."""

import os
import signal
import threading
import types
import warnings
from typing import Any, Dict, Optional, Sequence, Tuple


class StopSignals:
    """Sets a flag when one of its signals comes.

    Children that are forked later inherit the handlers, such as the workers of a DataLoader. There a signal does what
    it did before: it ends the child.
    """

    def __init__(self, numbers: Sequence[int]) -> None:
        self.asked = False
        self._numbers = tuple(numbers)
        self._owner = 0
        self._before: Dict[int, Any] = {}

    def install(self) -> None:
        """Sets the handlers, once. Outside of the main thread Python allows none: it warns."""
        if self._owner or not self._numbers:
            return
        if threading.current_thread() is not threading.main_thread():
            warnings.warn("trainyard: steps outside of the main thread: no signal is handled, a stop saves nothing",
                          RuntimeWarning, stacklevel=3)
            self._numbers = ()
            return
        self._owner = os.getpid()
        for number in self._numbers:
            self._before[number] = signal.signal(number, self._handle)

    def restore(self) -> None:
        """Sets the handlers that were there before."""
        if self._owner != os.getpid():
            return
        for number, before in self._before.items():
            if signal.getsignal(number) == self._handle:
                signal.signal(number, signal.SIG_DFL if before is None else before)
        self._before, self._owner = {}, 0

    def _handle(self, number: int, frame: Optional[types.FrameType]) -> None:
        before = self._before.get(number)
        if os.getpid() != self._owner:  # in a child that was forked
            signal.signal(number, signal.SIG_DFL)
            os.kill(os.getpid(), number)
            return
        self.asked = True
        if callable(before) and before is not signal.default_int_handler:
            before(number, frame)


def wanted(scheduler: Optional[str]) -> Tuple[int, ...]:
    """The signals by which a scheduler asks to save; none without a scheduler."""
    if scheduler is None:
        return ()
    return (signal.SIGTERM, signal.SIGUSR1)
