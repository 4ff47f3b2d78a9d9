"""What the panel of utilisation shows: the usual figure, the activity of the SMs, or power; and what each means."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable
from pathlib import Path

import pytest
from PySide6.QtCore import QPointF, QRectF
from PySide6.QtWidgets import QMenu, QToolTip, QWidget

from desktop_app.core.telemetry import DETAIL_FIELDS, Reading, Reason
from desktop_app.ui.charts import texts
from desktop_app.ui.charts.chart_stack import ChartStack
from desktop_app.ui.charts.load import Load, shown, why_not
from desktop_app.ui.charts.throttling import Throttle
from desktop_app.ui.main_window import MainWindow
from desktop_app.ui.qt_settings import Settings
from desktop_app.ui.theme import DARK
from tests.ui.fake_workspace import FakeState, FakeWorkspace, replace_history

pytestmark = pytest.mark.qt_log_ignore("This plugin does not support propagateSizeHints")
HEAT, POWER = Throttle.HEAT, Throttle.POWER
NAN = math.nan


@pytest.fixture
def build(show: Callable[..., QWidget]) -> Callable[..., ChartStack]:
    def built(workspace: FakeWorkspace) -> ChartStack:
        stack = ChartStack(workspace, DARK)
        show(stack, width=900, height=760)
        stack.refresh()
        stack.refresh_texts()
        return stack

    return built


Build = Callable[..., ChartStack]


def with_activity(workspace: FakeWorkspace, *, sm: float = 54.0, tensor: float = 21.0) -> None:
    """Readings and history of a card that measures the activity of its SMs."""
    uuid = workspace.cards.get()[0].uuid
    values = {"sm_activity_percent": sm, "tensor_activity_percent": tensor}
    workspace.readings.set(
        {uuid: {**workspace.readings.get()[uuid], **{name: Reading(value) for name, value in values.items()}}}
    )
    history = workspace.store.declare(f"details:{uuid}", DETAIL_FIELDS)
    for second in range(600):
        row = dict.fromkeys(DETAIL_FIELDS, NAN)
        history.append(workspace.manual.now_s - 600 + second, {**row, **values})


def curve_keys(stack: ChartStack) -> int:
    return len(stack.stage.tracks["utilization"].panel.curves.content.lines)


def test_the_activity_of_sms_and_tensor_cores_in_its_place(build: Build) -> None:
    workspace = FakeWorkspace(FakeState.HEALTHY)
    with_activity(workspace)
    stack = build(workspace)
    stack.set_load(Load.SM_ACTIVITY)
    head = stack.stage.tracks["utilization"].panel.head
    assert head.title == "SM activity"
    assert head.menu
    assert [key.text.replace("\N{NO-BREAK SPACE}", " ") for key in head.keys] == ["SM 54 %", "tensor 21 %"]
    assert curve_keys(stack) == 2
    stack.move_cursor(-100.0)
    rows = {name: value.replace("\N{NO-BREAK SPACE}", " ") for name, value, _ in stack.read_out.rows}
    assert rows["SM activity"] == "54 %"
    assert rows["tensor activity"] == "21 %"


def test_power_as_a_share_of_the_limit(build: Build) -> None:
    workspace = FakeWorkspace(FakeState.HEALTHY)
    replace_history(workspace, power_w=lambda _ago_s: 90.0)
    uuid = workspace.cards.get()[0].uuid
    workspace.readings.set({uuid: {**workspace.readings.get()[uuid], "power_w": Reading(90.0)}})
    stack = build(workspace)
    stack.set_load(Load.POWER)
    panel = stack.stage.tracks["utilization"].panel
    assert [key.text.replace("\N{NO-BREAK SPACE}", " ") for key in panel.head.keys] == ["75 % of 120 W"]
    (line,) = panel.curves.content.lines
    bounds: QRectF = line.path.boundingRect()
    assert bounds.top() == pytest.approx(0.75)
    assert bounds.bottom() == pytest.approx(0.75)
    assert panel.left_axis.high == 100.0


def test_a_card_over_its_limit_stays_in_the_picture(build: Build) -> None:
    workspace = FakeWorkspace(FakeState.HEALTHY)
    replace_history(workspace, power_w=lambda _ago_s: 135.0)
    stack = build(workspace)
    stack.set_load(Load.POWER)
    assert stack.stage.tracks["utilization"].panel.left_axis.high == 120.0


def card_readings(**changes: Reading) -> tuple[object, dict[str, Reading]]:
    workspace = FakeWorkspace(FakeState.HEALTHY)
    card = workspace.cards.get()[0]
    return card, {**workspace.readings.get()[card.uuid], **changes}


@pytest.mark.parametrize(
    ("reading", "expected"),
    [
        (Reading(50.0), None),
        (Reading(0.0), None),
        (Reading(None, Reason.NOT_SUPPORTED), Reason.NOT_SUPPORTED),
        (Reading(None, Reason.SIMULATED), Reason.SIMULATED),
        (Reading(None, Reason.MIG), Reason.MIG),
        (Reading(None, Reason.GPU_LOST), None),  # it comes back: the choice stays
        (Reading(None, Reason.TIMED_OUT), None),
    ],
)
def test_when_the_activity_is_offered(reading: Reading, expected: Reason | None) -> None:
    card, readings = card_readings(sm_activity_percent=reading)
    assert why_not(Load.SM_ACTIVITY, card, readings) is expected  # type: ignore[arg-type]
    fallback = Load.SM_ACTIVITY if expected is None else Load.UTILIZATION
    assert shown(Load.SM_ACTIVITY, card, readings) is fallback  # type: ignore[arg-type]


def test_a_card_without_a_limit_has_no_share_of_it() -> None:
    card, readings = card_readings(power_limit_w=Reading(None, Reason.NOT_SUPPORTED))
    unlimited = dataclasses.replace(card, power_limit_w=None)  # type: ignore[type-var]
    assert why_not(Load.POWER, unlimited, readings) is Reason.NOT_SUPPORTED  # type: ignore[arg-type]
    assert why_not(Load.POWER, card, readings) is None  # type: ignore[arg-type]


@pytest.mark.parametrize("load", Load)
def test_every_measure_says_what_it_means(load: Load) -> None:
    assert texts.load(load)
    assert texts.load_meaning(load).endswith(".")


def test_the_tooltip_says_what_utilisation_means(build: Build, monkeypatch: pytest.MonkeyPatch) -> None:
    said: list[str] = []
    monkeypatch.setattr(QToolTip, "showText", lambda _where, text, _widget: said.append(text))
    stack = build(FakeWorkspace(FakeState.HEALTHY))
    head = stack.stage.tracks["utilization"].panel.head_item
    stack.stage.canvas.hovered.emit(head.mapToScene(QPointF(30, 8)))
    assert len(said) == 1
    assert "at least one kernel ran" in said[0]


# -- choices of the window ------------------------------------------------------------------------------------------

MakeWindow = Callable[..., MainWindow]


def test_choices_are_remembered(make_window: MakeWindow, settings_path: Path) -> None:
    workspace = FakeWorkspace(FakeState.HEALTHY)
    with_activity(workspace)
    window = make_window(workspace)
    assert window.actions_["view.shade_heat"].isChecked()
    assert not window.actions_["view.shade_power"].isChecked()
    for command in ("view.shade_power", "view.shade_heat", "view.load_sm_activity"):
        assert window.actions_.trigger(command)
    window.settings.sync()
    again = Settings(settings_path)
    assert again.shades == {POWER}
    assert again.load is Load.SM_ACTIVITY
    stack = window.charts.stack
    assert stack is not None
    assert stack.load is Load.SM_ACTIVITY
    assert window.actions_["view.load_sm_activity"].isChecked()
    assert not window.actions_["view.shade_heat"].isChecked()


def test_nonsense_in_the_settings_is_the_usual_view(settings_path: Path) -> None:
    settings_path.write_text("[charts]\nload=nonsense\nshade_heat=perhaps\n", encoding="utf-8")
    found = Settings(settings_path)
    assert found.load is Load.UTILIZATION
    assert POWER not in found.shades


def test_what_the_card_cannot_is_offered_disabled_with_its_reason(make_window: MakeWindow) -> None:
    workspace = FakeWorkspace(FakeState.HEALTHY)
    uuid = workspace.cards.get()[0].uuid
    missing = Reading(None, Reason.NOT_SUPPORTED)
    workspace.readings.set({uuid: {**workspace.readings.get()[uuid], "sm_activity_percent": missing}})
    window = make_window(workspace)
    window.refresh_texts()
    action = window.actions_["view.load_sm_activity"]
    assert not action.isEnabled()
    assert action.text().endswith("(Hopper and newer only)")
    assert window.actions_["view.load_power_share"].isEnabled()
    workspace.readings.set({uuid: {**workspace.readings.get()[uuid], "sm_activity_percent": Reading(3.0)}})
    window.refresh_texts()
    assert action.isEnabled()
    assert "(" not in action.text()


def test_the_name_of_the_panel_opens_the_choice(make_window: MakeWindow) -> None:
    window = make_window(FakeWorkspace(FakeState.HEALTHY))
    stack = window.charts.stack
    assert stack is not None
    head = stack.stage.tracks["utilization"].panel.head_item
    stack.stage.canvas.clicked.emit(head.mapToScene(head.title_rect.center()))
    menu = window.findChild(QMenu, "chartMenu")
    assert menu is not None
    listed = [action.objectName() for action in menu.actions() if action.objectName()]
    assert listed == [
        "view.load_utilization",
        "view.load_sm_activity",
        "view.load_power_share",
        "view.shade_heat",
        "view.shade_power",
    ]
    menu.close()
    stack.stage.canvas.menu_wanted.emit(stack.stage.canvas.rect_of(stack.stage.tracks["vram"].panel).center())
    other = [found for found in window.findChildren(QMenu, "chartMenu") if found.isVisible()]
    assert [action.objectName() for action in other[0].actions()] == ["view.shade_heat", "view.shade_power"]
    other[0].close()
