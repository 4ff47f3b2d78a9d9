"""A step of the run is written down when it was asked for, and only then."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from desktop_app.core.steps import Category, MemoryStats, Phase
from desktop_app.core.units import MIB
from desktop_app.memory.trace_data import TraceEvent
from desktop_app.services.facade import StepRecording
from desktop_app.services.step_recorder import StepRecorder


def event(key: int, size_bytes: int, *, step: int = 1, phase: Phase = Phase.FORWARD, op: str = "mul") -> TraceEvent:
    category = Category.PARAMETERS if step == 0 else Category.ACTIVATIONS
    return TraceEvent(key, size_bytes, step=step, phase=phase, category=category, op=op, module="body")


EVENTS = (
    event(1, 4 * MIB, step=0, op="to"),
    event(2, 2 * MIB),
    event(-2, 0, phase=Phase.BACKWARD),
)


class Device:
    """Writes down what it was given, one step after it was asked."""

    def __init__(self, events: Sequence[TraceEvent] = EVENTS) -> None:
        self.asked = 0
        self.events: Sequence[TraceEvent] | None = None
        self._events = events

    def record_step(self) -> None:
        self.asked += 1
        self.events = None

    def step(self) -> None:
        if self.asked:
            self.events = self._events

    def recorded_step(self) -> Sequence[TraceEvent] | None:
        return self.events


def memory(reserved_bytes: int) -> MemoryStats:
    return MemoryStats(0, 0, reserved_bytes, reserved_bytes, 0, 0, 0, 0, {})


def test_nothing_can_be_asked_of_a_run_without_such_a_device() -> None:
    recorder = StepRecorder()
    recorder.request()
    recorder.poll(None)
    assert recorder.status.get() == StepRecording()


def test_a_step_comes_after_it_was_asked_for() -> None:
    recorder, device = StepRecorder(), Device()
    recorder.attach(device)
    assert recorder.status.get().possible
    device.step()
    recorder.poll(memory(40 * MIB))
    assert device.asked == 0
    recorder.request()
    recorder.request()  # while one is being written
    assert device.asked == 1
    recorder.poll(memory(40 * MIB))
    assert recorder.status.get().recording
    device.step()
    recorder.poll(memory(40 * MIB))
    status = recorder.status.get()
    assert status.possible
    assert not status.recording
    assert status.timeline is not None
    assert status.timeline.live_bytes.tolist() == [6 * MIB, 4 * MIB]
    # What the run's cache had grown to before, not what an empty one would have taken for this step.
    assert np.all(status.timeline.reserved_bytes == 40 * MIB)
    assert status.timeline.owners == ("body",)


def test_what_was_written_stays_until_the_next_run() -> None:
    recorder, device = StepRecorder(), Device()
    recorder.attach(device)
    recorder.request()
    device.step()
    recorder.poll(None)
    recorder.detach()
    status = recorder.status.get()
    assert not status.possible
    assert status.timeline is not None
    recorder.request()
    assert device.asked == 1
    recorder.begin_run()
    assert recorder.status.get() == StepRecording()


def test_a_step_that_cannot_be_drawn_does_not_stop_the_run() -> None:
    recorder, device = StepRecorder(), Device([event(-7, 0)])  # frees what never lived
    recorder.attach(device)
    recorder.request()
    device.step()
    recorder.poll(None)
    assert recorder.status.get() == StepRecording(possible=True)
