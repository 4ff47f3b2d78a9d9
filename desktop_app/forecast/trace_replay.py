"""A recorded run through the forecaster, as if it were live: one row at a time, and nothing of a later one."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

from desktop_app.core.forecasts import Estimate, Forecast
from desktop_app.core.steps import PhaseSample, StepSample, Surroundings
from desktop_app.core.units import MIB
from desktop_app.forecast.forecaster import Forecaster, Update
from desktop_app.forecast.policy import Changes
from desktop_app.forecast.trace_rows import TraceRow
from desktop_app.forecast.trace_samples import RowReader, Sample, Setting

UNKNOWN_CAPACITY: Final = 1 << 60  # nothing can fill it: quiet until a row names the card's capacity
TELEMETRY_EVERY_S: Final = 0.9  # once a second as in the app, give or take, where a row has it every step
_NEWS_BYTES: Final = 32 * MIB  # a change of the surroundings that does not wait for the second to be over


class TraceReplay:
    """Takes the rows of one run in their order. Sizes in bytes; memory does not grow.

    ``capacity_bytes``, ``total_steps`` and ``steps_per_epoch`` are what the caller knows and the rows may not say;
    what rows say wins. ``prior`` is the estimate of the run.
    """

    def __init__(
        self,
        *,
        capacity_bytes: int | None = None,
        total_steps: int | None = None,
        steps_per_epoch: int | None = None,
        prior: Estimate | None = None,
    ) -> None:
        self.capacity_bytes = capacity_bytes  # None: no row has said it yet
        self.rows = 0
        self.forecaster: Final = Forecaster(
            capacity_bytes=capacity_bytes or UNKNOWN_CAPACITY,
            total_steps=total_steps,
            steps_per_epoch=steps_per_epoch,
            prior=prior,
        )
        self._reader = RowReader(steps_per_epoch=steps_per_epoch)
        self._around = Surroundings(t_s=float("-inf"))

    def take(self, row: TraceRow) -> Update:
        """The forecast after ``row``, with every alert that the row raised or cleared."""
        self.rows += 1
        if row.capacity_bytes:
            self.capacity_bytes = row.capacity_bytes
        changes = Changes()
        for sample in self._reader.samples(row):
            update = self._feed(sample)
            if update is not None:
                changes = Changes(changes.raised + update.changes.raised, changes.cleared + update.changes.cleared)
        return Update(self.forecast, changes)

    @property
    def forecast(self) -> Forecast:
        """The newest forecast."""
        return self.forecaster.forecast()

    def _feed(self, sample: Sample) -> Update | None:
        if isinstance(sample, StepSample):
            return self.forecaster.update_step(sample)
        if isinstance(sample, PhaseSample):
            return self.forecaster.update_phase(sample)
        if isinstance(sample, Surroundings):
            return self._feed_surroundings(sample)
        self._note(sample)
        return None

    def _note(self, setting: Setting) -> None:
        self.forecaster.set_environment(
            total_steps=setting.total_steps,
            steps_per_epoch=setting.steps_per_epoch,
            longest_batch=setting.longest_batch,
            longest_batch_step=setting.longest_batch_step,
        )

    def _feed_surroundings(self, around: Surroundings) -> Update | None:
        """As telemetry does: once a second, and at once when something has changed. Else only the brim moves."""
        if around.t_s - self._around.t_s >= TELEMETRY_EVERY_S or _differs(around, self._around):
            self._around = around
            return self.forecaster.update_surroundings(around)
        self.forecaster.set_environment(others_bytes=around.others_bytes, outside_bytes=around.outside_bytes)
        return None


def _differs(new: Surroundings, old: Surroundings) -> bool:
    if new.capacity_bytes != old.capacity_bytes or new.children != old.children:
        return True
    pairs = (
        (new.others_bytes, old.others_bytes),
        (new.outside_bytes, old.outside_bytes),
        (new.device_used_bytes, old.device_used_bytes),
        (new.host_used_bytes, old.host_used_bytes),
    )
    return any((a is None) != (b is None) or abs((a or 0) - (b or 0)) >= _NEWS_BYTES for a, b in pairs)


def replay(
    rows: Iterable[TraceRow],
    *,
    capacity_bytes: int | None = None,
    total_steps: int | None = None,
    steps_per_epoch: int | None = None,
    prior: Estimate | None = None,
) -> Iterator[tuple[TraceRow, Update]]:
    """Each row with the forecast after it. As lazy as ``rows``: a row is read when the one before was answered."""
    run = TraceReplay(
        capacity_bytes=capacity_bytes, total_steps=total_steps, steps_per_epoch=steps_per_epoch, prior=prior
    )
    for row in rows:
        yield row, run.take(row)
