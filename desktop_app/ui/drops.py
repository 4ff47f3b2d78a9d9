"""What may be dropped onto the window: memory snapshots, run files, and other people's error messages."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Final

from PySide6.QtCore import QEvent, QMimeData, QObject
from PySide6.QtGui import QDragEnterEvent, QDragMoveEvent, QDropEvent
from PySide6.QtWidgets import QGraphicsView

if TYPE_CHECKING:
    from desktop_app.ui.main_window import MainWindow

_SNAPSHOTS: Final = frozenset({".pickle", ".pkl"})
_RUNS: Final = frozenset({".toml"})


class Drops(QObject):
    """Takes drops of one file, or of text, for ``window``. Every other file is read as a log with an error in it."""

    def __init__(self, window: MainWindow) -> None:
        super().__init__(window)
        self._window = window
        window.setAcceptDrops(True)
        window.installEventFilter(self)
        window.charts.placed.connect(self._open_views)
        window.centre.turned.connect(self._open_views)

    def _open_views(self) -> None:
        """Pictures take drops by themselves and do nothing with them: what is dropped there is the window's."""
        for view in self._window.findChildren(QGraphicsView):
            view.setAcceptDrops(False)
            view.viewport().setAcceptDrops(False)

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        if isinstance(event, QDropEvent):  # drag events are drop events to PySide, told apart by their type
            return self._handle(event)
        return super().eventFilter(watched, event)

    def _handle(self, event: QDragEnterEvent | QDragMoveEvent | QDropEvent) -> bool:
        if event.type() not in (QEvent.Type.DragEnter, QEvent.Type.DragMove, QEvent.Type.Drop):
            return False
        if not can_take(event.mimeData()):
            return False
        event.acceptProposedAction()
        if event.type() is QEvent.Type.Drop:
            self.take(event.mimeData())
        return True

    def take(self, data: QMimeData) -> None:
        """Do with it what its kind asks for."""
        path = dropped_file(data)
        if path is None:
            self._window.dialogs.explain(data.text())
        elif path.suffix.lower() in _SNAPSHOTS:
            self._window.centre.open_snapshot(str(path))
        elif path.suffix.lower() in _RUNS:
            self._window.files.read_run(str(path))
        else:
            self._window.dialogs.explain(path=path)


def can_take(data: QMimeData) -> bool:
    return dropped_file(data) is not None or (data.hasText() and not data.hasUrls())


def dropped_file(data: QMimeData) -> Path | None:
    """The one local file of a drop; ``None`` for several, for folders and for what lies elsewhere."""
    urls = data.urls()
    if len(urls) != 1 or not urls[0].isLocalFile():
        return None
    path = Path(urls[0].toLocalFile())
    return path if path.is_file() else None
