"""What a recorded run needs beside its steps to be forecast again: phases, surroundings, shapes, the run's length.

Four histories in the store, which the recorder writes as tables of the session; ``trace_export`` reads them.
"""

from __future__ import annotations

from dataclasses import astuple, fields
from typing import Final

from desktop_app.core.steps import BatchShape, Phase, PhaseSample, StepSample, Surroundings
from desktop_app.core.store import Store

# NaN (NULL in the file) where unknown. ``phase`` is the place in ``PHASES``.
PHASES: Final = tuple(Phase)
PHASE_COLUMNS: Final = (
    "step",
    "phase",
    "known_demand_bytes",
    "known_host_bytes",
    "batch_samples",
    "batch_tokens",
    "batch_pixels",
    "done",
    "count",
    "ended",
    "live_after_bytes",
    "live_peak_bytes",
    "reserved_bytes",
    "reserved_peak_bytes",
    "idle_split_bytes",
    "returnable_bytes",
    "alloc_retries",
    "outside_bytes",
)
SHAPE_COLUMNS: Final = (
    "step",
    "micro_batch_samples",
    "batch_tokens",
    "batch_pixels",
    "returnable_bytes",
    "outside_bytes",
)
SURROUNDINGS_COLUMNS: Final = tuple(field.name for field in fields(Surroundings) if field.name != "t_s")
LENGTH_COLUMNS: Final = (
    "total_steps",
    "steps_per_epoch",
    "longest_samples",
    "longest_tokens",
    "longest_pixels",
    "longest_step",
)
_CAPACITY: Final = 8192  # rows kept for a recorder that the disk holds up; it pulls twice a second
_Row = tuple[float | None, ...]


class TraceRecording:
    """Notes what the forecaster is told. ``on_surroundings`` runs in the sampler thread, all else in the trainer's."""

    def __init__(self, store: Store) -> None:
        self._phases = store.declare("phases", PHASE_COLUMNS, capacity=_CAPACITY)
        self._shapes = store.declare("step_shapes", SHAPE_COLUMNS, capacity=_CAPACITY)
        self._surroundings = store.declare("surroundings", SURROUNDINGS_COLUMNS, capacity=_CAPACITY)
        self._length = store.declare("run_length", LENGTH_COLUMNS, capacity=_CAPACITY)

    def on_step(self, sample: StepSample) -> None:
        memory = sample.memory
        row: _Row = (
            sample.step,
            sample.micro_batch_samples,
            sample.batch_tokens,
            sample.batch_pixels,
            memory.returnable_bytes if memory is not None else None,
            memory.outside_bytes if memory is not None else None,
        )
        self._shapes.append(sample.t_s, row)

    def on_phase(self, sample: PhaseSample) -> None:
        batch, memory = sample.batch, sample.memory
        shape: _Row = (batch.samples, batch.tokens, batch.pixels) if batch is not None else (None, None, None)
        allocator: _Row = (None,) * 8
        if memory is not None:
            allocator = (
                memory.live_bytes,
                memory.live_peak_bytes,
                memory.reserved_bytes,
                memory.reserved_peak_bytes,
                memory.idle_split_bytes,
                memory.returnable_bytes,
                memory.alloc_retries,
                memory.outside_bytes,
            )
        head: _Row = (sample.step, PHASES.index(sample.phase), sample.known_demand_bytes, sample.known_host_bytes)
        progress: _Row = (sample.done, sample.count, float(sample.ended))
        self._phases.append(sample.t_s, (*head, *shape, *progress, *allocator))

    def on_surroundings(self, sample: Surroundings) -> None:
        _, *figures = astuple(sample)
        self._surroundings.append(sample.t_s, tuple(figures))

    def on_length(
        self,
        t_s: float,
        *,
        total_steps: int | None = None,
        steps_per_epoch: int | None = None,
        longest_batch: BatchShape | None = None,
        longest_batch_step: int | None = None,
    ) -> None:
        """How long the run and its epochs are, or which batch is the longest."""
        longest: _Row = (None, None, None)
        if longest_batch is not None:
            longest = (longest_batch.samples, longest_batch.tokens, longest_batch.pixels)
        self._length.append(t_s, (total_steps, steps_per_epoch, *longest, longest_batch_step))
