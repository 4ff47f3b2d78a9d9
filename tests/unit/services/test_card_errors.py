"""Pushed errors as events: the first at once, a storm as a few, nothing lost from the counts."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from desktop_app.core.events import Event, EventKind, Level
from desktop_app.core.telemetry import CardError
from desktop_app.services.card_errors import CardErrorDesk


def play(errors: list[CardError], *, until_s: float) -> list[Event]:
    """The errors as they come, and a look once a second."""
    told: list[Event] = []
    desk = CardErrorDesk(told.append)
    seconds = 0
    for error in sorted(errors, key=lambda error: error.t_s):
        while seconds < error.t_s:
            desk.settle(float(seconds))
            seconds += 1
        desk.take(error)
    while seconds <= until_s:
        desk.settle(float(seconds))
        seconds += 1
    return told


def test_the_first_is_told_at_once_with_what_is_known() -> None:
    told = play([CardError(3.2, "A", 79), CardError(3.3, "B", 79), CardError(3.4, None, 31)], until_s=4.0)
    assert [(event.t_s, event.kind, event.code, event.level) for event in told] == [
        (3.2, EventKind.XID, "telemetry.xid", Level.ERROR),
        (3.3, EventKind.XID, "telemetry.xid", Level.ERROR),
        (3.4, EventKind.XID, "telemetry.xid", Level.WARNING),
    ]
    assert told[0].params == {"uuid": "A", "xid": 79, "count": 1}
    assert told[2].params["uuid"] is None
    assert told[0].kept
    assert not told[2].kept


def test_a_storm_is_a_few_events_and_all_are_counted() -> None:
    told = play([CardError(0.001 * i, "A", 48) for i in range(5000)], until_s=60.0)
    assert [event.params["count"] for event in told] == [1, 4999]
    assert told[1].t_s == 4.999


def test_a_day_of_storm_is_told_thirty_times() -> None:
    told = play([CardError(0.5 * i, "A", 62) for i in range(2 * 86_400)], until_s=100_000.0)
    assert sum(int(str(event.params["count"])) for event in told) == 2 * 86_400
    assert len(told) < 35


def test_after_quiet_it_is_news_again() -> None:
    told = play([CardError(0.0, "A", 31), CardError(100.0, "A", 31)], until_s=200.0)
    assert [(event.t_s, event.params["count"]) for event in told] == [(0.0, 1), (100.0, 1)]


@settings(deadline=None, max_examples=50)
@given(
    st.lists(
        st.builds(
            CardError,
            t_s=st.floats(0, 300),
            uuid=st.sampled_from(["A", "B", None]),
            xid=st.sampled_from([13, 31, 79]),
        ),
        max_size=60,
    )
)
def test_none_is_lost_from_the_counts(errors: list[CardError]) -> None:
    told = play(errors, until_s=4_000.0)
    assert sum(int(str(event.params["count"])) for event in told) == len(errors)
