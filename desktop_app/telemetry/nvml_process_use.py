"""How much of a card each process uses, from the driver's samples since the last look."""

from __future__ import annotations

import time
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any, Final

from desktop_app.core.telemetry import Reading, Reason
from desktop_app.telemetry.nvml import NvmlDoor
from desktop_app.telemetry.nvml_facts import Traits
from desktop_app.telemetry.plausibility import PERCENT, is_moment

_OLDER: Final = "nvmlDeviceGetProcessUtilization"
_NEWER: Final = "nvmlDeviceGetProcessesUtilizationInfo"
# A card that is this busy keeps somebody's SMs busy: zeros for all are no answer then. Below, the load may be of
# moments between two samples, or of copies.
_BUSY_PERCENT: Final = 10.0


@dataclass(frozen=True, slots=True)
class UseSample:
    """Percent of the card's SM time and of its memory bus. ``reason``: why there is no share of SM time."""

    sm_percent: float | None = None
    memory_percent: float | None = None
    reason: Reason | None = None


class ProcessUse:
    """One card's samples by process. Runs in: sampler thread.

    The driver lists who was busy since a time (nvml.h: "had some non-zero utilization"), so one that it does not list
    is at 0, but only where the call shows that it works: another process has samples, or the card as a whole is at 0.
    Samples of pids that are on no list (zombies) do not count. Where the older call shows nothing on a busy card the
    newer one is asked, and where that is silent too nothing is known, which is not 0.
    """

    def __init__(self, door: NvmlDoor) -> None:
        self._door = door
        self._call = _OLDER
        self._seen_us: int | None = None  # newest sample of a listed process; None before the first look

    def read(
        self, handle: Any, uuid: str, traits: Traits, *, pids: Collection[int], utilization: Reading
    ) -> Mapping[int, UseSample]:
        """A sample or a reason for each of ``pids``."""
        if traits.mig:  # not supported on a card with slices, nor on a slice
            return _none(pids, Reason.MIG)
        if not pids:
            return {}
        first, since_us = self._seen_us is None, self._seen_us or 0
        busy = utilization.value is None or utilization.value >= _BUSY_PERCENT
        samples, reason = self._ask(self._call, handle, uuid, pids, since_us)
        if not first and busy and not _shows_work(samples):
            other = _NEWER if self._call == _OLDER else _OLDER
            more, other_reason = self._ask(other, handle, uuid, pids, since_us)
            if _shows_work(more):
                self._call, samples, reason = other, more, other_reason
        self._seen_us = max((time_us for time_us, _ in samples.values()), default=since_us)
        if first:  # what is kept from before may be minutes old
            return _none(pids, _for_wddm(reason, traits) or Reason.NOT_READ_YET)
        if reason is not None:
            return _none(pids, _for_wddm(reason, traits) or reason)
        if not samples and utilization.value != 0:
            return _none(pids, Reason.NOT_SUPPORTED)
        if busy and not _shows_work(samples):
            return _none(pids, Reason.IMPLAUSIBLE)
        judged = {pid: _judged(sample) for pid, (_, sample) in samples.items()}
        believed = utilization.value == 0 or any(use.sm_percent is not None for use in judged.values())
        idle = UseSample(0.0, 0.0) if believed else UseSample(reason=Reason.IMPLAUSIBLE)
        return {pid: judged.get(pid, idle) for pid in pids}

    def _ask(
        self, call: str, handle: Any, uuid: str, pids: Collection[int], since_us: int
    ) -> tuple[dict[int, tuple[int, Any]], Reason | None]:
        """(newest sample of each listed pid after ``since_us``, with its time; why there are none)."""
        answer = self._door.listed(call, handle, since_us=since_us, owner=uuid)
        if answer.reason is not None:
            return {}, answer.reason
        wall_s = time.time()
        newest: dict[int, tuple[int, Any]] = {}
        for sample in answer.value:
            pid, time_us = int(sample.pid), int(sample.timeStamp)
            if pid in pids and since_us < time_us and is_moment(time_us, wall_s=wall_s):
                newest[pid] = max(newest.get(pid, (0, sample)), (time_us, sample), key=lambda pair: pair[0])
        return newest, None


def _shows_work(samples: Mapping[int, tuple[int, Any]]) -> bool:
    """Whether a process was at work. A value that cannot be true is no zero."""
    return any(sample.smUtil or sample.memUtil or sample.encUtil or sample.decUtil for _, sample in samples.values())


def _judged(sample: Any) -> UseSample:
    sm, memory = (
        float(value) if PERCENT.low <= value <= PERCENT.high else None for value in (sample.smUtil, sample.memUtil)
    )
    return UseSample(sm, memory, Reason.IMPLAUSIBLE if sm is None else None)


def _for_wddm(reason: Reason | None, traits: Traits) -> Reason | None:
    return Reason.WDDM if traits.wddm and reason is Reason.NOT_SUPPORTED else reason


def _none(pids: Collection[int], reason: Reason) -> dict[int, UseSample]:
    return dict.fromkeys(pids, UseSample(reason=reason))
