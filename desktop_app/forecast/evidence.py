"""What is remembered of the steps: a bounded window of the newest ones, and the shape that most of them have."""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from collections.abc import Sequence
from typing import Final

import numpy as np

from desktop_app.core.steps import MemoryStats, StepSample
from desktop_app.forecast.robust import Floats, RollingMost, RollingOrder, theil_sen_slope

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
_PLACES: Final = {name: place for place, name in enumerate(COLUMNS)}
_TROUGH: Final = _PLACES["live_after_bytes"]
_KEPT_ROWS: Final = 4 * RECENT_STEPS  # before the newest ones move to the front again
_USUAL_SHARE: Final = 0.6  # a batch size is "the usual one" when most steps have it, last partial batches apart
_MAX_SHAPES: Final = 64
_PACE_EVERY: Final = 4  # steps between looks at the pace
_SLOPE_EVERY: Final = 4  # and at the slope of the troughs: of up to 128, four more hardly change it
_PAUSE_RATIO: Final = 20.0  # a gap this much longer than the median step is a pause, not pace


class Evidence:
    """The newest steps as columns, oldest first. One writer; the forecaster's lock guards it."""

    def __init__(self) -> None:
        # Written one after the other; when the end is reached the newest move to the front, so they are always a slice.
        self._rows: Floats = np.full((len(COLUMNS), _KEPT_ROWS), np.nan)
        self._end = 0
        self._count = 0
        self._demands = RollingOrder(RECENT_STEPS)
        self._gaps_s = RollingOrder(RECENT_STEPS - 1)  # seconds from row to row, by step
        self._reserved_peaks = RollingMost(RECENT_STEPS)
        self._live_peaks = RollingMost(RECENT_STEPS)
        self._trough_slope = (0.0, -_SLOPE_EVERY)  # and at which count
        self._shapes: Counter[int] = Counter()
        self._shaped = 0  # steps in all of them
        self._commonest = 0  # of the shapes
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
        count = self._count
        return count if count < RECENT_STEPS else RECENT_STEPS

    @property
    def count(self) -> int:
        """Rows that have been taken so far: what was found at one count is true until the next."""
        return self._count

    @property
    def demands(self) -> Sequence[float]:
        """Peak less trough of the newest rows, in bytes and ascending; valid until the next ``add``."""
        return self._demands.ordered

    def column(self, name: str) -> Floats:
        """The newest rows of one column, oldest first: a view, valid until the next ``add``."""
        view: Floats = self._rows[_PLACES[name], self._end - self.rows : self._end]
        return view

    @property
    def usual_batch(self) -> int | None:
        """The batch size of most steps, or ``None`` when no size is that common."""
        usual = self._shaped and self._shapes[self._commonest] >= _USUAL_SHARE * self._shaped
        return self._commonest if usual else None

    @property
    def reserved_peak_bytes(self) -> float:
        """The most that was reserved at a peak of the newest rows; 0 before the first one."""
        return self._reserved_peaks.most

    @property
    def live_peak_bytes(self) -> float:
        """The highest live peak of the newest rows; 0 before the first one."""
        return self._live_peaks.most

    @property
    def trough_bytes(self) -> float:
        """What was live after the newest row; there must be one."""
        return float(self._rows[_TROUGH, self._end - 1])

    def trough_slope(self) -> float:
        """Bytes per step by which the troughs of the newest rows grow; there must be two rows. It may be as old as
        ``_SLOPE_EVERY`` rows."""
        if self._count - self._trough_slope[1] >= _SLOPE_EVERY:
            slope = theil_sen_slope(self.column("step"), self.column("live_after_bytes"))
            self._trough_slope = slope, self._count
        return self._trough_slope[0]

    def seconds_per_step(self) -> float | None:
        """Wall time per step, short interruptions (validation, saving) included, pauses left out."""
        if self._count - self._pace_of_row >= _PACE_EVERY or self.rows <= _PACE_EVERY:
            self._pace_s, self._pace_of_row = self._pace(), self._count
        return self._pace_s

    def _pace(self) -> float | None:
        gaps = self._gaps_s.ordered
        typical = self._gaps_s.median() if gaps else 0.0
        if typical <= 0:
            return None
        kept = gaps[: bisect_right(gaps, _PAUSE_RATIO * typical)]
        return sum(kept) / len(kept)

    def _append(self, sample: StepSample, memory: MemoryStats) -> None:
        if self._count:
            before = self._rows[:2, self._end - 1]
            self._gaps_s.add((sample.t_s - float(before[1])) / max(sample.step - float(before[0]), 1.0))
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
        if self._end == _KEPT_ROWS:
            self._end = RECENT_STEPS - 1
            self._rows[:, : self._end] = self._rows[:, -self._end :]
        self._rows[:, self._end] = row
        self._end += 1
        self._count += 1
        self._demands.add(float(max(memory.live_peak_bytes - memory.live_bytes, 0)))
        self._reserved_peaks.add(float(memory.reserved_peak_bytes))
        self._live_peaks.add(float(memory.live_peak_bytes))
        self._note_shape(sample.batch_samples)

    def _note_shape(self, size: int) -> None:
        self._shapes[size] += 1
        self._shaped += 1
        if self._shapes[size] > self._shapes[self._commonest]:
            self._commonest = size
        if len(self._shapes) > _MAX_SHAPES:
            self._shapes = Counter(dict(self._shapes.most_common(_MAX_SHAPES // 2)))
            self._shaped = self._shapes.total()
