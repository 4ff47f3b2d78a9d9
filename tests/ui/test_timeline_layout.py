"""The picture of a timeline is what one gets by stacking the blocks one by one, pixel for pixel."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from desktop_app.core.estimates import Timeline
from desktop_app.core.steps import Category
from desktop_app.core.units import MIB
from desktop_app.ui.memory.stretch import Stretch
from desktop_app.ui.memory.timeline_layout import _MOST_BANDS, DIMMED, EDGE, EMPTY, Extent, Layout
from tests.ui.fake_timelines import bert_large_like, random_timeline

timelines = st.builds(random_timeline, blocks=st.integers(4, 120), seed=st.integers(0, 10**6))


def stacked(timeline: Timeline, event: int) -> list[tuple[int, int, int]]:
    """(block, bottom, top) of everything that lives after ``event``: the definition, in plain Python."""
    found, height = [], 0
    for block in range(len(timeline.size_bytes)):
        if timeline.born[block] <= event < timeline.died[block]:
            size = int(timeline.size_bytes[block])
            found.append((block, height, height + size))
            height += size
    return found


def shades_of(layout: Layout, extent: Extent, owners: frozenset[int] | None = None) -> np.ndarray:
    return np.concatenate([shades for _, shades in layout.picture(extent, owners=owners).columns()])


def extent_of(timeline: Timeline, data: st.DataObject) -> Extent:
    first = data.draw(st.floats(0, timeline.event_count - 1))
    last = data.draw(st.floats(min(first + 0.5, timeline.event_count), timeline.event_count))
    top = 1.1 * int(timeline.live_bytes.max())
    low = data.draw(st.floats(0, 0.5)) * top
    high = low + data.draw(st.floats(0.05, 0.6)) * top
    columns, rows = data.draw(st.integers(1, 60)), data.draw(st.integers(1, 60))
    return Extent(first, max(last, first + 0.5), low, high, columns, rows)


@settings(max_examples=60, deadline=None)
@given(timeline=timelines, data=st.data())
def test_every_pixel_has_the_kind_under_its_centre(timeline: Timeline, data: st.DataObject) -> None:
    layout = Layout(timeline)
    extent = extent_of(timeline, data)
    picture = shades_of(layout, extent)
    assert picture.shape == (extent.columns, extent.rows)
    for column, event in enumerate(layout.column_events(extent)):
        stack = stacked(timeline, int(event))
        for row in range(extent.rows):
            centre = extent.low + (row + 0.5) * extent.bytes_per_row
            under = [block for block, bottom, top in stack if bottom <= centre < top]
            expected = int(timeline.category[under[0]]) if under else EMPTY
            assert int(picture[column, row]) & ~EDGE == expected


@settings(max_examples=60, deadline=None)
@given(timeline=timelines, data=st.data())
def test_block_under_the_mouse_is_the_one_that_is_stacked_there(timeline: Timeline, data: st.DataObject) -> None:
    layout = Layout(timeline)
    event = data.draw(st.integers(0, timeline.event_count - 1))
    height = data.draw(st.integers(0, int(1.1 * timeline.live_bytes.max())))
    under = [block for block, bottom, top in stacked(timeline, event) if bottom <= height < top]
    assert layout.block_at(event, height) == (under[0] if under else None)
    for block, bottom, _ in stacked(timeline, event):
        assert layout.bottom_at(block, event) == bottom


@settings(max_examples=60, deadline=None)
@given(timeline=timelines, data=st.data())
def test_outline_follows_a_block_as_others_die_below_it(timeline: Timeline, data: st.DataObject) -> None:
    layout = Layout(timeline)
    extent = extent_of(timeline, data)
    block = data.draw(st.integers(0, len(timeline.size_bytes) - 1))
    first, bottoms = layout.outline(block, extent)
    expected = {}
    for column, event in enumerate(layout.column_events(extent)):
        known = {each: bottom for each, bottom, _ in stacked(timeline, int(event))}
        if block in known:
            expected[column] = known[block]
    assert dict(enumerate(bottoms.tolist(), start=first)) == expected


@settings(max_examples=60, deadline=None)
@given(timeline=timelines, data=st.data())
def test_columns_miss_no_peak(timeline: Timeline, data: st.DataObject) -> None:
    """However few columns there are, the highest event of what they cover is one of theirs."""
    columns = data.draw(st.integers(1, 200))
    extent = Extent(0.0, float(timeline.event_count), 0.0, 1.0, columns, 1)
    events = Layout(timeline).column_events(extent)
    assert len(events) == columns
    assert np.all(np.diff(events) >= 0)
    if columns <= timeline.event_count:
        assert timeline.live_bytes[events].max() == timeline.live_bytes.max()
        assert len(set(events.tolist())) == columns


def test_stack_is_as_high_as_what_lives() -> None:
    """Of a step with many more blocks than bands: what is merged keeps its sum in every column."""
    timeline = bert_large_like(blocks=20_000)
    layout = Layout(timeline)
    extent = Extent(0.0, float(timeline.event_count), 0.0, 8 * 1024.0 * MIB, 300, 4096)
    assert layout.picture(extent).bands <= 2 * _MOST_BANDS
    filled = (shades_of(layout, extent) != EMPTY).sum(axis=1)
    live = timeline.live_bytes[layout.column_events(extent)]
    assert np.abs(filled * extent.bytes_per_row - live).max() <= extent.bytes_per_row


def test_bands_stay_few_where_every_block_is_of_another_kind() -> None:
    timeline = random_timeline(blocks=30_000, seed=3)
    layout = Layout(timeline)
    extent = Extent(0.0, float(timeline.event_count), 0.0, 1.1 * float(timeline.live_bytes.max()), 400, 300)
    assert layout.picture(extent).bands <= _MOST_BANDS
    filled = (shades_of(layout, extent) != EMPTY).sum(axis=1)
    live = timeline.live_bytes[layout.column_events(extent)]
    assert np.abs(filled * extent.bytes_per_row - live).max() <= extent.bytes_per_row


def test_large_blocks_have_an_edge_and_small_ones_none() -> None:
    timeline = random_timeline(blocks=8, seed=1)
    event = int(timeline.live_bytes.argmax())
    stack = stacked(timeline, event)
    layout = Layout(timeline)
    near = Extent(float(event), event + 1.0, 0.0, float(timeline.live_bytes.max()), 1, 4000)
    bottoms = {round(bottom / near.bytes_per_row) for _, bottom, top in stack if bottom}
    edges = np.flatnonzero(shades_of(layout, near)[0] & EDGE)
    assert len(edges) == len(bottoms)
    assert all(min(abs(edge - bottom) for bottom in bottoms) <= 1 for edge in edges)
    far = Extent(float(event), event + 1.0, 0.0, 4000.0 * float(timeline.live_bytes.max()), 1, 4000)
    assert not np.any(shades_of(layout, far) & EDGE)


def test_only_the_owners_that_are_looked_for_are_bright() -> None:
    timeline = random_timeline(blocks=40, seed=5)
    layout = Layout(timeline)
    extent = Extent(0.0, float(timeline.event_count), 0.0, float(timeline.live_bytes.max()), 30, 2000)
    owners = frozenset({0, 2})
    picture = shades_of(layout, extent, owners)
    for column, event in enumerate(layout.column_events(extent).tolist()):
        for row in range(0, 2000, 97):
            block = layout.block_at(event, extent.low + (row + 0.5) * extent.bytes_per_row)
            if block is not None:
                dimmed = bool(picture[column, row] & DIMMED)
                assert dimmed is (int(timeline.owner[block]) not in owners)


def test_empty_timeline_is_an_empty_picture() -> None:
    nothing = np.zeros(0, dtype=np.int64)
    kinds = np.zeros(0, dtype=np.int32)
    live = np.zeros(5, dtype=np.int64)
    timeline = Timeline(live, live, (), nothing, nothing, nothing, kinds, kinds, kinds, (), ())
    layout = Layout(timeline)
    picture = shades_of(layout, Extent(0.0, 5.0, 0.0, 100.0, 7, 9))
    assert picture.shape == (7, 9)
    assert np.all(picture == EMPTY)
    assert layout.block_at(2, 10.0) is None


def test_kinds_are_the_categories_in_order() -> None:
    """The shade's lowest bits are a category, so there may be no more than eight."""
    assert len(Category) <= EDGE


whole = Stretch.whole(1000, 100.0)


@given(factor=st.floats(0.01, 100), event=st.floats(0, 1000), height=st.one_of(st.none(), st.floats(0, 100)))
def test_zoom_stays_within_the_step_and_keeps_its_centre(factor: float, event: float, height: float | None) -> None:
    zoomed = whole.zoomed(factor, event=event, height_bytes=height)
    assert 0 <= zoomed.first < zoomed.last <= 1000.0001
    assert -0.0001 <= zoomed.low < zoomed.high <= whole.top + 0.0001
    assert zoomed.width <= 1000.0001
    if factor < 1:
        assert zoomed.first - 1e-6 <= event <= zoomed.last + 1e-6


@given(moves=st.lists(st.floats(-500, 500), max_size=5))
def test_moving_never_changes_how_much_is_shown(moves: list[float]) -> None:
    shown = whole.zoomed(0.1, event=500, height_bytes=50.0)
    width, height = shown.width, shown.height
    for move in moves:
        shown = shown.moved(move, move)
        assert shown.width == pytest.approx(width)
        assert shown.height == pytest.approx(height)
        assert shown.first >= 0
        assert shown.last <= 1000 + 1e-6


def test_a_point_comes_on_show() -> None:
    shown = whole.zoomed(0.1, event=100, height_bytes=10.0)
    moved = shown.showing(900, 80.0)
    assert moved.first <= 900 <= moved.last
    assert moved.low <= 80.0 <= moved.high
    assert moved.showing(900, 80.0) is moved
