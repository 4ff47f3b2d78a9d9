"""What the trainer tells the simulated card."""

from __future__ import annotations

import threading

import pytest
from hypothesis import given
from hypothesis import strategies as st

from desktop_app.core.load import CardLoad


def test_memory_by_owner() -> None:
    load = CardLoad()
    assert load.used_bytes == 0
    load.set_memory(reserved_bytes=10, outside_bytes=3)
    load.set_others(5)
    assert (load.reserved_bytes, load.outside_bytes, load.others_bytes) == (10, 3, 5)
    assert (load.process_bytes, load.used_bytes) == (13, 18)
    load.set_memory(reserved_bytes=0, outside_bytes=0)
    assert load.used_bytes == 5


def test_negative_bytes_are_a_mistake() -> None:
    load = CardLoad()
    for call in (
        lambda: load.set_memory(reserved_bytes=-1, outside_bytes=0),
        lambda: load.set_memory(reserved_bytes=0, outside_bytes=-1),
        lambda: load.set_others(-1),
    ):
        with pytest.raises(ValueError, match="negative"):
            call()


def test_duty_is_the_busy_share_since_the_last_take() -> None:
    load = CardLoad()
    load.begin_busy(0.0)
    load.end_busy(0.5)
    load.begin_busy(0.75)
    assert load.busy
    assert load.take_duty(1.0) == pytest.approx(0.75)  # 0.5 and the unfinished 0.25
    assert load.take_duty(2.0) == pytest.approx(1.0)  # still busy
    load.end_busy(2.5)
    assert not load.busy
    assert load.take_duty(3.0) == pytest.approx(0.5)
    assert load.take_duty(4.0) == 0.0


def test_asked_twice_at_the_same_moment_it_repeats_itself() -> None:
    load = CardLoad(t_s=10.0)
    load.begin_busy(10.0)
    load.end_busy(10.5)
    assert load.take_duty(11.0) == pytest.approx(0.5)
    assert load.take_duty(11.0) == pytest.approx(0.5)
    assert load.take_duty(10.9) == pytest.approx(0.5)


def test_a_second_beginning_and_an_end_without_one_are_nothing() -> None:
    load = CardLoad()
    load.end_busy(0.3)
    load.begin_busy(0.5)
    load.begin_busy(0.9)
    load.end_busy(1.0)
    load.end_busy(2.0)
    assert load.take_duty(2.0) == pytest.approx(0.25)


@given(st.lists(st.tuples(st.sampled_from(["begin", "end", "take"]), st.floats(0, 5)), max_size=60))
def test_duty_is_a_share_and_adds_up(events: list[tuple[str, float]]) -> None:
    load, now_s, busy_since_s = CardLoad(), 0.0, None
    busy_s = taken_s = taken_busy_s = 0.0
    for kind, step_s in events:
        if busy_since_s is not None:
            busy_s += step_s
        now_s += step_s
        if kind == "begin":
            load.begin_busy(now_s)
            busy_since_s = now_s if busy_since_s is None else busy_since_s
        elif kind == "end":
            load.end_busy(now_s)
            busy_since_s = None
        elif now_s > taken_s:
            duty = load.take_duty(now_s)
            assert 0.0 <= duty <= 1.0
            taken_busy_s += duty * (now_s - taken_s)
            taken_s = now_s
            assert taken_busy_s == pytest.approx(busy_s, abs=1e-6)


def test_two_threads_do_not_tear_it() -> None:
    load, wrong = CardLoad(), []

    def write() -> None:
        for size in range(20_000):
            load.set_memory(reserved_bytes=size, outside_bytes=2 * size)

    def read() -> None:
        wrong.extend(size for size in (load.process_bytes for _ in range(20_000)) if size % 3)

    threads = [threading.Thread(target=work) for work in (write, read)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30.0)
    assert wrong == []
