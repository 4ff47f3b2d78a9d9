"""The verdict: one sentence, the evidence below it, one action right of it."""

from __future__ import annotations

from typing import Final

from PySide6.QtCore import Qt, Signal
from PySide6.QtGui import QResizeEvent
from PySide6.QtWidgets import QBoxLayout, QFrame, QHBoxLayout, QLabel, QPushButton, QSizePolicy, QVBoxLayout, QWidget

from desktop_app.ui import icons
from desktop_app.ui.commands import BY_ID
from desktop_app.ui.headline import Band, Headline, HeadlineAction
from desktop_app.ui.icons import IconName
from desktop_app.ui.labels import Label, restyle, type_scale
from desktop_app.ui.texts import numbers, verdicts
from desktop_app.ui.theme import FontRole, Theme

# Colour is never alone: each band has a shape of its own.
_ICONS: Final = {
    Band.NEUTRAL: IconName.INFO,
    Band.OK: IconName.OK,
    Band.WARN: IconName.WARNING,
    Band.DANGER: IconName.ERROR,
}
_STYLES: Final = {Band.NEUTRAL: "calm", Band.OK: "ok", Band.WARN: "warn", Band.DANGER: "danger"}
_ICON_SIZE: Final = 28
_HEIGHT: Final = 56
_NARROW_LINES: Final = 48  # width in line heights


class VerdictBanner(QFrame):
    """Shows a ``Headline``. ``command_chosen`` carries the id of a command."""

    command_chosen = Signal(str)

    def __init__(self, theme: Theme, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._theme = theme
        self._headline = Headline(Band.NEUTRAL, "")
        self._icon = QLabel()
        self._sentence = Label(font=FontRole.VERDICT, wrap=True)
        self._evidence = Label(font=FontRole.BODY, role="muted", wrap=True)
        self._action = QPushButton()
        self._why = QPushButton()
        self._ignore = QPushButton()
        self._build()
        self._connect()
        self.retranslate()
        self.show_headline(self._headline)

    def _build(self) -> None:
        self.setObjectName("banner")
        self.setMinimumHeight(_HEIGHT)
        self.setSizePolicy(QSizePolicy.Policy.Preferred, QSizePolicy.Policy.Minimum)
        self._ignore.setProperty("kind", "quiet")
        for label in (self._sentence, self._evidence):
            label.setTextInteractionFlags(Qt.TextInteractionFlag.TextSelectableByMouse)
        row = QHBoxLayout()
        row.setSpacing(12)
        words = QVBoxLayout()
        words.setSpacing(2)
        words.addStretch()
        words.addWidget(self._sentence)
        words.addWidget(self._evidence)
        words.addStretch()
        row.addWidget(self._icon)
        row.addLayout(words, stretch=1)
        buttons = QHBoxLayout()
        buttons.setSpacing(8)
        for button in (self._action, self._why, self._ignore):
            button.setCursor(Qt.CursorShape.PointingHandCursor)
            buttons.addWidget(button)
        self._sides = QBoxLayout(QBoxLayout.Direction.LeftToRight, self)
        self._sides.setContentsMargins(16, 6, 16, 6)
        self._sides.setSpacing(16)
        self._sides.addLayout(row, stretch=1)
        self._sides.addLayout(buttons)

    def resizeEvent(self, event: QResizeEvent) -> None:
        """Where there is little room beside them the buttons go below the words."""
        super().resizeEvent(event)
        narrow = self.width() < _NARROW_LINES * self.fontMetrics().height()
        direction = QBoxLayout.Direction.TopToBottom if narrow else QBoxLayout.Direction.LeftToRight
        if self._sides.direction() is not direction:
            self._sides.setDirection(direction)

    def _connect(self) -> None:
        self._action.clicked.connect(lambda: self.command_chosen.emit(self._headline.action.value))
        self._why.clicked.connect(lambda: self.command_chosen.emit("run.why"))
        self._ignore.clicked.connect(lambda: self.command_chosen.emit("run.ignore"))

    @property
    def headline(self) -> Headline:
        return self._headline

    def show_headline(self, headline: Headline) -> None:
        """Show what is new; a repeated headline costs nothing."""
        if headline == self._headline and self._sentence.text() == headline.sentence:
            return
        old_band = self._headline.band
        self._headline = headline
        self._sentence.setText(headline.sentence)
        self._evidence.setText(headline.evidence)
        self._evidence.setVisible(bool(headline.evidence))
        self._show_buttons()
        if headline.band is not old_band or self._icon.pixmap().isNull():
            self._show_band()
        self.setAccessibleName(numbers.sentences(verdicts.with_stop(headline.sentence), headline.evidence))

    def _show_buttons(self) -> None:
        headline = self._headline
        has_action = headline.action is not HeadlineAction.NONE
        self._action.setVisible(has_action)
        self._why.setVisible(headline.explained)
        self._ignore.setVisible(headline.alert_id is not None)
        if has_action:
            self._action.setText(BY_ID[headline.action.value].title)
            restyle(self._action, kind="danger" if headline.band is Band.DANGER else "primary")

    def _show_band(self) -> None:
        band = self._headline.band
        restyle(self, banner=_STYLES[band])
        tint = {
            Band.NEUTRAL: self._theme.muted,
            Band.OK: self._theme.ok,
            Band.WARN: self._theme.warn,
            Band.DANGER: self._theme.danger,
        }[band]
        size = round(_ICON_SIZE * type_scale())
        ratio = self.devicePixelRatioF()
        self._icon.setFixedSize(size, size)
        self._icon.setPixmap(icons.pixmap(_ICONS[band], self._theme, size, ratio=ratio, color=tint))

    def retranslate(self) -> None:
        self._why.setText(self.tr("Why"))
        self._ignore.setText(self.tr("Ignore"))
        self._show_buttons()

    def set_theme(self, theme: Theme) -> None:
        self._theme = theme
        self._show_band()
