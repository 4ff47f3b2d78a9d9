"""Opens GPU pages for tests, and reads them."""

from __future__ import annotations

from collections.abc import Callable

from PySide6.QtCore import QCoreApplication
from PySide6.QtWidgets import QLabel, QWidget

from desktop_app.ui.gpu.field_rows import Row
from desktop_app.ui.gpu.gpu_page import GpuPage
from desktop_app.ui.main_window import MainWindow
from desktop_app.ui.parts import GpuPart
from desktop_app.ui.texts.numbers import NBSP
from desktop_app.ui.theme import DARK
from tests.ui.fake_gpus import Gpus, sample
from tests.ui.fake_workspace import FakeWorkspace


def page_of(window: MainWindow, part: GpuPart = GpuPart.FIELDS) -> GpuPage:
    window.centre.show_gpu(part)
    QCoreApplication.processEvents()
    page = window.centre.gpu
    assert page is not None
    return page


def open_page(show: Callable[..., QWidget], workspace: FakeWorkspace, part: GpuPart = GpuPart.FIELDS) -> GpuPage:
    """The page without its window, which takes four times as long to make."""
    page = GpuPage(workspace, DARK)
    show(page, width=820, height=700)
    page.open_part(part)
    QCoreApplication.processEvents()
    return page


def row_of(page: GpuPage, key: str) -> Row:
    return next(row for row in page.fields.model.rows if row.key == key)


def said(text: str) -> str:
    return text.replace(NBSP, " ")


def words(widget: QWidget) -> str:
    return said("\n".join(label.text() for label in widget.findChildren(QLabel) if label.isVisible()))


def one_more_second(workspace: FakeWorkspace, gpus: Gpus) -> None:
    workspace.manual.now_s += 1.0
    sample(workspace, gpus, workspace.manual.now_s)
