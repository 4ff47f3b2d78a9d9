"""A driver call that blocks: the window goes on in time, so do the other cards, and the end does not wait for it."""
# ruff: noqa: ARG002  the fakes take what the protocols give

from __future__ import annotations

import itertools
import os
import threading
import time
from collections.abc import Callable, Iterator, Mapping

import pytest
from PySide6.QtCore import QObject, Qt, QTimer
from pytestqt.qtbot import QtBot

from desktop_app.core.clock import SessionClock
from desktop_app.core.events import EventKind
from desktop_app.core.telemetry import FAST_FIELDS, SLOW_FIELDS, Card, ProcessSample, Reading, Reason
from desktop_app.services.session import Session
from desktop_app.services.telemetry_feed import history_name
from desktop_app.ui.main_window import MainWindow
from tests.unit.services.doubles import make_card

TIMER_MS = 20
LIMIT_MS = 80.0  # the acceptance of the window's timer, 95th percentile of how late it comes
# Intervals: 2.4 s, well past the second after which a call is told as blocked. BLOCKED_S=30 plays the full form
# (``benchmarks/blocked_driver.py``).
WATCHED = max(120, round(1000 * float(os.environ.get("BLOCKED_S", "0")) / TIMER_MS))
A, B = "GPU-a", "GPU-b"


class HalfBlocked:
    """Two cards; reading the second one waits for an event."""

    name = "half blocked"

    def __init__(self) -> None:
        self.gate = threading.Event()
        self.gate.set()
        self.inside = threading.Event()

    def open(self) -> tuple[Card, ...]:
        return tuple(make_card(uuid, simulated=False) for uuid in (A, B))

    def read_fast(self, card: Card) -> Mapping[str, Reading]:
        if card.uuid == B and not self.gate.is_set():
            self.inside.set()
            self.gate.wait(600.0)
        return dict.fromkeys(FAST_FIELDS, Reading(1.0))

    def read_slow(self, card: Card) -> Mapping[str, Reading]:
        return dict.fromkeys(SLOW_FIELDS, Reading(2.0))

    def processes(self, card: Card) -> tuple[ProcessSample, ...]:
        return ()

    def close(self) -> None:
        assert self.gate.is_set(), "the library is shut down under a call"


@pytest.fixture
def backend() -> Iterator[HalfBlocked]:
    made = HalfBlocked()
    yield made
    made.gate.set()


@pytest.fixture
def session(backend: HalfBlocked) -> Iterator[Session]:
    def never(*_: object, **__: object) -> object:
        raise AssertionError("nothing is estimated or trained here")

    made = Session(clock=SessionClock(), backend=backend, compute_estimate=never, train=never)  # type: ignore[arg-type]
    yield made
    backend.gate.set()
    made.close()


def lateness_ms(parent: QObject, qtbot: QtBot, *, intervals: int = WATCHED) -> list[float]:
    """How much later than asked a timer of the window's thread came, sorted."""
    ticks: list[float] = []
    timer = QTimer(parent, interval=TIMER_MS)
    timer.setTimerType(Qt.TimerType.PreciseTimer)
    timer.timeout.connect(lambda: ticks.append(time.perf_counter()))
    timer.start()
    qtbot.waitUntil(lambda: len(ticks) > intervals, timeout=60_000 + 10 * TIMER_MS * intervals)
    timer.stop()
    return sorted(max(0.0, 1e3 * (b - a) - TIMER_MS) for a, b in itertools.pairwise(ticks))


@pytest.mark.alone
def test_a_blocked_card_delays_neither_window_nor_the_other_card_nor_the_end(
    make_window: Callable[..., MainWindow], qtbot: QtBot, session: Session, backend: HalfBlocked
) -> None:
    session.open()
    window = make_window(session)
    qtbot.waitUntil(lambda: len(session.cards.get()) == 2 and bool(session.readings.get().get(B)), timeout=20_000)
    free_ms = lateness_ms(window, qtbot, intervals=50)
    backend.gate.clear()
    assert backend.inside.wait(20.0)
    before = session.store.history(history_name(A)).version
    began_s = time.perf_counter()
    blocked_ms = lateness_ms(window, qtbot)
    watched_s = time.perf_counter() - began_s
    p95_ms, free_p95_ms = (each[int(0.95 * (len(each) - 1))] for each in (blocked_ms, free_ms))
    print(f"timer p95 {p95_ms:.1f} ms late while a card blocks {watched_s:.1f} s, {free_p95_ms:.1f} ms otherwise")
    assert p95_ms <= max(LIMIT_MS, 2 * free_p95_ms), "the second only where the machine itself is that busy"
    # the other card: at its rate, where the machine lets it
    assert session.store.history(history_name(A)).version - before >= 0.8 * 5 * watched_s * (
        1.0 if p95_ms <= LIMIT_MS else 0.5
    )
    outages = [event for event in session.events.since(0)[0] if event.kind is EventKind.OUTAGE]
    assert [(event.params["uuid"], event.params["reason"]) for event in outages] == [(B, Reason.TIMED_OUT.value)]
    began_s = time.perf_counter()
    session.close()
    assert time.perf_counter() - began_s < 4.0  # the sampler is waited for two seconds at most; the call for none
    assert not backend.gate.is_set()
