"""The parent of the interpreter that traces: hands it jobs, watches time and memory, ends it. Torch-free.

One child serves many jobs, because importing torch takes seconds. Whatever becomes of it – an error in the model, a
crash, a kill, a limit – is one ``TracerError``, and the next job finds a fresh child.
"""

from __future__ import annotations

import dataclasses
import queue
import threading
import time
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Self

from desktop_app.memory import tracer_ends as ends
from desktop_app.memory.card_spec import CardSpec
from desktop_app.memory.interpreter import environment_for, find_interpreter
from desktop_app.memory.trace_data import Trace
from desktop_app.memory.trace_errors import TracerError
from desktop_app.memory.tracer_child import TracerChild
from desktop_app.memory.tracing import wire
from desktop_app.memory.training_spec import TrainingSpec

TIME_LIMIT_S: Final = 120.0
IDLE_S: Final = 60.0  # after so long without a job a child ends, and 0.3 GiB are free again
WARN_SHIM_CRASHED: Final = "shim_crashed"  # of a trace that was made again without it
# A Python that has not said a word by then is none; torch from a cold disk, and a compiler for the shim, take longer.
_HELLO_LIMIT_S: Final = 30.0
_START_LIMIT_S: Final = 300.0
_LOOK_S: Final = 0.05  # how often the limits are looked at while a job runs
_BOOTSTRAP: Final = Path(__file__).parent / "tracing" / "bootstrap.py"
_NO_SHIM, _IDLE = "--no-shim", "--idle="  # as in child.py
_META: Final = "meta"


class _GoneError(Exception):
    """The child ended before it began the job: it had been idle, or the user's files have changed."""


class TracerProcess:
    """Traces in another interpreter; a ``TraceSource`` when called. Thread-safe; one job at a time.

    ``python``: an executable, a name on the path or an environment's folder; ``None`` is our own. Limits are per job.
    ``memory_limit_bytes``: ``None`` leaves a fifth of what is available when the job begins. It is watched on Linux
    only, as resident memory: RLIMIT_AS would count what torch maps and never touches. ``hide_cards`` keeps the child
    off the machine's cards: where it sees one, it makes a context there.
    """

    def __init__(
        self,
        python: Path | None = None,
        *,
        time_limit_s: float = TIME_LIMIT_S,
        memory_limit_bytes: int | None = None,
        idle_s: float = IDLE_S,
        hide_cards: bool = False,
    ) -> None:
        self.python: Final = python
        self._time_limit_s: Final = time_limit_s
        self._memory_limit_bytes: Final = memory_limit_bytes
        self._idle_s: Final = idle_s
        self._hide_cards: Final = hide_cards
        self._turn: Final = threading.Lock()  # of the thread whose job it is
        self._lock: Final = threading.Lock()  # of the fields below
        self._child: TracerChild | None = None
        self._is_ready = False
        self._with_shim = True
        self._patience_s: float | None = None  # of a cancelled job: how long it may have run
        self._closed = False

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def __call__(self, spec: TrainingSpec, card: CardSpec) -> Trace:
        return self.trace(spec, card)

    def start(self) -> None:
        """Begin to import torch over there; returns at once. What goes wrong is told by the first ``trace``."""
        if self._turn.acquire(blocking=False):
            try:
                self._living_child()
            except TracerError:
                pass
            finally:
                self._turn.release()

    def trace(
        self, spec: TrainingSpec, card: CardSpec, *, rung: str | None = None, time_limit_s: float | None = None
    ) -> Trace:
        """Two steps of the training. ``UntraceableError`` where an op needs data, ``TracerError`` for all else."""
        job = {
            "spec": spec.as_json(),
            "card": wire.card_as_json(card),
            "rung": rung,
            "time_limit_s": time_limit_s or self._time_limit_s,
        }
        with self._turn:
            self._patience_s = None
            try:
                return self._trace(job)
            except ends.CrashedError:
                if not self._with_shim or rung not in (None, _META):
                    raise
            self._with_shim = False
            trace = self._trace({**job, "rung": _META})
            return dataclasses.replace(trace, warnings=(*trace.warnings, WARN_SHIM_CRASHED))

    def cancel(self, *, patience_s: float = 0.0) -> None:
        """Have the job under way raise ``TracerError`` (``cancelled``), once it has run for ``patience_s``.

        Its child is killed then, and the next job pays for a new one: let short jobs end. Without a job: nothing.
        """
        with self._lock:
            self._patience_s = patience_s
            if self._child is not None:
                self._child.wake()

    def close(self) -> None:
        """End the child, also in the middle of a job. No job is taken after it."""
        with self._lock:
            self._closed = True
            child = self._child
        if child is not None:
            child.kill()

    def _trace(self, job: Mapping[str, Any]) -> Trace:
        for is_last in (False, True):
            try:
                answer = self._ask(self._living_child(), job)
                break
            except _GoneError:
                self._drop_child()
                if is_last:
                    raise TracerError("crashed", "The interpreter that traces ends before it begins.") from None
        if "error" in answer:
            error = wire.error_from_json(answer["error"])
            raise error if self.python is not None else ends.advised(error)
        return wire.trace_from_json(answer["trace"])

    def _living_child(self) -> TracerChild:
        with self._lock:
            if self._closed:
                raise ends.cancelled()
            if self._child is not None and self._child.exit_code is None:
                return self._child
            executable = find_interpreter(self.python)
            options = [f"{_IDLE}{self._idle_s}", *([] if self._with_shim else [_NO_SHIM])]
            command = [str(executable), "-u", str(_BOOTSTRAP), *options]
            try:
                self._child = TracerChild(command, environment=self._environment(executable))
            except OSError as error:
                raise TracerError(
                    "no_interpreter",
                    f"{executable} cannot be run: {error.strerror or error}.",
                    params={"python": str(executable)},
                ) from None
            self._is_ready = False
            return self._child

    def _environment(self, executable: Path) -> dict[str, str]:
        hidden = {"CUDA_VISIBLE_DEVICES": ""} if self._hide_cards else {}
        return {**environment_for(executable), **hidden}

    def _drop_child(self) -> None:
        with self._lock:
            child, self._child = self._child, None
        if child is not None:
            child.kill()

    def _ask(self, child: TracerChild, job: Mapping[str, Any]) -> Mapping[str, Any]:
        """The child's answer. Whatever ends this early ends the child too, but for a cancel before the job began."""
        try:
            if not self._is_ready:
                self._await_ready(child)
            child.send({"id": 0, **job})
            return self._await_answer(child, job)
        except _CancelledEarlyError:
            raise ends.cancelled() from None
        except BaseException:
            self._drop_child()
            raise

    def _await_ready(self, child: TracerChild) -> None:
        has_spoken = False
        while True:
            message = self._next_message(child)
            if message is None:
                raise self._ended(child, has_spoken=has_spoken)
            if "hello" in message:
                has_spoken = True
            if "error" in message:
                raise wire.error_from_json(message["error"])
            if "ready" in message:
                self._is_ready = True
                return
            if self._is_cancelled(ran_s=None):
                raise _CancelledEarlyError
            limit_s = _START_LIMIT_S if has_spoken else _HELLO_LIMIT_S
            if time.monotonic() - child.started_s > limit_s:
                raise ends.silent(find_interpreter(self.python), limit_s, has_spoken=has_spoken)

    def _await_answer(self, child: TracerChild, job: Mapping[str, Any]) -> Mapping[str, Any]:
        began_s, begun = time.monotonic(), False
        limit_bytes = self._memory_limit_bytes or ends.default_memory_limit(child)
        while True:
            message = self._next_message(child)
            ran_s = time.monotonic() - began_s
            if message is None:
                if not begun and child.exit_code == 0:
                    raise _GoneError
                raise self._ended(child, has_spoken=True)
            if "stale" in message:
                raise _GoneError
            if "id" in message:
                return message
            begun = begun or "began" in message
            if self._is_cancelled(ran_s=ran_s):
                raise ends.cancelled()
            if ran_s > job["time_limit_s"]:
                raise ends.too_long(job)
            held_bytes = child.resident_bytes()
            if held_bytes is not None and held_bytes > limit_bytes:
                raise ends.too_large(job, limit_bytes)

    def _next_message(self, child: TracerChild) -> Mapping[str, Any] | None:
        """What the child says, nothing (an empty message) while it says nothing, ``None`` once it has ended."""
        try:
            return child.messages.get(timeout=_LOOK_S)
        except queue.Empty:
            return {}

    def _is_cancelled(self, *, ran_s: float | None) -> bool:
        """``ran_s``: seconds since the job began, ``None`` before it."""
        with self._lock:
            if self._closed:
                return True
            return self._patience_s is not None and (ran_s is None or ran_s >= self._patience_s)

    def _ended(self, child: TracerChild, *, has_spoken: bool) -> TracerError:
        """Why a child that was not asked to is no more."""
        if self._closed:
            return ends.cancelled()
        return ends.ended(child, find_interpreter(self.python), has_spoken=has_spoken)


class _CancelledEarlyError(Exception):
    """Nobody wants the job any more, and the child has not been told of it."""
