"""The middle of the window: the curves, the memory of one step, or the cards. Pages are made when first looked at."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from PySide6.QtCore import QPoint, Signal
from PySide6.QtWidgets import QStackedWidget, QWidget

from desktop_app.services.facade import Workspace
from desktop_app.ui.chart_slot import ChartSlot
from desktop_app.ui.charts.throttling import Throttle
from desktop_app.ui.parts import GpuPart, Part
from desktop_app.ui.theme import Theme

if TYPE_CHECKING:
    from desktop_app.ui.gpu.gpu_page import GpuPage
    from desktop_app.ui.memory.memory_page import MemoryPage


class Centre(QStackedWidget):
    """``turned`` follows a change of the page; it carries the page's command. ``card_chosen``: a UUID."""

    turned = Signal(str)
    card_chosen = Signal(str)
    chart_menu_wanted = Signal(str, QPoint)  # key of the panel, and where on the screen

    def __init__(self, workspace: Workspace, theme: Theme, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._workspace = workspace
        self._theme = theme
        self._compact = False
        self._memory: MemoryPage | None = None
        self._gpu: GpuPage | None = None
        self._shades: frozenset[Throttle] | None = None
        self.charts = ChartSlot(workspace, theme)
        self.charts.menu_wanted.connect(self.chart_menu_wanted)
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
        self.turned.emit("view.curves")

    def show_memory(self, part: Part | None = None) -> None:
        """Open the memory page, at ``part`` where one is named."""
        page = self._memory or self._make_memory()
        self.setCurrentWidget(page)
        page.refresh()
        if part is not None:
            page.open_part(part)
        self.turned.emit("view.memory")

    @property
    def gpu(self) -> GpuPage | None:
        """``None`` until it has been opened once."""
        return self._gpu

    @property
    def shows_gpu(self) -> bool:
        return self._gpu is not None and self.currentWidget() is self._gpu

    def show_gpu(self, part: GpuPart = GpuPart.FIELDS) -> None:
        """Open the GPU page at ``part``."""
        page = self._gpu or self._make_gpu()
        self.setCurrentWidget(page)
        page.open_part(part)
        self.turned.emit("view.gpu_page")

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

    def _make_gpu(self) -> GpuPage:
        from desktop_app.ui.gpu.gpu_page import GpuPage

        page = GpuPage(self._workspace, self._theme)
        page.left.connect(self.show_curves)
        page.card_chosen.connect(self.card_chosen)
        page.chart_menu_wanted.connect(self.chart_menu_wanted)
        if self._shades is not None:
            page.set_shades(self._shades)
        page.set_compact(compact=self._compact)
        self._gpu = page
        self.addWidget(page)
        return page

    # -- what the window calls ------------------------------------------------------------------------------------

    def refresh(self) -> None:
        """One frame of the curves that are on show."""
        self.charts.refresh()
        if self._gpu is not None and self.shows_gpu:
            self._gpu.refresh()

    def refresh_texts(self) -> None:
        self.charts.refresh_texts()
        if self._memory is not None and self.shows_memory:
            self._memory.refresh()
        if self._gpu is not None and self.shows_gpu:
            self._gpu.refresh_texts()

    def set_compact(self, *, compact: bool) -> None:
        self.charts.set_compact(compact=compact)
        if compact != self._compact:
            self._compact = compact
            for page in (self._memory, self._gpu):
                if page is not None:
                    page.set_compact(compact=compact)

    def set_shades(self, causes: frozenset[Throttle]) -> None:
        """Shade the time in which one of ``causes`` held the card back, in every chart."""
        self._shades = causes
        self.charts.set_shades(causes)
        if self._gpu is not None:
            self._gpu.set_shades(causes)

    def retranslate(self) -> None:
        self.charts.retranslate()
        for page in (self._memory, self._gpu):
            if page is not None:
                page.retranslate()

    def set_theme(self, theme: Theme) -> None:
        self._theme = theme
        self.charts.set_theme(theme)
        for page in (self._memory, self._gpu):
            if page is not None:
                page.set_theme(theme)
