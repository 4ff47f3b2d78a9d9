"""Which states follow which, and how the program ends whatever its parts do."""

from __future__ import annotations

import itertools
import logging
import threading

import pytest

from desktop_app.core.lifecycle import TRANSITIONS, ClosingStages, RunMachine, StageOutcome
from desktop_app.core.steps import RunState

WAIT_S = 30.0
SOON_S = 0.05


def at(state: RunState) -> RunMachine:
    return RunMachine(state)


@pytest.mark.parametrize(
    "path",
    [
        "preparing running finished preparing running",
        "preparing running pausing paused running stopping stopped idle",
        "preparing running pausing finished idle",
        "preparing running pausing running out_of_memory preparing",
        "preparing running paused stopping finished",
        "preparing pausing paused running stopped",
        "preparing failed preparing stopping failed",
        "preparing stopped",
    ],
)
def test_lives_of_a_run(path: str) -> None:
    machine = RunMachine()
    for state in path.split():
        machine.to(RunState(state))
        assert machine.state == RunState(state)


@pytest.mark.parametrize(
    ("state", "wrong"),
    [
        ("idle", "running"),
        ("idle", "finished"),
        ("preparing", "finished"),
        ("preparing", "paused"),
        ("running", "idle"),
        ("running", "running"),
        ("paused", "finished"),
        ("stopping", "running"),
        ("stopping", "paused"),
        ("finished", "running"),
        ("out_of_memory", "stopped"),
    ],
)
def test_what_may_not_follow_changes_nothing(state: str, wrong: str) -> None:
    machine = at(RunState(state))
    with pytest.raises(ValueError, match=f"a run cannot go from {state} to {wrong}"):
        machine.to(RunState(wrong))
    assert not machine.attempt(RunState(wrong))
    assert machine.state == RunState(state)


def test_every_state_can_be_left_and_reached() -> None:
    assert set(TRANSITIONS) == set(RunState)
    assert all(TRANSITIONS.values())
    assert set(itertools.chain.from_iterable(TRANSITIONS.values())) == set(RunState)


def test_a_run_can_fail_exactly_while_it_is_active() -> None:
    can_fail = {state for state, following in TRANSITIONS.items() if RunState.FAILED in following}
    assert can_fail == {state for state in RunState if state.active}


def test_of_two_ends_at_once_one_wins() -> None:
    machine, started = at(RunState.STOPPING), threading.Barrier(2)
    won: list[RunState] = []

    def end(state: RunState) -> None:
        started.wait(WAIT_S)
        if machine.attempt(state):
            won.append(state)

    threads = [
        threading.Thread(target=end, args=(state,), daemon=True) for state in (RunState.STOPPED, RunState.FINISHED)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(WAIT_S)
    assert won == [machine.state]


def test_stages_close_in_reverse_and_once() -> None:
    stages, closed = ClosingStages(), []
    for name in ("store", "recorder", "window"):
        stages.register(name, lambda name=name: closed.append(name), timeout_s=WAIT_S)
    results = stages.close_all()
    assert closed == ["window", "recorder", "store"]
    assert [result.name for result in results] == closed
    assert {result.outcome for result in results} == {StageOutcome.DONE}
    assert stages.close_all() == results
    assert closed == ["window", "recorder", "store"]


def test_an_error_and_a_hang_do_not_keep_the_others_open(caplog: pytest.LogCaptureFixture) -> None:
    stages, closed, release = ClosingStages(), [], threading.Event()

    def fail() -> None:
        raise OSError("no space left")

    stages.register("first", lambda: closed.append("first"), timeout_s=WAIT_S)
    stages.register("disk", fail, timeout_s=WAIT_S)
    stages.register("driver", lambda: release.wait(WAIT_S), timeout_s=SOON_S)
    stages.register("here", fail, timeout_s=None)
    with caplog.at_level(logging.ERROR):
        results = stages.close_all()
    release.set()
    assert closed == ["first"]
    assert [(result.name, result.outcome, result.error) for result in results] == [
        ("here", StageOutcome.FAILED, "OSError: no space left"),
        ("driver", StageOutcome.TIMED_OUT, None),
        ("disk", StageOutcome.FAILED, "OSError: no space left"),
        ("first", StageOutcome.DONE, None),
    ]
    assert [record.message for record in caplog.records] == [
        "here did not close cleanly",
        "driver did not close within 0.1 s and is left behind",
        "disk did not close cleanly",
    ]


def test_a_stage_without_timeout_closes_in_the_calling_thread() -> None:
    stages, threads = ClosingStages(), []
    stages.register("window", lambda: threads.append(threading.current_thread()), timeout_s=None)
    stages.register("sampler", lambda: threads.append(threading.current_thread()), timeout_s=WAIT_S)
    stages.close_all()
    assert threads[1] is threading.current_thread()
    assert threads[0] is not threads[1]


def test_closing_from_within_a_stage_returns_at_once() -> None:
    stages, inner = ClosingStages(), []
    stages.register("store", lambda: None, timeout_s=WAIT_S)
    stages.register("signal", lambda: inner.append(stages.close_all()), timeout_s=None)
    results = stages.close_all()
    assert [result.name for result in results] == ["store", "signal"]
    assert [result.name for result in inner[0]] == ["store"]


def test_what_is_registered_while_closing_is_closed_too() -> None:
    stages, closed = ClosingStages(), []

    def close_and_register() -> None:
        closed.append("early")
        stages.register("late", lambda: closed.append("late"), timeout_s=WAIT_S)

    stages.register("early", close_and_register, timeout_s=WAIT_S)
    stages.close_all()
    stages.register("after", lambda: closed.append("after"), timeout_s=WAIT_S)
    assert [result.name for result in stages.close_all()] == ["early", "late", "after"]
    assert closed == ["early", "late", "after"]


@pytest.mark.parametrize("timeout_s", [0, -1.0])
def test_a_timeout_is_a_time(timeout_s: float) -> None:
    with pytest.raises(ValueError, match="above 0 or None"):
        ClosingStages().register("x", lambda: None, timeout_s=timeout_s)
