"""The one door to NVIDIA's driver. The only importer of ``pynvml``, and late: importing this module touches nothing."""

from __future__ import annotations

import ctypes
import logging
import struct
import sys
import time
from collections.abc import Callable, Sequence
from types import ModuleType
from typing import Any, Final, NamedTuple

from desktop_app.core.telemetry import Reading, Reason
from desktop_app.telemetry.backend import Advice, BackendUnavailable
from desktop_app.telemetry.nvml_codes import (
    FUNCTION_NOT_FOUND,
    INVALID_ARGUMENT,
    LIBRARY_NOT_FOUND,
    NOT_FOUND,
    NOT_SUPPORTED,
    SUCCESS,
    TIMEOUT,
    UNINITIALIZED,
    UNKNOWN,
)
from desktop_app.telemetry.nvml_lists import bounded
from desktop_app.telemetry.plausibility import Range, judge

_log = logging.getLogger(__name__)

# What a return code (nvmlReturn_t) means for a reader; all others: unknown error.
_REASONS: Final = {
    UNINITIALIZED: Reason.NO_DRIVER,  # the library was shut down or the driver reloaded
    NOT_SUPPORTED: Reason.NOT_SUPPORTED,
    4: Reason.NO_PERMISSION,
    NOT_FOUND: Reason.NOT_SUPPORTED,  # the card has no such part
    9: Reason.NO_DRIVER,  # driver not loaded
    TIMEOUT: Reason.TIMED_OUT,
    LIBRARY_NOT_FOUND: Reason.NO_DRIVER,
    FUNCTION_NOT_FOUND: Reason.NOT_SUPPORTED,
    15: Reason.GPU_LOST,
    16: Reason.GPU_LOST,  # reset required
    17: Reason.NO_PERMISSION,  # blocked by the operating system
    18: Reason.DRIVER_MISMATCH,
    21: Reason.NOT_READ_YET,  # no data
    25: Reason.NOT_SUPPORTED,  # argument version mismatch: an older driver
    26: Reason.NOT_SUPPORTED,  # deprecated
    27: Reason.NOT_READ_YET,  # not ready
    28: Reason.GPU_LOST,  # GPU not found
}
_ADVICE: Final = {
    Reason.NO_PERMISSION: Advice.ALLOW_ACCESS,
    Reason.DRIVER_MISMATCH: Advice.RESTART_AFTER_UPDATE,
    Reason.GPU_LOST: Advice.CHECK_CARD,
}
# A verdict that seldom changes is asked for again this late, one that may pass sooner. Losing the card is no verdict.
_RETRY_SLOW_S: Final = 60.0
_RETRY_SOON_S: Final = 2.0
_SLOW_VERDICTS: Final = frozenset({Reason.NOT_SUPPORTED, Reason.NO_PERMISSION})
_SOON_VERDICTS: Final = frozenset({Reason.TIMED_OUT, Reason.UNKNOWN_ERROR})
# nvmlFieldValue_t: id, scope, timestamp, latency, type, return code, value. Unpacked at once: a member of the bindings'
# struct costs a Python call.
FIELD_LAYOUT: Final = struct.Struct("=IIqqIiQ")
# nvmlValueType_t → how the eight bytes are read, and the width in bits
_VALUE_TYPES: Final = {
    0: ("=d", 64),
    1: ("=I", 32),
    2: ("@L", 64),  # unsigned long: 32 bits under Windows
    3: ("=Q", 64),
    4: ("=q", 64),
    5: ("=i", 32),
    6: ("=H", 16),
}
UNSIGNED_INT: Final = 1  # the usual ones, without a detour
UNSIGNED_LONG_LONG: Final = 3
ALL_32: Final = 2**32 - 1
MEMORY_V2: Final = 0x02000028  # nvmlMemory_v2: size 40, version 2
ALL_LINKS: Final = ALL_32  # as a scope: NVLink counters summed over all links (nvml.h)
# nvmlGpmMetricsGet_t: version, count, two samples; nvmlGpmMetric_t: id, return code, value, three names
_GPM_HEAD: Final = struct.Struct("@IIPP")
_GPM_METRIC: Final = struct.Struct("@IidPPP")


class Answer(NamedTuple):  # a tuple: dozens are made in a tick, and a frozen dataclass takes twice as long
    """What the driver said: a value of its own type, or the reason for none. ``bits``: width of a field value."""

    value: Any = None
    reason: Reason | None = None
    bits: int = 64

    def judged(self, allowed: Range, *, scale: float = 1.0) -> Reading:
        """As a reading, if the value can be true."""
        if self.reason is not None:
            return Reading(None, self.reason)
        return judge(self.value, allowed, scale=scale)

    def part(self, name: str) -> Answer:
        """One member of a struct."""
        if self.reason is not None:
            return self
        try:
            return Answer(getattr(self.value, name))
        except UnicodeDecodeError:  # the bindings decode where they are read; a string that is none
            return Answer(reason=Reason.IMPLAUSIBLE)

    def item(self, number: int) -> Answer:
        """One of several values."""
        return self if self.reason is not None else Answer(self.value[number])


def scoped(field_id: int, scope: int) -> int:
    """A field of one part of the card (a link, a power scope) as an id for ``FieldsGauge``."""
    return field_id | scope << 32


def reason_of(code: int) -> Reason:
    """What a return code of the driver means for a reader."""
    return _REASONS.get(code, Reason.UNKNOWN_ERROR)


class NvmlDoor:
    """Every call to the driver goes through here, and comes back as an ``Answer``.

    Runs in: one thread at a time for each card (NVML is thread-safe); ``open`` and ``close`` while nobody calls.

    A symbol that the library lacks is not looked for again while it is open; "not supported" is believed for a minute,
    a passing failure for two seconds; each distinct failure is logged once.
    """

    def __init__(self, *, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._monotonic = monotonic
        self._pynvml: ModuleType | None = None
        self._absent: set[tuple[object, ...]] = set()  # calls (with their struct version) whose symbol is missing
        self._verdicts: dict[tuple[object, ...], tuple[Reason, float]] = {}  # (owner, call, …) → until when
        self._logged: set[tuple[object, ...]] = set()

    @property
    def is_open(self) -> bool:
        return self._pynvml is not None

    def open(self) -> None:
        """Load the library and initialise it. May block for seconds in the driver; raises ``BackendUnavailable``."""
        if self._pynvml is not None:
            return
        try:
            import pynvml
        except ImportError as error:
            raise BackendUnavailable(
                Reason.NO_DRIVER, "the Python package nvidia-ml-py is not installed", Advice.INSTALL_DRIVER
            ) from error
        try:
            pynvml.nvmlInit()
        except pynvml.NVMLError as error:
            raise _unavailable(int(error.value)) from error
        self._absent.clear()
        self._verdicts.clear()
        self._pynvml = pynvml

    def close(self) -> None:
        """Shut the library down. Only while no call is under way."""
        pynvml, self._pynvml = self._pynvml, None
        if pynvml is None:
            return
        try:
            pynvml.nvmlShutdown()
        except pynvml.NVMLError as error:
            _log.info("NVML did not shut down: %s", error)

    def query(self, call: str, *arguments: Any, owner: str = "") -> Answer:
        """``pynvml.<call>(*arguments)``. ``owner`` names the card in the log and in the memory of verdicts."""
        given = arguments[1:] if owner else [a for a in arguments if isinstance(a, int)]  # without the handle
        key = (owner, call, *given)
        remembered = self._remembered(key) if self._absent or self._verdicts else None
        return remembered if remembered is not None else self._ask(call, key, arguments)

    def function(self, call: str) -> Any:
        """The library's own function, for a call that is made ready (``nvml_gauge``); ``None``: it has none."""
        return getattr(getattr(self._pynvml, "nvmlLib", None), call, None)

    def verdict(self, key: tuple[object, ...]) -> Reason | None:
        """The reason that is still believed for a call, a field."""
        remembered = self._remembered(key) if self._absent or self._verdicts else None
        return None if remembered is None else remembered.reason

    def refused(self, key: tuple[object, ...], code: int) -> Reason:
        """Remember a failure of a call that was made ready."""
        if self._pynvml is None:
            return Reason.NO_DRIVER
        return self._refuse(key, code).reason or Reason.UNKNOWN_ERROR

    def field(self, owner: str, field_id: int, *, timestamp: int, kind: int, code: int, raw: int) -> Answer:
        """One field value out of the parts of its struct (``FIELD_LAYOUT``)."""
        # A driver that does not know the field may leave the struct as it was: success, no type, no time, zero.
        if code == INVALID_ARGUMENT or (code == SUCCESS and timestamp == 0 and kind == 0):
            code = NOT_SUPPORTED
        if code != SUCCESS:
            return self._refuse((owner, "field", field_id), code)
        if kind == UNSIGNED_INT:
            return Answer(raw & ALL_32, bits=32)
        if kind not in _VALUE_TYPES:
            return Answer(reason=Reason.IMPLAUSIBLE)
        layout, bits = _VALUE_TYPES[kind]
        return Answer(struct.unpack_from(layout, raw.to_bytes(8, sys.byteorder))[0], bits=bits)

    def ask(self, call: str, *arguments: Any, about: tuple[int, ...] = (), owner: str) -> Answer:
        """``query`` for arguments that are no numbers; ``about`` stands for them in the memory of verdicts."""
        key = (owner, call, *about)
        return self._remembered(key) or self._ask(call, key, arguments)

    def gpm_metrics(self, before: Any, after: Any, metric_ids: Sequence[int], *, owner: str) -> dict[int, Answer]:
        """Means between two GPM samples of one card or instance. Each metric has an error of its own."""
        key = (owner, "nvmlGpmMetricsGet")
        pynvml, whole = self._pynvml, self._remembered(key)
        if pynvml is None or whole is not None:
            return dict.fromkeys(metric_ids, whole or Answer(reason=Reason.NO_DRIVER))
        addresses = (ctypes.cast(sample, ctypes.c_void_p).value for sample in (before, after))
        buffer = ctypes.create_string_buffer(ctypes.sizeof(pynvml.c_nvmlGpmMetricsGet_t))
        _GPM_HEAD.pack_into(buffer, 0, pynvml.NVML_GPM_METRICS_GET_VERSION, len(metric_ids), *addresses)
        for number, metric_id in enumerate(metric_ids):
            _GPM_METRIC.pack_into(buffer, _GPM_HEAD.size + number * _GPM_METRIC.size, metric_id, 0, 0.0, 0, 0, 0)
        whole = self._ask(key[1], key, (pynvml.c_nvmlGpmMetricsGet_t.from_buffer(buffer),))
        if whole.reason is not None:
            return dict.fromkeys(metric_ids, whole)
        answers = {}
        for number, metric_id in enumerate(metric_ids):
            _, code, value, *_ = _GPM_METRIC.unpack_from(buffer, _GPM_HEAD.size + number * _GPM_METRIC.size)
            answers[metric_id] = Answer(value) if code == SUCCESS else self._refuse((owner, "gpm", metric_id), code)
        return answers

    def samples(self, handle: Any, kind: int, *, since_us: int, owner: str) -> Answer:
        """(value type, samples after ``since_us``) of the driver's own buffer, or an empty list."""
        return self.listed("nvmlDeviceGetSamples", handle, kind, since_us=since_us, owner=owner)

    def listed(self, call: str, handle: Any, *arguments: int, since_us: int, owner: str) -> Answer:
        """What the driver has kept since a time of its own clock; "not found" is that there is nothing."""
        key = (owner, call, *arguments)
        return self._remembered(key) or self._ask(call, key, (handle, *arguments, since_us), nothing=[])

    def attempt(self, call: str, *arguments: Any) -> tuple[int, Any]:
        """(return code, value) of ``pynvml.<call>``; nothing is remembered. For calls that wait."""
        pynvml = self._pynvml
        if pynvml is None:
            return UNINITIALIZED, None
        function = getattr(pynvml, call, None)
        if function is None:
            return FUNCTION_NOT_FOUND, None
        try:
            return SUCCESS, function(*arguments)
        except pynvml.NVMLError as error:
            return int(error.value), None

    def _remembered(self, key: tuple[object, ...]) -> Answer | None:
        if self._absent and key[1:] in self._absent:
            return Answer(reason=Reason.NOT_SUPPORTED)
        verdict = self._verdicts.get(key)
        if verdict is None:
            return None
        if self._monotonic() < verdict[1]:
            return Answer(reason=verdict[0])
        self._verdicts.pop(key, None)  # another card's thread may ask at the same time
        return None

    def _ask(self, call: str, key: tuple[object, ...], arguments: Sequence[Any], *, nothing: Any = None) -> Answer:
        pynvml = self._pynvml
        if pynvml is None:
            return Answer(reason=Reason.NO_DRIVER)
        function = bounded(pynvml, call) or getattr(pynvml, call, None)  # older bindings lack newer calls
        if function is None:
            return self._refuse(key, FUNCTION_NOT_FOUND)
        try:
            return Answer(function(*arguments))
        except pynvml.NVMLError as error:
            if nothing is not None and error.value in (SUCCESS, NOT_FOUND):  # the bindings raise success without data
                return Answer(nothing)
            return self._refuse(key, int(error.value))
        except pynvml.NVMLLibraryMismatchError:  # how the bindings name a missing symbol in a few calls
            return self._refuse(key, FUNCTION_NOT_FOUND)
        except UnicodeDecodeError:  # a string that is none
            return self._refuse(key, UNKNOWN)

    def _refuse(self, key: tuple[object, ...], code: int) -> Answer:
        reason = _REASONS.get(code, Reason.UNKNOWN_ERROR)
        if code == FUNCTION_NOT_FOUND:
            self._absent.add(key[1:])
        elif reason in _SLOW_VERDICTS:
            self._verdicts[key] = (reason, self._monotonic() + _RETRY_SLOW_S)
        elif reason in _SOON_VERDICTS:
            self._verdicts[key] = (reason, self._monotonic() + _RETRY_SOON_S)
        if (*key, code) not in self._logged:
            self._logged.add((*key, code))
            level = logging.DEBUG if reason is Reason.NOT_SUPPORTED else logging.WARNING
            _log.log(level, "NVML %s on %s: code %d (%s)", key[1:], key[0] or "the driver", code, reason.value)
        return Answer(reason=reason)


def memory_answer(door: NvmlDoor, handle: Any, uuid: str, *, v2: bool) -> Answer:
    """The memory struct of one version: v2 keeps the driver's reserve apart, v1 counts it as used."""
    if v2:
        return door.query("nvmlDeviceGetMemoryInfo", handle, MEMORY_V2, owner=uuid)
    return door.query("nvmlDeviceGetMemoryInfo", handle, owner=uuid)


def _unavailable(code: int) -> BackendUnavailable:
    reason = _REASONS.get(code, Reason.UNKNOWN_ERROR)
    if code == LIBRARY_NOT_FOUND:
        return BackendUnavailable(reason, "NVIDIA's driver library (NVML) is not installed", Advice.INSTALL_DRIVER)
    if reason is Reason.NO_DRIVER:
        return BackendUnavailable(
            reason, "NVIDIA's driver library is installed but its kernel driver is not loaded", Advice.LOAD_DRIVER
        )
    if reason is Reason.DRIVER_MISMATCH:
        return BackendUnavailable(
            reason, "NVIDIA's driver library and kernel driver have different versions", _ADVICE[reason]
        )
    return BackendUnavailable(
        reason, f"NVIDIA's driver did not start (NVML code {code})", _ADVICE.get(reason, Advice.TRY_AGAIN)
    )
