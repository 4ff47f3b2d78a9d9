"""When the rows of a recorded run were, and in which epoch."""

from __future__ import annotations

from typing import Final

from desktop_app.forecast.trace_rows import TraceRow
from desktop_app.forecast.trace_words import Mark, Words

ROW_S: Final = 1.0  # from one step or row to the next where neither times nor durations are known
_BACK_S: Final = 1.0  # a clock that goes back this far is another clock; less is two threads writing at once


class RowClock:
    """Times that never go back: a second process's clock goes on where the first one's ended."""

    def __init__(self) -> None:
        self._now = 0.0
        self._offset = 0.0
        self._step_ended: float | None = None
        self.known = False

    def time(self, row: TraceRow, *, is_step: bool) -> float:
        if row.t_s is not None:
            t_s = row.t_s + self._offset
            if t_s < self._now - _BACK_S and self.known:
                self._offset += self._now - t_s
                t_s = self._now
            self.known = True
            self._now = max(self._now, t_s) if self._step_ended is not None or self._now else t_s
        elif row.step_s is not None:
            self._now += row.step_s
        elif is_step and not self.known:
            self._now += ROW_S
        return self._now

    def step_ended(self, t_s: float) -> None:
        self._step_ended = t_s

    def since_step_s(self, t_s: float) -> float:
        return 0.0 if self._step_ended is None else max(0.0, t_s - self._step_ended)


class RowEpochs:
    """Counts epochs, and learns their length when two of them were as long."""

    def __init__(self) -> None:
        self.epoch = 1
        self._last_end: int | None = None
        self._steps: int | None = None
        self._news: int | None = None

    def know(self, steps_per_epoch: int) -> None:
        """Somebody knows how long an epoch is."""
        self._steps = steps_per_epoch

    def take(self, step: int, words: Words) -> int:
        """The epoch of ``step``."""
        if Mark.EPOCH_ENDS in words.marks:
            epoch, self.epoch = self.epoch, self.epoch + 1
            self._end(step)
            return epoch
        if Mark.EPOCH_BEGINS in words.marks and step > 1:
            self.epoch += 1
            self._end(step - 1)
        return self.epoch

    def steps_per_epoch_news(self) -> int | None:
        """The length of an epoch, once, when it has just become known."""
        news, self._news = self._news, None
        return news

    def _end(self, step: int) -> None:
        """An epoch has ended with ``step``. Lengths count from step 1, as everywhere in the forecast."""
        length = step - (self._last_end if self._last_end is not None else 0)
        self._last_end = step
        if length > 1 and step % length == 0 and length != self._steps:
            self._steps = self._news = length
