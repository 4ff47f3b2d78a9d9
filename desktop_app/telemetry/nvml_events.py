"""Errors that NVIDIA's driver pushes (Xid), by an event set."""

from __future__ import annotations

import ctypes
import logging
import sys
import threading
from collections import deque
from collections.abc import Callable, Mapping
from typing import Any, Final

from desktop_app.core.telemetry import CardError, Reason
from desktop_app.telemetry.nvml import NvmlDoor, reason_of
from desktop_app.telemetry.nvml_codes import TIMEOUT
from desktop_app.telemetry.plausibility import XID

_log = logging.getLogger(__name__)

_XID_CRITICAL_ERROR: Final = 0x8  # nvmlEventTypeXidCriticalError of nvml.h
# The end of a session waits for a wait under way, so it is short; four a second cost nothing to speak of.
_WAIT_MS: Final = 250
_DRAIN_S: Final = 0.6  # two waits and some
_PAUSE_S: Final = 2.0  # after a failure: a lost card fails every wait of the set it is in
_MOST_PENDING: Final = 1024
_BREATH_S: Final = 0.001  # between two errors: a card that pushes thousands must not take the interpreter


class XidWatch:
    """Waits for errors of all cards in a thread of its own, so that a wait that blocks delays nobody.

    ``start`` and ``stop``: while nobody opens or closes the driver. ``take``: any thread, never blocks; the first one
    starts the thread, so that who only looks at the cards has none. The driver must not be shut down unless ``stop``
    has said yes: NVML crashes under a call.
    """

    def __init__(self, door: NvmlDoor, *, now_s: Callable[[], float]) -> None:
        self._door = door
        self._now_s = now_s
        self._lock = threading.Lock()
        self._errors: deque[CardError] = deque(maxlen=_MOST_PENDING)
        self._stopping = threading.Event()
        self._thread: threading.Thread | None = None
        self._handles: Mapping[str, Any] = {}
        self._set: Any = None

    def start(self, handles: Mapping[str, Any]) -> dict[str, Reason]:
        """Listen to these cards (by UUID); why not, for those that cannot be listened to."""
        with self._lock:
            if self._is_waiting():  # in a wait that has not come back since the last opening
                return dict.fromkeys(handles, Reason.TIMED_OUT)
            self._thread, self._stopping = None, threading.Event()
            self._handles = handles
            self._set, reasons = self._register(handles)
        return reasons

    def take(self) -> tuple[CardError, ...]:
        """What was pushed since the last time, oldest first."""
        with self._lock:
            if self._set is not None and self._thread is None:
                # daemon: a wait that hangs in the driver must not keep the process alive
                self._thread = threading.Thread(
                    target=self._run, args=(self._set, self._stopping), name="card errors", daemon=True
                )
                self._thread.start()
        taken = []
        while self._errors:
            taken.append(self._errors.popleft())
        return tuple(taken)

    def stop(self) -> bool:
        """End the wait and give the set back. False: it is blocked in the driver; it calls nothing more."""
        self._stopping.set()
        with self._lock:
            event_set, self._set = self._set, None
            thread = self._thread
            if thread is None and event_set is not None:
                self._door.attempt("nvmlEventSetFree", event_set)
        if thread is not None:
            thread.join(_DRAIN_S)
        return not self._is_waiting()

    def _is_waiting(self) -> bool:
        return self._thread is not None and self._thread.is_alive()

    def _register(self, handles: Mapping[str, Any]) -> tuple[Any, dict[str, Reason]]:
        """(a set, or None; the reasons of the cards that are not in it)."""
        if sys.platform != "linux":  # nvml.h: "Linux only"
            return None, dict.fromkeys(handles, Reason.NOT_SUPPORTED)
        code, event_set = self._door.attempt("nvmlEventSetCreate")
        if code:
            return None, dict.fromkeys(handles, reason_of(code))
        reasons = {}
        for uuid, handle in handles.items():
            code, _ = self._door.attempt("nvmlDeviceRegisterEvents", handle, _XID_CRITICAL_ERROR, event_set)
            if code:
                reasons[uuid] = reason_of(code)
        if len(reasons) < len(handles):
            return event_set, reasons
        self._door.attempt("nvmlEventSetFree", event_set)
        return None, reasons

    def _run(self, event_set: Any, stopping: threading.Event) -> None:
        """Runs in: the thread of card errors."""
        owners = {_address(handle): uuid for uuid, handle in self._handles.items()}
        odd = False
        while not stopping.is_set():
            if event_set is None:
                event_set, _ = self._register(self._handles)
            if event_set is None:
                stopping.wait(_PAUSE_S)
                continue
            code, data = self._door.attempt("nvmlEventSetWait_v2", event_set, _WAIT_MS)
            if stopping.is_set() or code == TIMEOUT:
                continue
            if code:
                _log.info("errors of the cards cannot be waited for: code %d", code)
                stopping.wait(_PAUSE_S)
                if not stopping.is_set():  # anew, with the cards that still take part
                    self._door.attempt("nvmlEventSetFree", event_set)
                    event_set = None
                continue
            if data.eventType == _XID_CRITICAL_ERROR and not XID.low <= data.eventData <= XID.high:
                if not odd:  # once: there may be thousands
                    _log.warning("the driver pushed an error with the number %d: there is none", data.eventData)
                odd = True
            elif data.eventType == _XID_CRITICAL_ERROR:
                self._errors.append(CardError(self._now_s(), owners.get(_address(data.device)), int(data.eventData)))
            stopping.wait(_BREATH_S)
        if event_set is not None:
            self._door.attempt("nvmlEventSetFree", event_set)


def _address(handle: Any) -> int | None:
    return ctypes.cast(handle, ctypes.c_void_p).value
