"""One alert per cause, raised when it is true, cleared when it is over, never flapping."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from desktop_app.core.forecasts import AlertSeverity, Cause
from desktop_app.forecast.outlook import Outlook, StepsToGo
from desktop_app.forecast.policy import CLEAR_AFTER_STEPS, Changes, Policy

SEVERITY_AT = {0.0: None, 0.3: AlertSeverity.WATCH, 0.7: AlertSeverity.LIKELY, 0.95: AlertSeverity.IMMINENT}


def leak(p_run: float, *, urgent: bool = False) -> dict[Cause, Outlook]:
    outlook = Outlook(
        cause=Cause.LEAK,
        severity=SEVERITY_AT[p_run],
        p_within={1: 0.0, 10: 0.0, 100: p_run},
        p_run=p_run,
        to_go=StepsToGo(100.0, 0.1),
        urgent=urgent,
    )
    return {Cause.LEAK: outlook}


def feed(policy: Policy, chances: list[float]) -> list[Changes]:
    return [policy.update(float(number), number, leak(p), 0.5) for number, p in enumerate(chances, start=1)]


def test_watch_is_no_alert() -> None:
    assert all(change == Changes() for change in feed(Policy(), [0.3] * 20))


def test_second_call_in_a_row_raises() -> None:
    changes = feed(Policy(), [0.7, 0.3, 0.7, 0.7, 0.7])
    assert [len(change.raised) for change in changes] == [0, 0, 0, 1, 0]
    (alert,) = changes[3].raised
    assert (alert.alert_id, alert.step, alert.eta_steps, alert.eta_s) == (1, 4, 100.0, 50.0)


def test_urgent_needs_no_second_call() -> None:
    assert len(Policy().update(0.0, 1, leak(0.7, urgent=True), None).raised) == 1


def test_severity_only_rises_and_keeps_the_number() -> None:
    changes = feed(Policy(), [0.7, 0.7, 0.95, 0.95, 0.7, 0.7, 0.95, 0.95])
    raised = [alert for change in changes for alert in change.raised]
    assert [(alert.alert_id, alert.severity) for alert in raised] == [
        (1, AlertSeverity.LIKELY),
        (1, AlertSeverity.IMMINENT),
    ]


def test_cleared_after_it_has_been_quiet_long_enough() -> None:
    policy = Policy()
    changes = feed(policy, [0.7, 0.7] + [0.0] * (CLEAR_AFTER_STEPS + 1))
    cleared = [alert for change in changes for alert in change.cleared]
    assert [alert.cleared_t_s for alert in cleared] == [3.0 + CLEAR_AFTER_STEPS]
    assert policy.open_alerts == ()


def test_hovering_keeps_it_open() -> None:
    policy = Policy()
    changes = feed(policy, [0.7, 0.7] + [0.0, 0.3] * 100)
    assert not any(change.cleared for change in changes)
    assert len(policy.open_alerts) == 1


def test_next_alert_has_a_new_number_and_takes_longer() -> None:
    quiet = [0.0] * (CLEAR_AFTER_STEPS + 1)
    changes = feed(Policy(), [0.7, 0.7, *quiet, 0.7, 0.7, 0.7, 0.7])
    raised = [(number, alert.alert_id) for number, change in enumerate(changes, 1) for alert in change.raised]
    assert raised == [(2, 1), (47, 2)]  # the fourth call, not the second


@settings(deadline=None)
@given(st.lists(st.sampled_from(sorted(SEVERITY_AT)), max_size=400))
def test_alerts_and_their_ends_take_turns(chances: list[float]) -> None:
    is_open = False
    severity = None
    ends = 0
    for change in feed(Policy(), chances):
        for alert in change.raised:
            assert alert.severity is not AlertSeverity.WATCH
            assert not is_open or severity is AlertSeverity.LIKELY  # the only raise within one alert
            is_open, severity = True, alert.severity
        for _ in change.cleared:
            assert is_open
            is_open = False
            ends += 1
    assert ends <= len(chances) / CLEAR_AFTER_STEPS
