"""The wait for pushed errors, with real threads: it starts when asked, ends in time, and never leaves a call behind
that the library is shut down under."""

from __future__ import annotations

import ctypes
import sys
import threading
import time
from types import SimpleNamespace
from typing import Any

import pytest

from desktop_app.core.telemetry import CardError, Reason
from desktop_app.telemetry import nvml_events
from desktop_app.telemetry.nvml_events import XidWatch

LIMIT_S = 20.0
pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="event sets are Linux only")


class Door:
    """A driver with event sets: what waits brings, in order; then timeouts. ``gate`` shut: the wait blocks."""

    def __init__(self, *waits: tuple[int, Any]) -> None:
        self.waits = list(waits)
        self.refused: dict[str, int] = {}
        self.gate = threading.Event()
        self.gate.set()
        self.inside = threading.Event()
        self.sets: set[int] = set()
        self.made = 0
        self.calls: list[str] = []

    def attempt(self, call: str, *arguments: Any) -> tuple[int, Any]:
        self.calls.append(call)
        if call in self.refused:
            return self.refused[call], None
        if call == "nvmlEventSetCreate":
            self.made += 1
            self.sets.add(self.made)
            return 0, self.made
        if call == "nvmlEventSetFree":
            self.sets.remove(arguments[0])
        if call != "nvmlEventSetWait_v2":
            return 0, None
        self.inside.set()
        assert self.gate.wait(LIMIT_S)
        if self.waits:
            return self.waits.pop(0)
        time.sleep(0.001)  # as the driver: a wait takes its time
        return 10, None


def handle(number: int) -> ctypes.c_void_p:
    return ctypes.c_void_p(0x1000 * number)


HANDLES = {"A": handle(1), "B": handle(2)}


def an_error(number: int, xid: int, *, kind: int = 8) -> tuple[int, Any]:
    return 0, SimpleNamespace(device=handle(number), eventType=kind, eventData=xid)


def a_watch(door: Door) -> XidWatch:
    return XidWatch(door, now_s=lambda: 7.0)  # type: ignore[arg-type]  # what is asked of a door here


def take(watch: XidWatch, count: int) -> list[CardError]:
    taken: list[CardError] = []
    deadline_s = time.monotonic() + LIMIT_S
    while len(taken) < count:
        assert time.monotonic() < deadline_s
        taken += watch.take()
    return taken


def test_errors_come_with_their_card_and_other_events_are_none() -> None:
    door = Door(an_error(2, 79), an_error(1, 3, kind=4), an_error(9, 31))
    watch = a_watch(door)
    assert watch.start(HANDLES) == {}
    assert take(watch, 2) == [CardError(7.0, "B", 79), CardError(7.0, None, 31)]
    assert watch.stop()
    assert door.sets == set()


def test_who_only_looks_has_no_thread() -> None:
    door = Door()
    watch = a_watch(door)
    watch.start(HANDLES)
    assert watch.stop()
    assert "nvmlEventSetWait_v2" not in door.calls
    assert door.sets == set()


@pytest.mark.parametrize("call", ["nvmlEventSetCreate", "nvmlDeviceRegisterEvents"])
def test_without_support_there_is_a_reason_and_no_thread(call: str) -> None:
    door = Door()
    door.refused[call] = 3
    watch = a_watch(door)
    assert watch.start(HANDLES) == dict.fromkeys(HANDLES, Reason.NOT_SUPPORTED)
    assert watch.take() == ()
    assert watch.stop()
    assert door.sets == set()
    assert "nvmlEventSetWait_v2" not in door.calls


def test_a_blocked_wait_is_said_and_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(nvml_events, "_DRAIN_S", 0.02)
    door = Door(an_error(1, 31))
    door.gate.clear()
    watch = a_watch(door)
    watch.start(HANDLES)
    watch.take()
    assert door.inside.wait(LIMIT_S)
    assert watch.stop() is False
    assert watch.start(HANDLES) == dict.fromkeys(HANDLES, Reason.TIMED_OUT)
    monkeypatch.setattr(nvml_events, "_DRAIN_S", LIMIT_S)
    door.gate.set()
    assert watch.stop()  # it has come back, and given its set back
    assert door.sets == set()
    assert watch.take() == ()  # nobody listened any more
    assert watch.start(HANDLES) == {}
    assert watch.stop()


def test_a_wait_that_fails_is_begun_anew_with_those_that_take_part(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(nvml_events, "_PAUSE_S", 0.001)
    door = Door((15, None), (15, None), an_error(1, 48))
    watch = a_watch(door)
    watch.start(HANDLES)
    assert take(watch, 1) == [CardError(7.0, "A", 48)]
    assert door.made == 3
    assert watch.stop()
    assert door.sets == set()
