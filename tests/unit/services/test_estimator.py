"""Estimates on request: the newest wins, a failure is one line, nobody waits for what will not come."""

from __future__ import annotations

import os
import queue
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from desktop_app.core.errors import FloodmarkError
from desktop_app.core.forecasts import Estimate, Lever
from desktop_app.memory import estimate as memory_estimate
from desktop_app.services.estimator import PENDING, EstimateRequest, Estimator, Tell
from desktop_app.services.facade import EstimateState, EstimateStatus
from desktop_app.training.config import RunConfig

from .doubles import PATIENCE_S, Watched, make_card, make_estimate

CARD = make_card()
LEVER = Lever("bf16", {"precision": "bf16"}, saved_bytes=1 << 20, device_peak_bytes=499 << 20)


class Computer:
    """Computes nothing until it is told; then what ``answer`` says, and levers after another word."""

    def __init__(self) -> None:
        self.asked: queue.SimpleQueue[EstimateRequest] = queue.SimpleQueue()
        self.go = threading.Semaphore(0)
        self.answer: Callable[[EstimateRequest], Estimate] = lambda request: make_estimate(
            batch_size=request.config.batch_size, largest_batch=800
        )
        self.levers: Callable[[Estimate], Estimate] = lambda first: replace(first, levers=(LEVER,))

    def __call__(self, request: EstimateRequest, tell: Tell) -> Estimate:
        self.asked.put(request)
        assert self.go.acquire(timeout=PATIENCE_S)
        first = self.answer(request)
        tell(replace(first, largest_batch=None, warnings=(PENDING,)))
        if not request.with_levers:
            return first
        tell(first)
        assert self.go.acquire(timeout=PATIENCE_S)
        return self.levers(first)


@pytest.fixture
def computer() -> Computer:
    return Computer()


@pytest.fixture
def estimator(computer: Computer) -> Iterator[Estimator]:
    made = Estimator(computer)
    yield made
    computer.go.release(100)
    assert made.stop(PATIENCE_S)


def request(batch_size: int, *, with_levers: bool = False) -> EstimateRequest:
    return EstimateRequest(RunConfig(batch_size=batch_size), CARD, 0, with_levers)


def test_the_verdict_comes_first_and_the_levers_after_it(estimator: Estimator, computer: Computer) -> None:
    wanted = request(32, with_levers=True)
    estimator.request(wanted)
    assert estimator.status.get().state is EstimateState.WORKING
    computer.go.release()
    status = estimator.wait_for(wanted.config, timeout_s=PATIENCE_S)
    assert (status.state, status.config) == (EstimateState.READY, wanted.config)
    assert status.estimate == make_estimate(batch_size=32, largest_batch=800)
    assert status.levers_pending
    computer.go.release()
    Watched(estimator.status).until(lambda s: not s.levers_pending)
    assert estimator.status.get().estimate == replace(make_estimate(batch_size=32, largest_batch=800), levers=(LEVER,))
    assert computer.asked.get_nowait() == wanted
    assert computer.asked.empty()


def test_the_peak_is_shown_while_the_largest_batch_is_searched(estimator: Estimator, computer: Computer) -> None:
    seen: queue.SimpleQueue[EstimateStatus] = queue.SimpleQueue()
    answer = computer.answer

    def look(asked: EstimateRequest) -> Estimate:
        seen.put(estimator.status.get())
        return answer(asked)

    computer.answer = look
    computer.levers = lambda first: first
    computer.go.release()
    estimator.request(request(32, with_levers=True))
    assert seen.get(timeout=PATIENCE_S).estimate is None
    Watched(estimator.status).until(lambda s: s.state is EstimateState.READY)
    assert PENDING == memory_estimate.PENDING  # what the real one tells first
    computer.go.release()


class Control:
    """Notes what the tracing process is told."""

    def __init__(self) -> None:
        self.told: queue.SimpleQueue[object] = queue.SimpleQueue()

    def start(self) -> None:
        self.told.put("start")

    def supersede(self, newest: EstimateRequest) -> None:
        self.told.put(newest)

    def close(self) -> None:
        self.told.put("close")


def test_the_tracing_process_is_told_what_is_wanted_and_ended(computer: Computer) -> None:
    control = Control()
    estimator = Estimator(computer, control=control)
    estimator.warm_up()
    first, second = request(1), request(2)
    estimator.request(first)
    estimator.request(second)
    computer.go.release(2)
    estimator.wait_for(second.config, timeout_s=PATIENCE_S)
    assert estimator.stop(PATIENCE_S)
    assert [control.told.get_nowait() for _ in range(4)] == ["start", first, second, "close"]


def test_only_the_newest_of_several_requests_is_answered(estimator: Estimator, computer: Computer) -> None:
    first, second, third = request(1), request(2), request(3)
    estimator.request(first)
    assert computer.asked.get(timeout=PATIENCE_S) == first
    estimator.request(second)
    estimator.request(third)
    computer.go.release()
    assert computer.asked.get(timeout=PATIENCE_S) == third
    assert estimator.status.get().estimate is None  # the first answer came and nobody wanted it
    computer.go.release()
    status = estimator.wait_for(third.config, timeout_s=PATIENCE_S)
    assert status.estimate == make_estimate(batch_size=3, largest_batch=800)
    assert computer.asked.empty()
    assert estimator.knows(third.config, CARD)
    assert not estimator.knows(first.config, CARD)
    assert not estimator.knows(third.config, make_card("SIM-2"))


def test_the_last_answer_stays_while_a_new_one_is_made(estimator: Estimator, computer: Computer) -> None:
    computer.go.release()
    estimator.request(request(1))
    known = estimator.wait_for(RunConfig(batch_size=1), timeout_s=PATIENCE_S).estimate
    estimator.request(request(2))
    status = estimator.status.get()
    assert (status.state, status.estimate, status.config) == (EstimateState.WORKING, known, RunConfig(batch_size=2))


@pytest.mark.parametrize(
    ("error", "code", "line"),
    [
        (
            FloodmarkError("data.one_class", "only one class; add another"),
            "data.one_class",
            "only one class; add another",
        ),
        (RuntimeError("no meta kernel\nfor aten::odd"), "estimate.failed", "no meta kernel for aten::odd"),
        (AssertionError(), "estimate.failed", "AssertionError"),
    ],
)
def test_a_failure_is_one_line_and_the_next_request_is_answered(
    estimator: Estimator, computer: Computer, error: Exception, code: str, line: str
) -> None:
    usual = computer.answer

    def fail(_: EstimateRequest) -> Estimate:
        raise error

    computer.answer = fail
    computer.go.release()
    estimator.request(request(1, with_levers=True))
    status = estimator.wait_for(RunConfig(batch_size=1), timeout_s=PATIENCE_S)
    assert (status.state, status.estimate) == (EstimateState.FAILED, None)
    assert (status.error_code, status.error) == (code, line)
    assert not estimator.knows(RunConfig(batch_size=1), CARD)
    computer.answer = usual
    computer.go.release()
    estimator.request(request(2))
    assert estimator.wait_for(RunConfig(batch_size=2), timeout_s=PATIENCE_S).state is EstimateState.READY


def test_levers_that_fail_do_not_take_the_verdict_away(estimator: Estimator, computer: Computer) -> None:
    def fail(_: Estimate) -> Estimate:
        raise RuntimeError("odd")

    computer.levers = fail
    estimator.request(request(1, with_levers=True))
    computer.go.release()
    assert estimator.wait_for(RunConfig(batch_size=1), timeout_s=PATIENCE_S).levers_pending
    computer.go.release()
    Watched(estimator.status).until(lambda s: not s.levers_pending)
    status = estimator.status.get()
    assert (status.state, status.estimate) == (EstimateState.READY, make_estimate(batch_size=1, largest_batch=800))


def test_nobody_waits_for_what_was_not_asked_or_is_forgotten(estimator: Estimator, computer: Computer) -> None:
    assert estimator.wait_for(RunConfig(), timeout_s=PATIENCE_S).state is EstimateState.NONE
    estimator.request(request(1))
    assert estimator.wait_for(RunConfig(batch_size=2), timeout_s=PATIENCE_S).state is EstimateState.WORKING
    waited = threading.Thread(target=estimator.wait_for, args=(RunConfig(batch_size=1),), kwargs={"timeout_s": 600.0})
    waited.start()
    estimator.request(request(2))
    waited.join(PATIENCE_S)
    assert not waited.is_alive()


def test_a_wait_can_be_given_up(estimator: Estimator, computer: Computer) -> None:
    estimator.request(request(1))
    stop = threading.Event()
    waited = threading.Thread(
        target=estimator.wait_for,
        args=(RunConfig(batch_size=1),),
        kwargs={"timeout_s": 600.0, "unless": stop.is_set},
    )
    waited.start()
    computer.asked.get(timeout=PATIENCE_S)
    estimator.wake()
    assert waited.is_alive()
    stop.set()
    estimator.wake()
    waited.join(PATIENCE_S)
    assert not waited.is_alive()


def test_a_wait_ends_with_its_patience(estimator: Estimator) -> None:
    estimator.request(request(1))
    assert estimator.wait_for(RunConfig(batch_size=1), timeout_s=0.01).state is EstimateState.WORKING


def test_a_refusal_is_the_answer(estimator: Estimator, computer: Computer) -> None:
    estimator.request(request(1))
    computer.asked.get(timeout=PATIENCE_S)
    estimator.refuse(RunConfig(batch_size=1), FloodmarkError("device.no_such_index", "device cuda:3: there is none."))
    computer.go.release()
    status = estimator.wait_for(RunConfig(batch_size=1), timeout_s=PATIENCE_S)
    assert (status.state, status.error_code) == (EstimateState.FAILED, "device.no_such_index")
    estimator.request(request(2))
    computer.go.release()
    assert estimator.wait_for(RunConfig(batch_size=2), timeout_s=PATIENCE_S).state is EstimateState.READY


def test_stop_during_work_waits_for_it_only_so_long(computer: Computer) -> None:
    estimator = Estimator(computer)
    estimator.request(request(1, with_levers=True))
    computer.asked.get(timeout=PATIENCE_S)
    assert not estimator.stop(0.01)
    computer.go.release()
    assert estimator.stop(PATIENCE_S)
    assert estimator.status.get().state is EstimateState.WORKING  # nobody is told any more
    estimator.request(request(2))
    assert computer.asked.empty()
    assert Estimator(computer).stop()


CHILD = """
import threading
from desktop_app.services.estimator import EstimateRequest, Estimator
from desktop_app.training.config import RunConfig
from services.doubles import make_card
begun = threading.Event()

def compute(*_):
    begun.set()
    threading.Event().wait(0.3)
    print("traced", flush=True)
    raise ValueError

estimator = Estimator(compute)
estimator.request(EstimateRequest(RunConfig(), make_card(), 0))
begun.wait(10)
estimator.stop(0.0)
print("leaving", flush=True)
"""


def test_the_process_waits_for_a_trace_when_it_ends() -> None:
    """A thread inside torch while the interpreter ends takes the process down."""
    tests = Path(__file__).parents[1]
    done = subprocess.run(
        [sys.executable, "-c", CHILD],
        env={**os.environ, "PYTHONPATH": str(tests)},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert (done.returncode, done.stdout.split()) == (0, ["leaving", "traced"])
