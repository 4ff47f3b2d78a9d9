"""One thing, one cause: what another explains says nothing more."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import pytest

from desktop_app.core.forecasts import ACTIONS, AlertSeverity, Cause
from desktop_app.forecast.attribution import attribute
from desktop_app.forecast.outlook import Outlook, StepsToGo

LIKELY, WATCH = AlertSeverity.LIKELY, AlertSeverity.WATCH
LIVE = {"slope_bytes_per_step": 10.0, "reserved_slope_bytes_per_step": 12.0}
HOLES = {"slope_bytes_per_step": 1.0, "reserved_slope_bytes_per_step": 12.0}


def outlook(
    cause: Cause, severity: AlertSeverity | None = LIKELY, evidence: Mapping[str, float] | None = None
) -> Outlook:
    return Outlook(
        cause=cause,
        severity=severity,
        p_within={1: 0.0, 10: 0.1, 100: 0.5},
        p_run=0.8,
        to_go=StepsToGo(100.0, 0.1),
        evidence=evidence or {},
    )


def left(*outlooks: Outlook, pace_s: float | None = None) -> set[Cause]:
    return set(attribute({one.cause: one for one in outlooks}, pace_s=pace_s).outlooks)


def test_one_cause_alone_is_what_it_is() -> None:
    alone = outlook(Cause.LEAK, evidence=LIVE)
    found = attribute({Cause.LEAK: alone})
    assert found.outlooks == {Cause.LEAK: alone}
    assert found.superseded == frozenset()


@pytest.mark.parametrize(
    ("loser", "winner"),
    [
        (outlook(Cause.FRAGMENTATION), outlook(Cause.LEAK, evidence=LIVE)),
        (outlook(Cause.LEAK, evidence=HOLES), outlook(Cause.FRAGMENTATION)),
        (outlook(Cause.LEAK), outlook(Cause.BATCH_SHAPE, evidence={"explained_share": 0.9})),
        (outlook(Cause.LEAK), outlook(Cause.RESUME)),
        (outlook(Cause.FRAGMENTATION), outlook(Cause.CHECKPOINT_SAVE, evidence={**LIVE, "saves_to_go": 3.0})),
        (outlook(Cause.FRAGMENTATION), outlook(Cause.VALIDATION, evidence={**LIVE, "validations_to_go": 3.0})),
        (outlook(Cause.HOST_MEMORY), outlook(Cause.SPILL)),
    ],
)
def test_what_another_explains_is_quiet(loser: Outlook, winner: Outlook) -> None:
    assert left(loser, winner) == {winner.cause}


@pytest.mark.parametrize("winner", [Cause.FRAGMENTATION, Cause.RESUME])
def test_a_watch_explains_nothing_away_unless_its_alert_is_out(winner: Cause) -> None:
    leak, other = outlook(Cause.LEAK, evidence=HOLES), outlook(winner, WATCH)
    assert left(leak, other) == {Cause.LEAK, winner}
    settled = attribute({Cause.LEAK: leak, winner: other}, open_causes=[winner])
    assert set(settled.outlooks) == {winner}
    assert settled.superseded == {Cause.LEAK}


def test_a_leak_that_has_only_begun_keeps_fragmentation_waiting() -> None:
    """What is reserved grows before the line of what is live is proven; later a mere watch explains nothing."""
    holes = outlook(Cause.FRAGMENTATION)
    assert left(outlook(Cause.LEAK, WATCH, {**LIVE, "grown_steps": 20.0}), holes) == {Cause.LEAK}
    assert left(outlook(Cause.LEAK, WATCH, {**LIVE, "grown_steps": 200.0}), holes) == {Cause.LEAK, Cause.FRAGMENTATION}
    assert left(outlook(Cause.LEAK, None, {**LIVE, "grown_steps": 20.0}), holes) == {Cause.LEAK, Cause.FRAGMENTATION}


@pytest.mark.parametrize("call", [Cause.VALIDATION, Cause.CHECKPOINT_SAVE])
def test_a_call_that_a_leak_does_not_reach_is_no_cause(call: Cause) -> None:
    """Sooner than the leak's end it is; and a leak that is only watched explains nothing."""
    leak = outlook(Cause.LEAK, evidence={**LIVE, "grown_steps": 20.0})  # 100 steps to go
    sooner, later = (replace(outlook(call), to_go=StepsToGo(steps, 0.0)) for steps in (99.0, 101.0))
    assert left(leak, later) == {Cause.LEAK}
    assert left(leak, sooner) == {Cause.LEAK, call}
    assert left(replace(leak, severity=WATCH), later) == {Cause.LEAK, call}


def test_a_batch_that_explains_little_is_another_matter() -> None:
    batches = outlook(Cause.BATCH_SHAPE, evidence={"explained_share": 0.2})
    assert left(outlook(Cause.LEAK, evidence=LIVE), batches) == {Cause.LEAK, Cause.BATCH_SHAPE}


@pytest.mark.parametrize(
    ("figure", "cause"), [("saves_to_go", Cause.CHECKPOINT_SAVE), ("validations_to_go", Cause.VALIDATION)]
)
@pytest.mark.parametrize("known", [None, WATCH, LIKELY])
def test_stairs_that_come_with_an_event_are_told_under_its_cause(
    figure: str, cause: Cause, known: AlertSeverity | None
) -> None:
    leak = outlook(Cause.LEAK, evidence={**LIVE, figure: 4.0})
    own = outlook(cause, known, evidence={"kept_bytes": 7.0})
    settled = attribute({Cause.LEAK: leak} | ({cause: own} if known else {}))
    assert set(settled.outlooks) == {cause}
    assert settled.superseded == {Cause.LEAK}
    told = settled.outlooks[cause]
    assert told is own if known is LIKELY else told.evidence == leak.evidence
    assert told.action in ACTIONS


def test_the_larger_growth_is_the_cause() -> None:
    """1 MiB/s of a neighbour beside 2 MiB a step at 10 steps/s; and the other way round."""
    leak = outlook(Cause.LEAK, evidence={"slope_bytes_per_step": 2.0})
    slow, fast = (outlook(Cause.NEIGHBOUR, evidence={"slope_bytes_per_s": speed}) for speed in (1.0, 100.0))
    alike = outlook(Cause.NEIGHBOUR, evidence={"slope_bytes_per_s": 15.0})
    assert left(leak, slow, pace_s=0.1) == {Cause.LEAK}
    assert left(leak, fast, pace_s=0.1) == {Cause.NEIGHBOUR}
    assert left(leak, alike, pace_s=0.1) == {Cause.LEAK, Cause.NEIGHBOUR}
    assert left(leak, fast) == {Cause.LEAK, Cause.NEIGHBOUR}  # seconds and steps cannot be compared


def test_a_growth_that_is_only_watched_silences_none() -> None:
    leak = outlook(Cause.LEAK, evidence={"slope_bytes_per_step": 2.0})
    watched = outlook(Cause.NEIGHBOUR, WATCH, evidence={"slope_bytes_per_s": 100.0})
    assert left(leak, watched, pace_s=0.1) == {Cause.LEAK, Cause.NEIGHBOUR}


def test_a_leak_that_only_begins_takes_no_alert_back() -> None:
    begun = outlook(Cause.LEAK, WATCH, {**LIVE, "grown_steps": 12.0})
    pieces = outlook(Cause.FRAGMENTATION)
    both = {Cause.LEAK: begun, Cause.FRAGMENTATION: pieces}
    assert set(attribute(both).outlooks) == {Cause.LEAK}
    found = attribute(both, open_causes=[Cause.FRAGMENTATION])
    assert Cause.FRAGMENTATION in found.outlooks
    assert Cause.FRAGMENTATION not in found.superseded


# A leak of 1 beside holes of 30: 0.03 of the growth is live.
BESIDE_HOLES = {"slope_bytes_per_step": 1.0, "reserved_slope_bytes_per_step": 0.0}


def beside(*, significance: float, steps: float) -> Outlook:
    return outlook(Cause.LEAK, evidence={**BESIDE_HOLES, "significance": significance, "grown_steps": steps})


def holes(steps: float) -> Outlook:
    return outlook(Cause.FRAGMENTATION, evidence={"slope_bytes_per_step": 30.0, "grown_steps": steps})


@pytest.mark.parametrize(
    ("leak", "since", "cause"),
    [
        (beside(significance=20.0, steps=100.0), 100.0, Cause.LEAK),
        (beside(significance=5.0, steps=100.0), 100.0, Cause.FRAGMENTATION),  # what is live wanders
        (beside(significance=5.0, steps=100.0), 10.0, Cause.LEAK),  # it was there long before the holes were
        (beside(significance=20.0, steps=12.0), 100.0, Cause.FRAGMENTATION),  # a few samples in line
    ],
)
def test_a_leak_beyond_doubt_is_not_hidden_by_holes_that_come_in_a_rush(
    leak: Outlook, since: float, cause: Cause
) -> None:
    assert left(leak, holes(since)) == {cause}


def test_what_has_only_begun_does_not_explain_holes_that_have_grown_for_long() -> None:
    """Half of the growth is live, for 12 steps of 100."""
    young = outlook(Cause.LEAK, evidence={**BESIDE_HOLES, "slope_bytes_per_step": 30.0, "grown_steps": 12.0})
    assert left(young, holes(100.0)) == {Cause.FRAGMENTATION}
    assert left(young, holes(20.0)) == {Cause.LEAK}


def test_a_leak_that_has_been_told_stays_until_it_is_over() -> None:
    """Its stairs are made out anew, over 12 steps; an alert about the holes is out as well."""
    anew = beside(significance=5.0, steps=12.0)
    told = {Cause.LEAK, Cause.FRAGMENTATION}
    found = {Cause.LEAK: anew, Cause.FRAGMENTATION: holes(100.0)}
    assert Cause.LEAK in attribute(found, open_causes=told).outlooks
    found[Cause.LEAK] = replace(anew, severity=WATCH, p_run=0.25)
    assert Cause.LEAK in attribute(found, open_causes=told).outlooks
    found[Cause.LEAK] = replace(anew, severity=WATCH, p_run=0.15)
    assert Cause.LEAK not in attribute(found, open_causes=told).outlooks
