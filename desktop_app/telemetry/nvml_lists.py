"""Lists that the driver hands over: processes, what they use, samples of its own buffers.

The bindings take the driver's word for how long a list is, make as much memory and walk through it; a count of two
thousand million would take the computer down. Here a list has room for what a card can have, and not more.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Mapping
from functools import partial
from types import ModuleType
from typing import Any, Final, NamedTuple

from desktop_app.telemetry.nvml_codes import FUNCTION_NOT_FOUND, INSUFFICIENT_SIZE, UNKNOWN

_NOT_AVAILABLE: Final = 2**64 - 1
_FIRST: Final = 32
_MOST: Final = 8192  # the buffer of samples by process holds some thousand; the others a hundred


class ListedProcess(NamedTuple):
    """One entry, with the names of nvml.h. ``usedGpuMemory`` ``None``: the driver does not know (WDDM)."""

    pid: int
    usedGpuMemory: int | None  # noqa: N815  nvml.h
    gpuInstanceId: int  # noqa: N815  nvml.h


def bounded(pynvml: ModuleType, call: str) -> Callable[..., Any] | None:
    """The same call as the bindings', with an end to its list; ``None``: it gives no list."""
    function = _CALLS.get(call)
    return None if function is None else partial(function, pynvml)


def _processes(name: str, pynvml: ModuleType, handle: Any) -> list[ListedProcess]:
    function = _function(pynvml, name)
    room = _FIRST
    while True:
        count, entries = ctypes.c_uint(room), (pynvml.c_nvmlProcessInfo_v2_t * room)()
        code = function(handle, ctypes.byref(count), entries)
        if code == INSUFFICIENT_SIZE and room < count.value <= _MOST:
            room = min(2 * count.value, _MOST)
            continue
        _check(pynvml, code)
        found = entries[: _believed(pynvml, count.value, room)]
        return [
            ListedProcess(
                int(entry.pid),
                None if entry.usedGpuMemory == _NOT_AVAILABLE else int(entry.usedGpuMemory),
                int(entry.gpuInstanceId),
            )
            for entry in found
        ]


def _samples(pynvml: ModuleType, handle: Any, kind: int, since_us: int) -> tuple[int, list[Any]]:
    """(value type, samples)."""
    function = _function(pynvml, "nvmlDeviceGetSamples")
    since, value_type, count = ctypes.c_ulonglong(since_us), ctypes.c_uint(), ctypes.c_uint()
    head = handle, ctypes.c_uint(kind), since, ctypes.byref(value_type), ctypes.byref(count)
    _check(pynvml, function(*head, None))
    room = _believed(pynvml, count.value, _MOST)
    entries = (pynvml.c_nvmlSample_t * room)()
    _check(pynvml, function(*head, entries))
    return value_type.value, entries[: _believed(pynvml, count.value, room)]


def _use(pynvml: ModuleType, handle: Any, since_us: int) -> list[Any]:
    function = _function(pynvml, "nvmlDeviceGetProcessUtilization")
    since, count = ctypes.c_ulonglong(since_us), ctypes.c_uint()
    code = function(handle, None, ctypes.byref(count), since)
    if code != INSUFFICIENT_SIZE:
        raise pynvml.NVMLError(code)
    room = _believed(pynvml, count.value, _MOST)
    entries = (pynvml.c_nvmlProcessUtilizationSample_t * room)()
    _check(pynvml, function(handle, entries, ctypes.byref(count), since))
    return list(entries[: _believed(pynvml, count.value, room)])


def _newer_use(pynvml: ModuleType, handle: Any, since_us: int) -> list[Any]:
    function = _function(pynvml, "nvmlDeviceGetProcessesUtilizationInfo")
    asked = pynvml.c_nvmlProcessesUtilizationInfo_v1_t()
    asked.version, asked.lastSeenTimeStamp = pynvml.ProcessesUtilizationInfo_v1, since_us
    code = function(handle, ctypes.byref(asked))
    if code != INSUFFICIENT_SIZE:
        raise pynvml.NVMLError(code)
    room = _believed(pynvml, asked.processSamplesCount, _MOST)
    entries = (pynvml.c_nvmlProcessUtilizationInfo_v1_t * room)()
    asked.version, asked.lastSeenTimeStamp, asked.procUtilArray = pynvml.ProcessesUtilizationInfo_v1, since_us, entries
    _check(pynvml, function(handle, ctypes.byref(asked)))
    return list(entries[: _believed(pynvml, asked.processSamplesCount, room)])


_CALLS: Final[Mapping[str, Callable[..., Any]]] = {
    **{
        f"nvmlDeviceGet{kind}RunningProcesses{ending}": partial(
            _processes, f"nvmlDeviceGet{kind}RunningProcesses{ending or '_v3'}"
        )
        for kind in ("Compute", "Graphics", "MPSCompute")
        for ending in ("", "_v2")
    },
    "nvmlDeviceGetSamples": _samples,
    "nvmlDeviceGetProcessUtilization": _use,
    "nvmlDeviceGetProcessesUtilizationInfo": _newer_use,
}


def _function(pynvml: ModuleType, name: str) -> Any:
    function = getattr(pynvml.nvmlLib, name, None)
    if function is None:
        raise pynvml.NVMLError(FUNCTION_NOT_FOUND)
    return function


def _check(pynvml: ModuleType, code: int) -> None:
    if code:
        raise pynvml.NVMLError(code)


def _believed(pynvml: ModuleType, count: int, room: int) -> int:
    """A count, unless it is more than there can be."""
    if count > room:
        raise pynvml.NVMLError(UNKNOWN)
    return count
