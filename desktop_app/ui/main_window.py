"""The main window: places the parts, keeps them fresh, and passes commands on."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Final, Protocol, cast

from PySide6.QtCore import QEvent, QSize, Qt, QTimer, Signal
from PySide6.QtGui import QCloseEvent, QPaintEvent, QResizeEvent, QShowEvent
from PySide6.QtWidgets import QApplication, QHBoxLayout, QMainWindow, QVBoxLayout, QWidget

from desktop_app.services.facade import EstimateState, Workspace
from desktop_app.ui import side_panel
from desktop_app.ui.actions import Actions
from desktop_app.ui.announcer import Announcer
from desktop_app.ui.appearance import PRESENTATION_SCALE, Appearance
from desktop_app.ui.banner import VerdictBanner
from desktop_app.ui.centre import Centre
from desktop_app.ui.chart_choices import ChartChoices
from desktop_app.ui.closing import Closing, Stage
from desktop_app.ui.dialogs import Dialogs
from desktop_app.ui.drops import Drops
from desktop_app.ui.files import Files
from desktop_app.ui.handlers import window_handlers
from desktop_app.ui.header import Header
from desktop_app.ui.headline import current_headline
from desktop_app.ui.labels import Label
from desktop_app.ui.notices import NoticeBars
from desktop_app.ui.pulse import Pulse
from desktop_app.ui.qt_settings import Settings
from desktop_app.ui.recommendations import largest_neighbour
from desktop_app.ui.side_panel import SidePanel, Tab
from desktop_app.ui.situation import current_situation, news
from desktop_app.ui.status_bar import StatusBar
from desktop_app.ui.tank import TankWidget
from desktop_app.ui.tank_reader import TankReader
from desktop_app.ui.theme import Theme, ThemeMode

_FIRST_SIZE: Final = QSize(1440, 900)
_LEAST_SIZE: Final = QSize(960, 600)
# Below this width, in pixels at normal type, tank and side panel are narrow and the charts compact.
_WIDE: Final = 1200
_TANK_WIDTH: Final = 264
_NARROW_TANK_WIDTH: Final = 224
_CHART_INSET: Final = 2  # the charts keep this much around them for their focus ring


class Part(Protocol):
    """What every part of the window can do."""

    def retranslate(self) -> None: ...
    def set_theme(self, theme: Theme) -> None: ...


class MainWindow(QMainWindow):
    """Reads ``workspace`` by timers. ``closing_finished`` comes when the run is stopped and everything may be closed.

    ``theme`` and ``language`` are what to begin with; changes made in the window go to ``settings``.
    """

    closing_finished = Signal()

    def __init__(
        self,
        workspace: Workspace,
        *,
        settings: Settings,
        theme: ThemeMode,
        language: str,
        parent: QWidget | None = None,
    ) -> None:
        super().__init__(parent)
        app = cast("QApplication", QApplication.instance())
        self._workspace = workspace
        self.settings = settings
        self._presenting = False
        self.appearance = Appearance(app, self, mode=theme, language=language)
        self.centre = Centre(workspace, self.appearance.theme)
        self.charts = self.centre.charts
        self.dialogs = Dialogs(self, workspace)
        self.actions_ = Actions(self, window_handlers(self, workspace))
        self._make_parts()
        self._arrange()
        self._connect()
        self._restore()
        self._ready = True
        self.appearance.dress()
        self._show_appearance()
        self.refresh_texts()

    _ready = False
    _painted = False

    # -- parts ------------------------------------------------------------------------------------------------------

    def _make_parts(self) -> None:
        workspace, theme = self._workspace, self.appearance.theme
        self.header = Header(workspace, self.actions_, theme)
        self.notices = NoticeBars(workspace, theme, self)
        self.banner = VerdictBanner(theme)
        self.tank = TankWidget(theme)
        self._tank_reader = TankReader(workspace)
        self.side_panel = SidePanel(workspace, self.actions_, theme, memory=self.settings)
        self.status = StatusBar(workspace)
        self._parts: Sequence[Part] = (
            self.header,
            self.notices,
            self.banner,
            self.tank,
            self.centre,
            self.side_panel,
            self.status,
        )
        self.files = Files(self, self.side_panel.run, self.settings, grab_to=self.grab_to)
        self.choices = ChartChoices(self.centre, workspace, self.actions_, self.settings, self)
        self.closing = Closing(workspace, self)
        self.announcer = Announcer(workspace, self)
        self.drops = Drops(self)
        self.pulse = Pulse(
            self,
            draw=self.centre.refresh,
            write=self.refresh_texts,
            news=lambda: news(workspace),
            note_frame=self._note_frame,
        )

    def _arrange(self) -> None:
        self.setObjectName("mainWindow")
        self.setWindowTitle(self.tr("Floodmark"))
        self.setMinimumSize(_LEAST_SIZE)
        body = QWidget()
        body.setObjectName("body")
        self._row = QHBoxLayout(body)
        self._row.addWidget(self.tank)
        self._row.addWidget(self.centre, stretch=1)
        side = QVBoxLayout()
        side.setContentsMargins(0, _CHART_INSET, 0, _CHART_INSET)
        side.addWidget(self.side_panel)
        self._row.addLayout(side)
        self._central = central = QWidget()
        central.setFocusPolicy(Qt.FocusPolicy.ClickFocus)
        column = QVBoxLayout(central)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(0)
        for part in (self.header, self.notices, self.banner):
            column.addWidget(part)
        column.addWidget(body, stretch=1)
        column.addWidget(self.status)
        self.setCentralWidget(central)

    def _connect(self) -> None:
        panel = self.side_panel
        for source in (self.banner, self.notices, self.status, panel.gpu, panel.alerts, panel.post_mortem):
            source.command_chosen.connect(self.actions_.trigger)
        self.header.card_chosen.connect(self._choose_card)
        self.side_panel.gpu.card_chosen.connect(self._choose_card)
        self.side_panel.run.form_changed.connect(self._show_situation)
        self.side_panel.processes.window_wanted.connect(self.dialogs.show_processes)
        self.closing.finished.connect(self._on_closing_finished)
        self.appearance.changed.connect(self._show_appearance)
        self.tank.clicked.connect(self.centre.show_memory)
        self.centre.turned.connect(self._on_turned)
        self.centre.card_chosen.connect(self._choose_card)

    def _restore(self) -> None:
        self.resize(_FIRST_SIZE)
        if not self.settings.geometry.isEmpty():
            self.restoreGeometry(self.settings.geometry)
        self.side_panel.setVisible(self.settings.side_panel)
        self.actions_.check("view.side_panel", self.settings.side_panel)
        self.actions_.check(f"view.theme_{self.appearance.mode.value}", True)
        self.actions_.check("view.curves", True)
        self._show_language()

    # -- keeping fresh ----------------------------------------------------------------------------------------------

    def refresh_texts(self) -> None:
        """Everything but the curves, from what the workspace says now."""
        self._show_situation()
        self.header.refresh()
        self.notices.refresh()
        self.banner.show_headline(current_headline(self._workspace))
        self.tank.set_state(self._tank_reader.read())
        self.centre.refresh_texts()
        self.side_panel.refresh()
        self.status.refresh()
        self.announcer.refresh()

    def _note_frame(self, seconds: float) -> None:
        self.status.note_frame(seconds)
        self._workspace.note_frame(seconds)

    def _show_situation(self) -> None:
        config = self.side_panel.run.form.config()
        endable = self.side_panel.processes.can_end
        self.actions_.set_situation(current_situation(self._workspace, config, endable=endable))
        self.choices.refresh()

    # -- commands ---------------------------------------------------------------------------------------------------

    def open_tab(self, tab: Tab) -> None:
        if not self.side_panel.isVisible():
            self.toggle_side_panel()
        self.side_panel.open_tab(tab)

    def show_neighbour(self) -> None:
        """The process that holds most of the card beside this run, chosen in the table."""
        self.open_tab(Tab.PROCESSES)
        process = largest_neighbour(self._workspace)
        if process is not None:
            self.side_panel.processes.choose(process.pid)

    def _on_turned(self, command_id: str) -> None:
        self.actions_.check(command_id, True)
        if command_id == "view.memory" and self._workspace.estimate.get().state is EstimateState.NONE:
            self.side_panel.run.request_estimate()

    def toggle_side_panel(self) -> None:
        shown = not self.side_panel.isVisibleTo(self)
        self.side_panel.setVisible(shown)
        self.actions_.check("view.side_panel", shown)
        if not self._presenting:
            self.settings.side_panel = shown

    def toggle_presentation(self) -> None:
        """Everything 1.6 times larger, without the side panel, on the whole screen; again: back."""
        self._presenting = not self._presenting
        self.actions_.check("view.presentation", self._presenting)
        self.side_panel.setVisible(not self._presenting and self.settings.side_panel)
        self.actions_.check("view.side_panel", self.side_panel.isVisibleTo(self))
        if self._presenting:
            self.showFullScreen()
        else:
            self.showNormal()
        self.appearance.set_scale(PRESENTATION_SCALE if self._presenting else 1.0)
        self._fit()

    def set_theme_mode(self, mode: ThemeMode) -> None:
        self.settings.theme = mode
        self.actions_.check(f"view.theme_{mode.value}", True)
        self.appearance.set_mode(mode)

    def _show_appearance(self) -> None:
        """Take the colours and sizes of the appearance everywhere."""
        for label in self.labels():
            label.apply_font()
        self.actions_.set_theme(self.appearance.theme)
        for part in self._parts:
            part.set_theme(self.appearance.theme)

    def labels(self) -> list[Label]:
        """Every label of the window that has a font role."""
        return self.findChildren(Label)

    def set_language(self, language: str) -> None:
        """Switch at once; every part takes its texts anew by ``LanguageChange``."""
        self.settings.language = language
        self.appearance.use_language(language)
        self._show_language()

    def _show_language(self) -> None:
        self.actions_.check(f"view.language_{self.appearance.language}", True)
        self.status.show_language(self.appearance.language)

    def next_card(self) -> None:
        cards = [card.uuid for card in self._workspace.cards.get()]
        now = self._workspace.card_uuid.get()
        if cards:
            place = cards.index(now) + 1 if now in cards else 0
            self._choose_card(cards[place % len(cards)])

    def _choose_card(self, uuid: str) -> None:
        self._workspace.select_card(uuid)
        if self._workspace.estimate.get().state is not EstimateState.NONE:
            self.side_panel.run.request_estimate()  # what was said was said about another card
        self.refresh_texts()

    def grab_to(self, path: Path) -> bool:
        """Write a picture of the window as it is now, charts included."""
        self.charts.place()
        self.refresh_texts()
        self.charts.refresh()
        return self.grab().save(str(path))

    # -- events -----------------------------------------------------------------------------------------------------

    def showEvent(self, event: QShowEvent) -> None:
        super().showEvent(event)
        self.pulse.start()
        if not self._painted:
            self._central.setFocus()  # nobody's ring at the start; Tab goes to the first control

    def paintEvent(self, event: QPaintEvent) -> None:
        super().paintEvent(event)
        if not self._painted:
            self._painted = True
            self.charts.place_soon()

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._fit()

    def _fit(self) -> None:
        """Narrow parts in a narrow window, so that the charts keep the larger share."""
        scale = self.appearance.scale
        narrow = self.width() < _WIDE * scale
        self.tank.setFixedWidth(round((_NARROW_TANK_WIDTH if narrow else _TANK_WIDTH) * scale))
        self.side_panel.setFixedWidth(round((side_panel.NARROW_WIDTH if narrow else side_panel.WIDTH) * scale))
        self.centre.set_compact(compact=narrow or self.height() < 720 * scale)
        gap = 8 if narrow else 16
        self._row.setContentsMargins(gap, gap, gap, gap)
        self._row.setSpacing(gap - _CHART_INSET)

    def changeEvent(self, event: QEvent) -> None:
        if event.type() is QEvent.Type.LanguageChange and self._ready:
            self._retranslate()
        super().changeEvent(event)

    def _retranslate(self) -> None:
        self.actions_.retranslate()
        self.setWindowTitle(self.tr("Floodmark"))
        for part in self._parts:
            part.retranslate()
        self.announcer.retranslate()
        self.refresh_texts()

    def closeEvent(self, event: QCloseEvent) -> None:
        if self.closing.stage is Stage.DONE:
            event.accept()
            return
        event.ignore()
        self.closing.begin()

    def _on_closing_finished(self) -> None:
        self.pulse.stop()
        self.announcer.end()
        if not self._presenting:
            self.settings.geometry = self.saveGeometry()
        self.settings.sync()
        QTimer.singleShot(0, self, self._leave)

    def _leave(self) -> None:
        self.close()
        self.appearance.undress()
        self.closing_finished.emit()
