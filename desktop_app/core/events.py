"""What happened: one bounded queue that every reader pulls from its own position."""

from __future__ import annotations

import heapq
import itertools
import threading
from collections import deque
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from operator import attrgetter
from typing import Final


class EventKind(StrEnum):
    """What an event is about; the lane draws one mark per kind."""

    RUN_STATE = "run_state"
    EPOCH = "epoch"
    VALIDATION = "validation"
    CHECKPOINT = "checkpoint"
    THROTTLE = "throttle"
    XID = "xid"
    ALLOC_RETRY = "alloc_retry"
    ALERT = "alert"
    ALERT_CLEARED = "alert_cleared"
    OOM = "oom"
    RESCUE = "rescue"  # an out-of-memory error was caught and the run goes on with a smaller micro-batch
    CHANGE = "change"  # the user or a rule changed the run: micro-batch, accumulation
    OUTAGE = "outage"
    BACK = "back"
    DATA_SKIPPED = "data_skipped"
    LEARNING = "learning"
    ERROR = "error"


class Level(StrEnum):
    """How loud an event is."""

    INFO = "info"
    WARNING = "warning"
    ERROR = "error"


# A reader that comes late must still learn of these (design.md §3).
_KEPT_KINDS: Final = frozenset(
    {EventKind.ALERT, EventKind.ALERT_CLEARED, EventKind.OOM, EventKind.RESCUE, EventKind.ERROR}
)


@dataclass(frozen=True, slots=True)
class Event:
    """One thing that happened at ``t_s``. ``code`` and ``params`` are for the text that a window makes.

    ``seq`` is 0 until the queue stamps it.
    """

    t_s: float
    kind: EventKind
    level: Level
    code: str
    params: Mapping[str, object] = field(default_factory=dict)
    seq: int = 0

    @property
    def kept(self) -> bool:
        """The queue never drops it: an alert, its end, an out-of-memory, or anything of level ``ERROR``."""
        return self.level is Level.ERROR or self.kind in _KEPT_KINDS


class EventQueue:
    """Bounded history of events, thread-safe: any thread posts, each reader pulls by its own position.

    Ordinary events beyond ``capacity`` are dropped, oldest first, and counted in ``dropped``. Kept events
    (``Event.kept``) stay for the whole session and take no room from the others.
    """

    def __init__(self, *, capacity: int = 4096) -> None:
        if capacity < 1:
            raise ValueError(f"capacity must be at least 1, not {capacity}")
        self._lock = threading.Lock()
        self._ordinary: deque[Event] = deque(maxlen=capacity)
        self._kept: list[Event] = []
        self._seq = 0
        self._dropped = 0

    @property
    def seq(self) -> int:
        """The newest event's ``seq``; 0 before the first. A cheap check for news."""
        return self._seq

    @property
    def dropped(self) -> int:
        """Ordinary events that are no longer held, whether or not a reader had pulled them."""
        return self._dropped

    def post(self, event: Event) -> Event:
        """Add ``event`` and return it stamped with the next ``seq`` (from 1, without holes)."""
        with self._lock:
            self._seq += 1
            stamped = replace(event, seq=self._seq)
            if stamped.kept:
                self._kept.append(stamped)
            else:
                self._dropped += len(self._ordinary) == self._ordinary.maxlen
                self._ordinary.append(stamped)
            return stamped

    def since(self, seq: int) -> tuple[tuple[Event, ...], int]:
        """The held events after ``seq``, oldest first, and the position to pull from next time.

        A hole in the ``seq`` of the events is what this reader missed.
        """
        with self._lock:
            ordinary = _newer(reversed(self._ordinary), seq)
            kept = _newer(reversed(self._kept), seq)
            newest = self._seq
        return tuple(heapq.merge(ordinary, kept, key=attrgetter("seq"))), newest


def _newer(newest_first: Iterable[Event], seq: int) -> list[Event]:
    events = list(itertools.takewhile(lambda event: event.seq > seq, newest_first))
    events.reverse()
    return events
