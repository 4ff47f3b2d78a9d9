"""How a run lives and how the program ends."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from desktop_app.core.steps import RunState

log = logging.getLogger(__name__)

_ENDS: Final = frozenset({RunState.STOPPED, RunState.FAILED, RunState.OUT_OF_MEMORY})
_REST: Final = frozenset({RunState.IDLE, RunState.PREPARING})

# From each state to the states that may follow. PAUSING and STOPPING may be skipped when there is nothing to wait
# for; a run may end by itself while a pause or a stop waits for its step.
TRANSITIONS: Final[Mapping[RunState, frozenset[RunState]]] = {
    RunState.IDLE: frozenset({RunState.PREPARING}),
    RunState.PREPARING: _ENDS | {RunState.RUNNING, RunState.PAUSING, RunState.STOPPING},
    RunState.RUNNING: _ENDS | {RunState.PAUSING, RunState.PAUSED, RunState.STOPPING, RunState.FINISHED},
    RunState.PAUSING: _ENDS | {RunState.PAUSED, RunState.RUNNING, RunState.STOPPING, RunState.FINISHED},
    RunState.PAUSED: _ENDS | {RunState.RUNNING, RunState.STOPPING},
    RunState.STOPPING: _ENDS | {RunState.FINISHED},
    RunState.FINISHED: _REST,
    RunState.STOPPED: _REST,
    RunState.FAILED: _REST,
    RunState.OUT_OF_MEMORY: _REST,
}


class RunMachine:
    """The state of a run, thread-safe: only legal transitions (``TRANSITIONS``) happen."""

    def __init__(self, state: RunState = RunState.IDLE) -> None:
        self._lock = threading.Lock()
        self._state = state

    @property
    def state(self) -> RunState:
        return self._state

    def to(self, state: RunState) -> None:
        """Go to ``state``; ``ValueError`` when it may not follow the present one (staying is no transition)."""
        with self._lock:
            if state not in TRANSITIONS[self._state]:
                raise ValueError(f"a run cannot go from {self._state} to {state}")
            self._state = state

    def attempt(self, state: RunState) -> bool:
        """Go to ``state`` if that is legal, in one piece: for a click that races with the end of the run."""
        with self._lock:
            legal = state in TRANSITIONS[self._state]
            if legal:
                self._state = state
            return legal


class StageOutcome(StrEnum):
    DONE = "done"
    FAILED = "failed"
    TIMED_OUT = "timed_out"


@dataclass(frozen=True, slots=True)
class StageResult:
    """How one stage closed. ``error`` is one line for ``FAILED``."""

    name: str
    outcome: StageOutcome
    seconds: float
    error: str | None = None


@dataclass(frozen=True, slots=True)
class _Stage:
    name: str
    close: Callable[[], object]
    timeout_s: float | None


class ClosingStages:
    """What must end when the program ends, closed last-registered first.

    An exception or a timeout in one stage never keeps the others from closing. Closing twice is harmless: each stage
    closes once, and a call made while another is closing returns what is known so far (a signal handler may be it).
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._stages: list[_Stage] = []
        self._results: list[StageResult] = []

    def register(self, name: str, close: Callable[[], object], *, timeout_s: float | None) -> None:
        """Have ``close`` called at the end, from a thread of its own that is abandoned after ``timeout_s`` seconds.

        ``None`` calls it in the closing thread and waits for as long as it takes: for what may not be closed elsewhere.
        """
        if timeout_s is not None and timeout_s <= 0:
            raise ValueError(f"timeout_s must be above 0 or None, not {timeout_s}")
        with self._lock:
            self._stages.append(_Stage(name, close, timeout_s))

    def close_all(self) -> tuple[StageResult, ...]:
        """Close every stage not closed yet, also those registered meanwhile; all results so far, in closing order."""
        while (stage := self._next()) is not None:
            result = _close(stage)
            with self._lock:
                self._results.append(result)
        with self._lock:
            return tuple(self._results)

    def _next(self) -> _Stage | None:
        with self._lock:
            return self._stages.pop() if self._stages else None


def _close(stage: _Stage) -> StageResult:
    began_s = time.monotonic()
    errors: list[Exception] = []
    finished = True
    if stage.timeout_s is None:
        _call(stage, errors)
    else:
        thread = threading.Thread(target=_call, args=(stage, errors), name=f"closing {stage.name}", daemon=True)
        thread.start()
        thread.join(stage.timeout_s)
        finished = not thread.is_alive()
    seconds = time.monotonic() - began_s
    if errors:
        return StageResult(stage.name, StageOutcome.FAILED, seconds, f"{type(errors[0]).__name__}: {errors[0]}")
    if not finished:
        log.error("%s did not close within %.1f s and is left behind", stage.name, seconds)
        return StageResult(stage.name, StageOutcome.TIMED_OUT, seconds)
    return StageResult(stage.name, StageOutcome.DONE, seconds)


def _call(stage: _Stage, errors: list[Exception]) -> None:
    try:
        stage.close()
    except Exception as error:
        log.exception("%s did not close cleanly", stage.name)
        errors.append(error)
