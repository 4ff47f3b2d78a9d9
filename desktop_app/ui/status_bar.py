"""The last line of the window: what the tool itself costs, what the run uses, and the language."""

from __future__ import annotations

import math
from collections import deque
from typing import Final

from PySide6.QtCore import QCoreApplication, Qt, Signal
from PySide6.QtWidgets import QButtonGroup, QFrame, QHBoxLayout, QSizePolicy, QToolButton, QWidget

from desktop_app.core.telemetry import SelfCost
from desktop_app.services.facade import Workspace
from desktop_app.ui import i18n
from desktop_app.ui.labels import ElidedLabel, Label
from desktop_app.ui.texts import numbers
from desktop_app.ui.theme import FontRole, Theme

_JOULES_PER_KWH: Final = 3.6e6
_FRAMES: Final = 10  # of one second at the fastest pulse; most of them find nothing new and cost nothing


class StatusBar(QFrame):
    """Left: sampling and own cost. Right: energy, throughput, languages. ``command_chosen`` switches the language."""

    command_chosen = Signal(str)

    def __init__(self, workspace: Workspace, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setObjectName("statusBar")
        self._workspace = workspace
        self._frames_s: deque[float] = deque(maxlen=_FRAMES)
        self._sampling = Label(font=FontRole.LABEL, role="muted")
        self._cost = ElidedLabel(font=FontRole.LABEL, role="muted")
        self._energy = Label(font=FontRole.LABEL, role="muted")
        self._throughput = Label(font=FontRole.LABEL, role="muted")
        self._languages: dict[str, QToolButton] = {}
        self._build()
        self.retranslate()

    def _build(self) -> None:
        layout = QHBoxLayout(self)
        layout.setContentsMargins(16, 2, 16, 2)
        layout.setSpacing(24)
        layout.addWidget(self._sampling)
        self._cost.setSizePolicy(QSizePolicy.Policy.Ignored, QSizePolicy.Policy.Preferred)
        layout.addWidget(self._cost, stretch=1)
        layout.addWidget(self._energy)
        layout.addWidget(self._throughput)
        layout.addLayout(self._language_switch())

    def _language_switch(self) -> QHBoxLayout:
        row = QHBoxLayout()
        row.setSpacing(2)
        group = QButtonGroup(self)
        for code, name in i18n.LANGUAGES.items():
            button = QToolButton()
            button.setText(name)
            button.setAccessibleName(name)
            button.setCheckable(True)
            button.setProperty("kind", "segment")
            button.setFocusPolicy(Qt.FocusPolicy.TabFocus)
            button.clicked.connect(lambda _checked=False, code=code: self.command_chosen.emit(f"view.language_{code}"))
            group.addButton(button)
            row.addWidget(button)
            self._languages[code] = button
        return row

    def note_frame(self, seconds: float) -> None:
        """The cost of the newest frame; the dearest of the last second is shown at the next ``refresh``."""
        self._frames_s.append(seconds)

    def show_language(self, language: str) -> None:
        if language in self._languages:
            self._languages[language].setChecked(True)

    def refresh(self) -> None:
        cost = self._workspace.cost.get()
        self._sampling.setText(
            self.tr("{0} Hz · {1} late").format(numbers.decimal(cost.sampling_hz, 1), numbers.integer(cost.late))
        )
        self._sampling.set_role("warn" if _mostly_late(cost) else "muted")
        self._cost.setText(" · ".join(self._cost_parts(cost)))
        self._energy.setText(energy_text(self._workspace))
        self._energy.setVisible(bool(self._energy.text()))
        rate = self._workspace.run.get().samples_per_s
        self._throughput.setText("" if rate is None else self.tr("{0} samples/s").format(numbers.integer(rate)))
        self._throughput.setVisible(rate is not None)

    def _cost_parts(self, cost: SelfCost) -> list[str]:
        parts = []
        if cost.cpu_percent is not None:
            parts.append(self.tr("Floodmark {0} CPU").format(numbers.percent(cost.cpu_percent, 1)))
        if cost.rss_bytes is not None:
            parts.append(numbers.size(cost.rss_bytes))
        if self._frames_s:
            frame_ms = 1e3 * max(self._frames_s)
            parts.append(self.tr("frame {0}").format(numbers.with_unit(frame_ms, "ms", 1)))
        return parts

    def retranslate(self) -> None:
        self._sampling.setToolTip(self.tr("Readings of the cards per second, and how many of all came too late."))
        self._cost.setAccessibleDescription(self.tr("What the monitor itself costs."))
        self._energy.setToolTip(self.tr("Energy of the card since the session began."))
        self.refresh()

    def set_theme(self, theme: Theme) -> None:
        """Colours come from the style sheet."""


def energy_text(workspace: Workspace) -> str:
    """``0.031 kWh`` of the run's card; empty when it is not known."""
    readings = workspace.readings.get().get(workspace.card_uuid.get() or "", {})
    reading = readings.get("energy_j")
    if reading is None or reading.value is None or not math.isfinite(reading.value):
        return ""
    text = numbers.decimal(reading.value / _JOULES_PER_KWH, 3)
    return QCoreApplication.translate("StatusBar", "{0} kWh").format(text).replace(" ", numbers.NBSP)


def _mostly_late(cost: SelfCost) -> bool:
    """More than one reading in a hundred: then the rate is more than this machine can do."""
    return cost.samples > 0 and cost.late > 0.01 * cost.samples
