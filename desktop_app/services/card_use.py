"""Who holds what on the card of the run: other processes, and this one outside its allocator."""

from __future__ import annotations

import statistics
from collections import deque
from collections.abc import Iterable
from typing import Final

from desktop_app.core.steps import MemoryStats
from desktop_app.core.telemetry import ProcessSample

# The parts are read at different moments, so a step that allocates between two of them looks like another process for
# one second. The median of five seconds is past two such seconds and follows a real neighbour in three.
_SECONDS: Final = 5


class CardUse:
    """Told once a second. ``others_bytes`` and ``outside_bytes`` add up, with the allocator's reserve, to the card's
    use. Runs in: sampler thread; the two figures may be read anywhere."""

    def __init__(self) -> None:
        self._uuid: str | None = None
        self._others: deque[int] = deque(maxlen=_SECONDS)
        self._outside: deque[int] = deque(maxlen=_SECONDS)
        self.others_bytes = 0
        self.outside_bytes: int | None = None  # None: the allocator's statistics know it, or nobody does

    def observe(
        self,
        uuid: str,
        *,
        used_bytes: int | None,
        processes: Iterable[ProcessSample],
        memory: MemoryStats | None,
        training: bool,
    ) -> None:
        """What the card and its processes said in one tick, and what the allocator said last in this run."""
        if uuid != self._uuid:
            self._uuid = uuid
            self._others.clear()
            self._outside.clear()
        if used_bytes is None:
            return
        own_bytes = _own_bytes(processes, training=training)
        if own_bytes is not None:
            self._note(used_bytes - own_bytes, own_bytes - memory.reserved_bytes if memory is not None else None)
        elif memory is not None:
            self._note(used_bytes - memory.reserved_bytes - memory.outside_bytes, None)
        # Else a run has begun that neither driver nor allocator account for yet: what was known before it holds.

    def _note(self, others_bytes: int, outside_bytes: int | None) -> None:
        self._others.append(max(0, others_bytes))
        self.others_bytes = statistics.median_high(self._others)
        if outside_bytes is None:
            self._outside.clear()
            self.outside_bytes = None
        else:
            self._outside.append(max(0, outside_bytes))
            self.outside_bytes = statistics.median_high(self._outside)


def _own_bytes(processes: Iterable[ProcessSample], *, training: bool) -> int | None:
    """What the driver books on this process. Without an entry it holds nothing, unless it trains: in a container the
    driver's list has other pids."""
    own = [process.memory_bytes for process in processes if process.own]
    if not own:
        return None if training else 0
    known = [size for size in own if size is not None]
    return sum(known) if len(known) == len(own) else None
