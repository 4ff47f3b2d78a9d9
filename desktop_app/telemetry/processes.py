"""Names, owners, commands and cost of processes by pid. A closed door is ``None``, never a guess."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

import psutil

from desktop_app.core.telemetry import ProcessSample
from desktop_app.telemetry.containers import container_of_pid, holds_card, own_container, sees_all_pids

_MOST_KNOWN: Final = 256  # the oldest is forgotten: a session of weeks must not grow
# Shares of the processor over less than this say little (the system counts in ticks of 10 ms), and a process on several
# cards is asked for by each of them in the same second.
_SHORTEST_SHARE_S: Final = 0.5


@dataclass(frozen=True, slots=True)
class ProcessFacts:
    """What the system says about a pid. ``name`` is empty when nothing is known (a host's pid seen in a container)."""

    name: str = ""
    user: str | None = None
    command: str | None = None
    started_wall_s: float | None = None
    own: bool = False
    container: str | None = None
    foreign: bool = False


@dataclass(frozen=True, slots=True)
class ProcessCost:
    """What a process takes of the computer. ``cpu_percent``: since it was last asked for, 100 = one core."""

    cpu_percent: float | None = None
    rss_bytes: int | None = None


@dataclass(slots=True)
class _Known:
    """A process that was looked up, and its processor time when it was last asked for."""

    process: psutil.Process
    started_s: float
    facts: ProcessFacts
    asked_s: float = 0.0
    busy_s: float | None = None
    cost: ProcessCost = ProcessCost()


class ProcessDirectory:
    """Looks pids up and remembers them for as long as the same process has them. Runs in: sampler thread.

    In a process namespace of its own (a container) the driver may give pids of the host. One that no process here has
    is ``foreign``, and so is one whose process here holds no card; where that cannot be seen, nothing is said of it.
    """

    def __init__(
        self,
        *,
        clock: Callable[[], float] = time.monotonic,
        all_pids: Callable[[], bool | None] = sees_all_pids,
        own_kind: Callable[[], str | None] = own_container,
        holds: Callable[[int], bool | None] = holds_card,
    ) -> None:
        self._clock = clock
        self._holds = holds
        self._known: dict[int, _Known] = {}
        self._own_pid = os.getpid()
        self._apart = all_pids() is False
        self._own_kind = own_kind()

    def describe(self, pid: int) -> ProcessFacts:
        """Facts of ``pid``; ``own`` for this process and those it started."""
        known = self._find(pid)
        if known is None:
            return ProcessFacts(own=pid == self._own_pid, foreign=self._apart and not psutil.pid_exists(pid))
        return known.facts

    def sample(self, pid: int, *, uuid: str, kind: str) -> ProcessSample:
        """``pid`` on the card ``uuid`` with all that this computer's system knows of it; the card's side is blank."""
        facts, cost = self.describe(pid), self.cost(pid)
        return ProcessSample(
            pid=pid,
            uuid=uuid,
            name=facts.name,
            user=facts.user,
            command=facts.command,
            kind=kind,
            memory_bytes=None,
            started_wall_s=facts.started_wall_s,
            own=facts.own,
            cpu_percent=cost.cpu_percent,
            rss_bytes=cost.rss_bytes,
            container=facts.container,
            foreign=facts.foreign,
        )

    def cost(self, pid: int) -> ProcessCost:
        """What ``pid`` costs; nothing of one that is not surely of this system. The first look has no share."""
        known = self._known.get(pid)
        if known is None or known.facts.started_wall_s is None:
            return ProcessCost()
        now_s = self._clock()
        elapsed_s = now_s - known.asked_s
        if known.busy_s is None or elapsed_s >= _SHORTEST_SHARE_S:
            self._measure(known, now_s, elapsed_s)
        return known.cost

    def _measure(self, known: _Known, now_s: float, elapsed_s: float) -> None:
        try:
            times = known.process.cpu_times()
            rss_bytes = int(known.process.memory_info().rss)
        except (psutil.Error, OSError):
            known.cost = ProcessCost()
            return
        busy_s = float(times.user + times.system)
        before_s, known.busy_s, known.asked_s = known.busy_s, busy_s, now_s
        share = None if before_s is None else max(0.0, 100.0 * (busy_s - before_s) / elapsed_s)
        known.cost = ProcessCost(share, rss_bytes or None)

    def _find(self, pid: int) -> _Known | None:
        """What is known of the process that has the pid now."""
        try:
            process = psutil.Process(pid)
            started_s = process.create_time()
        except (psutil.Error, OSError, ValueError, OverflowError):
            self._known.pop(pid, None)
            return None
        known = self._known.get(pid)
        if known is None or known.started_s != started_s:
            known = _Known(process, started_s, self._look_up(process, started_s))
            if len(self._known) >= _MOST_KNOWN:
                self._known.pop(next(iter(self._known), 0), None)  # cards are read by several threads
            self._known[pid] = known
        return known

    def _look_up(self, process: psutil.Process, started_s: float) -> ProcessFacts:
        if self._apart and process.pid != self._own_pid:
            holds = self._holds(process.pid)
            if holds is not True:  # another process of the host may have this number
                return ProcessFacts(foreign=holds is False)
        arguments = _ask(process, "cmdline")
        return ProcessFacts(
            name=str(_ask(process, "name") or ""),
            user=_text(_ask(process, "username")),
            command=" ".join(str(part) for part in arguments) if isinstance(arguments, list) and arguments else None,
            started_wall_s=started_s,
            own=self._is_own(process),
            container=container_of_pid(process.pid) or (self._own_kind if self._apart else None),
        )

    def _is_own(self, process: psutil.Process) -> bool:
        if process.pid == self._own_pid:
            return True
        try:
            return any(parent.pid == self._own_pid for parent in process.parents())
        except (psutil.Error, OSError):
            return False


def _ask(process: psutil.Process, question: str) -> object:
    """One answer about a process, or ``None``: each may be refused alone, and the process may end between two."""
    try:
        answer: object = getattr(process, question)()
    except (psutil.Error, OSError, KeyError):  # KeyError: a uid without a name
        return None
    return answer


def _text(answer: object) -> str | None:
    return answer if isinstance(answer, str) and answer else None
