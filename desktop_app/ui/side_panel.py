"""The panel at the right: run, GPU, alerts, processes, and after an out-of-memory error what happened."""

from __future__ import annotations

from collections.abc import Sequence
from enum import IntEnum
from typing import Final, Protocol

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QFrame, QStackedWidget, QTabBar, QVBoxLayout, QWidget

from desktop_app.core.steps import OomReport
from desktop_app.services.facade import Workspace
from desktop_app.ui.actions import Actions, tooltip
from desktop_app.ui.alerts_panel import AlertsPanel
from desktop_app.ui.commands import BY_ID
from desktop_app.ui.gpu_panel import GpuPanel
from desktop_app.ui.labels import Divider
from desktop_app.ui.post_mortem import PostMortemPanel, all_reports
from desktop_app.ui.processes_panel import Memory, ProcessesPanel
from desktop_app.ui.run_panel import RunPanel
from desktop_app.ui.theme import Theme

WIDTH: Final = 312
NARROW_WIDTH: Final = 288


class Tab(IntEnum):
    """Pages, in order."""

    RUN = 0
    GPU = 1
    ALERTS = 2
    PROCESSES = 3
    POST_MORTEM = 4


_COMMANDS: Final = {
    Tab.RUN: "view.run",
    Tab.GPU: "view.gpu",
    Tab.ALERTS: "view.alerts",
    Tab.PROCESSES: "view.processes",
    Tab.POST_MORTEM: "run.post_mortem",
}


class Page(Protocol):
    """What every page can do."""

    def refresh(self) -> None: ...
    def retranslate(self) -> None: ...
    def set_theme(self, theme: Theme) -> None: ...


class SidePanel(QFrame):
    """Tabs over pages. Only the page on show is refreshed."""

    def __init__(
        self,
        workspace: Workspace,
        actions: Actions,
        theme: Theme,
        *,
        memory: Memory | None = None,
        parent: QWidget | None = None,
    ) -> None:
        super().__init__(parent)
        self.setProperty("panel", True)
        self._workspace = workspace
        self._tabs = QTabBar()
        self._stack = QStackedWidget()
        self._opened: OomReport | None = None
        self.run = RunPanel(workspace, actions, theme)
        self.gpu = GpuPanel(workspace)
        self.alerts = AlertsPanel(workspace, theme)
        self.processes = ProcessesPanel(workspace, memory=memory)
        self.post_mortem = PostMortemPanel(workspace, theme)
        self._pages: Sequence[Page] = (self.run, self.gpu, self.alerts, self.processes, self.post_mortem)
        self._build()
        self.retranslate()

    def _build(self) -> None:
        self._tabs.setObjectName("sideTabs")
        self._tabs.setExpanding(False)
        self._tabs.setUsesScrollButtons(True)
        self._tabs.setElideMode(Qt.TextElideMode.ElideNone)
        self._tabs.setDrawBase(False)
        for page in (self.run, self.gpu, self.alerts, self.processes, self.post_mortem):
            self._stack.addWidget(page)
            self._tabs.addTab("")
        self._tabs.setTabVisible(Tab.POST_MORTEM, False)
        self._tabs.currentChanged.connect(self._on_tab_changed)
        layout = QVBoxLayout(self)
        layout.setContentsMargins(1, 4, 1, 1)
        layout.setSpacing(0)
        layout.addWidget(self._tabs)
        layout.addWidget(Divider())
        layout.addWidget(self._stack)

    def _on_tab_changed(self, index: int) -> None:
        self._stack.setCurrentIndex(index)
        self._pages[index].refresh()

    @property
    def tab(self) -> Tab:
        return Tab(self._stack.currentIndex())

    def open_tab(self, tab: Tab, *, focus: bool = True) -> None:
        self._tabs.setCurrentIndex(tab)
        if focus:
            self._tabs.setFocus(Qt.FocusReason.ShortcutFocusReason)

    def refresh(self) -> None:
        self._show_count()
        self._show_post_mortem()
        self._pages[self._stack.currentIndex()].refresh()

    def _show_count(self) -> None:
        """``Alerts 1``: how many of this run; a cleared one counts, because it can still be read."""
        count = len(self._workspace.alerts.get())
        title = BY_ID["view.alerts"].title
        text = f"{title}  {count}" if count else title
        if self._tabs.tabText(Tab.ALERTS) != text:
            self._tabs.setTabText(Tab.ALERTS, text)

    def _show_post_mortem(self) -> None:
        """The page is there when the run has met an out-of-memory error, and opens by itself once if that ended it."""
        report = self._workspace.run.get().oom
        met = bool(all_reports(self._workspace.run.get()))
        self._tabs.setTabVisible(Tab.POST_MORTEM, met)
        self.post_mortem.refresh()
        if report is not None and report is not self._opened:
            self._opened = report
            self.open_tab(Tab.POST_MORTEM, focus=False)
        if not met and self.tab is Tab.POST_MORTEM:
            self.open_tab(Tab.RUN, focus=False)

    def retranslate(self) -> None:
        self._tabs.setAccessibleName(self.tr("Side panel"))
        for tab, command_id in _COMMANDS.items():
            title = self.tr("OOM") if tab is Tab.POST_MORTEM else BY_ID[command_id].title
            self._tabs.setTabText(tab, title)
            self._tabs.setTabToolTip(tab, tooltip(command_id))
        for page in self._pages:
            page.retranslate()
        self._show_count()

    def set_theme(self, theme: Theme) -> None:
        for page in self._pages:
            page.set_theme(theme)
