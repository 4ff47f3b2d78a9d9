"""Names, owners and commands of processes by pid. A closed door is ``None``, never a guess."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import Final

import psutil

_MOST_KNOWN: Final = 256  # the oldest is forgotten: a session of weeks must not grow


@dataclass(frozen=True, slots=True)
class ProcessFacts:
    """What the system says about a pid. ``name`` is empty when nothing is known (a host's pid seen in a container)."""

    name: str = ""
    user: str | None = None
    command: str | None = None
    started_wall_s: float | None = None
    own: bool = False


class ProcessDirectory:
    """Looks pids up and remembers them for as long as the same process has them. Runs in: sampler thread."""

    def __init__(self) -> None:
        self._known: dict[int, ProcessFacts] = {}
        self._own_pid = os.getpid()

    def describe(self, pid: int) -> ProcessFacts:
        """Facts of ``pid``; ``own`` for this process and those it started."""
        try:
            process = psutil.Process(pid)
            started_s = process.create_time()
        except (psutil.Error, OSError, ValueError):
            self._known.pop(pid, None)
            return ProcessFacts(own=pid == self._own_pid)
        known = self._known.get(pid)
        if known is None or known.started_wall_s != started_s:
            known = self._look_up(process, started_s)
            if len(self._known) >= _MOST_KNOWN:
                self._known.pop(next(iter(self._known), 0), None)  # cards are read by several threads
            self._known[pid] = known
        return known

    def _look_up(self, process: psutil.Process, started_s: float) -> ProcessFacts:
        arguments = _ask(process, "cmdline")
        return ProcessFacts(
            name=str(_ask(process, "name") or ""),
            user=_text(_ask(process, "username")),
            command=" ".join(str(part) for part in arguments) if isinstance(arguments, list) and arguments else None,
            started_wall_s=started_s,
            own=self._is_own(process),
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
