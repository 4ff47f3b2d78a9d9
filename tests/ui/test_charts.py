"""The chart stack draws what the store holds: gaps as gaps, nothing while hidden, the right values at the cursor."""

from __future__ import annotations

import gc
import itertools
import locale
import math
import sys
import weakref
from collections.abc import Callable

import numpy as np
import pytest
from PySide6.QtCore import QCoreApplication, QEvent, QLocale, QPoint, QPointF, Qt, QTimer
from PySide6.QtGui import QPainterPath, QWheelEvent
from PySide6.QtWidgets import QApplication, QWidget
from pytestqt.qtbot import QtBot

from desktop_app.core.steps import RunState
from desktop_app.core.store import History
from desktop_app.core.units import GIB
from desktop_app.ui.brush import Typeset
from desktop_app.ui.charts.chart_stack import ChartStack
from desktop_app.ui.charts.curves_item import areas_below, line_path, stepped
from desktop_app.ui.charts.head_item import Head, HeadItem, Key
from desktop_app.ui.charts.smoothing import SmoothedLoss
from desktop_app.ui.charts.time_axis import ALL
from desktop_app.ui.i18n import Translators
from desktop_app.ui.theme import DARK, LIGHT
from tests.ui import fake_data
from tests.ui.fake_data import FakeState
from tests.ui.fake_workspace import FakeWorkspace

# The offscreen platform has no window manager to tell; it says so at every window.
pytestmark = pytest.mark.qt_log_ignore("This plugin does not support propagateSizeHints")

Show = Callable[..., QWidget]
NAN = math.nan


def moves(path: QPainterPath) -> int:
    """How often the pen is set down."""
    return sum(path.elementAt(index).isMoveTo() for index in range(path.elementCount()))


def drawn_lines(path: QPainterPath) -> list[tuple[float, float]]:
    """From x to x of every line that has a length."""
    lines = [
        (path.elementAt(index - 1).x, path.elementAt(index).x)
        for index in range(1, path.elementCount())
        if not path.elementAt(index).isMoveTo()
    ]
    return [(start, end) for start, end in lines if start != end]


@pytest.fixture
def build(show: Show) -> Callable[..., ChartStack]:
    def built(workspace: FakeWorkspace, *, width: int = 820, height: int = 718) -> ChartStack:
        stack = ChartStack(workspace, DARK)
        show(stack, width=width, height=height)
        stack.refresh()
        stack.refresh_texts()
        return stack

    return built


@pytest.fixture
def leak() -> FakeWorkspace:
    return FakeWorkspace(FakeState.LEAK)


Build = Callable[..., ChartStack]


# -- paths ------------------------------------------------------------------------------------------------------------


def test_a_gap_lifts_the_pen() -> None:
    x = np.arange(6.0)
    whole = line_path(x, np.array([0.0, 1, 2, 3, 4, 5]) / 5, has_gaps=False)
    cut = line_path(x, np.array([0.0, 1, NAN, NAN, 4, 5]) / 5, has_gaps=True)
    assert moves(whole) == 1
    assert moves(cut) >= 2
    assert drawn_lines(cut) == [(0.0, 1.0), (4.0, 5.0)]  # nothing spans the gap


def test_a_point_alone_makes_no_line() -> None:
    assert line_path(np.array([1.0]), np.array([1.0]), has_gaps=False).isEmpty()


def test_steps_hold_until_the_next_value_and_now() -> None:
    x, y = stepped(np.array([0.0, 10.0]), np.array([1.0, 2.0]), until=15.0)
    assert x.tolist() == [0.0, 10.0, 10.0, 15.0]
    assert y.tolist() == [1.0, 1.0, 2.0, 2.0]


def test_areas_are_cut_where_the_line_is() -> None:
    areas = areas_below(np.arange(6.0), np.array([1.0, 1.0, NAN, 1.0, 1.0, 1.0]))
    assert [area.boundingRect().getCoords() for area in areas] == [(0.0, 0.0, 1.0, 1.0), (3.0, 0.0, 5.0, 1.0)]
    assert areas_below(np.empty(0), np.empty(0)) == ()


# -- smoothing --------------------------------------------------------------------------------------------------------


def steps_with(losses: list[float | None]) -> History:
    history = History(("step", "loss"))
    for index, loss in enumerate(losses, start=1):
        history.append(float(index), {"step": index, "loss": loss})
    return history


def test_the_mean_of_a_constant_is_the_constant() -> None:
    smoothed = SmoothedLoss(steps_with([0.5] * 100))
    smoothed.follow()
    assert smoothed.history.since(0).values[0] == pytest.approx(0.5)


def test_noise_shrinks_to_a_fifth() -> None:
    random = np.random.default_rng(3)
    smoothed = SmoothedLoss(steps_with([float(value) for value in 1 + 0.1 * random.standard_normal(4000)]))
    for _ in range(10):
        smoothed.follow()
    settled = smoothed.history.since(0).values[0][500:]
    assert settled.std() == pytest.approx(0.1 / 5, rel=0.15)


def test_steps_without_a_logged_loss_are_no_gap() -> None:
    smoothed = SmoothedLoss(steps_with([1.0, None, None, 1.0, None]))
    smoothed.follow()
    rows = smoothed.history.since(0)
    assert rows.t_s.tolist() == [1.0, 4.0]


def test_an_outage_is_a_gap_and_begins_afresh() -> None:
    steps = steps_with([1.0, 1.0])
    steps.append_gap(3.0)
    steps.append(4.0, {"step": 3, "loss": 9.0})
    smoothed = SmoothedLoss(steps)
    smoothed.follow()
    values = smoothed.history.since(0).values[0]
    assert math.isnan(values[2])
    assert values[3] == pytest.approx(9.0)


def test_following_takes_only_what_is_new() -> None:
    steps = steps_with([1.0])
    smoothed = SmoothedLoss(steps)
    smoothed.follow()
    smoothed.follow()
    steps.append(2.0, {"step": 2, "loss": 3.0})
    smoothed.follow()
    assert smoothed.history.version == 2


# -- drawing ----------------------------------------------------------------------------------------------------------


def drawn(stack: ChartStack) -> int:
    return sum(track.drawn for track in stack.stage.tracks.values())


def test_every_panel_draws_its_curves(build: Build, leak: FakeWorkspace) -> None:
    stack = build(leak)
    counts = {
        key: [line.path.elementCount() > 1 for line in track.panel.curves.content.lines]
        for key, track in stack.stage.tracks.items()
    }
    assert {key: all(lines) for key, lines in counts.items()} == dict.fromkeys(counts, True)
    assert {key: len(lines) for key, lines in counts.items()} == {
        "loss": 4,
        "optimizer": 2,
        "vram": 2,
        "utilization": 1,
        "temperature": 1,
        "power": 1,
    }


def test_never_more_than_two_points_a_pixel(build: Build, leak: FakeWorkspace) -> None:
    stack = build(leak)
    for track in stack.stage.tracks.values():
        width = track.panel.plot.width()
        for line in track.panel.curves.content.lines:
            assert line.path.elementCount() <= 2 * width + 8


def test_nothing_is_drawn_twice_or_while_hidden(build: Build, leak: FakeWorkspace) -> None:
    stack = build(leak)
    before = drawn(stack)
    assert not stack.refresh()
    leak.advance(0.1)
    stack.hide()
    leak.advance(30.0)
    assert not stack.refresh()
    assert drawn(stack) == before
    stack.show()
    leak.advance(30.0)
    assert stack.refresh()
    assert drawn(stack) > before


def test_a_frame_in_which_no_pixel_moves_is_skipped(build: Build) -> None:
    """Fifteen minutes on 700 pixels are 1.3 s a pixel: of ten frames a second two draw, for the newest values."""
    workspace = FakeWorkspace(FakeState.HEALTHY)
    stack = build(workspace)
    frames = 0
    for _ in range(40):
        workspace.advance(0.1)
        frames += stack.refresh()
    assert 2 <= frames <= 16


def test_a_lost_card_is_a_gap_in_its_panels_and_the_reason_in_their_heads(build: Build) -> None:
    workspace = FakeWorkspace(FakeState.GPU_LOST)
    stack = build(workspace)
    for key in ("vram", "utilization", "temperature", "power"):
        panel = stack.stage.tracks[key].panel
        assert [key_.text for key_ in panel.head.keys] == ["GPU lost"]
        ends = panel.curves.content.lines[0].path.boundingRect().right()
        assert ends == pytest.approx(-90.0, abs=2.0)  # lost 90 s ago
    for t_s in np.arange(workspace.manual.now_s + 0.2, workspace.manual.now_s + 20.0, 0.2):
        values = fake_data.card_values(FakeState.HEALTHY, fake_data.gtx_1660(), float(t_s))
        workspace.store.history(f"gpu:{fake_data.gtx_1660().uuid}").append(float(t_s), values)
    workspace.manual.now_s += 20.0
    assert stack.refresh()
    path = stack.stage.tracks["power"].panel.curves.content.lines[0].path
    assert moves(path) >= 2
    assert max(end - start for start, end in drawn_lines(path)) < 5.0


@pytest.mark.parametrize(
    ("which", "hint"),
    [(FakeState.NO_GPU, "No card"), (FakeState.NO_DRIVER, "no driver"), (FakeState.NOTHING, "")],
)
def test_empty_panels_say_why(build: Build, which: FakeState, hint: str) -> None:
    stack = build(FakeWorkspace(which))
    assert stack.stage.tracks["loss"].panel.head.hint == "No run yet"
    assert stack.stage.tracks["vram"].panel.head.hint == hint
    if hint:
        assert not stack.stage.tracks["vram"].panel.curves.content.grid


@pytest.mark.parametrize(
    ("run", "hint"),
    [
        (RunState.IDLE, "No run yet"),
        (RunState.PREPARING, "Preparing…"),
        (RunState.RUNNING, "Preparing…"),
        (RunState.OUT_OF_MEMORY, "No step was finished"),
        (RunState.FAILED, "No step was finished"),
    ],
)
def test_panels_without_a_step_say_why(build: Build, run: RunState, hint: str) -> None:
    workspace = FakeWorkspace(FakeState.PREPARING)
    workspace.set_run(state=run)
    stack = build(workspace)
    assert stack.stage.tracks["loss"].panel.head.hint == hint


def test_what_a_run_held_is_not_said_once_it_is_over(build: Build, leak: FakeWorkspace) -> None:
    stack = build(leak)
    tokens = [key.token for key in stack.stage.tracks["vram"].panel.head.keys]
    assert tokens == ["device", "live", "text"]
    leak.set_run(state=RunState.STOPPED)
    stack.refresh_texts()
    tokens = [key.token for key in stack.stage.tracks["vram"].panel.head.keys]
    assert tokens == ["device", "text"]


def test_head_entries_leave_no_hole_and_do_not_vanish(qapp: QApplication) -> None:
    item = HeadItem(DARK, Typeset(qapp.font()))
    reason, value = Key("n/a · not supported by this driver", "power"), Key("70 W", "power")
    wide, last = Key("train 12.000", "loss"), Key("accuracy 99.9 %", "accuracy")
    item.set_head(Head("Power", (reason,)))
    long = item.key_widths(1000.0)[0]
    item.set_head(Head("Power", (value,)))
    assert item.key_widths(1000.0)[0] < long / 2  # the room of other words is given back
    item.set_head(Head("Loss", (wide, last)))
    widths = item.key_widths(1000.0)
    item.set_head(Head("Loss", (Key("train 2.000", "loss"), last)))
    assert item.key_widths(1000.0) == widths  # figures do not move the entries
    item.set_head(Head("Loss", (Key("train 2.000", "loss"), Key("accuracy 100.0 %", "accuracy"))))
    room = item.key_widths(1000.0)[1] + 1.3 * Typeset(qapp.font()).line + widths[0] - 3
    assert len(item.key_widths(room)) == 2  # gives up its reserve rather than an entry


@pytest.mark.parametrize("which", sorted(set(FakeState) - {FakeState.LONG_RUN, FakeState.EIGHT_GPUS}))
@pytest.mark.parametrize("theme", [DARK, LIGHT], ids=["dark", "light"])
def test_every_state_is_drawn(build: Build, which: FakeState, theme: object) -> None:
    stack = build(FakeWorkspace(which))
    stack.set_theme(theme)  # type: ignore[arg-type]
    image = stack.grab().toImage()
    colors = {image.pixelColor(x, y).name() for x in range(0, 820, 7) for y in range(0, 718, 7)}
    assert len(colors) > 3


def test_the_card_of_the_run_is_shown(build: Build) -> None:
    workspace = FakeWorkspace(FakeState.NOTHING)
    workspace.cards.set((fake_data.gtx_1660(), fake_data.h100(2)))
    workspace.store.declare(f"gpu:{fake_data.h100(2).uuid}", fake_data.GPU_FIELDS).append(
        workspace.clock.now_s(), fake_data.card_values(FakeState.NOTHING, fake_data.h100(2), 5.0)
    )
    stack = build(workspace)
    assert stack.stage.tracks["vram"].panel.left_axis.high == pytest.approx(6 * 1.14)
    workspace.select_card(fake_data.h100(2).uuid)
    workspace.advance(1.0)
    assert stack.refresh()
    capacity = fake_data.h100(2).capacity_bytes
    assert capacity is not None
    assert stack.stage.tracks["vram"].panel.left_axis.high == pytest.approx(1.14 * capacity / GIB)


def test_heads_say_values_and_limits(build: Build, leak: FakeWorkspace) -> None:
    stack = build(leak)

    def said(key: str) -> list[str]:
        return [entry.text.replace("\u00a0", " ") for entry in stack.stage.tracks[key].panel.head.keys]

    card = fake_data.card_values(FakeState.LEAK, fake_data.gtx_1660(), leak.clock.now_s())
    assert said("vram")[0] == f"device {card['memory_used_bytes'] / GIB:.2f} GiB"
    assert said("vram")[-1] == "capacity 6.00"
    assert said("utilization") == [f"{card['utilization_percent']:.0f} %"]
    assert said("temperature")[1] == "slows at 93"
    assert said("power")[1:] == ["limit 120", f"{card['energy_j'] / 3.6e6:.3f} kWh"]
    loss = leak.store.history("steps").value_at("loss", leak.clock.now_s())
    assert said("loss")[0] == f"train {loss:.3f}"


def test_a_missing_value_is_said_with_its_reason(build: Build) -> None:
    workspace = FakeWorkspace(FakeState.NOTHING)
    stack = build(workspace)
    uuid = fake_data.gtx_1660().uuid
    readings = dict(workspace.readings.get()[uuid])
    readings["power_w"] = fake_data.Reading(None, fake_data.Reason.NOT_SUPPORTED)
    workspace.readings.set({uuid: readings})
    stack.refresh_texts()
    assert stack.stage.tracks["power"].panel.head.keys[0].text == "n/a · not supported"


def test_axes_rest_while_values_tremble(build: Build) -> None:
    workspace = FakeWorkspace(FakeState.HEALTHY)
    stack = build(workspace)
    axes = {key: track.panel.left_axis for key, track in stack.stage.tracks.items() if key != "loss"}
    for _ in range(10):
        workspace.advance(2.0)
        stack.refresh()
    assert {key: stack.stage.tracks[key].panel.left_axis for key in axes} == axes


def test_limits_are_where_the_card_says(build: Build, leak: FakeWorkspace) -> None:
    stack = build(leak)
    for key, value in (("vram", 6.0), ("temperature", 93.0), ("power", 120.0)):
        panel = stack.stage.tracks[key].panel
        (limit,) = panel.curves.content.limits
        assert limit.y == pytest.approx(panel.left_axis.share(value))


# -- forecast ---------------------------------------------------------------------------------------------------------


def test_the_forecast_ends_at_the_brim_at_its_time(build: Build, leak: FakeWorkspace) -> None:
    stack = build(leak)
    made = stack.stage.forecast.course
    assert made is not None
    assert made.text == "step 1,840"
    panel = stack.stage.tracks["vram"].panel
    per_second = panel.plot.width() / stack.view.width
    assert made.end.x() - made.start.x() == pytest.approx(200.0 * per_second, abs=1.5)
    assert made.early.x() < made.end.x() < made.late.x() <= panel.plot.right()
    assert made.end.y() == pytest.approx(panel.plot.bottom() - panel.left_axis.share(6.0) * panel.plot.height())


def test_without_a_forecast_now_is_at_the_right(build: Build) -> None:
    workspace = FakeWorkspace(FakeState.HEALTHY)
    stack = build(workspace)
    assert stack.view.right == 0.0
    assert stack.stage.forecast.course is None


def test_the_forecast_of_a_dead_run_is_gone(build: Build) -> None:
    assert build(FakeWorkspace(FakeState.OUT_OF_MEMORY)).stage.forecast.course is None


# -- cursor -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("x", [-600.0, -300.5, -10.0, -0.5])
def test_the_cursor_says_what_the_store_says(build: Build, leak: FakeWorkspace, x: float) -> None:
    stack = build(leak)
    stack.move_cursor(x)
    t_s = stack.cursor_t_s
    assert t_s is not None
    steps = leak.store.history("steps")
    card = leak.store.history(f"gpu:{fake_data.gtx_1660().uuid}")
    said = {name: value.replace("\u00a0", " ") for name, value, _ in stack.read_out.rows}
    assert said["train loss"] == f"{steps.value_at('loss', t_s):.3f}"
    assert said["device"] == f"{(card.value_at('memory_used_bytes', t_s) or 0) / GIB:.2f} GiB"
    assert said["temperature"] == f"{card.value_at('temperature_c', t_s):.0f} °C"
    assert said["power"] == f"{card.value_at('power_w', t_s):.0f} W"
    assert stack.read_out.right == f"step {steps.value_at('step', t_s):,.0f}"


def test_in_a_gap_the_cursor_says_nothing_of_the_card(build: Build) -> None:
    stack = build(FakeWorkspace(FakeState.GPU_LOST))
    stack.move_cursor(-30.0)
    names = [name for name, _, _ in stack.read_out.rows]
    assert "train loss" in names
    assert not {"device", "utilisation", "temperature", "power"} & set(names)


def test_the_mouse_moves_the_cursor_and_takes_it_away(build: Build, leak: FakeWorkspace) -> None:
    stack = build(leak)
    plot = stack.stage.tracks["loss"].panel.plot
    stack.stage.canvas.hovered.emit(QPointF(plot.left() + plot.width() / 2, 100.0))
    middle = stack.view.anchor_s + stack.view.left + stack.view.width / 2
    assert stack.cursor_t_s == pytest.approx(middle, abs=stack.view.width / plot.width())
    stack.stage.canvas.left.emit()
    assert stack.cursor_t_s is None


def test_keys_move_the_cursor_zoom_and_return(build: Build, leak: FakeWorkspace, qtbot: QtBot) -> None:
    stack = build(leak)
    qtbot.keyClick(stack, Qt.Key.Key_Left)
    first = stack.cursor_t_s
    qtbot.keyClick(stack, Qt.Key.Key_Left, Qt.KeyboardModifier.ShiftModifier)
    second = stack.cursor_t_s
    assert first is not None
    assert second is not None
    assert first - second == pytest.approx(0.1 * stack.view.width)
    width = stack.view.width
    qtbot.keyClick(stack, Qt.Key.Key_Plus)
    assert stack.view.width < width
    qtbot.keyClick(stack, Qt.Key.Key_PageUp)
    assert not stack.live
    qtbot.keyClick(stack, Qt.Key.Key_Home)
    assert stack.live
    qtbot.keyClick(stack, Qt.Key.Key_Escape)
    assert stack.cursor_t_s is None


# -- navigation -------------------------------------------------------------------------------------------------------


def test_dragging_browses_and_live_returns(build: Build, leak: FakeWorkspace, qtbot: QtBot) -> None:
    stack = build(leak)
    view = stack.view
    with qtbot.waitSignal(stack.live_changed, check_params_cb=lambda live: not live):
        stack.stage.canvas.dragged.emit(100.0)
    seconds = 100.0 / stack.stage.tracks["loss"].panel.plot.width() * view.width
    assert stack.view.left == pytest.approx(view.left - seconds)
    browsed = stack.view
    leak.advance(60.0)
    stack.refresh()
    assert stack.view == browsed
    with qtbot.waitSignal(stack.live_changed, check_params_cb=bool):
        stack.go_live()


def test_the_wheel_zooms(build: Build, leak: FakeWorkspace) -> None:
    stack = build(leak)
    width = stack.view.width
    point = QPointF(400.0, 100.0)
    wheel = QWheelEvent(
        point,
        point,
        QPoint(0, 0),
        QPoint(0, 120),
        Qt.MouseButton.NoButton,
        Qt.KeyboardModifier.NoModifier,
        Qt.ScrollPhase.NoScrollPhase,
        False,
    )
    QApplication.sendEvent(stack.stage.canvas.viewport(), wheel)
    assert stack.view.width == pytest.approx(width / 1.25, rel=0.1)


def test_a_span_is_chosen_and_told(build: Build, leak: FakeWorkspace, qtbot: QtBot) -> None:
    stack = build(leak)
    with qtbot.waitSignal(stack.span_changed, check_params_cb=lambda span: span == 60.0):
        stack.set_span_s(60.0)
    assert -stack.view.left == 60.0
    stack.set_span_s(ALL)
    assert -stack.view.left >= leak.clock.now_s()


# -- sizes ------------------------------------------------------------------------------------------------------------


def test_low_windows_hide_panels_and_say_so(build: Build, leak: FakeWorkspace) -> None:
    stack = build(leak)
    assert stack.hidden_panels == ()
    stack.set_compact(True)
    assert stack.hidden_panels == ("optimizer",)
    stack.resize(430, 320)
    QApplication.processEvents()
    assert set(stack.hidden_panels) == {"optimizer", "temperature", "power"}
    before = stack.stage.tracks["power"].drawn
    leak.advance(10.0)
    stack.refresh()
    assert stack.stage.tracks["power"].drawn == before


@pytest.mark.parametrize("size", [(430, 478), (820, 718), (430, 718)])
def test_panels_lie_below_each_other_inside_the_view(build: Build, leak: FakeWorkspace, size: tuple[int, int]) -> None:
    stack = build(leak, width=size[0], height=size[1])
    rects = [
        stack.stage.canvas.rect_of(track.panel)
        for key, track in stack.stage.tracks.items()
        if key not in stack.hidden_panels
    ]
    rects.append(stack.stage.canvas.rect_of(stack.stage.lane))
    for above, below in itertools.pairwise(rects):
        assert below.top() - above.bottom() == pytest.approx(8, abs=0.5)
    assert rects[-1].bottom() <= stack.stage.canvas.height() + 0.5
    assert all(rect.width() == pytest.approx(stack.stage.canvas.width(), abs=1) for rect in rects)
    plots = {(track.panel.plot.left(), track.panel.plot.width()) for track in stack.stage.tracks.values()}
    assert len(plots) == 1
    assert plots == {(stack.stage.lane.plot.left(), stack.stage.lane.plot.width())}


def test_large_type_makes_larger_heads(build: Build, leak: FakeWorkspace) -> None:
    stack = build(leak)
    top = stack.stage.tracks["loss"].panel.plot.top()
    font = stack.font()
    font.setPointSizeF(1.6 * font.pointSizeF())
    stack.setFont(font)
    assert stack.stage.tracks["loss"].panel.plot.top() > 1.4 * top


# -- languages --------------------------------------------------------------------------------------------------------


def test_language_is_switched_live(build: Build, leak: FakeWorkspace, translators: Translators) -> None:
    stack = build(leak)
    assert stack.stage.tracks["vram"].panel.head.title == "VRAM"
    translators.use("zh_CN")
    stack.retranslate()
    assert stack.stage.tracks["vram"].panel.head.title == "显存"
    translators.clear()
    stack.retranslate()
    assert stack.stage.tracks["vram"].panel.head.title == "VRAM"


def test_decimals_do_not_follow_the_system(build: Build, leak: FakeWorkspace) -> None:
    before = QLocale()
    QLocale.setDefault(QLocale(QLocale.Language.German))
    try:
        stack = build(leak)
        assert locale.localeconv()["decimal_point"] == "."
        assert stack.stage.tracks["vram"].panel.head.keys[-1].text == "capacity 6.00"
    finally:
        QLocale.setDefault(before)


def test_it_is_named_for_screen_readers(build: Build, leak: FakeWorkspace) -> None:
    stack = build(leak)
    assert stack.accessibleName() == "Charts"
    assert stack.focusPolicy() == Qt.FocusPolicy.StrongFocus
    said = stack.describe().replace("\u00a0", " ")
    assert "VRAM: device 4." in said
    assert "capacity 6.00" in said


# -- leaks ------------------------------------------------------------------------------------------------------------


def test_it_owns_no_timer(build: Build, leak: FakeWorkspace) -> None:
    stack = build(leak)
    assert not [timer for timer in stack.findChildren(QTimer) if timer.isActive()]


def test_a_closed_stack_dies(qtbot: QtBot, leak: FakeWorkspace) -> None:
    stack = ChartStack(leak, DARK)
    stack.resize(700, 500)
    with qtbot.waitExposed(stack):
        stack.show()
    stack.refresh()
    parts = [weakref.ref(stack), *(weakref.ref(track.panel) for track in stack.stage.tracks.values())]
    stack.close()
    stack.deleteLater()
    del stack
    QCoreApplication.sendPostedEvents(None, QEvent.Type.DeferredDelete)
    gc.collect()
    assert [part() for part in parts] == [None] * len(parts)


def test_a_thousand_frames_lose_no_reference_to_none(build: Build) -> None:
    """PySide6 6.12.0 on Python 3.11 loses one in most void calls and aborts after about 5,000 of them."""
    workspace = FakeWorkspace(FakeState.HEALTHY)
    stack = build(workspace, width=500, height=430)
    stack.set_span_s(60.0)
    gc.collect()
    before = sys.getrefcount(None)
    drawn_before = drawn(stack)
    for _ in range(1000):
        workspace.manual.now_s += 0.2
        stack.refresh()
    QApplication.processEvents()
    gc.collect()
    assert drawn(stack) - drawn_before > 4000
    assert abs(sys.getrefcount(None) - before) < 500
