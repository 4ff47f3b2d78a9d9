"""The interpreter that traces: one job after the other, until nobody asks any more.

Runs in: a process of its own, started by ``memory.tracer_process`` through bootstrap.py. torch and the standard library
only. It ends when the pipe closes (its parent has ended, however that came about), when it has been idle for a
minute, and by itself when a job outlasts its time limit and nobody stops it.
"""

from __future__ import annotations

import faulthandler
import gc
import io
import os
import platform
import queue
import re
import signal
import sys
import threading
import traceback
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from desktop_app.memory.card_spec import CardSpec
from desktop_app.memory.trace_errors import TracerError, UntraceableError
from desktop_app.memory.tracing import wire
from desktop_app.memory.training_spec import TrainingSpec, shown_model

if TYPE_CHECKING:
    from desktop_app.memory.trace_data import Trace

NO_SHIM: Final = "--no-shim"
IDLE: Final = "--idle="  # and seconds
MINIMUM_TORCH: Final = (2, 6)
# A job that has outlasted its limit by so much has not been stopped: there is nobody to do it.
_ABANDONED_S: Final = 10.0
# Linux: which process goes first when memory runs out. 0 is usual, 1000 is always: rather this one than a training.
_OOM_SCORE: Final = "500"

# What torch says where Python wants values of a tensor that has none (fake and meta tensors, torch 2.6 to 2.13).
_NEEDS_DATA: Final = (
    ".numpy() is not supported for tensor subclasses",
    "Cannot copy out of meta tensor",
    "cannot be called on meta tensors",
    "Cannot access data pointer of Tensor that doesn't have storage",
    "no data_ptr",
    "Not available for 'meta' device type",
    "not have storage",
)
_TWO_DEVICES: Final = (
    "Expected all tensors to be on the same device",
    "is not on the expected device",
    "found two different devices",  # torch 2.6
)
_SECOND_BACKWARD: Final = "Trying to backward through the graph a second time"

_Jobs = queue.SimpleQueue[bytes]


def trace_spec(spec: TrainingSpec, card: CardSpec, *, rung: str | None = None) -> Trace:
    """Trace one training in this process, on the best rung that it can stand on, or on the one that is asked for.

    Raises ``UntraceableError`` where an op needs data, and ``TracerError`` for what cannot be built.
    """
    from desktop_app.memory.trace import trace
    from desktop_app.memory.tracing.formula_facts import formula_facts
    from desktop_app.memory.tracing.optimizers import kind_of
    from desktop_app.memory.tracing.stage import open_stage
    from desktop_app.memory.tracing.subject import build_subject

    try:
        stage = open_stage(card, rung=rung, attention=spec.attention)
    except ValueError as error:
        raise TracerError("bad_spec", f"{one_line(error, kind=False)}.") from None
    subject = build_subject(spec, stage)
    try:
        return trace(subject, stage=stage, card=card, batch_size=spec.batch_size)
    except UntraceableError as error:
        error.facts.update(formula_facts(subject.model, spec), optimizer=kind_of(subject.optimizer))
        raise


def serve(jobs: int, answers: int, *, arguments: Sequence[str] = ()) -> None:
    """Answer the jobs that come by one descriptor through the other. Does not return: the process ends."""
    _behave()
    idle_s = next(float(text.removeprefix(IDLE)) for text in arguments if text.startswith(IDLE))
    waiting: _Jobs = queue.SimpleQueue()
    threading.Thread(target=_read, args=(jobs, waiting), name="jobs", daemon=True).start()
    with io.FileIO(answers, "w", closefd=False) as pipe:
        with suppress(BrokenPipeError):
            if _prepare(pipe, with_shim=NO_SHIM not in arguments):
                _work(pipe, waiting, idle_s=idle_s)
        _leave(0)


def _behave() -> None:
    """Ctrl+C in the terminal is our parent's business; where memory runs out, this process is the one to go."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    with suppress(OSError):
        Path("/proc/self/oom_score_adj").write_text(_OOM_SCORE)


def _read(jobs: int, waiting: _Jobs) -> None:
    """Take jobs as they come; the end of the pipe is the end of the process, whatever it is at."""
    with io.FileIO(jobs, "r", closefd=False) as raw:
        for line in io.BufferedReader(raw):
            waiting.put(line)
    _leave(0)


def _leave(code: int) -> None:
    """At once: torch's own end can take long and has nothing to save."""
    os._exit(code)


def _prepare(pipe: io.FileIO, *, with_shim: bool) -> bool:
    """Import torch, the shim before it, and say what is here. ``False``: there is no torch to trace with."""
    _send(pipe, {"hello": {"python": platform.python_version(), "executable": sys.executable}})
    try:
        version = _import_torch(with_shim=with_shim)
    except TracerError as error:
        _send(pipe, {"error": wire.error_as_json(error)})
        return False
    _send(pipe, {"ready": {"torch": version}})
    return True


def _import_torch(*, with_shim: bool) -> str:
    """Its version. Raises ``TracerError`` where it is missing, too old or broken."""
    from desktop_app.memory.tracing import shim

    found = shim.find_torch()
    if found is None:
        raise TracerError(
            "missing_torch",
            f"{sys.executable} has no torch. Install torch in it, or choose another Python by --python.",
            params={"python": sys.executable},
        )
    if _release(found.version) < MINIMUM_TORCH:
        wanted = ".".join(map(str, MINIMUM_TORCH))
        raise TracerError(
            "old_torch",
            f"{sys.executable} has torch {found.version}; tracing needs {wanted} or newer.",
            params={"python": sys.executable, "torch": found.version, "wanted": wanted},
        )
    native = found.cuda is not None and shim.cuda_card_visible()
    if with_shim and not native:
        shim.load_shim()
    try:
        import torch
    except (ImportError, OSError) as error:
        raise TracerError(
            "missing_torch",
            f"torch {found.version} of {sys.executable} cannot be imported: {one_line(error)}",
            params={"python": sys.executable, "torch": found.version},
        ) from None
    shim.claim_guard()
    from desktop_app.memory.tracing.stage import import_late_parts

    import_late_parts()  # before the first job, whose time limit is for tracing
    return str(torch.__version__)


def _release(version: str) -> tuple[int, ...]:
    return tuple(int(number) for number in re.findall(r"\d+", version)[:2])


def _work(pipe: io.FileIO, waiting: _Jobs, *, idle_s: float) -> None:
    from desktop_app.memory.tracing.user_files import UserFiles

    files = UserFiles()
    files.look()
    gc.freeze()  # what is imported stays: a collection looks at the job's own objects only
    while True:
        try:
            line = waiting.get(timeout=idle_s)
        except queue.Empty:
            return
        message = wire.unpack(line)
        if message is None:
            continue
        if files.have_changed():
            _send(pipe, {"stale": message["id"]})
            return
        _send(pipe, {"began": message["id"]})
        _send(pipe, {"id": message["id"], **_answer(message)})
        files.look()
        gc.collect()


def _answer(message: Mapping[str, Any]) -> dict[str, Any]:
    with _Limit(message.get("time_limit_s")):
        try:
            spec = TrainingSpec.from_json(message["spec"])
            trace = trace_spec(spec, wire.card_from_json(message["card"]), rung=message.get("rung"))
            return {"trace": wire.trace_as_json(trace)}
        except (TracerError, UntraceableError) as error:
            return {"error": wire.error_as_json(error)}
        except BaseException as error:  # the job's outermost frame: a user's file may raise anything
            return {"error": wire.error_as_json(explained(error, model=message["spec"]["model"]))}


class _Limit:
    """Ends the process when a job outlasts its limit by far, even where the interpreter hangs in C."""

    def __init__(self, limit_s: float | None) -> None:
        self._limit_s = limit_s

    def __enter__(self) -> None:
        if self._limit_s is not None:
            faulthandler.dump_traceback_later(self._limit_s + _ABANDONED_S, exit=True)

    def __exit__(self, *_: object) -> None:
        faulthandler.cancel_dump_traceback_later()


def explained(error: BaseException, *, model: str) -> TracerError:
    """An error that nobody foresaw, as one line that says where it comes from."""
    if isinstance(error, MemoryError):
        return TracerError("memory_limit", f"There is not enough memory to build {shown_model(model)}.")
    user_file = model.split(":", 2)[1] if model.startswith("python:") else None
    if isinstance(error, SyntaxError):
        where = f"{error.filename}:{error.lineno}" if error.filename else user_file or shown_model(model)
        return TracerError("syntax_error", f"{where}: {error.msg}", params={"where": where})
    where = _where(error, user_file)
    place = where or shown_model(model)
    said = one_line(error)
    if any(words in said for words in _NEEDS_DATA):
        line = f"{place}: the model reads the values of a tensor, which a trace does not have ({said})"
        return TracerError("needs_data", line, params={"where": place})
    if _SECOND_BACKWARD in said:
        return TracerError("bad_model", f"{place}: the step calls .backward(): let it return the loss and no more.")
    if user_file is not None and where and any(words in said for words in _TWO_DEVICES):
        line = f"{place}: a tensor is on the CPU while the model is on the card: make the batch on `device` ({said})"
        return TracerError("bad_model", line, params={"where": place})
    kind = "failed" if user_file is None or not where else "bad_model"
    return TracerError(kind, f"{place}: {said}", params={"where": place})


def _where(error: BaseException, user_file: str | None) -> str:
    """The deepest line of the user's own file, else ""."""
    if user_file is None:
        return ""
    wanted = Path(user_file).resolve()
    frames = [f for f in traceback.extract_tb(error.__traceback__) if _same(f.filename, wanted)]
    return f"{user_file}:{frames[-1].lineno}" if frames else ""


def _same(name: str, wanted: Path) -> bool:
    try:
        return Path(name).resolve() == wanted
    except (OSError, ValueError):
        return False


def one_line(error: BaseException, *, kind: bool = True) -> str:
    """The first line of an error, after the name of its kind."""
    try:
        text = str(error)
    except Exception:  # of a class of the user's own
        text = ""
    lines = _printable(text).strip().splitlines()
    name = type(error).__name__
    return name if not lines else f"{name}: {lines[0].strip()}" if kind else lines[0].strip()


def _printable(text: str) -> str:
    """Without what would steer a terminal."""
    return "".join(letter if letter.isprintable() or letter.isspace() else "?" for letter in text)


def _send(pipe: io.FileIO, message: Mapping[str, Any]) -> None:
    data = memoryview(wire.pack(message))
    while data:
        data = data[pipe.write(data) or 0 :]
