"""What is remembered of the steps: a bounded window of the newest ones, and the shape that most of them have."""

from __future__ import annotations

from collections import Counter
from typing import Final

import numpy as np

from desktop_app.core.steps import MemoryStats, StepSample
from desktop_app.forecast.robust import Floats, median

RECENT_STEPS: Final = 128  # newest steps kept one by one: three times the 40 steps within which a leak must be flagged
START_UP_STEPS: Final = 3  # optimizer state, workspaces and algorithm search: no step like the ones that follow
COLUMNS: Final = (
    "step",
    "t_s",
    "batch_samples",
    "live_after_bytes",
    "live_peak_bytes",
    "reserved_peak_bytes",
    "idle_split_bytes",
    "alloc_retries",
)
_USUAL_SHARE: Final = 0.6  # a batch size is "the usual one" when most steps have it, last partial batches apart
_MAX_SHAPES: Final = 64
_PACE_EVERY: Final = 4  # steps between looks at the pace
_PAUSE_RATIO: Final = 20.0  # a gap this much longer than the median step is a pause, not pace


class Evidence:
    """The newest steps as columns, oldest first. One writer; the forecaster's lock guards it."""

    def __init__(self) -> None:
        # Mirrored: row i is written at i and i + RECENT_STEPS, so that the newest n rows are always one slice.
        self._rows: Floats = np.full((len(COLUMNS), 2 * RECENT_STEPS), np.nan)
        self._count = 0
        self._shapes: Counter[int] = Counter()
        self._usual: tuple[int, int | None] = (0, None)  # at which count of rows, and the size
        self._pace_s: float | None = None
        self._pace_of_row = 0
        self.steps_seen = 0  # since the run or its resumption, with or without memory figures
        self.step = 0
        self.t_s = 0.0
        self.memory: MemoryStats | None = None  # newest known
        self.retried_at_step: int | None = None  # last step in which the driver refused once

    def add(self, sample: StepSample) -> None:
        """Take one step. Start-up steps leave only counters and the newest memory figures."""
        self.steps_seen += 1
        self.step, self.t_s = sample.step, sample.t_s
        if sample.memory is None:
            return
        self.note_memory(sample.memory, sample.step)
        if not self.starting_up:
            self._append(sample, sample.memory)

    def note_memory(self, memory: MemoryStats, step: int) -> None:
        """Take figures from within a step, or from its end."""
        if self.memory is not None and memory.alloc_retries > self.memory.alloc_retries:
            self.retried_at_step = step
        self.memory = memory

    @property
    def starting_up(self) -> bool:
        return self.steps_seen <= START_UP_STEPS

    @property
    def rows(self) -> int:
        """Rows to be had: at most ``RECENT_STEPS``."""
        return min(self._count, RECENT_STEPS)

    def column(self, name: str) -> Floats:
        """The newest rows of one column, oldest first: a view, valid until the next ``add``."""
        end = (self._count - 1) % RECENT_STEPS + RECENT_STEPS + 1 if self._count else RECENT_STEPS
        view: Floats = self._rows[COLUMNS.index(name), end - self.rows : end]
        return view

    @property
    def usual_batch(self) -> int | None:
        """The batch size of most steps, or ``None`` when no size is that common."""
        if self._usual[0] != self._count:
            size, count = self._shapes.most_common(1)[0]
            self._usual = self._count, size if count >= _USUAL_SHARE * self._shapes.total() else None
        return self._usual[1]

    def seconds_per_step(self) -> float | None:
        """Wall time per step, short interruptions (validation, saving) included, pauses left out."""
        if self._count - self._pace_of_row >= _PACE_EVERY or self.rows <= _PACE_EVERY:
            self._pace_s, self._pace_of_row = self._pace(), self._count
        return self._pace_s

    def _pace(self) -> float | None:
        if self.rows < 2:
            return None
        times, steps = self.column("t_s"), self.column("step")
        gaps = (times[1:] - times[:-1]) / np.maximum(steps[1:] - steps[:-1], 1.0)
        typical = median(gaps)
        kept = gaps[gaps <= _PAUSE_RATIO * typical]
        return float(kept.sum() / kept.size) if typical > 0 else None

    def _append(self, sample: StepSample, memory: MemoryStats) -> None:
        row = (
            sample.step,
            sample.t_s,
            sample.batch_samples,
            memory.live_bytes,
            memory.live_peak_bytes,
            memory.reserved_peak_bytes,
            memory.idle_split_bytes,
            memory.alloc_retries,
        )
        at = self._count % RECENT_STEPS
        self._rows[:, at] = row
        self._rows[:, at + RECENT_STEPS] = row
        self._count += 1
        self._shapes[sample.batch_samples] += 1
        if len(self._shapes) > _MAX_SHAPES:
            self._shapes = Counter(dict(self._shapes.most_common(_MAX_SHAPES // 2)))
