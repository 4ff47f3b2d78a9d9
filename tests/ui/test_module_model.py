"""The module tree: its family, its order, its search."""

from __future__ import annotations

import time

import pytest
from PySide6.QtCore import QModelIndex, Qt
from PySide6.QtGui import QGuiApplication
from PySide6.QtTest import QAbstractItemModelTester
from PySide6.QtWidgets import QApplication
from pytestqt.qtbot import QtBot

from desktop_app.core.estimates import ModuleMemory
from desktop_app.core.steps import Category
from desktop_app.core.units import MIB
from desktop_app.ui.memory.module_model import Column, ModuleModel
from desktop_app.ui.memory.module_page import ModulePage
from desktop_app.ui.texts import modules as texts
from desktop_app.ui.theme import DARK
from tests.ui.fake_timelines import bert_modules


def module(path: str, mib: int, *, kind: str = "Linear", parameters: int = 0) -> ModuleMemory:
    return ModuleMemory(path, kind, parameters, {Category.ACTIVATIONS: mib * MIB})


MODULES = (
    module("", 100, kind="Net", parameters=60),
    module("body", 80, kind="Sequential", parameters=50),
    module("body.0", 10, kind="Conv2d", parameters=40),
    module("body.1", 70, kind="ReLU", parameters=10),
    module("head", 20, parameters=10),
    module("lost.and.found", 5, kind="Conv2d"),  # its parents are not listed
)


@pytest.fixture
def model(qapp: QApplication) -> ModuleModel:
    made = ModuleModel()
    QAbstractItemModelTester(made, QAbstractItemModelTester.FailureReportingMode.Fatal, made)
    made.set_modules(MODULES)
    return made


def names(model: ModuleModel, parent: QModelIndex | None = None) -> list[str]:
    parent = parent or QModelIndex()
    return [str(model.index(row, 0, parent).data()) for row in range(model.rowCount(parent))]


def child(model: ModuleModel, *path: str) -> QModelIndex:
    index = QModelIndex()
    for name in path:
        index = model.index(names(model, index).index(name), 0, index)
    return index


def test_children_hang_on_their_parents_the_largest_first(model: ModuleModel) -> None:
    assert names(model) == ["Net"]
    assert names(model, child(model, "Net")) == ["body", "head", "found"]
    assert names(model, child(model, "Net", "body")) == ["1", "0"]


@pytest.mark.parametrize(
    ("column", "order", "expected"),
    [
        (Column.SIZE, Qt.SortOrder.AscendingOrder, ["found", "head", "body"]),
        (Column.NAME, Qt.SortOrder.AscendingOrder, ["body", "head", "found"]),
        (Column.NAME, Qt.SortOrder.DescendingOrder, ["found", "head", "body"]),
        (Column.PARAMETERS, Qt.SortOrder.DescendingOrder, ["body", "head", "found"]),
    ],
)
def test_order_follows_the_column(model: ModuleModel, column: Column, order: Qt.SortOrder, expected: list[str]) -> None:
    model.sort(column, order)
    assert names(model, child(model, "Net")) == expected


def test_search_keeps_what_matches_and_the_way_to_it(model: ModuleModel) -> None:
    assert model.set_query("conv") == 2  # by class
    assert names(model, child(model, "Net")) == ["body", "found"]
    assert names(model, child(model, "Net", "body")) == ["0"]
    assert model.set_query("BODY.1") == 1  # by path, in any case
    assert names(model, child(model, "Net", "body")) == ["1"]
    assert not model.index_of(4).isValid()  # hidden
    assert model.set_query("nowhere") == 0
    assert names(model) == []
    assert model.set_query(" ") == len(MODULES)
    assert len(names(model, child(model, "Net"))) == 3


def test_largest_path_ends_where_the_bytes_spread(model: ModuleModel) -> None:
    assert [index.data() for index in model.largest_path(share=1 / 3)] == ["Net", "body", "1"]
    assert [index.data() for index in model.largest_path(share=0.85)] == ["Net"]


def test_tree_sums_up_and_is_searched_without_a_pause(qtbot: QtBot) -> None:
    """Ten thousand modules: each keystroke of a search in a tenth of a second of one core."""
    many = tuple(
        module(f"layers.{layer}.part.{part}" if part else f"layers.{layer}", 1 + part, kind="Block")
        for layer in range(400)
        for part in range(25)
    )
    page = ModulePage(DARK)
    qtbot.addWidget(page)
    page.resize(700, 400)
    page.show()
    page.set_modules((module("", 10**6), module("layers", 10**6), *many))
    started_s = time.process_time()
    for query in ("l", "la", "lay", "layers.399.part.24"):
        page.search.setText(query)
    assert time.process_time() - started_s < 1.0
    assert page.tree.model().rowCount() == 1


def test_copied_table_has_every_module_and_every_kind(qtbot: QtBot) -> None:
    page = ModulePage(DARK)
    qtbot.addWidget(page)
    page.set_modules(bert_modules())
    page.copy_all()
    lines = QGuiApplication.clipboard().text().split("\n")
    assert len(lines) == 1 + len(bert_modules())
    head = lines[0].split("\t")
    first = dict(zip(head, lines[1].split("\t"), strict=True))
    root = bert_modules()[0]
    assert int(first["Size"]) == root.total_bytes
    assert int(first["Optimizer state"]) == root.categories[Category.OPTIMIZER_STATE]
    qtbot.keyClick(page.tree, Qt.Key.Key_Down)
    qtbot.keyClick(page.tree, Qt.Key.Key_C, Qt.KeyboardModifier.ControlModifier)
    assert len(QGuiApplication.clipboard().text().split("\n")) == 2


def test_open_branches_stay_open_when_the_form_changes_a_little(qtbot: QtBot) -> None:
    page = ModulePage(DARK)
    qtbot.addWidget(page)
    page.set_modules(bert_modules())
    page.show_largest()
    current = page.chosen_path
    assert current == "bert.encoder.layer"
    page.set_modules(tuple(bert_modules()))
    assert page.chosen_path == current
    row = next(row for row, found in enumerate(page.model.modules) if found.path == "bert.encoder")
    assert page.tree.isExpanded(page.model.index_of(row))


def test_counts_are_written_as_model_cards_do() -> None:
    assert [texts.count(value).replace("\N{NO-BREAK SPACE}", " ") for value in (7, 1500, 25_600_000, 334 * 10**6)] == [
        "7",
        "1.5 k",
        "25.6 M",
        "334 M",
    ]
