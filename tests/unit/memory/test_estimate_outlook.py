"""Distributions of peaks: quantiles on paper, the probability of fitting, and what grows with what."""

from __future__ import annotations

from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from desktop_app.core.forecasts import Verdict
from desktop_app.core.steps import Category, Phase
from desktop_app.core.units import MIB
from desktop_app.memory.card_limits import CUDNN_OP
from desktop_app.memory.convolutions import ConvolutionCall
from desktop_app.memory.estimate_outlook import Outlook, Unknowns, workspace_sizes
from desktop_app.memory.estimate_replay import Curves, replay_table
from desktop_app.memory.estimate_table import EventTable
from tests.unit.memory.made_traces import Script, convolution, network


@dataclass(frozen=True)
class Fixed:
    """Workspaces of one size, whatever the call."""

    probability: float
    size_bytes: int

    def bytes_for(self, call: ConvolutionCall) -> int:
        assert call.batch > 0
        return self.size_bytes


NONE = (Fixed(1.0, 0),)


def plain(size_bytes: int, *, workspace: bool = False) -> EventTable:
    """One block, and a workspace beside it."""
    script = Script()
    script.enter(Phase.FORWARD, 1)
    script.take("block", size_bytes)
    if workspace:
        script.blink(1, op=CUDNN_OP, call=convolution(1))
    return EventTable.from_events(script.events, tuple(script.convolutions))


def test_quantiles_join_context_and_workspace() -> None:
    """100 MiB, a context of 10, 20 … 100 MiB, and a workspace of 0 (80 %) or 40 MiB."""
    contexts = tuple(10 * MIB * (index + 1) for index in range(10))
    unknowns = Unknowns(contexts, (Fixed(0.8, 0), Fixed(0.2, 40 * MIB)))
    outlook = Outlook(plain(100 * MIB, workspace=True), unknowns, room_bytes=1 << 40)
    device = outlook.device()
    assert outlook.unknowns.context_bytes == 60 * MIB
    assert device.p50 == 160 * MIB  # median context, likelier workspace
    # By hand: 200 MiB and less without workspace is 0.8; with it 150 … 240 at 0.02 each. 200: 0.8 + 0.12 = 0.92.
    assert device.p90 == 200 * MIB
    assert device.p95 == 220 * MIB
    assert outlook.reserved().p50 == 100 * MIB
    assert outlook.reserved().p90 == 140 * MIB
    assert outlook.live().p95 == 140 * MIB


def test_probability_of_fitting_counts_contexts_and_workspaces() -> None:
    contexts = tuple(10 * MIB * (index + 1) for index in range(10))
    table = plain(100 * MIB, workspace=True)
    forced = Unknowns(contexts, (Fixed(0.8, 0), Fixed(0.2, 40 * MIB)))
    # cuDNN goes on without a workspace when there is no room: 100 MiB and the context decide alone.
    assert Outlook(table, forced, room_bytes=150 * MIB).fits_probability == pytest.approx(0.5)
    assert Outlook(table, forced, room_bytes=200 * MIB).fits_probability == pytest.approx(1.0)
    assert Outlook(table, forced, room_bytes=109 * MIB).fits_probability == 0.0


def returning(*, first: int, second: int) -> EventTable:
    """A block that is freed and then a larger one: the cache of the first must go back where room is scarce."""
    script = Script()
    script.enter(Phase.FORWARD, 1)
    script.take("first", first)
    script.drop("first")
    script.take("second", second)
    return EventTable.from_events(script.events)


def test_a_full_allocator_gives_its_cache_back_and_goes_on() -> None:
    table = returning(first=100 * MIB, second=200 * MIB)
    assert replay_table(table).reserved_peak_bytes == 300 * MIB
    scarce = Outlook(table, Unknowns((50 * MIB,), NONE), room_bytes=260 * MIB)
    assert scarce.fits_probability == 1.0
    assert scarce.gives_back
    assert scarce.reserved().p50 == 200 * MIB
    assert scarce.device().p50 == 250 * MIB
    assert scarce.verdict() is Verdict.FITS
    never = Outlook(table, Unknowns((50 * MIB,), NONE), room_bytes=249 * MIB)
    assert (never.fits_probability, never.verdict(), never.gives_back) == (0.0, Verdict.DOES_NOT_FIT, False)
    assert never.device().p50 == 350 * MIB  # what it asks for
    ample = Outlook(table, Unknowns((50 * MIB,), NONE), room_bytes=350 * MIB)
    assert (ample.fits_probability, ample.gives_back, ample.device().p50) == (1.0, False, 350 * MIB)


@pytest.mark.parametrize("runs", [947, 948, 949, 950, 951, 952, 953])
def test_fits_is_said_where_and_only_where_the_probability_is(runs: int) -> None:
    """Contexts of 0 … 999 MiB, a block of 200 MiB: as many of them run as the room has MiB beside the block."""
    contexts = tuple(MIB * index for index in range(1000))
    table = returning(first=100 * MIB, second=200 * MIB)
    outlook = Outlook(table, Unknowns(contexts, NONE), room_bytes=(200 + runs - 1) * MIB)
    probability = outlook.fits_probability
    assert probability == pytest.approx(runs / 1000, abs=0.002)
    assert (probability >= 0.95) == (runs >= 950)
    assert (outlook.verdict() is Verdict.FITS) == outlook.fits(risk=0.05) == (runs >= 950)
    assert outlook.fits_probability == probability
    assert (outlook.device().p95 <= outlook.room_bytes) == (runs >= 950)


def test_quantiles_stay_in_the_room_as_far_as_the_training_does() -> None:
    """Contexts of 0 … 90 MiB; the second block needs 200 MiB, the cache of the first is 100 MiB on top."""
    contexts = tuple(10 * MIB * index for index in range(10))
    outlook = Outlook(returning(first=100 * MIB, second=200 * MIB), Unknowns(contexts, NONE), room_bytes=285 * MIB)
    assert outlook.fits_probability == pytest.approx(0.9)
    device = outlook.device()
    assert device.p50 == 250 * MIB
    assert device.p90 == 285 * MIB
    assert device.p95 > 285 * MIB


def test_a_spread_widens_the_band_and_leaves_the_middle() -> None:
    table = plain(1000 * MIB)
    none = Outlook(table, Unknowns((0,), NONE), room_bytes=1 << 40).device()
    wide = Outlook(table, Unknowns((0,), NONE, spread=0.05), room_bytes=1 << 40).device()
    assert none.p50 == none.p95 == wide.p50 == 1000 * MIB
    assert wide.p90 == pytest.approx(1000 * MIB * (1 + 0.05 * 1.2816), rel=0.01)
    assert wide.p95 == pytest.approx(1000 * MIB * (1 + 0.05 * 1.6449), rel=0.015)
    half = Outlook(table, Unknowns((0,), NONE, spread=0.05), room_bytes=1000 * MIB).fits_probability
    assert half == pytest.approx(0.5, abs=0.05)
    sure = Outlook(table, Unknowns((0,), NONE, spread=0.05), room_bytes=1000 * MIB * 21 // 20).fits_probability
    assert sure == pytest.approx(0.841, abs=0.04)  # one standard deviation


def test_phases_show_what_each_needs_itself() -> None:
    table = EventTable.of(network(8))
    outlook = Outlook(table, Unknowns((7 * MIB,), NONE), room_bytes=1 << 40)
    phases = outlook.phases()
    assert phases[Phase.BUILD].device.p50 == (32 + 7) * MIB
    assert phases[Phase.BACKWARD].live.p50 == outlook.live().p50
    for peaks in phases.values():
        assert peaks.live.p50 <= peaks.reserved.p50 <= outlook.reserved().p50
        assert peaks.device.p50 == peaks.reserved.p50 + 7 * MIB
        assert peaks.device.p50 <= peaks.device.p90 <= peaks.device.p95
    assert phases[Phase.VALIDATION].reserved.p50 < phases[Phase.BACKWARD].reserved.p50


def test_workspaces_that_are_equal_are_replayed_once(monkeypatch: pytest.MonkeyPatch) -> None:
    replays: list[EventTable] = []

    def counted(table: EventTable, *args: Any, **kwargs: Any) -> Curves:
        replays.append(table)
        return replay_table(table, *args, **kwargs)

    monkeypatch.setattr("desktop_app.memory.estimate_outlook.replay_table", counted)
    unknowns = Unknowns((0,), (Fixed(0.3, 0), Fixed(0.3, MIB), Fixed(0.4, MIB)))
    assert Outlook(plain(MIB), unknowns, room_bytes=1 << 40).fits_probability == pytest.approx(1.0)
    assert len(replays) == 1  # no convolution
    assert Outlook(plain(MIB, workspace=True), unknowns, room_bytes=1 << 40).fits_probability == pytest.approx(1.0)
    assert len(replays) == 3


def test_workspaces_without_a_call_keep_their_guess() -> None:
    script = Script()
    script.enter(Phase.FORWARD, 1)
    script.blink(12345, op=CUDNN_OP)
    script.blink(1, op=CUDNN_OP, call=convolution(1))
    table = EventTable.from_events(script.events, tuple(script.convolutions))
    assert workspace_sizes(table, Fixed(1.0, 99)).tolist() == [12345, 0, 99, 0]


def test_where_more_room_hurts_search_and_probability_say_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    """An allocator that lives with 0.5 GiB and dies with some of the larger limits, as replays of real models do."""

    def replay(_: Outlook, __: object, limit_bytes: int) -> SimpleNamespace:
        limit_mib = limit_bytes // MIB
        return SimpleNamespace(out_of_memory=limit_mib < 500 or 900 <= limit_mib < 1100)

    contexts = tuple(MIB * index for index in range(1000))
    script = Script()
    script.enter(Phase.FORWARD, 1)
    for size_mib in range(100, 451, 50):  # 450 MiB live at most, 2,200 MiB reserved where nothing goes back
        script.take(f"b{size_mib}", size_mib * MIB)
        script.drop(f"b{size_mib}")
    table = EventTable.from_events(script.events)
    for room_mib in (1449, 1460, 1700, 1900):
        monkeypatch.setattr(Outlook, "_replay", replay)
        searched = Outlook(table, Unknowns(contexts, NONE), room_bytes=room_mib * MIB).fits(risk=0.05)
        told = Outlook(table, Unknowns(contexts, NONE), room_bytes=room_mib * MIB).fits_probability
        assert searched == (told >= 0.95), room_mib


@st.composite
def tables(draw: st.DrawFn) -> EventTable:
    """Some blocks that come and go in any order."""
    script = Script()
    script.enter(Phase.FORWARD, 1)
    alive: list[str] = []
    for index, drops in enumerate(draw(st.lists(st.booleans(), min_size=1, max_size=25))):
        if alive and drops:
            script.drop(alive.pop(draw(st.integers(0, len(alive) - 1))))
        else:
            script.take(f"b{index}", draw(st.integers(1, 64)) * MIB // 2, Category.ACTIVATIONS)
            alive.append(f"b{index}")
    return EventTable.from_events(script.events)


@settings(max_examples=60, deadline=None)
@given(tables(), st.integers(0, 700), st.floats(0.01, 0.5), st.sampled_from([0.0, 0.03]))
def test_deciding_is_the_same_as_computing(table: EventTable, room_mib: int, risk: float, spread: float) -> None:
    contexts = tuple(index * 3 * MIB for index in range(21))
    outlook = Outlook(table, Unknowns(contexts, NONE, spread=spread), room_bytes=room_mib * MIB)
    probability = Outlook(table, Unknowns(contexts, NONE, spread=spread), room_bytes=room_mib * MIB).fits_probability
    if abs(probability - (1.0 - risk)) > 0.005:
        assert outlook.fits(risk=risk) == (probability >= 1.0 - risk)


@settings(max_examples=60, deadline=None)
@given(tables(), st.integers(0, 400))
def test_the_probability_is_that_of_replaying_every_case(table: EventTable, room_mib: int) -> None:
    contexts = tuple(index * 5 * MIB for index in range(15))
    found = Outlook(table, Unknowns(contexts, NONE), room_bytes=room_mib * MIB).fits_probability
    runs = [not replay_table(table, limit_bytes=max(0, room_mib * MIB - context)).out_of_memory for context in contexts]
    if np.all(np.diff(np.array(runs, dtype=int)) <= 0):  # more room may hurt, once in a long while
        assert found == pytest.approx(sum(runs) / len(runs))


@settings(max_examples=40, deadline=None)
@given(tables(), st.lists(st.integers(0, 400), min_size=2, max_size=4))
def test_more_room_is_never_worse_where_every_case_fits_or_none(table: EventTable, rooms: list[int]) -> None:
    peak = replay_table(table).reserved_peak_bytes
    least = table.least_live_bytes()
    for room in (least - 1, peak, *(mib * MIB for mib in rooms)):
        found = Outlook(table, Unknowns((0,), NONE), room_bytes=max(0, room)).fits_probability
        if room >= peak:
            assert found == 1.0
        if room < least:
            assert found == 0.0
