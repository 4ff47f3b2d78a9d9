"""The allocator's figures of a recorded row, with what the row does not say worked out from what it says.

What the forecaster gets for a figure that is missing:

===================== ==============================================================================================
``live_after``        the peak of live, else what is reserved, else what this process holds on the card
``live_peak``         at least live; what is reserved where only that is known; else live
``reserved_peak``     what this process holds on the card (device less others), else the highest peak of live so far
``reserved``          the peak of the step: the allocator seldom gives memory back; live and idle splits, where it has
``returnable``        reserved less live less idle splits
``idle_split``        what is reserved and not live at the peak (within a step: at the moment)
``alloc_retries``     as many as in the row before
``outside``           device less reserved less others (as last known, else 0: whoever holds it, it is taken)
===================== ==============================================================================================
"""

from __future__ import annotations

from typing import Final

from desktop_app.core.steps import MemoryStats
from desktop_app.forecast.trace_rows import TraceRow

UNKNOWN_OUTSIDE: Final = 0
_FULL_SHARE: Final = 0.97


class RowMemory:
    """Makes figures of rows, in their order: some are carried over from the row before."""

    def __init__(self) -> None:
        self._highest_peak = 0
        self._retries = 0
        self._others = 0
        self._outside: int | None = None  # from the last row that shows all that was reserved

    def restart(self) -> None:
        """A new process: its allocator is empty."""
        self._outside = None
        self._highest_peak = 0
        self._retries = 0

    def note_others(self, row: TraceRow) -> None:
        """Other processes on the card count until a row says otherwise."""
        if row.other_used_bytes is not None:
            self._others = row.other_used_bytes

    def figures(self, row: TraceRow, *, within_step: bool) -> MemoryStats | None:
        """The row's figures; ``None`` when it says nothing about memory of this process.

        ``within_step``: live is that of a moment in the midst of a step, not what a finished step has left.
        """
        self.note_others(row)
        held = self._held_on_card(row)
        if row.outside_bytes is None and held is not None and 0 < (row.reserved_peak_bytes or 0) <= held:
            self._outside = held - (row.reserved_peak_bytes or 0)
        live = _first(row.live_after_bytes, row.live_peak_bytes, row.reserved_bytes, row.reserved_peak_bytes, held)
        if live is None:
            return None
        peak = max(live, _first(row.live_peak_bytes, _reserved_only(row), held, 0) or 0)
        self._highest_peak = max(self._highest_peak, peak)
        reserved_peak = max(peak, _first(row.reserved_peak_bytes, row.reserved_bytes, held, self._highest_peak) or 0)
        reserved = max(live, _first(row.reserved_bytes, self._after_giving_back(row), reserved_peak) or 0)
        idle = row.idle_split_bytes
        if idle is None:
            idle = reserved - live if within_step else max(0, reserved_peak - peak)
        idle = min(idle, reserved - live)
        returnable = row.returnable_bytes if row.returnable_bytes is not None else reserved - live - idle
        if row.alloc_retries is not None:
            self._retries = row.alloc_retries
        return MemoryStats(
            live_bytes=live,
            live_peak_bytes=peak,
            reserved_bytes=reserved,
            reserved_peak_bytes=reserved_peak,
            idle_split_bytes=idle,
            returnable_bytes=returnable,
            alloc_retries=self._retries,
            outside_bytes=self.outside_bytes(row) or UNKNOWN_OUTSIDE,
            peak_categories={},
        )

    def outside_bytes(self, row: TraceRow) -> int | None:
        """This process outside its allocator; ``None`` when the row does not say."""
        if row.outside_bytes is not None:
            return row.outside_bytes
        reserved = _first(self._after_giving_back(row), _reserved_only(row))
        if row.device_used_bytes is None or reserved is None:
            return None
        return max(0, row.device_used_bytes - self._others - reserved)

    def _after_giving_back(self, row: TraceRow) -> int | None:
        """What is reserved when this process holds less on the card than it reserved at the step's peak: its cache has
        been emptied, and perhaps been filled again in part. What lies outside is as it was; while nobody knows that,
        only what is live or split is taken to be left."""
        held, live, idle = self._held_on_card(row), row.live_after_bytes, row.idle_split_bytes
        if row.reserved_bytes is not None or held is None or live is None or idle is None:
            return None
        if row.capacity_bytes and (row.device_used_bytes or 0) >= _FULL_SHARE * row.capacity_bytes:
            return None  # a full card that spills shows less than there is
        if not live + idle <= held < (row.reserved_peak_bytes or 0):
            return None
        return live + idle if self._outside is None else max(live + idle, held - self._outside)

    def _held_on_card(self, row: TraceRow) -> int | None:
        """This process on the card, its context included; with all others while nobody has counted them."""
        if row.device_used_bytes is None:
            return None
        return max(0, row.device_used_bytes - self._others - (row.outside_bytes or 0))


def _reserved_only(row: TraceRow) -> int | None:
    """Stands in for a peak of live that is not known: it cannot have been higher."""
    return _first(row.reserved_peak_bytes, row.reserved_bytes)


def _first(*figures: int | None) -> int | None:
    return next((figure for figure in figures if figure is not None), None)
