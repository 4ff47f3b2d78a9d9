"""Ending a process that uses a card: what may be ended, what came of it, and events that say so."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final

from desktop_app.core.errors import FloodmarkError
from desktop_app.core.events import Event, EventKind, EventQueue, Level
from desktop_app.core.telemetry import ProcessSample
from desktop_app.services.facade import EndOutcome
from desktop_app.telemetry.process_ending import Told, is_running, tell_to_end

READ_ONLY_VARIABLE: Final = "FLOODMARK_READ_ONLY"
# A process that saves its work when it is told to end takes a moment; after this long it is said that it has not ended.
_PATIENCE_S: Final = 10.0


class ProcessNotEnded(FloodmarkError):  # noqa: N818  a refusal, not a fault of the program
    """Nothing was done to the process. ``outcome`` is the reason in short."""

    def __init__(self, code: str, message: str, outcome: EndOutcome) -> None:
        super().__init__(f"process.{code}", message)
        self.outcome = outcome


def is_read_only(environment: Mapping[str, str] | None = None) -> bool:
    """Whether the environment asks for read-only mode (``FLOODMARK_READ_ONLY``, anything but empty or 0)."""
    environment = os.environ if environment is None else environment
    return environment.get(READ_ONLY_VARIABLE, "") not in ("", "0")


def end_process(
    sample: ProcessSample,
    *,
    force: bool = False,
    read_only: bool = False,
    tell: Callable[..., Told] = tell_to_end,
) -> None:
    """Tell a process to end (SIGTERM), or end it at once (``force``: SIGKILL). Does not wait.

    Raises ``ProcessNotEnded``, in one line, in read-only mode, for this program and what it has started, simulated
    processes, pids of a container's host, a pid that is another process's by now, one that has ended, and where the
    system does not allow it.
    """
    name = f"{sample.name or 'Process'} ({sample.pid})"
    if read_only:
        raise ProcessNotEnded(
            "read_only",
            f"{name} is not ended: Floodmark is in read-only mode. Start it without --read-only to end processes.",
            EndOutcome.NOT_ALLOWED,
        )
    if sample.simulated:
        raise ProcessNotEnded(
            "simulated", f"{name} is on a simulated card: there is no such process to end.", EndOutcome.NOT_ALLOWED
        )
    if sample.foreign:
        raise ProcessNotEnded(
            "foreign",
            f"{name} runs outside this container, where its number means nothing. End it on the host.",
            EndOutcome.NOT_ALLOWED,
        )
    if sample.own:
        raise _own(name)
    if sample.started_wall_s is None:
        raise ProcessNotEnded(
            "unknown",
            f"{name} is not ended: the system does not say since when it runs, so it cannot be told from another one.",
            EndOutcome.NOT_ALLOWED,
        )
    match tell(sample.pid, started_wall_s=sample.started_wall_s, force=force):
        case Told.OWN:
            raise _own(name)
        case Told.GONE:
            raise ProcessNotEnded("gone", f"{name} has ended already.", EndOutcome.GONE)
        case Told.ANOTHER:
            raise ProcessNotEnded("another", f"{name} has ended; its number is another process's now.", EndOutcome.GONE)
        case Told.DENIED:
            owner = f" It belongs to {sample.user}." if sample.user else ""
            raise ProcessNotEnded(
                "no_permission",
                f"The system does not allow to end {name}.{owner} Ask its owner, or end it as administrator.",
                EndOutcome.NO_PERMISSION,
            )


def _own(name: str) -> ProcessNotEnded:
    return ProcessNotEnded(
        "own",
        f"{name} is Floodmark or was started by it. Stop the run, or quit the program.",
        EndOutcome.NOT_ALLOWED,
    )


@dataclass(frozen=True, slots=True)
class _Asked:
    """A process that was told to end and may still run."""

    sample: ProcessSample
    at_s: float
    force: bool


class ProcessControl:
    """Ends processes for a window and says in events what came of it.

    ``end``: any thread, returns at once. ``look``: once a second, sampler thread.
    """

    def __init__(
        self,
        *,
        now_s: Callable[[], float],
        events: EventQueue,
        listed: Callable[[], Mapping[str, tuple[ProcessSample, ...]]],
        read_only: bool = False,
        tell: Callable[..., Told] = tell_to_end,
        runs: Callable[..., bool] = is_running,
    ) -> None:
        self.read_only = read_only
        self._now_s = now_s
        self._events = events
        self._listed = listed
        self._tell = tell
        self._runs = runs
        self._lock = threading.Lock()
        self._asked: dict[int, _Asked] = {}

    def end(self, uuid: str, pid: int, *, force: bool = False) -> EndOutcome:
        """As ``end_process``, for a pid on the card's list; every outcome is an event."""
        sample = next((process for process in self._listed().get(uuid, ()) if process.pid == pid), None)
        if sample is None:
            sample = ProcessSample(pid, uuid, "", None, None, "compute", None)
            self._refuse(sample, "process.gone", f"Process {pid} is not on the card any more.", force=force)
            return EndOutcome.GONE
        try:
            end_process(sample, force=force, read_only=self.read_only, tell=self._tell)
        except ProcessNotEnded as error:
            self._refuse(sample, error.code, error.message, force=force)
            return error.outcome
        with self._lock:
            self._asked[pid] = _Asked(sample, self._now_s(), force)
        self._post(EventKind.CHANGE, Level.INFO, "process.killed" if force else "process.asked", sample, force=force)
        return EndOutcome.SENT

    def look(self) -> None:
        """Say of those that were told whether they have ended."""
        if not self._asked:
            return
        with self._lock:
            asked = dict(self._asked)
        for pid, each in asked.items():
            over = not self._runs(pid, started_wall_s=each.sample.started_wall_s)
            if over:
                self._post(EventKind.CHANGE, Level.INFO, "process.ended", each.sample, force=each.force)
            elif self._now_s() - each.at_s >= _PATIENCE_S:
                self._post(EventKind.CHANGE, Level.WARNING, "process.still_there", each.sample, force=each.force)
            else:
                continue
            with self._lock:
                if self._asked.get(pid) is each:
                    del self._asked[pid]

    def _refuse(self, sample: ProcessSample, code: str, message: str, *, force: bool) -> None:
        self._post(EventKind.ERROR, Level.WARNING, code, sample, force=force, message=message)

    def _post(
        self, kind: EventKind, level: Level, code: str, sample: ProcessSample, *, force: bool, **more: object
    ) -> None:
        params = {"pid": sample.pid, "name": sample.name, "uuid": sample.uuid, "force": force, **more}
        self._events.post(Event(self._now_s(), kind, level, code, params))
