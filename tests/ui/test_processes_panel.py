"""The process table: order by values, what is not known last, rows that stay themselves, and ending one."""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from PySide6.QtCore import QCoreApplication, QPoint, Qt
from PySide6.QtGui import QGuiApplication
from PySide6.QtWidgets import QMenu
from pytestqt.qtbot import QtBot

from desktop_app.core.telemetry import ProcessSample, Reason
from desktop_app.core.units import GIB, MIB
from desktop_app.services.facade import EndOutcome
from desktop_app.ui.labels import ElidedLabel, Label
from desktop_app.ui.main_window import MainWindow
from desktop_app.ui.processes.columns import NARROW, WIDE, Column, cell
from desktop_app.ui.processes.ending import PATIENCE_S, why_not
from desktop_app.ui.processes.process_model import ProcessModel, ProcessOrder
from desktop_app.ui.processes.process_table import ProcessTable
from desktop_app.ui.processes.process_window import ProcessWindow
from desktop_app.ui.processes_panel import ProcessesPanel
from desktop_app.ui.qt_settings import Settings
from desktop_app.ui.side_panel import Tab
from tests.ui.fake_workspace import FakeState, FakeWorkspace

DOWN, UP = Qt.SortOrder.DescendingOrder, Qt.SortOrder.AscendingOrder
MakeWindow = Callable[..., MainWindow]


def process(pid: int, memory_bytes: int | None = MIB, name: str = "python", **others: object) -> ProcessSample:
    fields: dict[str, object] = {
        "uuid": "GPU-0",
        "name": name,
        "user": None,
        "command": None,
        "kind": "compute",
        "memory_bytes": memory_bytes,
        "memory_reason": None if memory_bytes is not None else Reason.WDDM,
    }
    return ProcessSample(pid=pid, **{**fields, **others})  # type: ignore[arg-type]


def ordered(*processes: ProcessSample) -> tuple[ProcessModel, ProcessOrder]:
    model = ProcessModel()
    order = ProcessOrder(model)
    model.show_processes(processes)
    order.sort(Column.MEMORY, DOWN)
    return model, order


def pids(order: ProcessOrder) -> list[int]:
    return [order.process_at(row).pid for row in range(order.rowCount())]


# -- order ----------------------------------------------------------------------------------------------------------


def test_sizes_beyond_four_gibibytes_sort_as_numbers() -> None:
    """A proxy that compares 32-bit numbers puts 5 GiB below 2 GiB."""
    sizes = [2**31, 2**32 + 1, 2**32 - 1, 5 * 2**30, 80 * 2**30, 1, 900 * 2**20]
    processes = [process(pid, size) for pid, size in enumerate(sizes, start=1)]
    random.Random(5).shuffle(processes)
    _, order = ordered(*processes)
    order.sort(Column.MEMORY, UP)
    shown = [order.process_at(row).memory_bytes for row in range(len(sizes))]
    assert shown == sorted(sizes)
    order.sort(Column.MEMORY, DOWN)
    assert [order.process_at(row).memory_bytes for row in range(len(sizes))] == sorted(sizes, reverse=True)


_VALUES = {
    Column.USER: ("user", st.sampled_from(["alice", "Bob", "root"])),
    Column.MEMORY: ("memory_bytes", st.integers(min_value=0, max_value=2**48)),
    Column.GPU: ("sm_percent", st.floats(min_value=0, max_value=100)),
    Column.BUS: ("memory_bus_percent", st.floats(min_value=0, max_value=100)),
    Column.CPU: ("cpu_percent", st.floats(min_value=0, max_value=6400)),
    Column.RSS: ("rss_bytes", st.integers(min_value=0, max_value=2**48)),
    Column.STARTED: ("started_wall_s", st.floats(min_value=0, max_value=2e9)),
    Column.SLICE: ("gpu_instance", st.integers(min_value=0, max_value=13)),
    Column.CONTAINER: ("container", st.sampled_from(["docker", "podman", "other"])),
}


@pytest.mark.parametrize("column", list(_VALUES), ids=lambda column: column.name)
@settings(max_examples=20, deadline=None)
@given(data=st.data())
def test_what_is_not_known_comes_last_in_either_direction(column: Column, data: st.DataObject) -> None:
    field, values = _VALUES[column]
    drawn = data.draw(st.lists(st.one_of(st.none(), values), max_size=25))
    processes = [process(pid, **{field: value}) for pid, value in enumerate(drawn, start=1)]
    _, order = ordered(*processes)
    known = [value for value in drawn if value is not None]
    fold = [value.casefold() if isinstance(value, str) else value for value in known]
    for direction in (UP, DOWN):
        order.sort(column, direction)
        shown = [getattr(order.process_at(row), field) for row in range(order.rowCount())]
        folded = [value.casefold() if isinstance(value, str) else value for value in shown]
        assert folded == [*sorted(fold, reverse=direction is DOWN), *[None] * (len(drawn) - len(known))]


def test_equals_are_ordered_by_pid() -> None:
    _, order = ordered(process(30), process(4), process(200))
    assert pids(order) == [4, 30, 200]
    order.sort(Column.MEMORY, UP)
    assert pids(order) == [4, 30, 200]


def test_names_and_pids_sort_too() -> None:
    _, order = ordered(process(30, 1, "b"), process(4, 2, "A"), process(200, 3, "c"))
    order.sort(Column.NAME, UP)
    assert pids(order) == [4, 30, 200]
    order.sort(Column.PID, DOWN)
    assert pids(order) == [200, 30, 4]


def test_numbers_are_first_looked_at_from_the_largest_down() -> None:
    model = ProcessModel()
    role = Qt.ItemDataRole.InitialSortOrderRole
    first = {column: model.headerData(column, Qt.Orientation.Horizontal, role) for column in Column}
    assert first[Column.CPU] == DOWN.value
    assert first[Column.NAME] == UP.value


# -- rows that stay themselves --------------------------------------------------------------------------------------


def test_the_selection_goes_with_its_process(qtbot: QtBot) -> None:
    table = ProcessTable()
    qtbot.addWidget(table)
    table.show_processes((process(1, 10), process(2, 20), process(3, 30)))
    assert table.choose(2)
    table.show_processes((process(3, 5), process(2, 6), process(1, 40), process(9, 50)))
    assert pids(table.order) == [9, 1, 2, 3]
    chosen = table.current_process()
    assert chosen is not None
    assert (chosen.pid, chosen.memory_bytes) == (2, 6)
    table.show_processes((process(3, 5),))
    assert table.current_process() is None


def test_a_refresh_without_news_touches_nothing(qtbot: QtBot) -> None:
    model, order = ordered(process(1, 10), process(2, 20))
    with (
        qtbot.assertNotEmitted(model.dataChanged),
        qtbot.assertNotEmitted(order.layoutChanged),
        qtbot.assertNotEmitted(model.modelReset),
    ):
        assert not model.show_processes((process(2, 20), process(1, 10)))
        order.settle()


def test_only_cells_that_are_different_are_drawn_anew(qtbot: QtBot) -> None:
    model, order = ordered(process(1, 10), process(2, 20))
    with qtbot.waitSignal(model.dataChanged) as told, qtbot.assertNotEmitted(order.layoutChanged):
        model.show_processes((process(1, 10), process(2, 20, cpu_percent=50.0)))
        order.settle()
    first, last = told.args[0], told.args[1]
    assert (first.row(), last.row()) == (1, 1)
    assert first.column() == last.column() == Column.CPU


def test_one_that_the_driver_lists_twice_has_two_rows() -> None:
    model, order = ordered(
        process(1, 10, gpu_instance=1), process(1, 20, gpu_instance=2), process(1, 30, gpu_instance=2)
    )
    assert model.rowCount() == 3
    assert [order.process_at(row).memory_bytes for row in range(3)] == [30, 20, 10]


def test_two_hundred_processes_cost_little() -> None:
    """Twice a second: a refresh in which every row is different may not take a noticeable share of it."""
    rng = random.Random(1)

    def state() -> tuple[ProcessSample, ...]:
        return tuple(
            process(pid, rng.randrange(2**36), sm_percent=rng.random() * 100, cpu_percent=rng.random() * 800)
            for pid in range(1000, 1200)
        )

    model, order = ordered(*state())
    order.sort(Column.GPU, DOWN)
    states = [state() for _ in range(6)]
    took = []
    for processes in states:
        began = time.process_time()
        model.show_processes(processes)
        order.settle()
        took.append(time.process_time() - began)
    assert min(took) < 0.05  # 12 ms here; a tenth of the interval on a machine four times as slow


# -- cells ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("column", "fields", "text", "why"),
    [
        (Column.MEMORY, {"memory_bytes": None}, "hidden by Windows", "Windows manages the memory"),
        (Column.GPU, {"sm_reason": Reason.NOT_SUPPORTED}, "not supported", "does not report it"),
        (Column.GPU, {"sm_reason": Reason.NO_PERMISSION}, "no permission", "administrators only"),
        (Column.BUS, {"sm_reason": Reason.MIG}, "not in MIG mode", "split into MIG instances"),
        (Column.CPU, {"rss_bytes": GIB}, "not read yet", "No reading has come yet."),
        (Column.CPU, {}, "not told", "other users"),
        (Column.RSS, {"foreign": True, "name": ""}, "outside", "outside this container"),
        (Column.NAME, {"foreign": True, "name": ""}, "outside the container", "outside this container"),
        (Column.USER, {}, "not told", "other users"),
        (Column.STARTED, {}, "not told", "other users"),
    ],
)
def test_what_is_missing_is_a_reason_and_never_zero(
    column: Column, fields: dict[str, object], text: str, why: str
) -> None:
    found = cell(process(1, **fields), column)  # type: ignore[arg-type]
    assert (found.text, found.key) == (text, None)
    assert why in found.why
    assert "0" not in found.text


@pytest.mark.parametrize(
    ("column", "fields", "text"),
    [
        (Column.MEMORY, {"memory_bytes": 0}, "0 B"),
        (Column.GPU, {"sm_percent": 0.0}, "0 %"),
        (Column.CPU, {"cpu_percent": 312.4}, "312 %"),
        (Column.RSS, {"rss_bytes": int(58.37 * GIB)}, "58.37 GiB"),
        (Column.SLICE, {"gpu_instance": 0}, "GI 0"),
        (Column.SLICE, {}, "–"),
        (Column.CONTAINER, {"container": "docker"}, "Docker"),
        (Column.CONTAINER, {"container": "other"}, "other"),
        (Column.CONTAINER, {}, "–"),
    ],
)
def test_values_are_written_as_such(column: Column, fields: dict[str, object], text: str) -> None:
    assert cell(process(1, **fields), column).text.replace("\N{NO-BREAK SPACE}", " ") == text  # type: ignore[arg-type]


def test_the_tooltip_of_a_row_has_the_command() -> None:
    model, _ = ordered(process(1, command="python train.py --lr 1e-3", user="alice", container="docker"))
    tip = str(model.data(model.index(0, Column.NAME), Qt.ItemDataRole.ToolTipRole))
    assert tip.splitlines() == ["python train.py --lr 1e-3", "compute", "User: alice", "Container: Docker"]


# -- the panel ------------------------------------------------------------------------------------------------------


def with_processes(*processes: ProcessSample) -> FakeWorkspace:
    workspace = FakeWorkspace(FakeState.NOTHING)
    workspace.processes.set({workspace.cards.get()[0].uuid: processes})
    return workspace


def on_card(workspace: FakeWorkspace, pid: int, **fields: object) -> ProcessSample:
    return process(pid, uuid=workspace.cards.get()[0].uuid, **fields)  # type: ignore[arg-type]


@pytest.fixture
def build(qtbot: QtBot) -> Callable[..., ProcessesPanel]:
    def built(workspace: FakeWorkspace, **options: object) -> ProcessesPanel:
        panel = ProcessesPanel(workspace, **options)  # type: ignore[arg-type]
        qtbot.addWidget(panel)
        panel.resize(300, 500)
        with qtbot.waitExposed(panel):
            panel.show()
        panel.activateWindow()
        panel.refresh()
        return panel

    return built


Build = Callable[..., ProcessesPanel]


@pytest.mark.parametrize(("state", "rows"), [(FakeState.HEALTHY, 3), (FakeState.NOTHING, 2), (FakeState.NO_GPU, 0)])
def test_panel_shows_the_card_of_the_run(build: Build, state: FakeState, rows: int) -> None:
    panel = build(FakeWorkspace(state))
    assert panel.table.order.rowCount() == rows


@pytest.mark.parametrize(
    ("state", "words"),
    [
        (FakeState.GPU_LOST, "fallen off the bus"),
        (FakeState.NO_DRIVER, "No NVIDIA driver"),
        (FakeState.NOTHING, "No process uses the card"),
    ],
)
def test_an_empty_table_says_why(build: Build, state: FakeState, words: str) -> None:
    """Of a card that cannot be read nobody knows who uses it."""
    workspace = FakeWorkspace(state)
    workspace.processes.set({})
    panel = build(workspace)
    assert panel._empty.isVisible()
    assert words in panel._empty.text()


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("pyth", [3, 1]),
        ("PYTHON alice", [1]),
        ("0", [30]),
        ("train.py", [1]),
        ("root", [30]),
        ("nobody", []),
        ("  ", [30, 3, 1]),
    ],
)
def test_the_filter_looks_at_name_pid_user_and_command(build: Build, text: str, found: list[int]) -> None:
    one = process(1, 1 * GIB, "python", user="alice", command="python train.py")
    two = process(30, 3 * GIB, "Xorg", user="root", command="/usr/lib/xorg/Xorg")
    three = process(3, 2 * GIB, "Python")
    panel = build(with_processes(one, two, three))
    panel.filter.setText(text)
    assert sorted(pids(panel.table.order)) == sorted(found)
    panel.filter.clear()
    assert pids(panel.table.order) == [30, 3, 1]


def test_newcomers_are_filtered_too(build: Build) -> None:
    workspace = with_processes(process(1, name="python"))
    panel = build(workspace)
    panel.filter.setText("python")
    workspace.processes.set(
        {
            workspace.cards.get()[0].uuid: (
                process(1, name="python"),
                process(2, name="Xorg"),
                process(3, name="python3"),
            )
        }
    )
    panel.refresh()
    assert sorted(pids(panel.table.order)) == [1, 3]


def test_rows_are_copied_for_spreadsheets(build: Build) -> None:
    panel = build(with_processes(process(7, 5 * GIB, "a\tb", sm_percent=42.0), process(8, None, "x")))
    panel.copy_all()
    assert QGuiApplication.clipboard().text().splitlines() == [
        "Process\tPID\tVRAM\tGPU",
        "a b\t7\t5.00 GiB\t42 %",
        "x\t8\thidden by Windows\tnot read yet",
    ]
    panel.choose(8)
    panel.copy_row()
    assert QGuiApplication.clipboard().text() == "x\t8\thidden by Windows\tnot read yet"


def test_keys_copy_and_filter(build: Build, qtbot: QtBot) -> None:
    panel = build(with_processes(process(7, name="a", command="a --b"), process(8, name="x")))
    panel.choose(7)
    qtbot.keyClick(panel.table, Qt.Key.Key_C, Qt.KeyboardModifier.ControlModifier)
    assert QGuiApplication.clipboard().text().startswith("a\t7\t")
    panel.copy_command()
    assert QGuiApplication.clipboard().text() == "a --b"
    panel.filter.setText("x")
    qtbot.keyClick(panel.filter, Qt.Key.Key_Escape)
    assert panel.filter.text() == ""


def test_columns_are_chosen_and_remembered(build: Build, settings_path: Path) -> None:
    kept = Settings(settings_path)
    panel = build(with_processes(process(1)), memory=kept)
    assert panel.table.columns == NARROW
    panel._show_column(Column.USER, shown=True)
    panel._show_column(Column.MEMORY, shown=False)  # what it sorted by
    assert panel.table.order.sortColumn() == Column.NAME
    kept.sync()
    again = build(with_processes(process(1)), memory=Settings(settings_path))
    assert again.table.columns == (Column.NAME, Column.PID, Column.USER, Column.GPU)
    assert [column for column in Column if not again.table.isColumnHidden(column)] == list(again.table.columns)
    elsewhere = build(with_processes(process(1)), memory=Settings(settings_path), place="window", usual=WIDE)
    assert elsewhere.table.columns == WIDE


def test_nonsense_in_the_settings_is_the_usual_table(build: Build, settings_path: Path) -> None:
    kept = Settings(settings_path)
    kept.set_process_columns("dock", ("nonsense",))
    assert build(with_processes(process(1)), memory=kept).table.columns == NARROW


def test_the_usual_columns_need_no_scrolling_in_the_dock(build: Build) -> None:
    panel = build(FakeWorkspace(FakeState.HEALTHY))
    panel.resize(286, 400)
    QCoreApplication.processEvents()
    assert not panel.table.horizontalScrollBar().isVisible()
    widths = [panel.table.columnWidth(column) for column in NARROW]
    assert sum(widths) == panel.table.viewport().width()
    panel._set_columns(tuple(Column))
    QCoreApplication.processEvents()
    assert panel.table.horizontalScrollBar().maximum() > 0


def test_a_reason_without_room_is_in_the_tooltip(build: Build) -> None:
    panel = build(with_processes(process(1, 2 * GIB, "a-rather-long-name", sm_reason=Reason.NOT_SUPPORTED)))
    index = panel.table.order.index(0, Column.GPU)
    assert index.data() == "n/a"
    assert index.data(Qt.ItemDataRole.ToolTipRole) == "not supported\nThis card does not report it."
    panel.resize(700, 400)
    QCoreApplication.processEvents()
    assert index.data() == "not supported"


def test_the_menu_of_the_header_shows_and_hides_columns(build: Build) -> None:
    panel = build(with_processes(process(1)))
    panel._on_header_menu(QPoint(5, 5))
    menu = next(found for found in panel.findChildren(QMenu) if found.isVisible())
    action = {action.objectName(): action for action in menu.actions()}
    assert action["name"].isChecked()
    assert not action["name"].isEnabled()
    action["user"].trigger()
    assert Column.USER in panel.table.columns
    menu.close()


def test_the_sum_is_only_written_where_all_tell(build: Build) -> None:
    workspace = with_processes(process(1, GIB), process(2, GIB))
    panel = build(workspace)
    assert panel._foot.text().replace("\N{NO-BREAK SPACE}", " ") == "2 processes · 2.00 GiB"
    workspace.processes.set({workspace.cards.get()[0].uuid: (process(1, GIB), process(2, None))})
    panel.refresh()
    assert panel._foot.text() == "2 processes"


# -- ending ---------------------------------------------------------------------------------------------------------


def test_who_cannot_be_ended_and_why() -> None:
    known = process(1, started_wall_s=1000.0)
    assert why_not(known, read_only=False) == ""
    assert "cannot be told from another" in why_not(process(1), read_only=False)
    assert "No process is chosen" in why_not(None, read_only=False)
    assert "Read-only mode" in why_not(process(1), read_only=True)
    assert "This is Floodmark" in why_not(process(1, own=True), read_only=False)
    assert "simulated card" in why_not(process(1, simulated=True), read_only=False)
    assert "outside this container" in why_not(process(1, foreign=True), read_only=False)


def ending_panel(build: Build, **fields: object) -> tuple[FakeWorkspace, ProcessesPanel]:
    workspace = FakeWorkspace(FakeState.NOTHING)
    known = {"name": "trainer", "user": "alice", "command": "python -m trainer", "started_wall_s": 1000.0}
    target = on_card(workspace, 4321, **{**known, **fields})
    workspace.processes.set({target.uuid: (target, on_card(workspace, 5, name="other"))})
    panel = build(workspace)
    panel.choose(4321)
    return workspace, panel


def texts_of(panel: ProcessesPanel) -> list[str]:
    dialog = panel.ending.dialog
    assert dialog is not None
    return [label.text() for label in (*dialog.findChildren(Label), *dialog.findChildren(ElidedLabel))]


def test_the_question_names_the_process_its_owner_and_its_card(build: Build) -> None:
    workspace, panel = ending_panel(build)
    panel.end_chosen()
    said = texts_of(panel)
    assert "End trainer?" in said
    assert {"4321", "alice", "python -m trainer"} <= set(said)
    assert any("GeForce GTX 1660" in text for text in said)
    assert any("not save by itself is lost" in text for text in said)
    assert workspace.called("end_process") == []
    assert panel.ending.dialog is not None
    panel.ending.dialog.reject()
    assert workspace.called("end_process") == []


def test_enter_leaves_it_alone(build: Build, qtbot: QtBot) -> None:
    workspace, panel = ending_panel(build)
    qtbot.keyClick(panel.table, Qt.Key.Key_Delete)
    dialog = panel.ending.dialog
    assert dialog is not None
    qtbot.keyClick(dialog, Qt.Key.Key_Return)
    assert panel.ending.dialog is None
    assert workspace.called("end_process") == []


def accept(panel: ProcessesPanel) -> None:
    dialog = panel.ending.dialog
    assert dialog is not None
    dialog.yes.click()


def test_it_is_asked_and_goes(build: Build) -> None:
    workspace, panel = ending_panel(build)
    uuid = workspace.cards.get()[0].uuid
    panel.end_chosen()
    accept(panel)
    assert workspace.called("end_process") == [("end_process", uuid, 4321, False)]
    assert panel._foot.text() == "trainer (4321) was asked to end."
    workspace.processes.set({uuid: (on_card(workspace, 5, name="other"),)})
    panel.refresh()
    assert panel._foot.text() == "trainer (4321) has ended."
    workspace.manual.now_s += 60
    panel.refresh()
    assert panel._foot.text().startswith("1 process")


def test_one_that_stays_can_be_ended_by_force(build: Build) -> None:
    workspace, panel = ending_panel(build)
    panel.end_chosen()
    accept(panel)
    assert not panel._force.isVisible()
    workspace.manual.now_s += PATIENCE_S + 0.1
    panel.refresh()
    assert "still there" in panel._foot.text()
    assert panel._force.isVisible()
    panel._force.click()
    assert any("End trainer by force?" in text for text in texts_of(panel))
    accept(panel)
    assert workspace.called("end_process")[-1][2:] == (4321, True)
    workspace.manual.now_s += PATIENCE_S + 0.1
    panel.refresh()
    assert "waits inside the driver" in panel._foot.text()
    assert not panel._force.isVisible()


def test_without_permission_force_is_not_offered(build: Build) -> None:
    workspace, panel = ending_panel(build)
    workspace.end_outcome = EndOutcome.NO_PERMISSION
    panel.end_chosen()
    accept(panel)
    assert panel._foot.text() == "trainer (4321) belongs to alice. Its owner or an administrator can end it."
    assert not panel._force.isVisible()


def test_another_process_with_its_number_is_left_alone(build: Build) -> None:
    """While the question stood the process ended, and the system gave its number to another one."""
    workspace, panel = ending_panel(build)
    panel.end_chosen()
    uuid = workspace.cards.get()[0].uuid
    workspace.processes.set({uuid: (on_card(workspace, 4321, name="innocent", started_wall_s=2000.0),)})
    accept(panel)
    assert workspace.called("end_process") == []
    assert panel._foot.text() == "trainer (4321) had ended before."


@pytest.mark.parametrize(
    ("fields", "read_only", "why"),
    [({"own": True}, False, "This is Floodmark"), ({"simulated": True}, False, "simulated"), ({}, True, "Read-only")],
)
def test_what_cannot_be_ended_says_so_in_the_menu(
    build: Build, fields: dict[str, object], read_only: bool, why: str
) -> None:
    workspace, panel = ending_panel(build, **fields)
    workspace.read_only = read_only
    panel.refresh()
    menu = panel._row_menu()
    action = next(action for action in menu.actions() if action.text().startswith("End process"))
    assert not action.isEnabled()
    assert why in action.text()
    assert not panel.can_end
    panel.end_chosen()
    assert panel.ending.dialog is None


# -- in the main window ---------------------------------------------------------------------------------------------


def test_the_commands_of_the_table(make_window: MakeWindow) -> None:
    workspace = FakeWorkspace(FakeState.NOTHING)
    uuid = workspace.cards.get()[0].uuid
    workspace.processes.set({uuid: (on_card(workspace, 4321, name="trainer", started_wall_s=1000.0),)})
    window = make_window(workspace)
    assert not window.actions_["view.end_process"].isEnabled()
    window.open_tab(Tab.PROCESSES)
    window.side_panel.processes.choose(4321)
    window.refresh_texts()
    assert window.actions_.trigger("view.end_process")
    dialog = window.side_panel.processes.ending.dialog
    assert dialog is not None
    dialog.reject()
    assert window.actions_.trigger("view.copy_processes")
    assert QGuiApplication.clipboard().text().startswith("Process\tPID")


def test_a_window_of_its_own(make_window: MakeWindow) -> None:
    window = make_window(FakeWorkspace(FakeState.HEALTHY))
    window.actions_.trigger("view.process_window")
    found = window.findChildren(ProcessWindow)
    assert len(found) == 1
    assert found[0].panel.table.columns == WIDE
    assert "GeForce GTX 1660" in found[0].windowTitle()
    window.actions_.trigger("view.process_window")
    assert len(window.findChildren(ProcessWindow)) == 1
    found[0].close()
