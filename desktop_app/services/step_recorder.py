"""One step of the run, written down on request: every block of it, for the window's timeline."""

from __future__ import annotations

import logging
import threading
from dataclasses import replace
from typing import TYPE_CHECKING, Protocol

import numpy as np

from desktop_app.core.store import Cell
from desktop_app.services.facade import StepRecording

if TYPE_CHECKING:
    from collections.abc import Sequence

    from desktop_app.core.estimates import Timeline
    from desktop_app.core.steps import MemoryStats
    from desktop_app.memory.trace_data import TraceEvent

_log = logging.getLogger(__name__)


class RecordingDevice(Protocol):
    """What can write a step down: ``memory.simulated_device.SimulatedDevice`` does."""

    def record_step(self) -> None: ...
    def recorded_step(self) -> Sequence[TraceEvent] | None: ...


class StepRecorder:
    """``request`` from any thread; everything else runs in: trainer thread."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._device: RecordingDevice | None = None
        self.status: Cell[StepRecording] = Cell(StepRecording())

    def begin_run(self) -> None:
        """Forget the step of the last run."""
        with self._lock:
            self._device = None
            self.status.set(StepRecording())

    def attach(self, device: RecordingDevice) -> None:
        """The run's device can be asked from now on."""
        with self._lock:
            self._device = device
            self.status.set(StepRecording(possible=True))

    def detach(self) -> None:
        """The run is over; what was written down stays."""
        with self._lock:
            self._device = None
            self.status.set(replace(self.status.get(), possible=False, recording=False))

    def request(self) -> None:
        """Write down the next whole step, if there is one and none is being written."""
        with self._lock:
            if self._device is not None and not self.status.get().recording:
                self._device.record_step()
                self.status.set(replace(self.status.get(), recording=True))

    def poll(self, memory: MemoryStats | None) -> None:
        """After each step, with the allocator then: is it there? One look at a cell while nobody has asked."""
        if not self.status.get().recording:
            return
        with self._lock:
            events = self._device.recorded_step() if self._device is not None else None
            if events is not None:
                self.status.set(replace(self.status.get(), recording=False, timeline=_timeline(events, memory)))


def _timeline(events: Sequence[TraceEvent], memory: MemoryStats | None) -> Timeline | None:
    """A step of a few thousand events takes some ten milliseconds.

    The replay begins with an empty cache; the run's had grown before the step, so that its reserve is the higher one.
    """
    from desktop_app.memory.estimate_replay import replay_table
    from desktop_app.memory.estimate_table import EventTable
    from desktop_app.memory.step_timeline import step_timeline

    try:
        table = EventTable.from_events(events)
        made = step_timeline(table, replay_table(table), step=1)
        if made is None or memory is None:
            return made
        return replace(made, reserved_bytes=np.maximum(made.reserved_bytes, memory.reserved_bytes))
    except Exception:  # hook: a picture that cannot be made must not take the training with it
        _log.exception("The recorded step cannot be drawn")
        return None
