"""How a trace can end without an answer: limits, and what to say of each end. Torch-free."""

from __future__ import annotations

import signal
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from desktop_app.core.units import GIB, KIB, format_bytes
from desktop_app.memory.trace_errors import TracerError, UntraceableError
from desktop_app.memory.tracer_child import TracerChild
from desktop_app.memory.training_spec import shown_model

_MEMORY_SHARE: Final = 0.8  # of what is available: the rest is for everyone else
_MEMORY_FLOOR_BYTES: Final = 1 * GIB
_EXTRAS: Final = ("timm", "transformers")  # pyproject.toml, optional dependencies
_FROM_OUTSIDE: Final = ("SIGKILL", "SIGTERM", "SIGHUP")


class CrashedError(TracerError):
    """The child ended by itself, as C++ makes it: another one without the shim may do better."""


def ended(child: TracerChild, python: Path, *, has_spoken: bool) -> TracerError:
    """Of a child that ended unasked. ``has_spoken``: it has shown that it is a Python."""
    code, words = child.exit_code or 0, f": {child.last_words}" if child.last_words else ""
    if not has_spoken and code >= 0:
        words = f": {child.first_and_last_words}" if child.last_words else ""  # a launcher's last line may be a list
        return TracerError("not_python", f"{python} is no Python 3{words or '.'}", params={"python": str(python)})
    if code >= 0:
        return CrashedError("crashed", f"The interpreter that traces ended with code {code}{words or '.'}")
    name = _signal_name(-code)
    if name in _FROM_OUTSIDE:
        line = f"The interpreter that traces was killed ({name}), perhaps because memory ran out. Try again."
        return TracerError("killed", line, params={"signal": name})
    return CrashedError("crashed", f"The interpreter that traces crashed ({name}){words or '.'}")


def silent(python: Path, limit_s: float, *, has_spoken: bool) -> TracerError:
    """Of a child that does not get as far as its first job."""
    params: dict[str, object] = {"python": str(python), "seconds": limit_s}
    if has_spoken:
        return TracerError("time_limit", f"{python} did not import torch within {limit_s:g} s.", params=params)
    return TracerError("not_python", f"{python} is no Python 3: it said nothing for {limit_s:g} s.", params=params)


def advised(error: TracerError | UntraceableError) -> TracerError | UntraceableError:
    """An error of our own interpreter: what it lacks is an extra of ours."""
    package = error.params.get("package") if isinstance(error, TracerError) and error.kind == "not_installed" else None
    if package not in _EXTRAS or "pip install" not in str(error):
        return error
    line = f"{package} is not installed: pip install 'floodmark[{package}]', or give by --python a Python that has it."
    return TracerError("not_installed", line, params={"package": package, "own_extra": True})


def cancelled() -> TracerError:
    return TracerError("cancelled", "The trace was given up for a newer one.")


def too_long(job: Mapping[str, Any]) -> TracerError:
    model, limit_s = shown_model(job["spec"]["model"]), job["time_limit_s"]
    line = f"Not done after {limit_s:g} s with {model}. Give it more time (--time-limit), or take a smaller model."
    return TracerError("time_limit", line, params={"seconds": limit_s})


def too_large(job: Mapping[str, Any], limit_bytes: int) -> TracerError:
    model, limit = shown_model(job["spec"]["model"]), format_bytes(limit_bytes)
    line = f"Tracing {model} took more than {limit} of this computer's memory and was stopped."
    return TracerError("memory_limit", line, params={"limit_bytes": limit_bytes})


def default_memory_limit(child: TracerChild) -> int:
    """Most of what is available now, the child's own memory included. Linux; elsewhere nothing is watched."""
    try:
        lines = Path("/proc/meminfo").read_text().splitlines()
        available = next(int(line.split()[1]) * KIB for line in lines if line.startswith("MemAvailable:"))
    except (OSError, StopIteration, ValueError):
        available = 0
    return max(_MEMORY_FLOOR_BYTES, int(_MEMORY_SHARE * available) + (child.resident_bytes() or 0))


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"
