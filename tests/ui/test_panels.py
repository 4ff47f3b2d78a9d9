"""What the parts of the window show, and what they ask of the workspace."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Callable

import pytest
from PySide6.QtCore import QCoreApplication, QEvent, Qt
from PySide6.QtGui import QGuiApplication
from PySide6.QtWidgets import QComboBox, QLabel, QPushButton, QWidget
from pytestqt.qtbot import QtBot

from desktop_app.core.forecasts import AlertSeverity
from desktop_app.core.steps import Phase, RunState, RunStatus
from desktop_app.core.telemetry import GPU_FIELDS
from desktop_app.core.units import GIB
from desktop_app.services.facade import Notice
from desktop_app.ui.alerts_panel import AlertCard
from desktop_app.ui.gpu_panel import CardRow
from desktop_app.ui.main_window import MainWindow
from desktop_app.ui.side_panel import Tab
from desktop_app.ui.texts import post_mortem, verdicts
from desktop_app.ui.texts.numbers import NBSP
from tests.ui.clipping import clipped_texts
from tests.ui.fake_data import oom_report
from tests.ui.fake_workspace import FakeState, FakeWorkspace

MakeWindow = Callable[..., MainWindow]


def texts(widget: QWidget) -> list[str]:
    QCoreApplication.sendPostedEvents(None, QEvent.Type.DeferredDelete)
    return [label.text().replace(NBSP, " ") for label in widget.findChildren(QLabel)]


def buttons(widget: QWidget) -> dict[str, QPushButton]:
    """Visible ones by their accessible name or text."""
    found = [button for button in widget.findChildren(QPushButton) if button.isVisible()]
    return {button.accessibleName() or button.text(): button for button in found}


# -- GPU ------------------------------------------------------------------------------------------------------------


def test_every_field_of_a_card_has_a_value_or_a_reason(make_window: MakeWindow) -> None:
    window = make_window(FakeWorkspace(FakeState.HEALTHY))
    window.open_tab(Tab.GPU)
    panel = window.side_panel.gpu
    for field in GPU_FIELDS:
        assert panel.value(field), field
    assert panel.value("memory_used_bytes") == f"4.58{NBSP}GiB"
    assert panel.value("encoder_percent") == "n/a · not supported"


def test_lost_card_says_so_in_every_field(make_window: MakeWindow) -> None:
    window = make_window(FakeWorkspace(FakeState.GPU_LOST))
    window.open_tab(Tab.GPU)
    assert {window.side_panel.gpu.value(field) for field in GPU_FIELDS} == {"n/a · GPU lost"}


def test_mapping_names_torch_nvml_and_bus(make_window: MakeWindow) -> None:
    window = make_window(FakeWorkspace(FakeState.EIGHT_GPUS))
    window.open_tab(Tab.GPU)
    rows = window.side_panel.gpu.findChildren(CardRow)
    assert len(rows) == 8
    assert rows[2].accessibleName().replace(NBSP, " ") == (
        "GPU 2 · H100 80GB HBM3 · 79.11 GiB, torch 3 ↔ NVML 2 ↔ 3B:00.0"
    )


def test_other_cards_can_be_looked_at_during_a_run(make_window: MakeWindow, qtbot: QtBot) -> None:
    workspace = FakeWorkspace(FakeState.EIGHT_GPUS)
    window = make_window(workspace)
    window.open_tab(Tab.GPU)
    uuid = workspace.cards.get()[5].uuid
    row = next(row for row in window.side_panel.gpu.findChildren(CardRow) if row.uuid == uuid)
    qtbot.mouseClick(row, Qt.MouseButton.LeftButton)
    assert workspace.called("select_card") == [("select_card", uuid)]
    assert row.isChecked()


def test_without_a_driver_the_reason_stands_there(make_window: MakeWindow) -> None:
    window = make_window(FakeWorkspace(FakeState.NO_DRIVER))
    window.open_tab(Tab.GPU)
    shown = "\n".join(texts(window.side_panel.gpu))
    assert "No NVIDIA driver was found." in shown
    assert "libnvidia-ml.so.1 was not found." in shown


# -- header ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("state", "names"),
    [
        (FakeState.NOTHING, {"Start"}),
        (FakeState.HEALTHY, {"Pause", "Stop", "Save"}),
        (FakeState.PAUSED, {"Resume", "Stop", "Save"}),
        (FakeState.OUT_OF_MEMORY, {"Start"}),
    ],
)
def test_header_has_the_buttons_of_the_state(make_window: MakeWindow, state: FakeState, names: set[str]) -> None:
    window = make_window(FakeWorkspace(state))
    assert set(buttons(window.header)) & {"Start", "Pause", "Resume", "Stop", "Save"} == names


def test_header_stops_the_run(make_window: MakeWindow, qtbot: QtBot) -> None:
    workspace = FakeWorkspace(FakeState.HEALTHY)
    window = make_window(workspace)
    qtbot.mouseClick(buttons(window.header)["Stop"], Qt.MouseButton.LeftButton)
    assert workspace.called("stop") == [("stop", True)]
    qtbot.waitUntil(lambda: not buttons(window.header)["Stop"].isEnabled())


def test_header_names_the_card_and_that_it_is_simulated(make_window: MakeWindow) -> None:
    window = make_window(FakeWorkspace(FakeState.HEALTHY))
    assert f"GPU 0 · GeForce GTX 1660 · 6.00{NBSP}GiB" in buttons(window.header)
    assert "simulated" in [label.text() for label in window.header.findChildren(QLabel) if label.isVisible()]


def test_real_card_is_not_called_simulated(make_window: MakeWindow) -> None:
    window = make_window(FakeWorkspace(FakeState.EIGHT_GPUS))
    assert "simulated" not in [label.text() for label in window.header.findChildren(QLabel) if label.isVisible()]


# -- alerts and post-mortem -----------------------------------------------------------------------------------------


def test_alert_is_counted_on_the_tab_and_shown_with_its_advice(make_window: MakeWindow) -> None:
    window = make_window(FakeWorkspace(FakeState.LEAK))
    window.open_tab(Tab.ALERTS)
    cards = window.side_panel.alerts.findChildren(AlertCard)
    assert len(cards) == 1
    shown = texts(cards[0])
    assert "Memory never freed" in shown
    assert any(text.endswith("step 1,680") for text in shown)
    assert any("total += loss.item()" in text for text in shown)


def test_cleared_alert_stays_on_the_list(make_window: MakeWindow) -> None:
    workspace = FakeWorkspace(FakeState.LEAK)
    window = make_window(workspace)
    window.open_tab(Tab.ALERTS)
    (alert,) = workspace.alerts.get()
    workspace.alerts.set((dataclasses.replace(alert, cleared_t_s=alert.t_s + 90.0),))
    window.refresh_texts()
    assert "Over after 1 min 30 s" in texts(window.side_panel.alerts)


def test_rising_severity_replaces_the_card(make_window: MakeWindow) -> None:
    workspace = FakeWorkspace(FakeState.LEAK)
    window = make_window(workspace)
    window.open_tab(Tab.ALERTS)
    (alert,) = workspace.alerts.get()
    workspace.alerts.set((dataclasses.replace(alert, severity=AlertSeverity.IMMINENT),))
    window.refresh_texts()
    shown = texts(window.side_panel.alerts)
    assert "imminent" in shown
    assert "likely" not in shown


def test_out_of_memory_opens_its_page_once(make_window: MakeWindow) -> None:
    workspace = FakeWorkspace(FakeState.LEAK)
    window = make_window(workspace)
    assert window.side_panel.tab is Tab.RUN
    report = FakeWorkspace(FakeState.OUT_OF_MEMORY).run.get().oom
    workspace.set_run(state=RunState.OUT_OF_MEMORY, oom=report)
    window.refresh_texts()
    assert window.side_panel.tab is Tab.POST_MORTEM
    window.open_tab(Tab.RUN)
    window.refresh_texts()
    assert window.side_panel.tab is Tab.RUN
    workspace.set_run(state=RunState.PREPARING, oom=None)
    window.refresh_texts()
    window.actions_.trigger("run.post_mortem")
    assert window.side_panel.tab is Tab.RUN


def test_post_mortem_says_what_was_full_and_what_to_change(make_window: MakeWindow) -> None:
    window = make_window(FakeWorkspace(FakeState.OUT_OF_MEMORY))
    shown = texts(window.side_panel.post_mortem)
    assert "12 MiB of 6.00 GiB were free when 50 MiB more were needed." in shown
    assert "Other tensors" in shown
    assert any(text.startswith("CUDA out of memory. Tried to allocate 50.00 MiB.") for text in shown)


@pytest.mark.parametrize("language", ["en", "zh_CN"])
@pytest.mark.parametrize("size", [(1024, 640), (1440, 900)], ids=str)
def test_post_mortem_is_no_wider_than_its_column(make_window: MakeWindow, size: tuple[int, int], language: str) -> None:
    window = make_window(FakeWorkspace(FakeState.OUT_OF_MEMORY), width=size[0], height=size[1], language=language)
    page = window.side_panel.post_mortem
    QCoreApplication.processEvents()  # the scroll bar takes its width, and the texts theirs anew
    assert page.isVisible()
    assert page.widget().minimumSizeHint().width() <= page.viewport().width()
    assert page.widget().width() <= page.viewport().width()
    assert clipped_texts(page) == []


def test_rescues_can_be_looked_at_one_by_one(make_window: MakeWindow) -> None:
    workspace = FakeWorkspace(FakeState.RESCUED)
    window = make_window(workspace)
    assert window.side_panel.tab is Tab.RUN  # nothing has ended: the page does not push itself forward
    said = window.banner.headline
    assert said.sentence.replace(NBSP, " ") == "Out of memory at step 1,664; goes on with micro-batch 16 × 4"
    assert "Micro-batch 16 × 4, 64 samples a step, since step 1,664" in texts(window.side_panel.run)
    window.actions_.trigger(said.action.value)
    page = window.side_panel.post_mortem
    assert page.isVisible()
    (choice,) = page.findChildren(QComboBox)
    assert [choice.itemText(row) for row in range(choice.count())] == [
        "Step 1,440: went on with 32",
        "Step 1,664: went on with 16",
    ]
    went_on = "The run went on with a micro-batch of 16 in place of 32; the batch is as large as before."
    assert went_on in texts(page)
    choice.setCurrentIndex(0)
    choice.activated.emit(0)
    assert "The run went on with a micro-batch of 32 in place of 64; the batch is as large as before." in texts(page)
    window.refresh_texts()
    assert choice.currentIndex() == 0
    # A third one ends the run: it is shown.
    workspace.set_run(state=RunState.OUT_OF_MEMORY, oom=FakeWorkspace(FakeState.OUT_OF_MEMORY).run.get().oom)
    window.refresh_texts()
    assert choice.count() == 3
    assert "The run has ended here." in texts(page)


def test_rescue_is_news_for_a_while(make_window: MakeWindow) -> None:
    workspace = FakeWorkspace(FakeState.RESCUED)
    window = make_window(workspace)
    assert "goes on" in window.banner.headline.sentence
    workspace.manual.now_s += 130.0
    window.refresh_texts()
    assert window.banner.headline.sentence.startswith("Fits")
    assert window.actions_["run.post_mortem"].isEnabled()


@pytest.mark.parametrize(
    ("phase", "before", "after", "said"),
    [
        (Phase.FORWARD, 64, 32, "goes on with micro-batch 32 × 2"),
        (Phase.VALIDATION, 64, 32, "goes on with validation batches of 32"),
        (Phase.SAVE, 64, 64, "saves by way of main memory and goes on"),
        (Phase.OPTIMIZER, 64, 64, "goes on, with parameters updated one by one"),
    ],
)
def test_rescue_says_what_was_changed(phase: Phase, before: int, after: int, said: str) -> None:
    report = dataclasses.replace(oom_report(700.0), phase=phase, batch_size=before, rescued_batch_size=after)
    status = RunStatus(RunState.RUNNING, batch_size=32, accumulation=2)
    assert verdicts.rescued(report, status).replace(NBSP, " ") == f"Out of memory at step 1,840; {said}"


def test_long_words_of_torch_may_be_broken_and_nothing_else() -> None:
    message = "try setting PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True  to avoid 50.00 MiB"
    shown = post_mortem.breakable(message)
    assert shown.replace("\u200b", "") == message
    assert shown.endswith("True  to avoid 50.00 MiB")
    assert max(len(piece) for piece in re.split("[ \u200b]", shown)) <= 21


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        # 3.93 GiB with 2.60 GiB reserved and 0.21 GiB outside: 1.12 GiB are left, and torch says nothing.
        ({"message": "CUDA out of memory."}, "1.12 GiB of 3.93 GiB were free when 2.36 GiB more were needed."),
        ({"message": "of which 1.00 GiB is free."}, "1.00 GiB of 3.93 GiB were free when 2.36 GiB more were needed."),
        # A memory fraction was in the way, not the card.
        ({"message": "of which 3.00 GiB is free."}, "2.36 GiB were asked for and not there."),
        ({"requested_bytes": None}, "The 3.93 GiB of the card were full."),
    ],
)
def test_post_mortem_says_what_was_free(changes: dict[str, object], said: str) -> None:
    report = FakeWorkspace(FakeState.OUT_OF_MEMORY).run.get().oom
    assert report is not None
    assert report.memory is not None
    memory = dataclasses.replace(report.memory, reserved_bytes=round(2.60 * GIB), outside_bytes=round(0.21 * GIB))
    report = dataclasses.replace(
        report, memory=memory, capacity_bytes=round(3.93 * GIB), requested_bytes=round(2.36 * GIB)
    )
    report = dataclasses.replace(report, **changes)  # type: ignore[arg-type]
    assert post_mortem.what_was_full(report).replace("\u00a0", " ").startswith(said)


@pytest.mark.parametrize(
    ("free", "own", "others"),
    [
        ("611.00 KiB", "290.00 MiB", 6 * GIB - 611 * 1024 - 290 * 2**20),
        ("23.00 MiB", "5.97 GiB", 0),  # what is left is how torch rounds
        ("23.00 MiB", None, 0),  # older torch does not say what is its own
    ],
)
def test_post_mortem_names_what_others_held(free: str, own: str | None, others: int) -> None:
    message = f"GPU 0 has a total capacity of 6.00 GiB of which {free} is free. " + (
        f"Including non-PyTorch memory, this process has {own} memory in use." if own else ""
    )
    report = dataclasses.replace(oom_report(0.0), message=message)
    assert report.memory is not None
    held = post_mortem.holders(report, report.memory)
    assert dict(held).get("Other processes", 0) == others
    assert held == sorted(held, key=lambda entry: -entry[1])


def test_post_mortem_can_be_copied(make_window: MakeWindow, qtbot: QtBot) -> None:
    window = make_window(FakeWorkspace(FakeState.OUT_OF_MEMORY))
    qtbot.mouseClick(buttons(window.side_panel.post_mortem)["Copy all of this"], Qt.MouseButton.LeftButton)
    copied = QGuiApplication.clipboard().text()
    assert "Activations: 1.88 GiB" in copied
    assert "features.4: 625 MiB" in copied
    assert "CUDA out of memory." in copied
    assert "PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True" in copied


def test_notice_with_facts_can_be_hidden(make_window: MakeWindow, qtbot: QtBot) -> None:
    workspace = FakeWorkspace(FakeState.HEALTHY)
    facts = {"count": 1, "path": "/d/a.png", "reason": "empty_file"}
    workspace.notices.set((Notice("data.skipped", "line", params=facts),))
    window = make_window(workspace)
    assert "1 file cannot be read and is left out: /d/a.png (empty file)." in texts(window.notices)
    qtbot.mouseClick(buttons(window.notices)["Hide"], Qt.MouseButton.LeftButton)
    assert not window.notices.isVisible()


# -- banner, notices, status bar --------------------------------------------------------------------------------------


def test_banner_buttons_say_their_command(make_window: MakeWindow, qtbot: QtBot) -> None:
    workspace = FakeWorkspace(FakeState.LEAK)
    window = make_window(workspace)
    assert set(buttons(window.banner)) == {"Save and pause", "Why", "Ignore"}
    qtbot.mouseClick(buttons(window.banner)["Ignore"], Qt.MouseButton.LeftButton)
    window.refresh_texts()
    assert set(buttons(window.banner)) == {"Why"}


@pytest.mark.parametrize(
    ("state", "look"),
    [
        (FakeState.LEAK, "danger"),
        (FakeState.GPU_LOST, "warn"),
        (FakeState.HEALTHY, "ok"),
        (FakeState.NOTHING, "calm"),
    ],
)
def test_band_has_a_colour_and_a_shape(make_window: MakeWindow, state: FakeState, look: str) -> None:
    window = make_window(FakeWorkspace(state))
    assert window.banner.property("banner") == look
    assert not window.banner.findChildren(QLabel)[0].pixmap().isNull()


def test_notice_is_shown_until_hidden_and_again_when_it_comes_again(make_window: MakeWindow, qtbot: QtBot) -> None:
    workspace = FakeWorkspace(FakeState.DISK_FULL)
    window = make_window(workspace)
    assert window.notices.isVisible()
    qtbot.mouseClick(buttons(window.notices)["Hide"], Qt.MouseButton.LeftButton)
    assert not window.notices.isVisible()
    notices = workspace.notices.get()
    workspace.notices.set(())
    window.refresh_texts()
    workspace.notices.set(notices)
    window.refresh_texts()
    assert window.notices.isVisible()


@pytest.mark.parametrize(("level", "look"), [("info", "calm"), ("warning", "warn"), ("error", "danger"), ("?", "warn")])
def test_notice_looks_like_its_level(make_window: MakeWindow, level: str, look: str) -> None:
    workspace = FakeWorkspace(FakeState.NOTHING)
    workspace.notices.set((Notice("some.code", "Something is so.", level),))
    window = make_window(workspace)
    (bar,) = [child for child in window.notices.children() if isinstance(child, QWidget)]
    assert bar.property("banner") == look
    assert "Something is so." in texts(bar)


def test_resume_offer_names_run_step_and_time(make_window: MakeWindow) -> None:
    window = make_window(FakeWorkspace(FakeState.RESUME_OFFER))
    (text,) = [text for text in texts(window.notices) if text]
    assert text.startswith("The run cats-dogs ended unexpectedly at step 412, 2026-09-2")
    assert text.endswith("Resume from its checkpoint?")


def test_status_bar_says_what_the_tool_costs(make_window: MakeWindow) -> None:
    workspace = FakeWorkspace(FakeState.HEALTHY)
    window = make_window(workspace)
    window.pulse.stop()
    for _ in range(20):
        window.status.note_frame(0.0002)
    window.status.note_frame(0.0094)
    workspace.cost.set(dataclasses.replace(workspace.cost.get(), rss_bytes=5 * GIB, late=900))
    window.refresh_texts()
    shown = texts(window.status)
    assert shown[0] == "5.0 Hz · 900 late"
    assert shown[1] == "Floodmark 1.8 % CPU · 5.00 GiB · frame 9.4 ms"
    assert shown[2:] == ["0.023 kWh", "51 samples/s"]


def test_unknown_cost_takes_no_place(make_window: MakeWindow) -> None:
    workspace = FakeWorkspace(FakeState.NO_GPU)
    workspace.cost.set(dataclasses.replace(workspace.cost.get(), cpu_percent=None, rss_bytes=None))
    window = make_window(workspace)
    assert not [text for text in texts(window.status) if "kWh" in text or "CPU" in text]
