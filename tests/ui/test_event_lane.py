"""The lane: marks where things happened, words that never overlap, ticks that can be counted."""

from __future__ import annotations

import itertools
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st
from PySide6.QtCore import QPointF
from PySide6.QtWidgets import QToolTip, QWidget

from desktop_app.core.events import Event, EventKind, Level
from desktop_app.ui.charts import texts
from desktop_app.ui.charts.chart_stack import ChartStack
from desktop_app.ui.charts.event_lane import mark_shape, mark_token, place_marks, thinned
from desktop_app.ui.theme import DARK
from tests.ui.fake_data import FakeState
from tests.ui.fake_workspace import FakeWorkspace

# The offscreen platform has no window manager to tell; it says so at every window.
pytestmark = pytest.mark.qt_log_ignore("This plugin does not support propagateSizeHints")

LINE = 13.0
KINDS = [kind for kind in EventKind if kind not in {EventKind.EPOCH, EventKind.VALIDATION}]


def event(t_s: float, kind: EventKind, level: Level = Level.INFO, seq: int = 1, **params: object) -> Event:
    return Event(t_s=t_s, kind=kind, level=level, code="test", params=params, seq=seq)


def place(events: list[Event], width: float = 700.0) -> list[tuple[float, str, tuple[float, float] | None]]:
    marks = place_marks(
        events,
        x_of=lambda t_s: t_s,
        room=(0.0, width),
        blocked=-100.0,
        width_of=lambda text: 6.5 * len(text),
        line=LINE,
    )
    return [(mark.x, mark.text, (mark.label.left(), mark.label.right()) if mark.label else None) for mark in marks]


def test_a_word_stands_right_of_its_mark() -> None:
    ((x, text, span),) = place([event(100.0, EventKind.CHECKPOINT)])
    assert (x, text) == (100.0, "checkpoint")
    assert span is not None
    assert span[0] > 100.0


def test_at_the_right_edge_it_stands_left() -> None:
    ((_, _, span),) = place([event(690.0, EventKind.CHECKPOINT)])
    assert span is not None
    assert span[1] < 690.0


def test_no_word_crosses_the_line_of_now() -> None:
    marks = place_marks(
        [event(400.0, EventKind.CHECKPOINT)],
        x_of=lambda t_s: t_s,
        room=(0.0, 700.0),
        blocked=430.0,
        width_of=lambda text: 6.5 * len(text),
        line=LINE,
    )
    assert marks[0].label is not None
    assert marks[0].label.right() < 400.0


def test_the_loudest_keeps_its_word_where_there_is_room_for_one() -> None:
    quiet = [event(300.0 + 9 * index, EventKind.CHECKPOINT, seq=index + 1) for index in range(8)]
    loud = event(336.0, EventKind.OOM, Level.ERROR, seq=99)
    words = {text for _, text, span in place([*quiet, loud]) if span is not None}
    assert words <= {"checkpoint", "out of memory"}
    placed = dict.fromkeys(text for _, text, span in place([event(336.0, EventKind.CHECKPOINT, seq=1), loud]) if span)
    assert "out of memory" in placed


@given(
    st.lists(
        st.tuples(st.floats(0, 700), st.sampled_from(KINDS), st.sampled_from(list(Level))), min_size=1, max_size=40
    )
)
def test_words_never_overlap_and_never_leave_the_lane(entries: list[tuple[float, EventKind, Level]]) -> None:
    events = [event(t_s, kind, level, seq=index) for index, (t_s, kind, level) in enumerate(sorted(entries))]
    placed = place(events)
    assert 1 <= len(placed) <= len(events)
    spans = sorted(span for _, _, span in placed if span is not None)
    assert all(start >= 0 and end <= 700 for start, end in spans)
    assert all(a[1] <= b[0] for a, b in itertools.pairwise(spans))
    for x, _, _ in placed:
        assert not any(start < x < end for start, end in spans)


def test_thousands_of_events_are_as_many_marks_as_there_is_room_for() -> None:
    events = [event(0.1 * index, EventKind.CHECKPOINT, seq=index) for index in range(7000)]
    events[3500] = event(350.0, EventKind.OOM, Level.ERROR, seq=3500)
    placed = place(events)
    assert len(placed) <= 700 / (0.5 * LINE) + 1
    assert "out of memory" in {text for _, text, _ in placed}


@pytest.mark.parametrize(("count", "least", "kept"), [(10, 5.0, 10), (100, 10.0, 20), (1000, 10.0, 20), (1, 5.0, 1)])
def test_dense_ticks_are_thinned_to_round_numbers(count: int, least: float, kept: int) -> None:
    positions = [index * 300.0 / count for index in range(count)]
    assert len(thinned(positions, least)) == kept


def test_shape_and_colour_say_the_level_each_on_its_own() -> None:
    kinds = [
        event(0, EventKind.CHECKPOINT),
        event(0, EventKind.THROTTLE, Level.WARNING),
        event(0, EventKind.OOM, Level.ERROR),
    ]
    shapes = {mark_shape(what, QPointF(0, 0), 6).size() for what in kinds}
    assert {mark_token(what) for what in kinds} == {"ok", "warn", "danger"}
    corners = [
        sorted((round(p.x(), 1), round(p.y(), 1)) for p in mark_shape(w, QPointF(0, 0), 6).toList()) for w in kinds
    ]
    assert len({str(corner) for corner in corners}) == 3
    assert shapes == {3, 4}


@pytest.mark.parametrize("kind", EventKind)
def test_every_kind_has_a_word(kind: EventKind) -> None:
    assert texts.event(event(0.0, kind))


@pytest.mark.parametrize(
    ("code", "word"),
    [
        ("process.ended", "process ended"),
        ("process.no_permission", "process not ended"),
        ("telemetry.thermal_throttle", "slowed by heat"),
        ("run.stopped", "stopped"),
        ("learning.not_learning", "not learning"),
        ("other", "run"),
    ],
)
def test_a_code_says_more_than_its_kind(code: str, word: str) -> None:
    assert texts.event(Event(0.0, EventKind.RUN_STATE, Level.INFO, code)) == word


def test_details_name_time_and_step() -> None:
    what = event(0.0, EventKind.CHECKPOINT, step=1480)
    assert texts.event_details(what, "14:32:08") == "14:32:08  checkpoint, step 1,480"
    assert texts.event_details(event(0.0, EventKind.EPOCH, epoch=14), "14:32:08") == "14:32:08  epoch 14"


@pytest.fixture
def stack(show: Callable[..., QWidget]) -> ChartStack:
    made = ChartStack(FakeWorkspace(FakeState.LEAK), DARK)
    show(made, width=820, height=718)
    made.refresh()
    return made


def test_events_of_the_queue_are_where_they_happened(stack: ChartStack) -> None:
    marks = {mark.text: mark for mark in stack.stage.lane.marks()}
    assert set(marks) == {"checkpoint", "forecast: leak"}
    plot, view = stack.stage.lane.plot, stack.view
    expected = plot.left() + (-250.0 - view.left) / view.width * plot.width()
    assert marks["checkpoint"].x == pytest.approx(expected, abs=2.0)


def test_ticks_of_epochs_avoid_words(stack: ChartStack) -> None:
    ticks = stack.stage.lane.epochs()
    assert 6 <= len(ticks) <= 12
    for mark in stack.stage.lane.marks():
        assert mark.label is not None
        assert not any(mark.label.left() <= x <= mark.label.right() for x in ticks)


def test_an_event_is_found_under_the_mouse_and_explained(stack: ChartStack, monkeypatch: pytest.MonkeyPatch) -> None:
    shown: list[str] = []
    monkeypatch.setattr(QToolTip, "showText", lambda _where, text, _widget: shown.append(text))
    mark = next(mark for mark in stack.stage.lane.marks() if mark.text == "checkpoint")
    found = stack.stage.lane.event_at(mark.x + 3)
    assert found is not None
    assert found.kind is EventKind.CHECKPOINT
    assert stack.stage.lane.event_at(mark.x + 40) is None
    lane = stack.stage.canvas.rect_of(stack.stage.lane)
    stack.stage.canvas.hovered.emit(QPointF(lane.left() + mark.x, lane.center().y()))
    assert len(shown) == 1
    assert shown[0].endswith("checkpoint, step 1,480")


def test_epochs_and_validations_are_no_marks(stack: ChartStack) -> None:
    before = len(stack.stage.lane.marks()), len(stack.stage.lane.epochs())
    now_s = stack.view.anchor_s
    stack.stage.lane.add((event(now_s - 5, EventKind.EPOCH, seq=900), event(now_s - 9, EventKind.VALIDATION, seq=901)))
    assert (len(stack.stage.lane.marks()), len(stack.stage.lane.epochs())) == (before[0], before[1] + 1)


def test_events_that_come_late_are_put_in_order(stack: ChartStack) -> None:
    now_s = stack.view.anchor_s
    stack.stage.lane.add(
        (event(now_s - 10, EventKind.THROTTLE, seq=900), event(now_s - 500, EventKind.XID, seq=901, xid=79))
    )
    xs = [mark.x for mark in stack.stage.lane.marks()]
    assert xs == sorted(xs)
    assert {"throttled", "Xid 79"} <= {mark.text.partition(":")[0] for mark in stack.stage.lane.marks()}


@pytest.mark.parametrize(
    ("reason", "words"),
    [("gpu_lost", "GPU lost"), ("suspended", "nothing ran"), ("timed_out", "timed out"), ("of_the_future", "GPU lost")],
)
def test_an_outage_says_what_it_was(reason: str, words: str) -> None:
    """A computer that slept has not lost its card."""
    what = Event(
        t_s=1.0, kind=EventKind.OUTAGE, level=Level.WARNING, code="telemetry.outage", params={"reason": reason}
    )
    assert texts.event(what) == words
    assert ("computer slept" in texts.event_details(what, "14:00:00")) == (reason == "suspended")
