"""What a run says before, in the midst of and after its phases, so that a forecast can warn before a call is made."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from desktop_app.core.clock import SessionClock
from desktop_app.core.steps import BatchShape, Phase, PhaseSample
from desktop_app.training.devices import TrainingDevice
from desktop_app.training.step_reports import StepSink

# A sample costs about a millisecond; what validation keeps shows within a thirty-second of its batches.
_INTERVAL_S: Final = 1.0
_VALIDATION_SAMPLES: Final = 32


class PhaseReports:
    """Makes the ``PhaseSample`` of each phase and hands it to the sink, which has judged it when the call returns.

    Runs in: trainer thread.
    """

    def __init__(self, sink: StepSink, *, clock: SessionClock, device: TrainingDevice) -> None:
        self._sink = sink
        self._clock = clock
        self._device = device
        self._told_s = 0.0

    def tell(
        self,
        phase: Phase,
        step: int,
        *,
        known_demand_bytes: int | None = None,
        known_host_bytes: int | None = None,
        batch: BatchShape | None = None,
        done: int = 0,
        count: int | None = None,
        ended: bool = False,
        in_peak_bytes: int = 0,
    ) -> None:
        """One sample, with the memory as it is now. Fields as in ``PhaseSample``. ``in_peak_bytes``: so much of
        ``known_demand_bytes`` stood in the peak already, in another's place."""
        self._told_s = self._clock.now_s()
        memory = self._device.stats()
        if memory is not None and in_peak_bytes:
            peak = max(memory.live_bytes, memory.live_peak_bytes - in_peak_bytes)
            memory = replace(memory, live_peak_bytes=peak)
        self._sink.on_phase(
            PhaseSample(
                t_s=self._told_s,
                step=step,
                phase=phase,
                memory=memory,
                known_demand_bytes=known_demand_bytes,
                batch=batch,
                done=done,
                count=count,
                ended=ended,
                known_host_bytes=known_host_bytes,
            )
        )

    def validation_goes_on(self, step: int, *, done: int, count: int) -> None:
        """``done`` batches are over: a sample once a second, and of some batches in any case."""
        every = max(1, count // _VALIDATION_SAMPLES)
        if done % every == 0 or self._clock.now_s() - self._told_s >= _INTERVAL_S:
            self.tell(Phase.VALIDATION, step, done=done, count=count)
