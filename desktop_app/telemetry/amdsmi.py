"""The one door to AMD's driver: the Python package ``amdsmi``, imported late and only where its library is.

Written after the sources of amdsmi 24.7 (ROCm 6.3) and 26.0 (7.0); not tried on a real card. The package differs by
version: what a card lacks is an exception with a code, the text "N/A", or a number of all ones.
"""

from __future__ import annotations

import ctypes
import importlib
import importlib.util
import logging
import os
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from types import ModuleType
from typing import Any, Final

from desktop_app.core.telemetry import Reading, Reason
from desktop_app.telemetry.backend import Advice, BackendUnavailable
from desktop_app.telemetry.plausibility import Range, judge

_log = logging.getLogger(__name__)

PACKAGE: Final = "amdsmi"
_LIBRARY: Final = "libamd_smi.so"
# amdsmi_status_t of amdsmi.h. A sensor that a family lacks is "invalid", "no such file" or "not supported".
_REASONS: Final = {
    1: Reason.NOT_SUPPORTED,  # invalid parameters
    2: Reason.NOT_SUPPORTED,
    3: Reason.NOT_SUPPORTED,  # not yet implemented
    4: Reason.NO_DRIVER,  # a library cannot be loaded
    5: Reason.NOT_SUPPORTED,  # a symbol cannot be loaded: an older library
    8: Reason.TIMED_OUT,
    9: Reason.NOT_READ_YET,  # retry
    10: Reason.NO_PERMISSION,
    14: Reason.NOT_SUPPORTED,  # file error
    30: Reason.NOT_READ_YET,  # busy
    31: Reason.GPU_LOST,  # device not found
    32: Reason.NO_DRIVER,  # not initialised
    34: Reason.NO_DRIVER,  # driver not loaded
    40: Reason.NOT_READ_YET,  # no data
    43: Reason.IMPLAUSIBLE,  # unexpected data
    52: Reason.NOT_SUPPORTED,  # file not found
    54: Reason.GPU_LOST,  # the driver's restart failed
    55: Reason.NOT_SUPPORTED,  # setting not available
}
_NOT_LOADED: Final = 34
# A verdict that seldom changes is asked for again this late: each question reads files of the kernel.
_RETRY_SLOW_S: Final = 60.0
_SLOW_VERDICTS: Final = frozenset({Reason.NOT_SUPPORTED, Reason.NO_PERMISSION})
# All ones in the width that a version of the library has for the field. A true 65,535 is none of the fields of 16 bits.
_ALL_ONES: Final = {16: (2**16 - 1, 2**32 - 1, 2**64 - 1), 32: (2**32 - 1, 2**64 - 1), 64: (2**64 - 1,)}


def number(value: object, allowed: Range, *, bits: int = 16, scale: float = 1.0) -> Reading:
    """What the package has given for one field: a number that can be true, or the reason why not.

    ``bits``: the field's width in the oldest version, for "not available" as all ones.
    """
    if isinstance(value, Reason):
        return Reading(None, value)
    if isinstance(value, bool) or not isinstance(value, int | float):
        return Reading(None, Reason.NOT_SUPPORTED)  # "N/A", or what a version has in its place
    if value in _ALL_ONES[bits]:
        return Reading(None, Reason.NOT_SUPPORTED)
    return judge(value, allowed, scale=scale)


def part(answer: object, *path: str) -> object:
    """A member of a dictionary of dictionaries; the reason of the whole, or ``NOT_SUPPORTED`` where it is not there."""
    for key in path:
        if isinstance(answer, Reason):
            return answer
        if not isinstance(answer, Mapping) or key not in answer:
            return Reason.NOT_SUPPORTED
        answer = answer[key]
    return answer


def text(value: object) -> str | None:
    """A text that says something. A ``Reason`` is a string too, and says why there is none."""
    if isinstance(value, Reason) or not isinstance(value, str) or value.strip() in ("", "N/A"):
        return None
    return value.strip()


def load_package() -> ModuleType:
    """``import amdsmi``. ``BackendUnavailable`` says what is missing: the package, its library, or their fit."""
    if importlib.util.find_spec(PACKAGE) is None:
        raise BackendUnavailable(Reason.NO_DRIVER, "the Python package amdsmi is not installed", Advice.INSTALL_DRIVER)
    if not _finds_library():  # without it the package prints two lines and fails by a KeyError
        raise BackendUnavailable(
            Reason.NO_DRIVER, "AMD's library (libamd_smi.so, part of ROCm) is not installed", Advice.INSTALL_DRIVER
        )
    try:
        return importlib.import_module(PACKAGE)
    except Exception as error:  # whatever a version that does not fit its library does
        _log.info("amdsmi cannot be imported", exc_info=error)
        raise BackendUnavailable(
            Reason.DRIVER_MISMATCH,
            f"the Python package amdsmi does not fit AMD's library ({type(error).__name__})",
            Advice.INSTALL_DRIVER,
        ) from error


class AmdSmiDoor:
    """Every call to the package goes through here: a value, or the ``Reason`` for none.

    Runs in: one thread at a time for each card. ``load`` and ``monotonic`` are for tests.
    """

    def __init__(
        self,
        *,
        load: Callable[[], ModuleType] = load_package,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._load = load
        self._monotonic = monotonic
        self._package: Any = None
        self._verdicts: dict[tuple[object, ...], tuple[Reason, float]] = {}
        self._logged: set[tuple[object, ...]] = set()

    @property
    def is_open(self) -> bool:
        return self._package is not None

    def open(self) -> None:
        """Load and initialise. Raises ``BackendUnavailable``."""
        if self._package is not None:
            return
        package: Any = self._load()
        try:
            package.amdsmi_init()
        except package.AmdSmiException as error:
            raise _unavailable(error) from error
        self._verdicts.clear()
        self._package = package

    def close(self) -> None:
        """Let go of the driver. Only while no call is under way."""
        package, self._package = self._package, None
        if package is None:
            return
        try:
            package.amdsmi_shut_down()
        except package.AmdSmiException as error:
            _log.info("amdsmi did not shut down: %s", _line(error))

    def constant(self, kind: str, name: str) -> object:
        """``package.<kind>.<name>``, such as ``AmdSmiClkType.GFX``; a ``Reason`` where this version has none."""
        found = getattr(getattr(self._package, kind, None), name, None)
        return Reason.NOT_SUPPORTED if found is None else found

    def query(self, call: str, *arguments: object, owner: str) -> object:
        """``package.<call>(*arguments)``, or the reason. ``owner``: the card, for the log."""
        package = self._package
        if package is None:
            return Reason.NO_DRIVER
        absent = next((argument for argument in arguments if isinstance(argument, Reason)), None)
        if absent is not None:
            return absent
        key = (owner, call, *(str(argument) for argument in arguments[1:]))
        verdict = self._verdicts.get(key)
        if verdict is not None and self._monotonic() < verdict[1]:
            return verdict[0]
        function = getattr(package, call, None)
        if function is None:
            return self._refuse(key, Reason.NOT_SUPPORTED, "this version has no such call")
        try:
            return function(*arguments)
        except package.AmdSmiException as error:
            return self._refuse(key, _reason(error), _line(error))
        except (UnicodeDecodeError, ValueError, KeyError, OSError) as error:  # an answer that the package cannot read
            return self._refuse(key, Reason.UNKNOWN_ERROR, _line(error))

    def _refuse(self, key: tuple[object, ...], reason: Reason, line: str) -> Reason:
        if reason in _SLOW_VERDICTS:
            self._verdicts[key] = (reason, self._monotonic() + _RETRY_SLOW_S)
        if (*key, reason) not in self._logged:
            self._logged.add((*key, reason))
            level = logging.DEBUG if reason is Reason.NOT_SUPPORTED else logging.WARNING
            _log.log(level, "amdsmi %s on %s: %s (%s)", key[1:], key[0], line, reason.value)
        return reason


def _code(error: Exception) -> int | None:
    """The code of ``AmdSmiLibraryException``; other exceptions of the package have none."""
    code = getattr(error, "err_code", None)
    return abs(code) if isinstance(code, int) else None


def _reason(error: Exception) -> Reason:
    return _REASONS.get(_code(error) or 0, Reason.UNKNOWN_ERROR)


def _line(error: Exception) -> str:
    return " ".join(str(error).split()) or type(error).__name__


def _unavailable(error: Exception) -> BackendUnavailable:
    code = _code(error)
    reason = _REASONS.get(code or 0, Reason.UNKNOWN_ERROR)
    if code == _NOT_LOADED or reason is Reason.NO_DRIVER:
        return BackendUnavailable(
            Reason.NO_DRIVER, "AMD's library is installed but its kernel driver is not loaded", Advice.LOAD_DRIVER
        )
    advice = Advice.ALLOW_ACCESS if reason is Reason.NO_PERMISSION else Advice.TRY_AGAIN
    return BackendUnavailable(reason, f"AMD's driver did not start (amdsmi code {code})", advice)


def _finds_library() -> bool:
    """Whether the library is where the package looks for it."""
    root = os.environ.get("ROCM_HOME") or os.environ.get("ROCM_PATH") or "/opt/rocm"
    spec = importlib.util.find_spec(PACKAGE)
    beside = [Path(spec.origin).parent / _LIBRARY] if spec is not None and spec.origin else []
    for place in (Path(root) / "lib" / _LIBRARY, *beside, _LIBRARY):
        try:
            ctypes.CDLL(str(place))
        except OSError:
            continue
        return True
    return False
