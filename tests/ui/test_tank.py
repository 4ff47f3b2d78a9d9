"""The tank's layout never clips, its marks lie where the numbers say, and it rests when nothing changes."""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Callable
from functools import cache

import pytest
from PySide6.QtCore import QAbstractAnimation, QEvent, QRectF, QVariantAnimation
from PySide6.QtGui import QHelpEvent
from PySide6.QtWidgets import QApplication, QToolTip, QWidget
from pytestqt.qtbot import QtBot

from desktop_app.core.units import GIB
from desktop_app.ui import tank_texts as texts
from desktop_app.ui.i18n import Translators
from desktop_app.ui.tank import TankWidget
from desktop_app.ui.tank_layout import TankLayout, lay_out, merged_rows
from desktop_app.ui.tank_model import Segment, TankState
from desktop_app.ui.tank_painter import flood_color, segment_rects, verdict_color
from desktop_app.ui.tank_reader import TankReader
from desktop_app.ui.theme import DARK, LIGHT
from tests.ui.fake_data import FakeState
from tests.ui.fake_workspace import FakeWorkspace

Show = Callable[..., QWidget]
LINE = 13.0


@cache
def state_of(which: FakeState) -> TankState:
    return TankReader(FakeWorkspace(which)).read()


@pytest.fixture
def leak() -> TankState:
    return state_of(FakeState.LEAK)


def shares_of(state: TankState) -> dict[Segment, float]:
    capacity = state.capacity_bytes
    assert capacity is not None
    return {level.segment: (level.size_bytes or 0) / capacity for level in state.levels}


def parts(layout: TankLayout) -> list[QRectF]:
    found = [layout.tank, *(rect for _, rect in layout.rows)]
    found += [rect for rect in (layout.free, layout.card) if rect is not None]
    return found


@pytest.mark.parametrize("height", [240, 330, 400, 478, 560, 640, 718, 900, 1400])
@pytest.mark.parametrize("width", [200, 224, 264, 340])
@pytest.mark.parametrize("flood_row", [False, True])
@pytest.mark.parametrize("line", [13.0, 20.8])
def test_nothing_is_clipped_and_nothing_overlaps(
    leak: TankState, width: int, height: int, flood_row: bool, line: float
) -> None:
    layout = lay_out(width, height, line=line, levels=leak.levels, flood_row=flood_row)
    whole = QRectF(0, 0, width, height + 1e-6)
    for part in parts(layout):
        assert whole.contains(part), part
    for one, other in itertools.combinations(parts(layout), 2):
        assert not one.intersects(other), (one, other)
    if layout.rows:
        head = (2.9 if flood_row else 1.6) * line
        assert layout.rows[0][1].top() >= layout.tank.top() + head - 0.5


def test_high_windows_say_everything_and_low_ones_merge(leak: TankState) -> None:
    high = lay_out(264, 718, line=LINE, levels=leak.levels, flood_row=False)
    low = lay_out(264, 330, line=LINE, levels=leak.levels, flood_row=False)
    lowest = lay_out(264, 240, line=LINE, levels=leak.levels, flood_row=False)
    assert len(high.rows) == len(Segment)
    assert high.card is not None
    assert not high.small_card
    assert low.small_card
    assert lowest.card is None or lowest.small_card
    assert len(lowest.rows) < len(high.rows)


def test_merged_rows_add_up(leak: TankState) -> None:
    rows = merged_rows(leak.levels, merge_model=True, merge_rest=True)
    known = {level.segment: level.size_bytes for level in leak.levels}
    assert {segment for row in rows for segment in row.segments} == set(Segment)
    model = next(row for row in rows if Segment.PARAMETERS in row.segments)
    assert model.size_bytes == sum(known[segment] or 0 for segment in model.segments)


def test_a_merged_row_with_an_unknown_part_is_unknown() -> None:
    rows = merged_rows(state_of(FakeState.GPU_LOST).levels, merge_model=True, merge_rest=True)
    rest = next(row for row in rows if Segment.OTHERS in row.segments)
    assert rest.size_bytes is None


def test_layers_fill_the_tank_without_holes(leak: TankState) -> None:
    layout = lay_out(264, 718, line=LINE, levels=leak.levels, flood_row=False)
    rects = segment_rects(layout, shares_of(leak))
    inner = layout.tank.adjusted(2, 2, -2, -2)
    assert rects[0][1].bottom() == pytest.approx(inner.bottom(), abs=0.5)
    for (_, below), (_, above) in itertools.pairwise(rects):
        assert above.bottom() == below.top()
    level = inner.bottom() - leak.filled_bytes / (6 * GIB) * inner.height()
    assert rects[-1][1].top() == pytest.approx(level, abs=1.5)


def test_a_thin_layer_is_still_seen(leak: TankState) -> None:
    layout = lay_out(264, 718, line=LINE, levels=leak.levels, flood_row=False)
    rects = dict(segment_rects(layout, {Segment.OTHERS: 1e-5, Segment.CONTEXT: 0.5}))
    assert rects[Segment.OTHERS].height() == 1


@pytest.mark.parametrize("which", [FakeState.HEALTHY, FakeState.LEAK])
def test_flood_mark_always_has_its_unit(which: FakeState) -> None:
    labels = texts.flood_labels(state_of(which))
    assert labels[0].startswith("flood mark  ")
    assert all(label.endswith("\u00a0GiB") for label in labels)


@pytest.mark.parametrize("which", [FakeState.OUT_OF_MEMORY, FakeState.FINISHED, FakeState.STOPPED])
def test_tank_of_a_run_that_is_over_says_so(which: FakeState, qapp: QApplication, translators: Translators) -> None:
    assert texts.title(state_of(which)) == "VRAM at the last step"
    translators.use("zh_CN")
    assert texts.title(state_of(which)) == "最后一步的显存"


@pytest.mark.parametrize("which", [FakeState.HEALTHY, FakeState.PAUSED, FakeState.STOPPING])
def test_tank_of_a_run_that_lives_is_that_of_now(which: FakeState) -> None:
    assert texts.title(state_of(which)) == "VRAM"


@pytest.mark.parametrize(
    ("measured_gib", "token"),
    [
        (4.34, "ok"),  # +0.7 %
        (4.58, "ok"),  # +6 %, but within "up to 4.60"
        (4.70, "danger"),  # +9 %: more than "up to 4.60"
        (5.20, "danger"),
        (4.00, "ok"),  # −7 %
        (3.00, "warn"),  # far too careful
    ],
)
def test_colour_of_the_error(measured_gib: float, token: str) -> None:
    state = dataclasses.replace(state_of(FakeState.HEALTHY), measured_bytes=int(measured_gib * GIB))
    assert verdict_color(DARK, state) == getattr(DARK, token)


def test_colour_of_the_flood_mark_says_whether_it_is_over() -> None:
    assert flood_color(DARK, state_of(FakeState.LEAK)) == DARK.danger
    assert flood_color(DARK, state_of(FakeState.HEALTHY)) == DARK.ok


# A run of thirty days takes seconds to make up and fills the tank like any other.
@pytest.mark.parametrize("which", sorted(set(FakeState) - {FakeState.LONG_RUN}))
def test_every_state_is_painted(show: Show, which: FakeState) -> None:
    widget = TankWidget(DARK)
    widget.set_state(state_of(which))
    show(widget, width=264, height=718)
    for height in (718, 478, 330, 240):
        widget.resize(264, height)
        image = widget.grab().toImage()
        colors = {image.pixelColor(x, y).name() for x in range(0, 264, 3) for y in range(0, height, 3)}
        assert len(colors) > 3


def test_the_brim_and_the_red_band_are_where_the_picture_has_them(show: Show, leak: TankState) -> None:
    widget = TankWidget(DARK)
    widget.set_state(leak)
    show(widget, width=264, height=718)
    image = widget.grab().toImage()
    layout = widget.layout_now()
    brim_y = round(layout.tank.top())
    assert image.pixelColor(round(layout.tank.center().x()), brim_y).lightness() > 200
    column = [image.pixelColor(round(layout.tank.center().x()), y) for y in range(brim_y - 2)]
    assert any(color.name().upper() == DARK.danger for color in column)


def test_equal_state_is_not_painted_again(show: Show, qtbot: QtBot) -> None:
    class Counted(TankWidget):
        painted = 0

        def paintEvent(self, event: object) -> None:
            Counted.painted += 1
            super().paintEvent(event)  # type: ignore[arg-type]

    widget = Counted(DARK)
    widget.set_state(state_of(FakeState.HEALTHY))
    show(widget, width=264, height=500)
    before = Counted.painted
    widget.set_state(state_of(FakeState.HEALTHY))
    QApplication.processEvents()
    assert Counted.painted == before
    widget.set_state(state_of(FakeState.LEAK))
    qtbot.waitUntil(lambda: Counted.painted > before, timeout=2000)


def test_a_new_estimate_moves_the_water_and_then_it_rests(show: Show, qtbot: QtBot) -> None:
    widget = TankWidget(DARK)
    widget.set_state(state_of(FakeState.NOTHING))
    show(widget, width=264, height=500)
    animation = widget.findChild(QVariantAnimation)
    assert animation is not None
    widget.set_state(state_of(FakeState.PREPARING))
    assert animation.state() is QAbstractAnimation.State.Running
    qtbot.waitUntil(lambda: animation.state() is QAbstractAnimation.State.Stopped, timeout=3000)


def test_a_running_run_moves_without_animation(show: Show) -> None:
    widget = TankWidget(DARK)
    widget.set_state(state_of(FakeState.HEALTHY))
    show(widget, width=264, height=500)
    widget.set_state(state_of(FakeState.LEAK))
    animation = widget.findChild(QVariantAnimation)
    assert animation is not None
    assert animation.state() is QAbstractAnimation.State.Stopped


def test_layers_and_rows_say_what_they_are(show: Show, leak: TankState) -> None:
    widget = TankWidget(DARK)
    widget.set_state(leak)
    show(widget, width=264, height=718)
    layout = widget.layout_now()
    row, rect = next((row, rect) for row, rect in layout.rows if row.segments == (Segment.ACTIVATIONS,))
    assert row.size_bytes is not None
    text = widget.text_at(rect.center().x(), rect.center().y())
    assert text.startswith("Activations: 1.36")
    assert text.endswith("23\u00a0%")
    bottom = layout.tank.bottom() - 6
    assert widget.text_at(layout.tank.center().x(), bottom).startswith("Other processes")
    assert widget.text_at(0, 0) == ""


def test_an_unknown_layer_says_why(show: Show) -> None:
    widget = TankWidget(DARK)
    widget.set_state(state_of(FakeState.GPU_LOST))
    show(widget, width=264, height=718)
    rect = next(rect for row, rect in widget.layout_now().rows if row.segments == (Segment.OTHERS,))
    assert "fallen off the bus" in widget.text_at(rect.center().x(), rect.center().y())


def test_tooltip_is_shown(show: Show, leak: TankState, monkeypatch: pytest.MonkeyPatch) -> None:
    shown: list[str] = []
    monkeypatch.setattr(QToolTip, "showText", lambda _where, text, _widget: shown.append(text))
    widget = TankWidget(DARK)
    widget.set_state(leak)
    show(widget, width=264, height=718)
    point = widget.layout_now().rows[0][1].center().toPoint()
    QApplication.sendEvent(widget, QHelpEvent(QEvent.Type.ToolTip, point, widget.mapToGlobal(point)))
    assert shown[0].startswith("Cached, idle")


def test_screen_readers_get_the_whole_tank(show: Show, leak: TankState, translators: Translators) -> None:
    widget = TankWidget(DARK)
    widget.set_state(leak)
    show(widget, width=264, height=718)
    said = widget.accessibleDescription().replace("\u00a0", " ")
    assert widget.accessibleName() == "VRAM"
    for part in ("Parameters", "brim 6.00 GiB", "flood mark 6.2 – 6.5 GiB", "free now 1.4"):
        assert part in said
    translators.use("zh_CN")
    widget.retranslate()
    assert "水位线" in widget.accessibleDescription()


def test_theme_and_font_change_what_is_drawn(show: Show, leak: TankState) -> None:
    widget = TankWidget(DARK)
    widget.set_state(leak)
    show(widget, width=264, height=718)
    dark = widget.grab().toImage()
    widget.set_theme(LIGHT)
    assert widget.grab().toImage() != dark
    font = widget.font()
    hint = widget.sizeHint()
    font.setPointSizeF(1.6 * font.pointSizeF())
    widget.setFont(font)
    assert widget.sizeHint().width() > 1.4 * hint.width()


def test_after_the_end_free_is_what_was_free_then(show: Show, leak: TankState) -> None:
    widget = TankWidget(DARK)
    widget.set_state(dataclasses.replace(leak, ended=True))
    show(widget, width=264, height=718)
    said = widget.accessibleDescription()
    assert "free then" in said
    assert "free now" not in said
