"""Bars over the verdict: what is wrong with the program itself, and a run that can be taken up again."""

from __future__ import annotations

from typing import Final

from PySide6.QtCore import Signal
from PySide6.QtWidgets import QFrame, QHBoxLayout, QLabel, QPushButton, QVBoxLayout, QWidget

from desktop_app.services.facade import Notice, ResumeOffer, Workspace
from desktop_app.ui import icons
from desktop_app.ui.icons import IconName
from desktop_app.ui.labels import Label, clear_layout
from desktop_app.ui.texts import errors, numbers
from desktop_app.ui.theme import Theme

_ICON_SIZE = 16
# Icon and background of each level that a notice may have.
_LOOKS: Final = {
    "info": (IconName.INFO, "calm"),
    "warning": (IconName.WARNING, "warn"),
    "error": (IconName.ERROR, "danger"),
}


class _Bar(QFrame):
    """One line with an icon; buttons may follow."""

    def __init__(self, text: str, *, icon: IconName, tint: str, theme: Theme, banner: str) -> None:
        super().__init__()
        self.setProperty("banner", banner)
        mark = QLabel()
        mark.setPixmap(icons.pixmap(icon, theme, _ICON_SIZE, ratio=self.devicePixelRatioF(), color=tint))
        self.row = QHBoxLayout(self)
        self.row.setContentsMargins(16, 4, 16, 4)
        self.row.setSpacing(8)
        self.row.addWidget(mark)
        self.row.addWidget(Label(text, wrap=True), stretch=1)
        self.setAccessibleName(text)

    def add_button(self, text: str, *, kind: str) -> QPushButton:
        button = QPushButton(text)
        button.setProperty("kind", kind)
        self.row.addWidget(button)
        return button


class NoticeBars(QWidget):
    """All notices and the resume offer of a workspace; takes no room when there is nothing to say.

    It shows and hides itself, so it must have a parent from the start: else it would be a window for a moment.
    """

    command_chosen = Signal(str)

    def __init__(self, workspace: Workspace, theme: Theme, parent: QWidget) -> None:
        super().__init__(parent)
        self._workspace = workspace
        self._theme = theme
        self._shown: tuple[tuple[Notice, ...], ResumeOffer | None] | None = None
        self._hidden: list[Notice] = []  # compared, not hashed: their params are a mapping
        self._layout = QVBoxLayout(self)
        self._layout.setContentsMargins(0, 0, 0, 0)
        self._layout.setSpacing(1)
        self.refresh()

    def refresh(self) -> None:
        offer = None if self._workspace.run.get().state.active else self._workspace.resume_offer.get()
        known = self._workspace.notices.get()
        self._hidden = [notice for notice in self._hidden if notice in known]  # what comes again is shown again
        wanted = (tuple(notice for notice in known if notice not in self._hidden), offer)
        if wanted != self._shown:
            self._shown = wanted
            self._rebuild(*wanted)

    def retranslate(self) -> None:
        self._shown = None
        self.refresh()

    def set_theme(self, theme: Theme) -> None:
        self._theme = theme
        self.retranslate()

    def _rebuild(self, notices: tuple[Notice, ...], offer: ResumeOffer | None) -> None:
        clear_layout(self._layout)
        for notice in notices:
            self._layout.addWidget(self._notice_bar(notice))
        if offer is not None:
            self._layout.addWidget(self._offer_bar(offer))
        self.setVisible(bool(notices) or offer is not None)

    def _notice_bar(self, notice: Notice) -> _Bar:
        icon, banner = _LOOKS.get(notice.level, _LOOKS["warning"])
        tints = {"danger": self._theme.danger, "warn": self._theme.warn, "calm": self._theme.accent}
        text = errors.text(notice.code, notice.message, notice.params)
        bar = _Bar(text, icon=icon, tint=tints[banner], theme=self._theme, banner=banner)
        hide = bar.add_button("", kind="quiet")
        hide.setIcon(icons.icon(IconName.CLOSE, self._theme, color=self._theme.muted))
        hide.setToolTip(self.tr("Hide"))
        hide.setAccessibleName(self.tr("Hide"))
        hide.clicked.connect(lambda: self._hide(notice))
        return bar

    def _hide(self, notice: Notice) -> None:
        self._hidden.append(notice)
        self.refresh()

    def _offer_bar(self, offer: ResumeOffer) -> _Bar:
        text = self.tr("The run {0} ended unexpectedly at step {1}, {2}. Resume from its checkpoint?").format(
            offer.run_name, numbers.integer(offer.step), numbers.wall_date(offer.ended_wall_s)
        )
        bar = _Bar(text, icon=IconName.CLOCK, tint=self._theme.accent, theme=self._theme, banner="calm")
        resume = bar.add_button(self.tr("Resume"), kind="primary")
        resume.clicked.connect(lambda: self.command_chosen.emit("run.take_up"))
        leave = bar.add_button(self.tr("Leave it"), kind="quiet")
        leave.clicked.connect(lambda: self.command_chosen.emit("run.leave"))
        return bar
