"""The middle of the window: the curves, or the memory of one step, which is made when it is first looked at."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from PySide6.QtCore import Signal
from PySide6.QtWidgets import QStackedWidget, QWidget

from desktop_app.services.facade import Workspace
from desktop_app.ui.chart_slot import ChartSlot
from desktop_app.ui.parts import Part
from desktop_app.ui.theme import Theme

if TYPE_CHECKING:
    from desktop_app.ui.memory.memory_page import MemoryPage


class Centre(QStackedWidget):
    """``turned`` follows a change of the page; it carries whether the memory page is on show."""

    turned = Signal(bool)

    def __init__(self, workspace: Workspace, theme: Theme, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._workspace = workspace
        self._theme = theme
        self._compact = False
        self._memory: MemoryPage | None = None
        self.charts = ChartSlot(workspace, theme)
        self.addWidget(self.charts)

    @property
    def memory(self) -> MemoryPage | None:
        """``None`` until it has been opened once."""
        return self._memory

    @property
    def shows_memory(self) -> bool:
        return self._memory is not None and self.currentWidget() is self._memory

    def show_curves(self) -> None:
        self.setCurrentWidget(self.charts)
        self.turned.emit(False)

    def show_memory(self, part: Part | None = None) -> None:
        """Open the memory page, at ``part`` where one is named."""
        page = self._memory or self._make_memory()
        self.setCurrentWidget(page)
        page.refresh()
        if part is not None:
            page.open_part(part)
        self.turned.emit(True)

    def record_step(self) -> None:
        """Show the next step of the run on the memory page."""
        self.show_memory(Part.STEP)
        if self._memory is not None:
            self._memory.record_step()

    def open_snapshot(self, path: str) -> None:
        """Show a memory recording on the memory page."""
        self.show_memory(Part.STEP)
        if self._memory is not None:
            self._memory.open_snapshot(Path(path))

    def _make_memory(self) -> MemoryPage:
        from desktop_app.ui.memory.memory_page import MemoryPage

        page = MemoryPage(self._workspace, self._theme)
        page.left.connect(self.show_curves)
        page.set_compact(compact=self._compact)
        self._memory = page
        self.addWidget(page)
        return page

    # -- what the window calls ------------------------------------------------------------------------------------

    def refresh(self) -> None:
        """One frame of the curves, if they are on show."""
        self.charts.refresh()

    def refresh_texts(self) -> None:
        self.charts.refresh_texts()
        if self._memory is not None and self.shows_memory:
            self._memory.refresh()

    def set_compact(self, *, compact: bool) -> None:
        self.charts.set_compact(compact=compact)
        if compact != self._compact:
            self._compact = compact
            if self._memory is not None:
                self._memory.set_compact(compact=compact)

    def retranslate(self) -> None:
        self.charts.retranslate()
        if self._memory is not None:
            self._memory.retranslate()

    def set_theme(self, theme: Theme) -> None:
        self._theme = theme
        self.charts.set_theme(theme)
        if self._memory is not None:
            self._memory.set_theme(theme)
