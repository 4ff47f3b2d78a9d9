"""Every cause has its words, its action and its place, whatever of its evidence is known."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable

import pytest
from PySide6.QtCore import QCoreApplication, QEvent, QRectF, Qt
from PySide6.QtGui import QGuiApplication
from PySide6.QtWidgets import QLabel, QPushButton, QWidget
from pytestqt.qtbot import QtBot

from desktop_app.core.events import Event, EventKind, Level
from desktop_app.core.forecasts import ACTIONS, Alert, AlertSeverity, Cause
from desktop_app.core.steps import RunState
from desktop_app.core.units import GIB, MIB
from desktop_app.services.facade import StepRecording
from desktop_app.ui import recommendations
from desktop_app.ui.alert_card import AlertCard
from desktop_app.ui.alerts_panel import ordered
from desktop_app.ui.charts import texts as chart_texts
from desktop_app.ui.charts.forecast_item import course
from desktop_app.ui.charts.scales import Axis
from desktop_app.ui.charts.time_axis import View
from desktop_app.ui.commands import BY_ID
from desktop_app.ui.headline import Band
from desktop_app.ui.i18n import Translators
from desktop_app.ui.main_window import MainWindow
from desktop_app.ui.side_panel import Tab
from desktop_app.ui.texts import advice, evidence, figures, outlooks
from desktop_app.ui.texts.numbers import NBSP
from tests.ui.fake_forecasts import alert_of, forecast_of
from tests.ui.fake_workspace import FakeState, FakeWorkspace

MakeWindow = Callable[..., MainWindow]


@pytest.fixture(scope="module")
def healthy() -> FakeWorkspace:
    """Made once: these tests change what they need of it and nothing else reads it."""
    return FakeWorkspace(FakeState.HEALTHY)


def plain(text: str) -> str:
    return text.replace(NBSP, " ")


@pytest.mark.parametrize("cause", list(Cause))
@pytest.mark.parametrize("severity", list(AlertSeverity))
def test_every_cause_has_a_sentence_of_its_own(cause: Cause, severity: AlertSeverity) -> None:
    outlook = outlooks.outlook_of(alert_of(cause, 10.0, severity=severity))
    said = plain(outlooks.sentence(outlook))
    assert said
    if severity is AlertSeverity.WATCH:
        assert "likely" not in said
    elif cause not in (Cause.FIRST_OPTIMIZER_STEP, Cause.SPILL):
        assert "step 1,840, in about 3 min 20 s  (2:50 to 4:10, 8 of 10)" in said


@pytest.mark.parametrize("cause", list(Cause))
def test_evidence_may_be_empty(cause: Cause) -> None:
    outlook = dataclasses.replace(outlooks.outlook_of(alert_of(cause, 10.0)), evidence={})
    said = evidence.line(outlook)
    assert said.endswith(".")
    assert "{" not in said


# The figures are those that the causes in ``desktop_app.forecast`` give.
@pytest.mark.parametrize(
    ("cause", "facts", "said"),
    [
        (
            Cause.BATCH_SHAPE,
            {"batch_tokens": 4096, "demand_bytes": 3 * GIB, "live_bytes": 2 * GIB, "room_bytes": 4.5 * GIB},
            "A batch of 4,096 tokens is to come. It needs 5.00 GiB, and there is room for 4.50 GiB.",
        ),
        (
            Cause.BATCH_SHAPE,
            {"demand_slope_bytes_per_step": 3 * MIB, "rising_steps": 40, "demand_bytes": GIB},
            "Batches become larger: every step needs 3.0 MiB more than the one before, for 40 steps.",
        ),
        (
            Cause.LEAK,
            {"jump_bytes": 30 * MIB, "jump_distance_steps": 25, "slope_bytes_per_step": MIB, "grown_steps": 80},
            "Memory that is never freed: +30.0 MiB every 25 steps. Typical cause: a loss kept with its graph.",
        ),
        (
            Cause.VALIDATION,
            {"jump_bytes": 30 * MIB, "validations_to_go": 3},
            "Every validation leaves 30.0 MiB behind; 3 more will fit.",
        ),
        (
            Cause.CHECKPOINT_SAVE,
            {"jump_bytes": 30 * MIB, "saves_to_go": 3},
            "Every saved checkpoint leaves 30.0 MiB behind; 3 more will fit.",
        ),
        (
            Cause.VALIDATION,
            {"demand_bytes": GIB, "live_bytes": 2 * GIB, "room_bytes": 2.5 * GIB, "steps_to_validation": 48.0},
            "What validation holds comes on top of the training. It needs 3.00 GiB, and there is room for 2.50 GiB.",
        ),
        (
            Cause.VALIDATION,
            {"slope_bytes_per_batch": 30 * MIB, "batches_done": 12.0, "batches_left": 40.0},
            "Every batch of this validation leaves 30.0 MiB behind: 12 are done, 40 are to come.",
        ),
        (
            Cause.RESUME,
            {"excess_bytes": GIB, "demand_bytes": GIB, "live_bytes": 2 * GIB, "room_bytes": 2.5 * GIB},
            "The loaded checkpoint has left 1.00 GiB on the card. "
            "This run needs 3.00 GiB, and there is room for 2.50 GiB.",
        ),
        (
            Cause.HOST_MEMORY,
            {"checkpoint_bytes": 3 * GIB, "host_available_bytes": 2 * GIB},
            "A checkpoint is put together in main memory: it needs 3.00 GiB, and 2.00 GiB are free.",
        ),
        (
            Cause.SPILL,
            {"times_slower": 4.23, "slow_steps": 6.0},
            "The driver moves memory of the card to main memory and back: a step takes 4.2 times as long.",
        ),
        (
            Cause.NEIGHBOUR,
            {"risen_bytes": 2 * GIB, "slope_bytes_per_s": 2 * MIB, "need_bytes": 5 * GIB, "room_bytes": 4 * GIB},
            "Other processes have taken 2.00 GiB more of this card. It grows by 120 MiB every minute. "
            "This run needs 5.00 GiB, and there is room for 4.00 GiB.",
        ),
        (
            Cause.NEIGHBOUR,
            {"owner_unknown": 1.0},
            "Something takes memory of this card; the driver does not say who.",
        ),
        (
            Cause.HOST_MEMORY,
            {
                "headroom_bytes": 2 * GIB,
                "host_total_bytes": 32 * GIB,
                "slope_bytes_per_s": MIB,
                "commit": 0.0,
                "children": 8.0,
                "children_rss_bytes": 20 * GIB,
            },
            "2.00 GiB of 32.00 GiB of main memory are left. It grows by 60.0 MiB every minute. "
            "8 loader workers hold 20.00 GiB.",
        ),
    ],
)
def test_evidence_says_its_figures(cause: Cause, facts: dict[str, float], said: str) -> None:
    outlook = dataclasses.replace(outlooks.outlook_of(alert_of(cause, 10.0)), evidence=facts)
    assert plain(evidence.line(outlook)) == said


def test_every_cause_and_action_has_advice() -> None:
    assert all(advice.for_cause(cause) for cause in Cause)
    assert all(advice.for_action(action) for action in ACTIONS)
    assert len({advice.for_action(action) for action in ACTIONS}) == len(ACTIONS)
    assert advice.for_action("no_such_action") == ""


def test_words_of_every_cause_are_translated(qapp: object, translators: Translators) -> None:
    english = {cause: outlooks.short_cause(cause) for cause in Cause}
    translators.use("zh_CN")
    assert [cause for cause in Cause if outlooks.short_cause(cause) == english[cause]] == []
    for cause in Cause:
        said = outlooks.sentence(outlooks.outlook_of(alert_of(cause, 10.0)))
        assert any("\N{CJK UNIFIED IDEOGRAPH-4E00}" <= letter <= "\N{CJK UNIFIED IDEOGRAPH-9FFF}" for letter in said)


def test_figures_have_the_unit_of_their_key() -> None:
    rows = dict(figures.table({"slope_bytes_per_s": MIB, "grown_s": 90.0, "pid": 4711.0, "significance": 9.0}))
    assert {plain(name): plain(value) for name, value in rows.items()} == {
        "Growth per minute": "60.0 MiB",
        "over": "1 min 30 s",
        "Process": "4711",
    }


def test_probabilities_are_never_certain() -> None:
    forecast = dataclasses.replace(
        forecast_of(alert_of(Cause.LEAK, 10.0), 10.0), p_oom={1: 0.0, 10: 0.12, 100: 1.0}, p_oom_epoch=None
    )
    assert [plain(value) for _, value in figures.probabilities(forecast)] == ["< 1 %", "12 %", "> 99 %", "93 %"]


# -- what can be done ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("action", "command"),
    [
        ("save_and_pause", "run.save_and_pause"),
        ("pause", "run.pause"),
        ("reduce_batch", "run.shrink_batch"),
        ("split_batch", "run.shrink_batch"),
        ("find_leak", "run.save_and_pause"),  # this run's device cannot write a step down
        ("expandable_segments", "run.copy_allocator_setting"),
        ("close_neighbour", "view.neighbour"),
        ("save_to_host", "run.pause"),  # saving is what would fail
        ("leave_room", "run.shrink_batch"),
    ],
)
def test_recommended_command(healthy: FakeWorkspace, action: str, command: str) -> None:
    alert = alert_of(Cause.OUTSIDE_ALLOCATOR, 10.0, action=action)
    assert recommendations.recommended_command(alert, healthy) == command
    watch = dataclasses.replace(alert, severity=AlertSeverity.WATCH)
    assert recommendations.recommended_command(watch, healthy) == ""


@pytest.mark.parametrize("action", ACTIONS)
def test_every_action_leads_to_commands_that_exist(healthy: FakeWorkspace, action: str) -> None:
    for cause in Cause:
        found = recommendations.commands_for(alert_of(cause, 10.0, action=action), healthy)
        assert found
        assert set(found) <= set(BY_ID)
        assert len(found) == len(set(found)) <= 2


def test_leak_can_be_looked_for_where_a_step_can_be_drawn() -> None:
    workspace = FakeWorkspace(FakeState.LEAK)
    workspace.step_recording.set(StepRecording(possible=True))
    (alert,) = workspace.alerts.get()
    assert recommendations.commands_for(alert, workspace) == ("run.save_and_pause", "run.record_step")


def test_a_batch_of_one_cannot_be_shrunk() -> None:
    workspace = FakeWorkspace(FakeState.LEAK)
    workspace.set_run(batch_size=1)
    assert not recommendations.can_shrink(workspace)
    alert = alert_of(Cause.BATCH_SHAPE, 10.0, action="reduce_batch")
    assert recommendations.recommended_command(alert, workspace) == "run.pause"


# -- the list -----------------------------------------------------------------------------------------------------


def cards(window: MainWindow) -> list[AlertCard]:
    QCoreApplication.sendPostedEvents(None, QEvent.Type.DeferredDelete)
    return window.side_panel.alerts.findChildren(AlertCard)


def shown_texts(widget: QWidget) -> list[str]:
    return [plain(label.text()) for label in widget.findChildren(QLabel) if label.isVisible()]


def button(widget: QWidget, words: str) -> QPushButton:
    return next(found for found in widget.findChildren(QPushButton) if words in found.text())


def test_worst_comes_first_and_what_is_over_is_folded() -> None:
    open_ones, over = ordered(FakeWorkspace(FakeState.SEVERAL_ALERTS).alerts.get())
    assert [alert.cause for alert in open_ones] == [Cause.LEAK, Cause.NEIGHBOUR, Cause.SPILL]
    assert [alert.cause for alert in over] == [Cause.FRAGMENTATION]


def test_list_of_several(make_window: MakeWindow, qtbot: QtBot) -> None:
    workspace = FakeWorkspace(FakeState.SEVERAL_ALERTS)
    window = make_window(workspace)
    window.open_tab(Tab.ALERTS)
    panel = window.side_panel.alerts
    assert "Memory in small pieces" not in shown_texts(panel)
    qtbot.mouseClick(button(panel, "Over  1"), Qt.MouseButton.LeftButton)
    assert "Memory in small pieces" in shown_texts(panel)
    leak = next(card for card in cards(window) if card.alert.cause is Cause.LEAK)
    assert "Growth per step" not in shown_texts(leak)
    qtbot.mouseClick(button(leak, "Details"), Qt.MouseButton.LeftButton)
    shown = shown_texts(leak)
    assert "Growth per step" in shown
    assert "9.2 MiB" in shown
    assert "93 %" in shown
    # A new forecast changes the card in place; a raised severity makes a new one that stays unfolded.
    forecast = workspace.forecast.get()
    assert forecast is not None
    workspace.forecast.set(dataclasses.replace(forecast, p_oom_run=0.5, eta_s=40.0))
    window.refresh_texts()
    assert "50 %" in shown_texts(leak)
    alerts = [dataclasses.replace(alert, severity=AlertSeverity.LIKELY) for alert in workspace.alerts.get()]
    workspace.alerts.set(tuple(alerts))
    window.refresh_texts()
    assert [card.unfolded for card in cards(window) if card.alert.cause is Cause.LEAK] == [True]
    assert window.actions_["view.neighbour"].isEnabled()
    neighbour = next(card for card in cards(window) if card.alert.cause is Cause.NEIGHBOUR)
    qtbot.mouseClick(button(neighbour, "Show the process"), Qt.MouseButton.LeftButton)
    assert window.side_panel.tab is Tab.PROCESSES
    chosen = window.side_panel.processes.chosen()
    assert chosen is not None
    assert chosen.pid == 1_873  # the largest that is not this program


def test_commands_of_an_alert_reach_the_run(make_window: MakeWindow) -> None:
    workspace = FakeWorkspace(FakeState.LEAK)
    window = make_window(workspace)
    window.actions_.trigger("run.shrink_batch")
    assert workspace.called("shrink_batch") == [("shrink_batch",)]
    window.refresh_texts()
    shown = shown_texts(window.side_panel.run)
    assert "Micro-batch 32 × 2, 64 samples a step" in shown
    window.actions_.trigger("run.copy_allocator_setting")
    assert QGuiApplication.clipboard().text() == "PYTORCH_ALLOC_CONF=expandable_segments:True"
    workspace.set_run(state=RunState.FINISHED)
    window.refresh_texts()
    window.actions_.trigger("run.shrink_batch")  # now that of the form
    config = window.side_panel.run.form.config()
    assert config is not None
    assert (config.batch_size, config.accumulation) == (32, 2)
    assert len(workspace.called("shrink_batch")) == 1


def test_why_opens_the_figures(make_window: MakeWindow) -> None:
    window = make_window(FakeWorkspace(FakeState.SEVERAL_ALERTS))
    window.actions_.trigger("run.why")
    assert [card.alert.cause for card in cards(window) if card.unfolded] == [Cause.LEAK]


def test_after_the_end_a_smaller_batch_is_one_click(make_window: MakeWindow, qtbot: QtBot) -> None:
    workspace = FakeWorkspace(FakeState.OUT_OF_MEMORY)
    window = make_window(workspace)
    page = window.side_panel.post_mortem
    words = BY_ID["run.shrink_batch"].title
    assert words not in [found.text() for found in page.findChildren(QPushButton)]  # it was a leak
    report = workspace.run.get().oom
    assert report is not None
    workspace.set_run(oom=dataclasses.replace(report, cause=Cause.BATCH_SHAPE.value))
    window.refresh_texts()
    qtbot.mouseClick(button(page, words), Qt.MouseButton.LeftButton)
    assert window.side_panel.tab is Tab.RUN
    config = window.side_panel.run.form.config()
    assert config is not None
    assert (config.batch_size, config.accumulation) == (32, 2)


@pytest.mark.parametrize(
    ("end", "said"),
    [
        (RunState.OUT_OF_MEMORY, "Memory ran out at step 1,840."),
        (RunState.STOPPED, "The run ended before it came to that."),
    ],
)
def test_after_the_end_an_open_alert_says_what_became_of_it(make_window: MakeWindow, end: RunState, said: str) -> None:
    workspace = FakeWorkspace(FakeState.LEAK)
    window = make_window(workspace)
    window.open_tab(Tab.ALERTS)
    panel = window.side_panel.alerts
    assert said not in shown_texts(panel)
    workspace.set_run(state=end, step=1_840)
    window.refresh_texts()
    window.open_tab(Tab.ALERTS)
    assert said in shown_texts(panel)


def test_a_watch_says_how_likely_it_is(make_window: MakeWindow) -> None:
    workspace = FakeWorkspace(FakeState.LEAK)
    (alert,) = workspace.alerts.get()
    watch = dataclasses.replace(alert, severity=AlertSeverity.WATCH)
    workspace.alerts.set((watch,))
    workspace.forecast.set(dataclasses.replace(forecast_of(watch, alert.t_s), p_oom_epoch=0.12, p_oom_run=0.4))
    window = make_window(workspace)
    said = plain(window.banner.headline.evidence)
    assert said.endswith("Probability: 12 % in this epoch, 40 % in this run.")


def test_what_is_only_watched_is_said_calmly(make_window: MakeWindow) -> None:
    workspace = FakeWorkspace(FakeState.HEALTHY)
    alert = alert_of(Cause.CHECKPOINT_SAVE, 700.0, severity=AlertSeverity.WATCH)
    workspace.forecast.set(dataclasses.replace(forecast_of(alert, 700.0), p_oom_epoch=0.12, p_oom_run=0.4))
    window = make_window(workspace)
    found = window.banner.headline
    assert (found.band, found.sentence) == (Band.NEUTRAL, "Saving a checkpoint may run out of memory")
    assert plain(found.evidence).endswith("Probability: 12 % in this epoch, 40 % in this run.")
    made = window.charts.stack.stage.forecast.course if window.charts.stack else None
    assert made is not None
    assert made.tint == "warn"
    window.open_tab(Tab.ALERTS)
    shown = shown_texts(window.side_panel.alerts)
    assert any(text.startswith("Saving a checkpoint may run out of memory. ") for text in shown)
    workspace.forecast.set(None)
    window.refresh_texts()
    assert not any("checkpoint" in text for text in shown_texts(window.side_panel.alerts))


# -- curves and lane ----------------------------------------------------------------------------------------------


def course_of(cause: Cause) -> object:
    alert = alert_of(cause, 0.0)
    view = View(anchor_s=0.0, left=-600.0, right=600.0, live=True)
    axis = Axis(0.0, 7.0)
    return course(forecast_of(alert, 0.0), view=view, plot=QRectF(0, 0, 1200, 100), axis=axis)


@pytest.mark.parametrize("cause", list(Cause))
def test_band_on_the_card_s_curve_for_every_cause_of_the_card(cause: Cause) -> None:
    made = course_of(cause)
    if cause in (Cause.HOST_MEMORY, Cause.SPILL):
        assert made is None
        return
    assert made.end.x() == pytest.approx(800.0)  # type: ignore[attr-defined]
    assert made.early.x() < made.end.x() < made.late.x()  # type: ignore[attr-defined]
    # What comes at one moment is a step, what grows is a slope.
    bends = made.line.size() == 3  # type: ignore[attr-defined]
    assert bends == (cause in set(Cause) - {Cause.LEAK, Cause.FRAGMENTATION, Cause.NEIGHBOUR, Cause.OUTSIDE_ALLOCATOR})


def lane_words(kind: EventKind, code: str, **params: object) -> str:
    return plain(chart_texts.event(Event(t_s=1.0, kind=kind, level=Level.WARNING, code=code, params=params)))


def test_lane_names_causes_and_what_was_done() -> None:
    said = {cause: lane_words(EventKind.ALERT, f"forecast.{cause.value}", cause=cause.value) for cause in Cause}
    assert said[Cause.LEAK] == "forecast: leak"
    assert len(set(said.values())) == len(Cause)
    assert lane_words(EventKind.RESCUE, "rescue.training", batch_after=16) == "rescued, batch 16"
    assert lane_words(EventKind.RESCUE, "rescue.update", batch_after=16) == "rescued"
    assert lane_words(EventKind.CHANGE, "run.shrunk", batch_after=16) == "batch 16"
    assert lane_words(EventKind.CHANGE, "run.not_shrunk") == "cannot shrink"
    assert lane_words(EventKind.CHANGE, "rule.save_and_pause", cause="leak") == "rule: save and pause"
    assert all(lane_words(kind, "test") for kind in EventKind)


def cleared(alert: Alert) -> Alert:
    return dataclasses.replace(alert, cleared_t_s=alert.t_s + 90.0)


def test_nothing_open_is_said(make_window: MakeWindow) -> None:
    workspace = FakeWorkspace(FakeState.LEAK)
    workspace.alerts.set(tuple(cleared(alert) for alert in workspace.alerts.get()))
    window = make_window(workspace)
    window.open_tab(Tab.ALERTS)
    assert "Nothing is wrong now." in shown_texts(window.side_panel.alerts)
