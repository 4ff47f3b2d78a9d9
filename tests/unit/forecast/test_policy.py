"""One alert per cause, raised when it is true, cleared when it is over, never flapping."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import given, settings
from hypothesis import strategies as st

from desktop_app.core.forecasts import AlertSeverity, Cause
from desktop_app.forecast.outlook import Outlook, StepsToGo
from desktop_app.forecast.policy import CLEAR_AFTER_S, CLEAR_AFTER_STEPS, Changes, Policy

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


def outlooks_of(cause: Cause, p_run: float) -> dict[Cause, Outlook]:
    return {cause: replace(leak(p_run)[Cause.LEAK], cause=cause)}


def test_a_superseded_alert_is_over_at_once_and_leaves_no_distrust() -> None:
    policy = Policy()
    feed(policy, [0.7, 0.7])
    changes = policy.update(3.0, 3, {}, 0.5, superseded={Cause.LEAK})
    assert [alert.cleared_t_s for alert in changes.cleared] == [3.0]
    assert policy.open_alerts == ()
    again = [policy.update(4.0 + i, 4 + i, leak(0.7), 0.5) for i in range(2)]
    assert [len(change.raised) for change in again] == [0, 1]


def test_surroundings_are_no_second_step() -> None:
    policy = Policy()
    policy.update(1.0, 1, leak(0.7), 0.5)
    assert policy.update(2.0, 1, leak(0.7), 0.5, of_surroundings=True) == Changes()
    assert len(policy.update(3.0, 2, leak(0.7), 0.5).raised) == 1


def test_a_second_look_at_the_same_neighbour_is_no_second_sample() -> None:
    policy, neighbour = Policy(), outlooks_of(Cause.NEIGHBOUR, 0.7)
    assert policy.update(1.0, 1, neighbour, 0.05, of_surroundings=True) == Changes()
    assert policy.update(1.05, 2, neighbour, 0.05) == Changes()
    assert len(policy.update(2.0, 3, neighbour, 0.05, of_surroundings=True).raised) == 1


def test_a_neighbour_that_left_is_cleared_while_no_step_ends() -> None:
    policy, neighbour = Policy(), outlooks_of(Cause.NEIGHBOUR, 0.7)
    for second in range(2):
        policy.update(float(second), 7, neighbour, None, of_surroundings=True)
    gone = [policy.update(2.0 + second, 7, {}, None, of_surroundings=True) for second in range(40)]
    assert sum(len(change.cleared) for change in gone) == 1
    assert gone[int(CLEAR_AFTER_S)].cleared != ()
