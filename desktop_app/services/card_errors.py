"""Errors that a driver pushes (Xid) as events: the first at once, then counts, so that a storm is a few lines."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from desktop_app.core.events import Event, EventKind, Level
from desktop_app.core.telemetry import CardError

# A card that repeats an error is told again after this long, then after twice as long each time, up to the longest:
# a storm of a day is about thirty events. Both are choices.
_AGAIN_S: Final = 10.0
_LONGEST_S: Final = 3600.0
_MOST_KINDS: Final = 256  # kinds of errors remembered; the catalogue has fewer than 200 numbers
# What a program did wrong, or what a program's end looks like (NVIDIA's Xid catalogue: restart the application). The
# rest is the card, its memory, its links or its firmware. 63 is a repair that went well.
_BY_PROGRAMS: Final = frozenset({8, 11, 13, 31, 32, 43, 45, 68, 69})
_MENDED: Final = frozenset({63, 92})


@dataclass(slots=True)
class _Repeated:
    """One kind of error of one card since it was last told."""

    told_s: float
    wait_s: float
    count: int = 0
    newest_s: float = 0.0


class CardErrorDesk:
    """Turns errors into events of kind ``XID``: code ``telemetry.xid``, params ``xid``, ``uuid`` (``None``: the driver
    did not say which card) and ``count``. Runs in: sampler thread.
    """

    def __init__(self, post: Callable[[Event], object]) -> None:
        self._post = post
        self._known: dict[tuple[str | None, int], _Repeated] = {}

    def take(self, error: CardError) -> None:
        """Tell it now, or count it when the same was told a moment ago."""
        key = (error.uuid, error.xid)
        known = self._known.get(key)
        if known is None:
            if len(self._known) >= _MOST_KINDS:
                self._known.pop(next(iter(self._known)))
            self._known[key] = _Repeated(told_s=error.t_s, wait_s=_AGAIN_S)
            self._tell(error.t_s, key, 1)
            return
        known.count += 1
        known.newest_s = error.t_s
        self._settle(error.t_s, key, known)

    def settle(self, t_s: float) -> None:
        """Once a second: tell what was counted and has waited long enough."""
        for key, known in list(self._known.items()):
            self._settle(t_s, key, known)

    def _settle(self, t_s: float, key: tuple[str | None, int], known: _Repeated) -> None:
        quiet_s = t_s - known.told_s
        if known.count and quiet_s >= known.wait_s:
            self._tell(known.newest_s, key, known.count)
            known.told_s, known.count = t_s, 0
            known.wait_s = min(2 * known.wait_s, _LONGEST_S)
        elif not known.count and quiet_s >= 2 * known.wait_s:  # it is over: the next one is news
            del self._known[key]

    def _tell(self, t_s: float, key: tuple[str | None, int], count: int) -> None:
        uuid, xid = key
        params = {"uuid": uuid, "xid": xid, "count": count}
        self._post(Event(t_s, EventKind.XID, level_of(xid), "telemetry.xid", params))


def level_of(xid: int) -> Level:
    """``WARNING`` for what a program did or what was mended, else ``ERROR``."""
    return Level.WARNING if xid in _BY_PROGRAMS | _MENDED else Level.ERROR
