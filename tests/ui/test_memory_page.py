"""The memory page: the estimate in numbers, its step, its modules, its blocks, by mouse and by keyboard."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from PySide6.QtCore import QCoreApplication, QEvent, QPoint, QPointF, Qt
from PySide6.QtGui import QColor, QGuiApplication, QWheelEvent
from PySide6.QtWidgets import QLabel, QToolButton, QVBoxLayout, QWidget
from pytestqt.qtbot import QtBot

from desktop_app.core.estimates import Timeline
from desktop_app.core.forecasts import Estimate, Verdict
from desktop_app.core.steps import Category, Phase, RunState
from desktop_app.memory.trace_errors import CODES
from desktop_app.services.facade import EstimateState, EstimateStatus, SnapshotState, SnapshotStatus, StepRecording
from desktop_app.ui import i18n
from desktop_app.ui.main_window import MainWindow
from desktop_app.ui.memory.block_facts import block_facts, largest_blocks
from desktop_app.ui.memory.canvas import TimelineCanvas
from desktop_app.ui.memory.colors import kind_color
from desktop_app.ui.memory.legend import Entry, Legend
from desktop_app.ui.memory.memory_page import MemoryPage, owners_within
from desktop_app.ui.memory.phase_bars import PhaseBars, phase_spans
from desktop_app.ui.memory.source_switch import Source
from desktop_app.ui.memory.timeline_layout import block_shades
from desktop_app.ui.parts import Part
from desktop_app.ui.texts import errors
from desktop_app.ui.texts import memory as texts
from desktop_app.ui.theme import DARK, LIGHT
from tests.ui.clipping import clipped_texts
from tests.ui.fake_forecasts import ready_estimate
from tests.ui.fake_timelines import random_timeline
from tests.ui.fake_workspace import FakeState, FakeWorkspace

MakeWindow = Callable[..., MainWindow]
Show = Callable[..., QWidget]


def page_of(window: MainWindow) -> MemoryPage:
    window.actions_.trigger("view.memory")
    QCoreApplication.processEvents()
    page = window.centre.memory
    assert page is not None
    return page


def words(widget: QWidget) -> str:
    return "\n".join(label.text() for label in widget.findChildren(QLabel) if label.isVisible())


def canvas_of(show: Show, timeline: Timeline | None = None) -> TimelineCanvas:
    canvas = TimelineCanvas(DARK)
    canvas.set_timeline(timeline or random_timeline(blocks=60, seed=11), hint="nothing")
    show(canvas, width=640, height=300)
    sharpen(canvas)
    return canvas


def sharpen(canvas: TimelineCanvas) -> None:
    canvas.repaint()
    while not canvas.is_sharp:
        QCoreApplication.processEvents()
    canvas.repaint()


def answered(workspace: FakeWorkspace, estimate: Estimate, state: EstimateState = EstimateState.READY) -> None:
    workspace.estimate.set(EstimateStatus(state, estimate, workspace.config))


# -- the way there and back -------------------------------------------------------------------------------------------


def test_tank_leads_to_the_memory_page_and_escape_back(make_window: MakeWindow, qtbot: QtBot) -> None:
    window = make_window(FakeWorkspace(FakeState.TOO_BIG))
    assert window.centre.memory is None  # not made before it is wanted
    qtbot.mouseClick(window.tank, Qt.MouseButton.LeftButton)
    assert window.centre.shows_memory
    assert window.actions_["view.memory"].isChecked()
    page = window.centre.memory
    assert page is not None
    qtbot.keyClick(page, Qt.Key.Key_Escape)
    assert not window.centre.shows_memory
    assert window.actions_["view.curves"].isChecked()
    window.tank.setFocus()
    qtbot.keyClick(window.tank, Qt.Key.Key_Return)
    assert window.centre.shows_memory


def test_page_asks_for_an_estimate_where_there_is_none(make_window: MakeWindow) -> None:
    workspace = FakeWorkspace(FakeState.NOTHING)
    page_of(make_window(workspace))
    assert len(workspace.called("request_estimate")) == 1
    workspace = FakeWorkspace(FakeState.TOO_BIG)
    page_of(make_window(workspace))
    assert not workspace.called("request_estimate")


@pytest.mark.parametrize("width", [1440, 1024])
def test_commands_lead_to_every_part(make_window: MakeWindow, width: int) -> None:
    window = make_window(FakeWorkspace(FakeState.TOO_BIG), width=width, height=900 if width > 1200 else 640)
    window.activateWindow()
    page = page_of(window)
    assert page.step.canvas.isVisible()
    window.actions_.trigger("view.modules")
    assert page.modules.search.isVisible()
    window.actions_.trigger("view.blocks")
    assert page.blocks.table.isVisible()
    page.open_part(Part.PEAK)
    assert page.answer.isVisible()
    page.open_part(Part.STEP)
    assert page.step.canvas.isVisible()


# -- the answer -------------------------------------------------------------------------------------------------------


def test_answer_says_the_peaks_and_how_they_were_found(make_window: MakeWindow) -> None:
    workspace = FakeWorkspace(FakeState.NOTHING)
    window = make_window(workspace)
    page = page_of(window)
    assert not page.answer.isVisible()
    answered(workspace, dataclasses.replace(ready_estimate(), warnings=("returns_cache", "10 classes are assumed")))
    window.refresh_texts()
    said = words(page.answer).replace("\N{NO-BREAK SPACE}", " ")
    for expected in (
        "4.31 GiB",
        "4.50 GiB",
        "4.60 GiB",
        "3.83 GiB",
        "3.65 GiB",
        "Traced on meta tensors, uncertain by 1 %, in 0.8 s.",
        "Kernels assumed: attention flash, optimizer foreach.",
        "Values made up: aten._local_scalar_dense × 3.",
        "It runs, but torch has to give its cache back to the driver again and again.",
        "10 classes are assumed.",
    ):
        assert expected in said


@pytest.mark.parametrize(
    ("rung", "expected"),
    [
        ("native", "Traced as CUDA, with a card in sight"),
        ("shim", "Traced as CUDA"),
        ("meta", "Traced on meta tensors"),
        ("formula", "By formula: wide"),
    ],
)
def test_every_rung_is_named(qapp: object, rung: str, expected: str) -> None:
    assert texts.how(dataclasses.replace(ready_estimate(), rung=rung)).startswith(expected)


def test_probability_is_never_certain(qapp: object) -> None:
    estimate = dataclasses.replace(ready_estimate(), fits_probability=1.0)
    assert texts.fits_probability(estimate).replace("\N{NO-BREAK SPACE}", " ").endswith("more than 99 %.")
    estimate = dataclasses.replace(estimate, fits_probability=0.5)
    assert texts.fits_probability(estimate).replace("\N{NO-BREAK SPACE}", " ").endswith("of 50 %.")
    assert texts.fits_probability(dataclasses.replace(estimate, verdict=Verdict.TIGHT)) == ""


def test_phases_come_in_the_order_of_a_step() -> None:
    spans = phase_spans(ready_estimate())
    assert list(spans) == [Phase.BUILD, Phase.FORWARD, Phase.BACKWARD, Phase.OPTIMIZER, Phase.ZERO]
    bare = dataclasses.replace(ready_estimate(), phase_peaks={})
    assert phase_spans(bare)[Phase.BACKWARD] == (bare.phases[Phase.BACKWARD],) * 2


def test_what_cannot_be_said_is_said(make_window: MakeWindow) -> None:
    workspace = FakeWorkspace(FakeState.NOTHING)
    window = make_window(workspace)
    page = page_of(window)
    assert "No estimate yet" in page.step.canvas.describe()
    nothing = dataclasses.replace(
        ready_estimate(), verdict=Verdict.CANNOT_SAY, warnings=("untraceable:aten.unique",), rung="none"
    )
    answered(workspace, nothing)
    window.refresh_texts()
    assert page.step.canvas.describe() == "aten.unique cannot be traced without the card."
    assert "aten.unique cannot be traced" in words(page.modules)
    workspace.estimate.set(EstimateStatus(EstimateState.FAILED, None, None, "data.one_class", "One class only."))
    window.refresh_texts()
    assert page.step.canvas.describe() == "One class only."
    assert not page.answer.isVisible()


def test_an_early_answer_is_shown_before_the_largest_batch_is_known(make_window: MakeWindow) -> None:
    workspace = FakeWorkspace(FakeState.NOTHING)
    window = make_window(workspace)
    early = dataclasses.replace(ready_estimate(), largest_batch=None, warnings=("pending",), levers=())
    workspace.estimate.set(EstimateStatus(EstimateState.WORKING, early, workspace.config, levers_pending=True))
    window.refresh_texts()
    assert window.banner.headline.sentence.startswith("Fits")
    assert "The largest batch is being searched." in window.banner.headline.evidence
    assert "Not even a batch of one" not in words(window.side_panel)
    # The same estimate beside another form is an old one.
    workspace.estimate.set(EstimateStatus(EstimateState.WORKING, early, workspace.config))
    window.refresh_texts()
    assert window.banner.headline.sentence == "Estimating…"


@pytest.mark.parametrize("kind", sorted(CODES))
def test_every_way_that_a_trace_ends_has_words(translators: i18n.Translators, kind: str) -> None:
    translators.use(i18n.CHINESE)
    line = "the details, in English"
    said = errors.text(f"trace.{kind}", line)
    assert said.endswith("The details, in English")
    assert said != "The details, in English"


# -- the step ---------------------------------------------------------------------------------------------------------


def test_canvas_shows_each_block_in_its_colour(show: Show) -> None:
    canvas = canvas_of(show)
    scene = canvas.scene()
    assert scene is not None
    picture = canvas.grab().toImage()
    timeline = scene.layout.timeline
    event = scene.layout.peak_event
    height = 0
    seen = 0
    for block in scene.layout.alive(event):
        size = int(timeline.size_bytes[block])
        y = scene.y(height + size / 2)
        height += size
        if size / scene.stretch.height * scene.plot.height() < 6:
            continue
        expected = kind_color(DARK, tuple(Category)[timeline.category[block]])
        assert picture.pixelColor(round(scene.x(event + 0.5)), round(y)) == expected
        seen += 1
    assert seen > 3


def test_theme_changes_the_picture_without_another_layout(show: Show) -> None:
    canvas = canvas_of(show)
    before = canvas.grab().toImage()
    canvas.set_theme(LIGHT)
    assert canvas.is_sharp
    assert canvas.grab().toImage() != before


def test_hover_names_the_block_and_a_click_pins_it(show: Show, qtbot: QtBot) -> None:
    canvas = canvas_of(show)
    scene = canvas.scene()
    assert scene is not None
    pinned: list[object] = []
    canvas.pinned.connect(pinned.append)
    event = scene.layout.peak_event
    block = int(scene.layout.alive(event)[2])
    middle = scene.layout.bottom_at(block, event) + int(scene.layout.timeline.size_bytes[block]) / 2
    position = QPointF(scene.x(event + 0.5), scene.y(middle)).toPoint()
    qtbot.mouseMove(canvas, position)
    qtbot.waitUntil(lambda: canvas.hovered_block == block)
    qtbot.mouseClick(canvas, Qt.MouseButton.LeftButton, pos=position)
    assert pinned == [block]
    facts = block_facts(scene.layout.timeline, block)
    assert facts.owner in canvas.describe()
    qtbot.mouseMove(canvas, position + QPoint(60, 0))
    assert canvas.pinned_block == block
    qtbot.keyClick(canvas, Qt.Key.Key_Escape)
    assert pinned == [block, None]


def test_wheel_zooms_around_the_mouse_and_drag_moves(show: Show, qtbot: QtBot) -> None:
    canvas = canvas_of(show)
    plot = canvas.plot
    place = QPointF(plot.left() + 0.25 * plot.width(), plot.center().y())

    def turn(notches: int, keys: Qt.KeyboardModifier = Qt.KeyboardModifier.NoModifier) -> None:
        event = QWheelEvent(
            place,
            canvas.mapToGlobal(place),
            QPoint(),
            QPoint(0, 120 * notches),
            Qt.MouseButton.NoButton,
            keys,
            Qt.ScrollPhase.NoScrollPhase,
            False,
        )
        QCoreApplication.sendEvent(canvas, event)

    before = canvas.stretch
    at = before.first + 0.25 * before.width
    turn(3)
    zoomed = canvas.stretch
    assert zoomed.width < before.width
    assert zoomed.height == before.height
    assert zoomed.first + 0.25 * zoomed.width == pytest.approx(at)
    turn(2, Qt.KeyboardModifier.ControlModifier)
    assert canvas.stretch.height < zoomed.height
    start = canvas.stretch
    qtbot.mousePress(canvas, Qt.MouseButton.LeftButton, pos=plot.center().toPoint())
    for pixels in (30, 60):
        qtbot.mouseMove(canvas, plot.center().toPoint() - QPoint(pixels, 0))
    qtbot.mouseRelease(canvas, Qt.MouseButton.LeftButton, pos=plot.center().toPoint() - QPoint(60, 0))
    assert canvas.stretch.first > start.first
    assert canvas.pinned_block is None  # a drag is no click
    qtbot.mouseDClick(canvas, Qt.MouseButton.LeftButton, pos=plot.center().toPoint())
    assert canvas.stretch.is_whole


def test_canvas_can_be_used_by_the_keyboard_alone(show: Show, qtbot: QtBot) -> None:
    canvas = canvas_of(show)
    layout = canvas.layout_of_blocks
    assert layout is not None
    canvas.setFocus()
    qtbot.keyClick(canvas, Qt.Key.Key_Up)
    first = canvas.hovered_block
    assert first is not None
    qtbot.keyClick(canvas, Qt.Key.Key_Down)
    assert canvas.hovered_block is not None
    assert canvas.hovered_block < first
    qtbot.keyClick(canvas, Qt.Key.Key_Return)
    assert canvas.pinned_block == canvas.hovered_block
    qtbot.keyClick(canvas, Qt.Key.Key_Plus)
    qtbot.keyClick(canvas, Qt.Key.Key_Plus)
    assert not canvas.stretch.is_whole
    for _ in range(40):
        qtbot.keyClick(canvas, Qt.Key.Key_Right)
    assert canvas.scene() is not None
    assert canvas.stretch.first > 0
    qtbot.keyClick(canvas, Qt.Key.Key_Home)
    assert canvas.stretch.is_whole


def test_zoom_stays_while_only_levers_are_added(make_window: MakeWindow) -> None:
    workspace = FakeWorkspace(FakeState.TOO_BIG)
    window = make_window(workspace)
    canvas = page_of(window).step.canvas
    canvas.zoom(0.3)
    shown = canvas.stretch
    known = workspace.estimate.get().estimate
    assert known is not None
    answered(workspace, dataclasses.replace(known, seconds=2.0, levers=()))
    window.refresh_texts()
    assert canvas.stretch == shown
    answered(workspace, dataclasses.replace(known, timeline=random_timeline(blocks=50, seed=2)))
    window.refresh_texts()
    assert canvas.stretch.is_whole


def test_step_of_the_run_can_be_drawn(make_window: MakeWindow, qtbot: QtBot) -> None:
    workspace = FakeWorkspace(FakeState.HEALTHY)
    window = make_window(workspace)
    page = page_of(window)
    assert not page.step.source.isVisible()
    assert not window.actions_["run.record_step"].isEnabled()
    workspace.step_recording.set(StepRecording(possible=True))
    window.refresh_texts()
    run = next(button for button in page.step.source.findChildren(QToolButton) if button.text() == "This run")
    qtbot.mouseClick(run, Qt.MouseButton.LeftButton)
    assert workspace.called("record_step") == [("record_step",)]
    window.refresh_texts()
    assert "being written down" in page.step.canvas.describe()
    made = random_timeline(blocks=20, seed=9)
    workspace.step_recording.set(StepRecording(possible=True, timeline=made))
    window.refresh_texts()
    assert page.step.canvas.timeline is made
    page.step.source.choose(Source.ESTIMATE)
    known = workspace.estimate.get().estimate
    assert known is not None
    assert page.step.canvas.timeline is known.timeline
    page.step.source.choose(Source.RUN)
    assert len(workspace.called("record_step")) == 1  # there is one already
    workspace.set_run(state=RunState.STOPPED)
    workspace.step_recording.set(StepRecording())
    window.refresh_texts()
    assert page.step.canvas.timeline is known.timeline
    assert not page.step.source.isVisible()


def test_recording_of_ones_own_is_drawn_by_owner(make_window: MakeWindow) -> None:
    """A snapshot of torch knows neither phases nor kinds."""
    workspace = FakeWorkspace(FakeState.TOO_BIG)
    window = make_window(workspace)
    window.centre.open_snapshot("/somewhere/mine.pickle")
    page = window.centre.memory
    assert page is not None
    assert workspace.called("open_snapshot") == [("open_snapshot", Path("/somewhere/mine.pickle"))]
    assert page.step.canvas.describe() == "mine.pickle is being read…"
    known = random_timeline(blocks=40, seed=8)
    other = np.full(len(known.category), tuple(Category).index(Category.OTHER), dtype=np.int32)
    made = dataclasses.replace(known, category=other, phases=())
    workspace.snapshot.set(SnapshotStatus(SnapshotState.READY, name="mine.pickle", timeline=made))
    window.refresh_texts()
    assert page.step.canvas.timeline is made
    assert "mine.pickle" in words(page.step)
    shades = block_shades(made)
    for owner in range(len(made.owners)):
        assert len(set(shades[made.owner == owner].tolist())) <= 1
    assert len(set(shades.tolist())) == len(made.owners)
    assert page.step.legend.accessibleName().startswith("reserved")
    line = "One line that says why."
    workspace.snapshot.set(SnapshotStatus(SnapshotState.FAILED, "mine.pickle", None, "snapshot.damaged", line))
    window.refresh_texts()
    assert page.step.canvas.describe() == line


@pytest.mark.parametrize(
    ("born", "died", "begin", "end", "expected"),
    [
        (None, None, None, None, "throughout"),
        (3, None, Phase.FORWARD, None, "from forward on"),
        (3, None, None, None, "from event 3 on"),
        (None, 9, None, Phase.ZERO, "until zero grad"),
        (3, 9, Phase.FORWARD, Phase.FORWARD, "forward, 6 events"),
        (3, 9, Phase.FORWARD, Phase.BACKWARD, "forward to backward, 6 events"),
        (3, 9, None, None, "6 events"),
    ],
)
def test_life_of_a_block_in_words(
    qapp: object, born: int | None, died: int | None, begin: Phase | None, end: Phase | None, expected: str
) -> None:
    assert texts.lifetime(born, died, begin=begin, end=end) == expected


# -- modules and blocks -----------------------------------------------------------------------------------------------


def test_module_dims_all_blocks_but_its_own(make_window: MakeWindow, qtbot: QtBot) -> None:
    window = make_window(FakeWorkspace(FakeState.TOO_BIG))
    page = page_of(window)
    page.modules.search.setText("layer.3.output.dense")
    tree = page.modules.tree
    model = page.modules.model
    row = next(row for row, module in enumerate(model.modules) if module.path.endswith("layer.3.output.dense"))
    tree.setCurrentIndex(model.index_of(row))
    scene = page.step.canvas.scene()
    assert scene is not None
    timeline = scene.layout.timeline
    assert scene.owners is not None
    assert {timeline.owners[owner] for owner in scene.owners} == {"bert.encoder.layer.3.output.dense"}
    qtbot.keyClick(page, Qt.Key.Key_Escape)
    scene = page.step.canvas.scene()
    assert scene is not None
    assert scene.owners is None
    assert window.centre.shows_memory


def test_owners_of_a_module_are_it_and_what_lies_below_it() -> None:
    timeline = dataclasses.replace(random_timeline(blocks=8, seed=0), owners=("a", "a.b", "ab", "", "c.a"))
    assert owners_within(timeline, "a") == {0, 1}


def test_blocks_come_largest_first_and_pin_themselves(make_window: MakeWindow, qtbot: QtBot) -> None:
    workspace = FakeWorkspace(FakeState.TOO_BIG)
    window = make_window(workspace)
    page = page_of(window)
    window.actions_.trigger("view.blocks")
    table, model = page.blocks.table, page.blocks.model
    timeline = page.step.canvas.timeline
    assert timeline is not None
    blocks = [model.block_at(row) for row in range(model.rowCount())]
    sizes = timeline.size_bytes[blocks]
    assert np.all(np.diff(sizes) <= 0)
    assert sizes[0] == timeline.size_bytes.max()
    assert len(blocks) == min(1000, len(timeline.size_bytes))
    table.selectRow(3)
    assert page.step.canvas.pinned_block == blocks[3]
    page.step.canvas.pin(blocks[5])
    assert table.currentIndex().row() == 5
    qtbot.keyClick(table, Qt.Key.Key_C, Qt.KeyboardModifier.ControlModifier)
    assert QGuiApplication.clipboard().text() == model.line(5)


def test_largest_blocks_of_a_short_list_are_all_of_them() -> None:
    timeline = random_timeline(blocks=12, seed=4)
    found = largest_blocks(timeline, 1000)
    assert sorted(found.tolist()) == list(range(len(timeline.size_bytes)))
    assert largest_blocks(timeline, 3).tolist() == found[:3].tolist()


# -- looks ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("language", ["en", "zh_CN"])
@pytest.mark.parametrize("state", [FakeState.NOTHING, FakeState.TOO_BIG, FakeState.ESTIMATE_FAILED])
def test_page_shows_all_its_texts(make_window: MakeWindow, state: FakeState, language: str) -> None:
    window = make_window(FakeWorkspace(state), language=language)
    assert clipped(window) == []


def test_page_has_room_for_longer_texts(make_window: MakeWindow, pseudo_qm: str) -> None:
    window = make_window(FakeWorkspace(FakeState.TOO_BIG))
    page_of(window)
    assert window.appearance.install(pseudo_qm)
    QCoreApplication.processEvents()
    assert clipped(window) == []


def clipped(window: MainWindow) -> list[str]:
    page = page_of(window)
    found = []
    for width, height in ((1440, 900), (1024, 640)):
        window.resize(width, height)
        for part in Part:
            page.open_part(part)
            for _ in range(4):
                QCoreApplication.processEvents()
            found += [f"{width}x{height} {part.name}: {problem}" for problem in clipped_texts(window)]
    return found


def test_page_made_late_speaks_the_language_of_the_window(make_window: MakeWindow) -> None:
    window = make_window(FakeWorkspace(FakeState.TOO_BIG), language=i18n.CHINESE)
    page = page_of(window)
    assert "如何得出" in words(page)
    window.set_language(i18n.ENGLISH)
    QCoreApplication.processEvents()
    assert "How it was found" in words(page)


def test_closed_page_dies_with_its_window(make_window: MakeWindow) -> None:
    window = make_window(FakeWorkspace(FakeState.TOO_BIG))
    page = page_of(window)
    gone: list[bool] = []
    page.destroyed.connect(lambda: gone.append(True))
    window.pulse.stop()
    window.deleteLater()
    make_window.windows.remove(window)  # type: ignore[attr-defined]
    QCoreApplication.sendPostedEvents(None, QEvent.Type.DeferredDelete)
    assert gone


def test_the_key_keeps_its_lines_where_the_step_gets_narrower(show: Show) -> None:
    """Laid out wide first, where all of it is one row, then narrow, where it takes two."""
    theme = LIGHT
    holder = QWidget()
    key = Legend(theme)
    column = QVBoxLayout(holder)
    column.addWidget(key)
    column.addWidget(QWidget(), stretch=1)
    tint = QColor("red")
    key.set_entries([Entry(f"Kind {at}", tint) for at in range(8)] + [Entry("room 5.59 GiB", tint, dash=True)], theme)
    show(holder, width=1200, height=200)
    one_row = key.height()
    holder.resize(400, 200)
    for _ in range(3):
        QCoreApplication.processEvents()
    assert key.height() == key.heightForWidth(key.width())
    assert key.height() > 1.5 * one_row


def test_phases_are_said_to_be_each_on_its_own(make_window: MakeWindow) -> None:
    window = make_window(FakeWorkspace(FakeState.TOO_BIG))
    page = page_of(window)
    assert "Each phase on its own" in words(page)
    bars = page.findChild(PhaseBars)
    assert bars is not None
    assert "as if the cache were emptied before it" in bars.toolTip()
    window.set_language(i18n.CHINESE)
    QCoreApplication.processEvents()
    assert "各阶段单独计算" in words(page)
    assert "缓存已清空" in bars.toolTip()
