"""Stairs whose risers come with an event: a copy kept at every save, outputs kept by every validation.

A riser that comes with an event needs no third of its kind to be believed, and the events' own period says when the
next one comes.
"""

from __future__ import annotations

import math
from collections import deque
from dataclasses import replace
from enum import StrEnum
from typing import Final

import numpy as np

from desktop_app.core.steps import Phase, PhaseSample
from desktop_app.forecast.ramps import Change, OrdinaryChange
from desktop_app.forecast.robust import deviation, median
from desktop_app.forecast.stairs import OVERDUE, Stairs

_KEPT: Final = 8
_ROWS_AFTER: Final = 2  # steps after an event within which its riser shows: some free or keep one step late
_ALIKE: Final = 0.35  # sizes may differ from their median by this share
_ALIKE_FEW: Final = 0.15  # of up to three: any two sizes are within 35 % of each other one time in three
_FEW: Final = 3
_MAIN_SHARE: Final = 0.5  # of a riser: what grows while an event is under way is that event's
_ONCE_SIZE_DOUBT: Final = 0.3  # relative deviation of a jump that was seen once
_ONCE_PERIOD_DOUBT: Final = 0.5  # of a period that nobody has seen repeat
_PERIOD_DOUBT: Final = 0.02  # saves and validations come by a counter


class Happening(StrEnum):
    """What risers may come with. Where two explain the same ones, the first of them is taken."""

    SAVE = "save"
    VALIDATION = "validation"
    EPOCH = "epoch"


_OF_PHASE: Final = {Phase.SAVE: Happening.SAVE, Phase.VALIDATION: Happening.VALIDATION}


class _Pending:
    """An event whose riser may still show. ``own_bytes``: what has grown while it was under way; ``None`` unknown."""

    __slots__ = ("before_bytes", "own_bytes", "rows", "step")

    def __init__(self, step: int, before_bytes: float) -> None:
        self.step = step
        self.before_bytes = before_bytes
        self.own_bytes: float | None = None
        self.rows = 0

    def grew(self, size_bytes: float) -> None:
        self.own_bytes = (self.own_bytes or 0.0) + size_bytes


class EventStairWatch:
    """Follows troughs and events; tells which kind of event the troughs rise with. Not thread-safe.

    ``ordinary`` knows how much troughs change from step to step; its owner feeds it.
    """

    def __init__(self, ordinary: OrdinaryChange) -> None:
        self._seen: dict[Happening, deque[tuple[int, float]]] = {}  # (step, riser or 0) of settled events
        self._stairs: dict[Happening, Stairs] = {}  # as of the newest settled event
        self._pending: dict[Happening, _Pending] = {}
        self._ordinary = ordinary
        self._trough: float | None = None
        self._trough_before: float | None = None  # the one before, when the newest stands out from it
        self._first_step = 0
        self._step = 0
        self._epoch: int | None = None
        self._open: tuple[Happening | None, float] | None = None  # what is under way, and live at its begin

    def restart(self) -> None:
        """What rose has fallen back."""
        self._seen.clear()
        self._stairs.clear()
        self._pending.clear()

    def take_phase(self, sample: PhaseSample) -> None:
        """Take the begin or the end of a phase."""
        kind = _OF_PHASE.get(sample.phase)
        if kind is None or (sample.done and not sample.ended):
            return
        if kind not in self._pending:
            self._expect(kind, sample.step)
        if sample.memory is not None:
            self._read(float(sample.memory.live_bytes))
            self._open = (None if sample.ended else kind), float(sample.memory.live_bytes)
        else:
            self._open = None

    def add(self, step: int, trough_bytes: float, change: Change, *, epoch: int) -> None:
        """Take the trough of a step, and how much it has changed."""
        if self._epoch is not None and epoch != self._epoch:
            self._expect(Happening.EPOCH, self._step)
        self._epoch = epoch
        self._first_step = self._first_step or step
        if change.outstanding and change.size_bytes < 0:
            self.restart()
        self._read(trough_bytes)
        self._open = None
        self._settle(trough_bytes)
        self._trough_before = self._trough if change.outstanding else None
        self._trough, self._step = trough_bytes, step

    def stairs(self, step: int) -> Stairs | None:
        """The stairs as seen at ``step``, those with the most risers first; ``None`` when no event brings any."""
        best: Stairs | None = None
        if not self._stairs:
            return None
        for kind in Happening:
            stairs = self._stairs.get(kind)
            if stairs is not None and (best is None or stairs.risers > best.risers):
                since = stairs.since_last_steps + step - self._seen[kind][-1][0]
                if since <= OVERDUE * stairs.distance_steps:
                    best = replace(stairs, since_last_steps=since)
        return best

    def _expect(self, kind: Happening, step: int) -> None:
        """From here on a riser may be this event's; one that shows in the event's own step may be it already."""
        if self._trough is None:
            return
        same_step = self._trough_before is not None and step <= self._step
        before = self._trough_before if same_step and self._trough_before is not None else self._trough
        self._pending[kind] = _Pending(step, before)

    def _read(self, live_bytes: float) -> None:
        """Live at the end of what was under way until now."""
        if self._open is None:
            return
        kind, begun_at = self._open
        if kind in self._pending and kind is not None:
            self._pending[kind].grew(live_bytes - begun_at)

    def _settle(self, trough_bytes: float) -> None:
        """Events whose riser shows, or will not show any more."""
        if not self._pending:
            return
        for pending in self._pending.values():
            pending.rows += 1
        rises = {kind: trough_bytes - pending.before_bytes for kind, pending in self._pending.items()}
        risen = {kind for kind, size in rises.items() if self._ordinary.stands_out(size) and size > 0}
        owners = {kind for kind in risen if (self._pending[kind].own_bytes or 0.0) >= _MAIN_SHARE * rises[kind]}
        for kind in list(self._pending):
            pending = self._pending[kind]
            if kind in risen:
                self._note(kind, pending.step, rises[kind] if not owners or kind in owners else 0.0)
            elif pending.rows >= _ROWS_AFTER:
                self._note(kind, pending.step, 0.0)

    def _note(self, kind: Happening, step: int, riser_bytes: float) -> None:
        self._seen.setdefault(kind, deque(maxlen=_KEPT)).append((step, riser_bytes))
        del self._pending[kind]
        stairs = self._of(kind)
        if stairs is None:
            self._stairs.pop(kind, None)
        else:
            self._stairs[kind] = stairs

    def _of(self, kind: Happening) -> Stairs | None:
        """The stairs of one kind of event, right after its newest one."""
        seen = list(self._seen[kind])
        risers = _alike_at_end([size for _, size in seen])
        if not risers:
            return None
        at = [event_step for event_step, _ in seen]
        gaps = np.diff(np.array(at, dtype=np.float64))
        distance = median(gaps) if gaps.size else float(at[-1] - self._first_step + 1)
        if distance < 1.0:
            return None
        sizes = np.array(risers)
        regular = math.hypot(_PERIOD_DOUBT, deviation(gaps) / distance) if gaps.size else _ONCE_PERIOD_DOUBT
        return Stairs(
            jump_bytes=median(sizes),
            jump_spread=deviation(sizes) / median(sizes) if sizes.size > 1 else _ONCE_SIZE_DOUBT,
            distance_steps=distance,
            distance_spread=regular,
            risers=sizes.size,
            since_last_steps=0.0,
            event=kind.value,
        )


def _alike_at_end(sizes: list[float]) -> list[float]:
    """The longest run of the newest risers that are alike; empty when the newest event brought none."""
    for count in range(len(sizes), 0, -1):
        newest = np.array(sizes[-count:])
        typical = median(newest)
        allowed = _ALIKE if count > _FEW else _ALIKE_FEW
        if typical > 0 and float(np.max(np.abs(newest - typical))) <= allowed * typical:
            return sizes[-count:]
    return []
