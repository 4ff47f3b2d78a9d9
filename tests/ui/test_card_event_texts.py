"""The words for pushed errors, and for processes that are ended."""

from __future__ import annotations

import pytest

from desktop_app.core.events import Event, EventKind, Level
from desktop_app.core.telemetry import Reason
from desktop_app.ui.charts import texts
from desktop_app.ui.gpu.field_groups import XID
from desktop_app.ui.gpu.field_rows import CardNews, rows_of
from desktop_app.ui.texts import xid
from tests.unit.services.doubles import make_card

# The numbers that a training meets, by NVIDIA's catalogue.
WELL_KNOWN = (13, 31, 43, 45, 48, 61, 62, 63, 64, 74, 79, 94, 95, 119, 120)


@pytest.mark.parametrize("number", WELL_KNOWN)
def test_a_well_known_number_has_a_name_a_meaning_and_an_advice(number: int) -> None:
    assert xid.short({"xid": number}).startswith(f"Xid {number}: ")
    meaning, advice = xid.explained({"xid": number}).split("\n")
    assert meaning.endswith(".")
    assert advice.endswith(".")


def test_every_name_has_a_meaning() -> None:
    assert xid._MEANINGS.keys() == xid.KNOWN


def test_an_unknown_number_is_said_as_it_is() -> None:
    assert xid.short({"xid": 151}) == "Xid 151"
    assert xid.short({}) == "Xid ?"
    assert "catalogue" in xid.explained({"xid": 151})


def test_the_lane_names_it_and_counts_it() -> None:
    storm = Event(3.0, EventKind.XID, Level.ERROR, "telemetry.xid", {"uuid": "A", "xid": 79, "count": 4999})
    assert texts.event(storm) == "Xid 79: the GPU has fallen off the bus (4,999 times)"
    first, meaning, advice = texts.event_details(storm, "14:32:08").split("\n")
    assert first == "14:32:08  Xid 79: the GPU has fallen off the bus (4,999 times)"
    assert "reach the card" in meaning
    assert "Restart" in advice


@pytest.mark.parametrize(
    ("kind", "code", "words"),
    [
        (EventKind.CHANGE, "process.asked", "process told to end"),
        (EventKind.CHANGE, "process.still_there", "process has not ended"),
        (EventKind.ERROR, "process.no_permission", "process not ended"),
        (EventKind.ERROR, "run.failed", "failed"),
    ],
)
def test_the_lane_says_what_came_of_ending_a_process(kind: EventKind, code: str, words: str) -> None:
    assert texts.event(Event(3.0, kind, Level.INFO, code)) == words


@pytest.mark.parametrize(
    ("facts", "xids", "value", "tone"),
    [
        ({}, [], "none", ""),
        ({"reasons": {"xid_events": Reason.NOT_SUPPORTED}}, [], "n/a", ""),
        ({"simulated": True}, [], "n/a", ""),
        ({}, [(31, Level.WARNING)], "31", "warn"),
        ({}, [(31, Level.WARNING), (79, Level.ERROR)], "79, 31", "danger"),
    ],
)
def test_the_gpu_page_says_none_only_where_errors_are_heard(
    facts: dict[str, object], xids: list[tuple[int, Level]], value: str, tone: str
) -> None:
    card = make_card(**{"simulated": False, **facts})  # type: ignore[arg-type]
    events = [Event(1.0, EventKind.XID, level, "telemetry.xid", {"xid": number}) for number, level in xids]
    row = next(row for row in rows_of(CardNews(card, {}, {}, events)) if row.key == XID)
    assert (row.value.split(" · ")[0], row.tone, row.there) == (value, tone, not value.startswith("n/a"))
