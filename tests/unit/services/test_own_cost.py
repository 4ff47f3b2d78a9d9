"""What the program itself costs."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Mapping

import pytest

from desktop_app.services.own_cost import OwnCost, own_thread_times

from .doubles import PATIENCE_S


def cost_of(*looks: tuple[float, Mapping[int, float] | None]) -> list[float | None]:
    """``cpu_percent`` at each look: the time, and CPU seconds by thread."""
    now = iter(looks)
    at: list[tuple[float, Mapping[int, float] | None]] = [next(now)]
    cost = OwnCost(thread_times=lambda: at[0][1], monotonic=lambda: at[0][0])
    answers = [cost.cpu_percent()]
    for look in now:
        at[0] = look
        answers.append(cost.cpu_percent())
    return answers


def test_it_is_the_share_of_one_core_since_the_last_look() -> None:
    assert cost_of((0.0, {1: 5.0, 2: 1.0}), (2.0, {1: 5.3, 2: 1.1})) == [None, pytest.approx(20.0)]


def test_a_thread_that_ended_takes_nothing_back_and_a_new_one_counts() -> None:
    answers = cost_of((0.0, {1: 5.0, 2: 9.0}), (1.0, {1: 5.1}), (2.0, {1: 5.1, 3: 0.2}), (3.0, {1: 5.1, 3: 0.1}))
    assert answers == [None, pytest.approx(10.0), pytest.approx(20.0), 0.0]


def test_where_it_cannot_be_told_it_is_not_told() -> None:
    assert cost_of((0.0, None), (1.0, None)) == [None, None]
    assert cost_of((1.0, {1: 0.0}), (1.0, {1: 0.5})) == [None, None]


def burn(cpu_s: float) -> None:
    end_s = time.thread_time() + cpu_s
    while time.thread_time() < end_s:
        pass


@pytest.mark.skipif(sys.platform != "linux", reason="clocks per thread are Linux's")
def test_threads_are_timed_and_the_trainer_is_not_ours() -> None:
    burnt, leave = threading.Semaphore(0), threading.Event()

    def work() -> None:
        burn(0.05)
        burnt.release()
        leave.wait(PATIENCE_S)

    ours = threading.Thread(target=work, name="recorder")
    training = threading.Thread(target=work, name="trainer")
    for thread in (ours, training):
        thread.start()
    for _ in range(2):
        assert burnt.acquire(timeout=PATIENCE_S)
    times = own_thread_times()
    leave.set()
    for thread in (ours, training):
        thread.join(PATIENCE_S)
    assert times is not None
    assert 0.05 <= times[ours.native_id or 0] < 0.1
    assert training.native_id not in times
    assert threading.main_thread().native_id in times
    assert own_thread_times().keys().isdisjoint({ours.native_id})  # type: ignore[union-attr]


def test_frames_have_a_95th_percentile() -> None:
    cost = OwnCost()
    assert cost.frame_p95_ms() is None
    for milliseconds in range(1, 102):
        cost.note_frame(milliseconds / 1e3)
    assert cost.frame_p95_ms() == pytest.approx(96.0)
    for _ in range(600):
        cost.note_frame(0.002)
    assert cost.frame_p95_ms() == pytest.approx(2.0)  # a minute later
