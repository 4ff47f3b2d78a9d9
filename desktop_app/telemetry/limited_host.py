"""A small computer in the place of the real one: a demonstration of RAM that runs out must not fill the presenter's."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from typing import Final

from desktop_app.core.telemetry import Reading
from desktop_app.telemetry.host import Host, HostReader

_SETTLING_S: Final = 3.0  # a training has its libraries and workspaces by then


class HostLimit:
    """How much more RAM this program may take before the computer counts as full; ``None``: no limit. Thread-safe."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._room_bytes: int | None = None

    @property
    def room_bytes(self) -> int | None:
        with self._lock:
            return self._room_bytes

    def set(self, room_bytes: int | None) -> None:
        """From now on, until the next call."""
        with self._lock:
            self._room_bytes = room_bytes


class LimitedHost:
    """The machine as it is, or under a limit with this program as all that is in its RAM.

    Runs in: sampler thread. The total is what the program holds when a training has settled, and the room beside it.
    Children (the one that traces for the estimate) are not counted: they come and go.
    """

    def __init__(self, limit: HostLimit, base: Host | None = None) -> None:
        self._limit = limit
        self._base: Host = base or HostReader()
        self._began_s: float | None = None
        self._total_bytes = 0.0

    def read(self, t_s: float) -> Mapping[str, Reading]:
        """As the base's, RAM under the limit."""
        readings = self._base.read(t_s)
        room_bytes = self._limit.room_bytes
        own = readings["own_rss_bytes"].value
        if room_bytes is None or own is None:
            self._began_s = None
            return readings
        if self._began_s is None:
            self._began_s = t_s
        if t_s - self._began_s <= _SETTLING_S:
            self._total_bytes = own + room_bytes
        used_bytes = min(own, self._total_bytes)
        return {
            **readings,
            "memory_total_bytes": Reading(self._total_bytes),
            "memory_used_bytes": Reading(used_bytes),
            "memory_available_bytes": Reading(self._total_bytes - used_bytes),
        }
