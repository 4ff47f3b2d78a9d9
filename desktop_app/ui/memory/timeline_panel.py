"""The card around the timeline: its name, its key, and the buttons that do what the mouse does."""

from __future__ import annotations

from typing import Final

import numpy as np
from PySide6.QtCore import Qt
from PySide6.QtWidgets import QFrame, QHBoxLayout, QToolButton, QVBoxLayout, QWidget

from desktop_app.core.estimates import Timeline
from desktop_app.core.steps import Category
from desktop_app.ui.labels import ElidedLabel
from desktop_app.ui.memory import canvas_texts
from desktop_app.ui.memory.canvas import TimelineCanvas
from desktop_app.ui.memory.canvas_painter import room_color
from desktop_app.ui.memory.colors import kind_color
from desktop_app.ui.memory.legend import Entry, Legend
from desktop_app.ui.memory.source_switch import SourceSwitch
from desktop_app.ui.memory.timeline_layout import knows_kinds
from desktop_app.ui.texts import fields, numbers
from desktop_app.ui.texts import memory as texts
from desktop_app.ui.theme import FontRole, Theme, color

_ZOOM: Final = 1.5
_KINDS: Final = tuple(Category)


class TimelinePanel(QFrame):
    """Shows a timeline; ``canvas`` is where it happens."""

    def __init__(self, theme: Theme, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setProperty("panel", True)
        self._theme = theme
        self._title = ElidedLabel(font=FontRole.TITLE)
        self._about = ElidedLabel(font=FontRole.LABEL, role="muted")
        self.source = SourceSwitch()
        self._buttons = {name: QToolButton() for name in ("out", "in", "whole")}
        self.legend = Legend(theme)
        self.canvas = TimelineCanvas(theme)
        self._timeline: Timeline | None = None
        self._is_recording = False
        self._room_bytes: int | None = None
        self._build()
        self.retranslate()

    def _build(self) -> None:
        head = QHBoxLayout()
        head.setSpacing(2)
        head.addWidget(self._title)
        head.addSpacing(10)
        head.addWidget(self._about, stretch=1)
        head.addWidget(self.source)
        head.addSpacing(8)
        for button in self._buttons.values():
            button.setProperty("kind", "segment")
            head.addWidget(button)
        self._buttons["out"].clicked.connect(lambda: self.canvas.zoom(_ZOOM))
        self._buttons["in"].clicked.connect(lambda: self.canvas.zoom(1 / _ZOOM))
        self._buttons["whole"].clicked.connect(self.canvas.show_whole)
        self.canvas.stretch_changed.connect(self._show_buttons)
        layout = QVBoxLayout(self)
        layout.setContentsMargins(14, 8, 10, 6)
        layout.setSpacing(6)
        layout.addLayout(head)
        layout.addWidget(self.legend)
        layout.addWidget(self.canvas, stretch=1)

    def show_timeline(self, timeline: Timeline | None, *, room_bytes: int | None, hint: str) -> None:
        """``room_bytes``: what the card has for torch's allocator. ``hint`` stands where there is no timeline."""
        self._timeline, self._room_bytes = timeline, room_bytes
        self.canvas.set_timeline(timeline, room_bytes=room_bytes, hint=hint)
        self._show_legend()
        self._show_buttons()

    def set_about(self, text: str, *, recording: bool = False) -> None:
        """What the step is one of, or the file that a ``recording`` comes from."""
        self._is_recording = recording
        self._title.setText(canvas_texts.recording_name() if recording else canvas_texts.name())
        self._about.setText(text)

    def _show_legend(self) -> None:
        timeline, theme = self._timeline, self._theme
        entries = []
        if timeline is not None:
            seen = np.bincount(timeline.category, weights=timeline.size_bytes, minlength=len(_KINDS))
            kinds = [kind for kind, size in zip(_KINDS, seen, strict=True) if size]
            kinds = kinds if knows_kinds(timeline) else []
            entries = [Entry(fields.category(kind.value), kind_color(theme, kind)) for kind in kinds]
            reserved = f"{texts.reserved_mark()} {numbers.size(int(timeline.reserved_bytes.max(initial=0)))}"
            entries.append(Entry(reserved, color(theme.validation), dash=True))
            if self._room_bytes is not None:
                room = f"{texts.room_mark()} {numbers.size(self._room_bytes)}"
                layout = self.canvas.layout_of_blocks
                tint = theme.text if layout is None else room_color(theme, layout, self._room_bytes)
                entries.append(Entry(room, color(tint), dash=True))
        self.legend.set_entries(entries, theme)
        self.legend.setVisible(bool(entries))
        self.legend.setToolTip(texts.room_help(self._room_bytes) if self._room_bytes is not None else "")

    def _show_buttons(self) -> None:
        there = self._timeline is not None
        whole = self.canvas.stretch.is_whole
        for name, button in self._buttons.items():
            button.setEnabled(there and (name == "in" or not whole))

    def retranslate(self) -> None:
        self.set_about(self._about.text(), recording=self._is_recording)
        names = {
            "out": ("−", self.tr("Show more of the step"), "−"),
            "in": ("+", self.tr("Show less of the step"), "+"),
            "whole": (self.tr("Whole step"), self.tr("Show the whole step"), "Home"),
        }
        for name, (text, help_, key) in names.items():
            self._buttons[name].setText(text)
            self._buttons[name].setToolTip(f"{help_}  ({key})")
            self._buttons[name].setAccessibleName(help_)
            self._buttons[name].setFocusPolicy(Qt.FocusPolicy.TabFocus)
        self.source.retranslate()
        self.canvas.retranslate()
        self._show_legend()

    def set_theme(self, theme: Theme) -> None:
        self._theme = theme
        self.canvas.set_theme(theme)
        self._show_legend()
