"""How others steer a run: one token, checked at every micro-step, that wakes a waiting trainer at once."""

from __future__ import annotations

import threading
import time
from enum import StrEnum


class RunCancelled(Exception):  # noqa: N818 - not an error: the user has asked for it
    """Preparation was given up because a stop was asked for. Never leaves ``training``."""


class Shrink(StrEnum):
    """What of a run is to need less memory."""

    TRAINING = "training"  # micro-batches, the effective batch kept by accumulation
    VALIDATION = "validation"  # validation batches
    SAVE = "save"  # checkpoints by way of the host's memory


class ControlToken:
    """Pause, resume, stop, save and shrink requests of one run. Any thread may ask; the trainer thread obeys.

    ``attention`` is a plain flag, so that a micro-step without any request pays one attribute read.
    """

    def __init__(self) -> None:
        self.attention = False
        self._changed = threading.Condition()
        self._paused = False
        self._stopped = False
        self._save_on_stop = True
        self._save = False
        self._shrink: list[Shrink] = []
        self._shrink_to: int | None = None

    def pause(self) -> None:
        """Hold the run before its next micro-step."""
        self._update(paused=True)

    def resume(self) -> None:
        """Let a paused run go on."""
        self._update(paused=False)

    def stop(self, *, save: bool) -> None:
        """End the run before its next micro-step; ``save``: with a checkpoint. The last call decides about saving."""
        with self._changed:
            self._stopped = True
            self._save_on_stop = save
            self._wake()

    def request_save(self) -> None:
        """Write a checkpoint before the next step, also while paused."""
        with self._changed:
            self._save = True
            self._wake()

    def request_shrink(self, part: Shrink = Shrink.TRAINING, *, to: int | None = None) -> None:
        """Need less memory from the next micro-batch on, also while paused: at most ``to`` samples of a training's
        micro-batch, else half. Asked twice before it is done, it is done once."""
        with self._changed:
            if to is not None:
                self._shrink_to = to if self._shrink_to is None else min(to, self._shrink_to)
            if part not in self._shrink:
                self._shrink.append(part)
            self._wake()

    @property
    def stop_requested(self) -> bool:
        return self._stopped

    @property
    def save_on_stop(self) -> bool:
        return self._save_on_stop

    @property
    def pause_requested(self) -> bool:
        return self._paused

    def take_save_request(self) -> bool:
        """Whether a checkpoint was asked for since the last call."""
        with self._changed:
            asked, self._save = self._save, False
            self._wake()
            return asked

    def take_shrink_request(self) -> Shrink | None:
        """What was asked to shrink first, if anything."""
        with self._changed:
            asked = self._shrink.pop(0) if self._shrink else None
            self._wake()
            return asked

    def take_shrink_size(self) -> int | None:
        """How many samples the training is to shrink to at most, where somebody has said."""
        with self._changed:
            asked, self._shrink_to = self._shrink_to, None
            return asked

    def wait_while_paused(self) -> bool:
        """Block until the run may go on, must stop, or something is to be done meanwhile. False: it must stop."""
        with self._changed:
            self._changed.wait_for(lambda: self._stopped or self._save or bool(self._shrink) or not self._paused)
            return not self._stopped

    def wait(self, timeout_s: float) -> bool:
        """Let time pass, for pacing. True: the time is over; False: woken early by a request."""
        end_s = time.monotonic() + timeout_s
        with self._changed:
            return not self._changed.wait_for(lambda: self.attention, max(0.0, end_s - time.monotonic()))

    def _update(self, *, paused: bool) -> None:
        with self._changed:
            self._paused = paused
            self._wake()

    def _wake(self) -> None:
        self.attention = self._paused or self._stopped or self._save or bool(self._shrink)
        self._changed.notify_all()
