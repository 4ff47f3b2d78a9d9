"""Micro-steps that leave something anew meet less room each time; gradients summed in place do not."""

from __future__ import annotations

import pytest

from desktop_app.core.forecasts import Cause
from desktop_app.core.units import GIB
from desktop_app.forecast.micro_steps import MicroSteps
from desktop_app.forecast.trace_replay import TraceReplay
from desktop_app.forecast.trace_rows import TraceRow


def takes(lives: list[int], *, step: int = 1, watch: MicroSteps | None = None) -> list[float | None]:
    watch = watch or MicroSteps()
    return [watch.take(step=step, done=done, live_bytes=live) for done, live in enumerate(lives)]


def test_gradients_summed_in_place_are_nothing_new() -> None:
    assert takes([240, 320, 320, 320, 325]) == [None] * 5  # an output more than before is within a tenth


def test_each_leaves_gradients_of_its_own() -> None:
    """The next one ends 8 above where this one began, and a step of one micro-step has had its 8 too."""
    assert takes([24, 32, 40, 48, 56]) == [None, None, 16, 24, 32]


def test_what_a_whole_step_has_borne_is_no_news() -> None:
    watch = MicroSteps()
    takes([24, 32, 40], step=1, watch=watch)
    assert takes([24, 32, 40, 48], step=2, watch=watch) == [None, None, None, 24]
    assert takes([24, 32, 40], step=2, watch=watch) == [None, None, None]  # the same step again, after a rescue


def test_where_some_are_not_told_nothing_is_said() -> None:
    watch = MicroSteps()
    assert [watch.take(step=1, done=done, live_bytes=live) for done, live in ((0, 24), (2, 40), (3, 48))] == [None] * 3


@pytest.mark.parametrize(("anew", "warned_at"), [(8, 4), (0, None)])
def test_the_micro_step_without_room_is_alerted_before_it_begins(anew: int, warned_at: int | None) -> None:
    """Steps of 24 GiB with 12 more at their peak on a card of 64: with 56 live the next 12 do not fit."""
    run = TraceReplay()
    for step in range(1, 41):
        figures = {"live_after_bytes": 24 * GIB, "live_peak_bytes": 36 * GIB, "reserved_peak_bytes": 36 * GIB}
        row = TraceRow(t_s=0.2 * step, step=step, phase="train", capacity_bytes=64 * GIB, batch_samples=8, **figures)
        assert not run.take(row).changes.raised
    alerts = []
    for done in range(5):
        live = 24 + (8 if done else 0) + anew * max(done - 1, 0)
        row = TraceRow(
            t_s=8.2 + 0.2 * done, step=41, phase="forward", live_after_bytes=live * GIB, capacity_bytes=64 * GIB,
            batch_samples=8, event=f"phase_begin; progress:done={done},count=6",
        )  # fmt: skip
        alerts += [(done, alert.cause) for alert in run.take(row).changes.raised]
    assert alerts == ([] if warned_at is None else [(warned_at, Cause.BATCH_SHAPE)])
