"""The machine around the cards: processor, memory, disks, and what this program itself costs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, Protocol

import psutil

from desktop_app.core.telemetry import HOST_FIELDS, Reading, Reason
from desktop_app.telemetry.backend import missing
from desktop_app.telemetry.child_processes import ChildProcesses
from desktop_app.telemetry.commit_charge import commit_charge

_MEMORY_FIELDS: Final = ("memory_used_bytes", "memory_available_bytes", "memory_total_bytes")


class Host(Protocol):
    """What the sampler asks the machine: one reading for each of ``HOST_FIELDS``. ``t_s``: session time of asking."""

    def read(self, t_s: float) -> Mapping[str, Reading]: ...


class HostReader:
    """Reads the machine through psutil. Rates are over the time since the last reading. Runs in: sampler thread.

    Own counters are kept here, because psutil's ``interval=None`` shares one baseline among all its callers.
    """

    def __init__(self) -> None:
        self._own = psutil.Process()
        self._children = ChildProcesses(self._own)
        self._cpu: tuple[float, float] | None = None  # (busy, total) seconds of all cores
        self._disk: tuple[float, float, float] | None = None  # (t, bytes read, bytes written)
        self._own_cpu: tuple[float, float] | None = None  # (t, seconds)

    def read(self, t_s: float) -> Mapping[str, Reading]:
        """All of ``HOST_FIELDS``; a rate has no value at the first reading."""
        readings = missing(HOST_FIELDS, Reason.NOT_READ_YET)
        readings["cpu_percent"] = self._read_cpu()
        readings.update(self._read_memory())
        readings.update(self._read_disks(t_s))
        readings.update(self._read_own(t_s))
        readings.update(self._read_children(t_s))
        readings.update(_read_commit())
        return readings

    def _read_cpu(self) -> Reading:
        try:
            times = psutil.cpu_times()
        except (psutil.Error, OSError):
            return Reading(None, Reason.UNKNOWN_ERROR)
        # guest time is counted in user time already; iowait is time in which the core was free
        idle_s = times.idle + getattr(times, "iowait", 0.0)
        total_s = sum(times) - getattr(times, "guest", 0.0) - getattr(times, "guest_nice", 0.0)
        before, self._cpu = self._cpu, (total_s - idle_s, total_s)
        if before is None or total_s <= before[1]:
            return Reading(None, Reason.NOT_READ_YET)
        share = (self._cpu[0] - before[0]) / (total_s - before[1])
        return Reading(100.0 * min(1.0, max(0.0, share)))

    def _read_memory(self) -> dict[str, Reading]:
        try:
            memory = psutil.virtual_memory()
        except (psutil.Error, OSError):
            return missing(_MEMORY_FIELDS, Reason.UNKNOWN_ERROR)
        return {
            "memory_used_bytes": Reading(float(memory.total - memory.available)),
            "memory_available_bytes": Reading(float(memory.available)),
            "memory_total_bytes": Reading(float(memory.total)),
        }

    def _read_disks(self, t_s: float) -> dict[str, Reading]:
        fields = ("disk_read_bytes_per_s", "disk_write_bytes_per_s")
        try:
            counters = psutil.disk_io_counters()
        except (psutil.Error, OSError, RuntimeError):  # RuntimeError: no disks in the kernel's table
            counters = None
        if counters is None:
            self._disk = None
            return missing(fields, Reason.NOT_SUPPORTED)
        now = (t_s, float(counters.read_bytes), float(counters.write_bytes))
        before, self._disk = self._disk, now
        if before is None or t_s <= before[0]:
            return missing(fields, Reason.NOT_READ_YET)
        rates = [(now[i] - before[i]) / (t_s - before[0]) for i in (1, 2)]
        # a counter that went back (a disk was unplugged) says nothing about this interval
        return {
            field: Reading(rate) if rate >= 0 else Reading(None, Reason.IMPLAUSIBLE)
            for field, rate in zip(fields, rates, strict=True)
        }

    def _read_own(self, t_s: float) -> dict[str, Reading]:
        try:
            with self._own.oneshot():
                times, rss_bytes = self._own.cpu_times(), self._own.memory_info().rss
        except (psutil.Error, OSError):
            return missing(("own_cpu_percent", "own_rss_bytes"), Reason.UNKNOWN_ERROR)
        now = (t_s, float(times.user + times.system))
        before, self._own_cpu = self._own_cpu, now
        cpu = Reading(None, Reason.NOT_READ_YET)
        if before is not None and t_s > before[0]:
            cpu = Reading(max(0.0, 100.0 * (now[1] - before[1]) / (t_s - before[0])))
        return {"own_cpu_percent": cpu, "own_rss_bytes": Reading(float(rss_bytes))}

    def _read_children(self, t_s: float) -> dict[str, Reading]:
        found = self._children.read(t_s)
        if found is None:
            return missing(("children", "children_rss_bytes"), Reason.UNKNOWN_ERROR)
        return {"children": Reading(float(found[0])), "children_rss_bytes": Reading(float(found[1]))}


def _read_commit() -> dict[str, Reading]:
    charge = commit_charge()
    if charge is None:
        return missing(("commit_used_bytes", "commit_limit_bytes"), Reason.NOT_SUPPORTED)
    return {"commit_used_bytes": Reading(float(charge[0])), "commit_limit_bytes": Reading(float(charge[1]))}


def system_memory() -> tuple[int, int]:
    """(total, used) bytes of the system, which is a card's memory where the two share one."""
    memory = psutil.virtual_memory()
    return int(memory.total), int(memory.total - memory.available)
