"""Alerts: kept in order, announced once for each severity, acted upon by the user's rule."""

from __future__ import annotations

from dataclasses import replace

import pytest

from desktop_app.core.events import EventKind, EventQueue, Level
from desktop_app.core.forecasts import AlertSeverity, Cause
from desktop_app.services.alert_desk import AlertDesk, Rule

from .doubles import make_alert


class Asked:
    """What a rule asked of the trainer, in order."""

    def __init__(self) -> None:
        self.calls: list[str] = []

    def rule(self, on_alert: str, *, on_oom: str = "end") -> Rule:
        return Rule(
            on_alert=on_alert,
            on_oom=on_oom,
            pause=lambda: self.calls.append("pause"),
            save_checkpoint=lambda: self.calls.append("save"),
            shrink=lambda part: self.calls.append(f"shrink {part}"),
            stop=lambda: self.calls.append("stop"),
        )


@pytest.fixture
def events() -> EventQueue:
    return EventQueue()


@pytest.mark.parametrize(
    ("on_alert", "calls"),
    [
        ("notify", []),
        ("pause", ["pause"]),
        ("save", ["save"]),
        ("save_and_pause", ["save", "pause"]),
        ("stop", ["stop"]),
        ("shrink", ["save", "shrink training"]),  # a leak goes on
    ],
)
def test_a_rule_does_what_it_says(events: EventQueue, on_alert: str, calls: list[str]) -> None:
    desk, asked = AlertDesk(events), Asked()
    desk.begin_run(asked.rule(on_alert))
    desk.on_alert(make_alert(severity=AlertSeverity.WATCH))
    assert asked.calls == []
    desk.on_alert(make_alert())
    assert asked.calls == calls
    said = [event for event in events.since(0)[0] if event.kind is EventKind.CHANGE]
    assert [(event.code, event.params) for event in said] == (
        [(f"rule.{on_alert}", {"cause": "leak", "alert_id": 1, "step": 30})] if calls else []
    )


@pytest.mark.parametrize(
    ("cause", "calls"),
    [
        (Cause.BATCH_SHAPE, ["shrink training"]),
        (Cause.NEIGHBOUR, ["shrink training"]),
        (Cause.SPILL, ["shrink training"]),
        (Cause.VALIDATION, ["shrink validation"]),
        (Cause.CHECKPOINT_SAVE, ["shrink save"]),
        (Cause.FIRST_OPTIMIZER_STEP, ["pause"]),  # as large for any batch
        (Cause.HOST_MEMORY, ["save", "pause"]),  # RAM, not the card's
    ],
)
def test_shrinking_is_what_helps_against_the_cause(events: EventQueue, cause: Cause, calls: list[str]) -> None:
    desk, asked = AlertDesk(events), Asked()
    desk.begin_run(asked.rule("shrink"))
    desk.on_alert(make_alert(cause=cause))
    assert asked.calls == calls


def test_the_rescue_is_left_the_first_update_where_it_is_allowed(events: EventQueue) -> None:
    desk, asked = AlertDesk(events), Asked()
    desk.begin_run(asked.rule("shrink", on_oom="shrink"))
    desk.on_alert(make_alert(cause=Cause.FIRST_OPTIMIZER_STEP))
    assert asked.calls == []
    assert [event.kind for event in events.since(0)[0]] == [EventKind.ALERT]


def test_a_rule_acts_once_on_an_alert_and_once_more_when_it_gets_worse(events: EventQueue) -> None:
    desk, asked = AlertDesk(events), Asked()
    desk.begin_run(asked.rule("pause"))
    for severity in (AlertSeverity.LIKELY, AlertSeverity.LIKELY, AlertSeverity.IMMINENT, AlertSeverity.LIKELY):
        desk.on_alert(make_alert(1, severity=severity))
    assert asked.calls == ["pause", "pause"]
    desk.on_alert(make_alert(2))
    assert asked.calls == ["pause"] * 3
    desk.begin_run(asked.rule("pause"))
    desk.on_alert(make_alert(1))
    assert asked.calls == ["pause"] * 4


def test_the_cause_of_an_error_is_the_most_severe_open_alert(events: EventQueue) -> None:
    desk = AlertDesk(events)
    desk.on_alert(make_alert(1, cause=Cause.FRAGMENTATION, severity=AlertSeverity.LIKELY))
    desk.on_alert(make_alert(2, cause=Cause.NEIGHBOUR, severity=AlertSeverity.LIKELY))
    desk.on_alert(make_alert(3, cause=Cause.LEAK, severity=AlertSeverity.WATCH))
    assert desk.open_cause() == "neighbour"


def test_a_watch_is_shown_and_not_announced(events: EventQueue) -> None:
    desk = AlertDesk(events)
    watch = make_alert(severity=AlertSeverity.WATCH)
    desk.on_alert(watch)
    desk.on_cleared(replace(watch, cleared_t_s=5.0))
    assert desk.alerts.get() == (replace(watch, cleared_t_s=5.0),)
    assert desk.raised() == ()
    assert events.since(0) == ((), 0)


def test_a_raise_of_severity_takes_the_place_of_the_alert_and_is_announced_again(events: EventQueue) -> None:
    desk = AlertDesk(events)
    first, other = make_alert(1), make_alert(2, step=31)
    worse = make_alert(1, severity=AlertSeverity.IMMINENT, step=40, t_s=4.0)
    for alert in (first, other, worse):
        desk.on_alert(alert)
    assert desk.alerts.get() == (other, worse)
    assert desk.raised() == (first, other, worse)
    posted, _ = events.since(0)
    assert [(e.kind, e.level, e.code, e.t_s, e.params["step"]) for e in posted] == [
        (EventKind.ALERT, Level.WARNING, "forecast.leak", 3.0, 30),
        (EventKind.ALERT, Level.WARNING, "forecast.leak", 3.0, 31),
        (EventKind.ALERT, Level.WARNING, "forecast.leak", 4.0, 40),
    ]
    assert posted[2].params["severity"] == "imminent"
    assert posted[2].params["evidence"] == {"slope_bytes_per_step": 4.0 * 1024**2}


def test_an_alert_that_is_over_stays_in_the_list_and_is_no_cause_any_more(events: EventQueue) -> None:
    desk = AlertDesk(events)
    alert = make_alert()
    desk.on_alert(alert)
    assert desk.open_cause() == "leak"
    desk.on_cleared(replace(alert, cleared_t_s=9.5))
    assert desk.open_cause() is None
    assert desk.alerts.get() == (replace(alert, cleared_t_s=9.5),)
    (_, cleared), _ = events.since(0)
    assert (cleared.kind, cleared.level, cleared.t_s) == (EventKind.ALERT_CLEARED, Level.INFO, 9.5)


def test_what_the_user_ignores_holds_no_run_up_any_more(events: EventQueue) -> None:
    desk, asked = AlertDesk(events), Asked()
    desk.begin_run(asked.rule("pause"))
    desk.on_alert(make_alert(1))
    desk.ignore(1)
    desk.on_alert(make_alert(1, severity=AlertSeverity.IMMINENT))
    assert asked.calls == ["pause"]
    desk.on_alert(make_alert(2))
    assert asked.calls == ["pause", "pause"]
    assert desk.ignored.get() == {1}


def test_a_new_run_begins_without_alerts(events: EventQueue) -> None:
    desk = AlertDesk(events)
    desk.on_alert(make_alert())
    desk.ignore(1)
    desk.begin_run(Asked().rule("notify"))
    assert (desk.alerts.get(), desk.ignored.get(), desk.raised()) == ((), frozenset(), ())
