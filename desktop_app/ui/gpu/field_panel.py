"""One field in full: its history, the figures of the span on show, and what it means."""

from __future__ import annotations

from typing import Final

from PySide6.QtCore import Qt, Signal
from PySide6.QtWidgets import QFrame, QGridLayout, QHBoxLayout, QPushButton, QVBoxLayout, QWidget

from desktop_app.services.facade import Workspace
from desktop_app.services.field_summary import Summary, share_of_bits, summarise
from desktop_app.ui.focus_ring import MARGIN
from desktop_app.ui.gpu.field_chart import FieldChart
from desktop_app.ui.gpu.field_groups import FACT
from desktop_app.ui.gpu.field_rows import Row
from desktop_app.ui.gpu.field_series import COUNTERS, FLAGS, Series, writer
from desktop_app.ui.labels import Label
from desktop_app.ui.texts import cards, gpu, numbers
from desktop_app.ui.theme import FontRole, Theme

# What says more, or says why.
RELATED: Final = {
    "utilization_percent": ("sm_activity_percent", "power_w"),
    "sm_activity_percent": ("tensor_activity_percent", "dram_activity_percent"),
    "power_w": ("throttle_power_percent", "energy_j"),
    "power_limit_w": ("power_w", "throttle_power_percent"),
    "sm_clock_mhz": ("throttle_reasons", "power_w"),
    "throttle_reasons": ("throttle_power_percent", "throttle_thermal_percent"),
    "throttle_power_percent": ("power_w", "sm_clock_mhz"),
    "throttle_thermal_percent": ("temperature_c", "sm_clock_mhz"),
    "temperature_c": ("temperature_memory_c", "throttle_thermal_percent"),
    "memory_utilization_percent": ("dram_activity_percent", "memory_used_bytes"),
    "pcie_width": ("pcie_generation", "pcie_rx_bytes_per_s"),
    "pcie_generation": ("pcie_width", "pcie_rx_bytes_per_s"),
}
_LINKS: Final = 2


class FieldPanel(QWidget):
    """The page tells which row and series; the chart draws itself. ``wanted`` carries the key of a related field.

    Runs in: GUI thread.
    """

    wanted = Signal(str)

    def __init__(self, workspace: Workspace, theme: Theme, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._workspace = workspace
        self._row: Row | None = None
        self._compact = False
        self.chart = FieldChart(workspace, theme)
        self.card = QFrame()
        self._title = Label(font=FontRole.TITLE, wrap=True)
        self._value = Label(font=FontRole.FIGURE, wrap=True)
        self._why = Label(font=FontRole.LABEL, role="muted", wrap=True)
        self._help = Label(font=FontRole.LABEL, role="muted", wrap=True)
        self._figures = QWidget()
        self._names = tuple(Label(font=FontRole.LABEL, role="muted") for _ in range(3))
        self._values = tuple(Label(font=FontRole.BODY) for _ in range(3))
        self._see_also = QWidget()
        self._links = tuple(QPushButton() for _ in range(_LINKS))
        self._build()

    def _build(self) -> None:
        self.card.setProperty("panel", True)
        for label in (self._title, self._value, self._why, self._help):
            label.setTextInteractionFlags(Qt.TextInteractionFlag.TextSelectableByMouse)
        links = QHBoxLayout(self._see_also)
        links.setContentsMargins(0, 0, 0, 0)
        links.setSpacing(8)
        for link in self._links:
            links.addWidget(link)
            link.clicked.connect(lambda _checked=False, link=link: self.wanted.emit(link.property("field")))
        links.addStretch(1)
        grid = QGridLayout(self._figures)
        grid.setContentsMargins(0, 0, 0, 0)
        grid.setHorizontalSpacing(16)
        grid.setVerticalSpacing(2)
        for column, (name, value) in enumerate(zip(self._names, self._values, strict=True)):
            grid.addWidget(name, 0, column)
            grid.addWidget(value, 1, column)
            grid.setColumnStretch(column, 1)
        inner = QVBoxLayout(self.card)
        inner.setContentsMargins(14, 12, 14, 12)
        inner.setSpacing(8)
        for widget in (self._title, self._value, self._figures, self._why, self._help, self._see_also):
            inner.addWidget(widget)
        inner.addStretch(1)
        layout = QVBoxLayout(self)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.setSpacing(8)
        layout.addWidget(self.chart, stretch=3)
        self._card_part = inset(self.card)
        layout.addWidget(self._card_part, stretch=2)

    # -- what the page calls --------------------------------------------------------------------------------------

    def show_row(self, row: Row | None, series: Series | None) -> None:
        """``row`` with its history, ``None`` for a row without one."""
        self._row = row
        self.chart.show_series(series)
        self.chart.setVisible(series is not None)
        self._title.setText("" if row is None else row.name)
        self._value.setText("" if row is None else row.value)
        if row is not None:
            self._value.set_role(row.tone or ("" if row.there else "muted"))
        self._why.setText("" if row is None else row.why)
        self._help.setText(_about(row))
        self._show_links("" if row is None else row.key)
        self._show_figures()
        self._fit()

    def refresh(self) -> None:
        self.chart.refresh()

    def refresh_texts(self) -> None:
        self.chart.refresh_texts()
        self._show_figures()

    def set_compact(self, *, compact: bool) -> None:
        """In a small window the figures stand in the head of the chart, and sentences are left to the tooltips."""
        self._compact = compact
        self._show_figures()
        self._fit()

    def set_theme(self, theme: Theme) -> None:
        self.chart.set_theme(theme)

    def retranslate(self) -> None:
        self.chart.retranslate()

    # -- showing --------------------------------------------------------------------------------------------------

    def _fit(self) -> None:
        """Without a history the value stands here."""
        drawn = self.chart.series is not None
        sentences = not (self._compact and drawn)
        self._title.setVisible(sentences)
        self._value.setVisible(not drawn)
        self._see_also.setVisible(sentences and not self._links[0].isHidden())
        for label in (self._why, self._help):
            label.setVisible(sentences and bool(label.text()))
        self._card_part.setVisible(sentences)

    def _show_links(self, key: str) -> None:
        fields = RELATED.get(key, ())
        for link, field in zip(self._links, (*fields, *[""] * (_LINKS - len(fields))), strict=True):
            link.setVisible(bool(field))
            link.setProperty("field", field)
            link.setText(cards.reading_name(field) if field else "")
            link.setToolTip(gpu.history_name(link.text()) if field else "")

    def _show_figures(self) -> None:
        pairs = self._pairs()
        self.chart.set_summary(in_a_head(pairs) if self._compact else ())
        self._figures.setVisible(bool(pairs))
        blank = [("", "")] * (len(self._names) - len(pairs))
        for (name, value), name_label, value_label in zip((*pairs, *blank), self._names, self._values, strict=True):
            name_label.setText(name)
            value_label.setText(value)

    def _pairs(self) -> tuple[tuple[str, str], ...]:
        """Names and values of the span on show; nothing where nothing was measured."""
        series, store = self.chart.series, self._workspace.store
        if series is None or series.history not in store.names():
            return ()
        history = store.history(series.history)
        if series.key == "throttle_reasons":
            shares = share_of_bits(history, series.key, *self.chart.span)
            most = list(shares.items())[: len(self._names)]
            return tuple((cards.throttle_words(bit), numbers.percent(100 * share)) for bit, share in most)
        if series.key in FLAGS:
            return ()
        summary = summarise(history, series.key, *self.chart.span)
        return () if summary is None else figures(series, summary)


def _about(row: Row | None) -> str:
    """What a field means; a fact says besides that it has no history."""
    if row is None:
        return gpu.choose_a_field()
    return numbers.sentences(row.help, gpu.no_history() if row.key.startswith(FACT) and row.there else "")


def figures(series: Series, summary: Summary) -> tuple[tuple[str, str], ...]:
    """Names and values: lowest, mean and highest; of what only grows the change in the middle."""
    write = writer(series.key)
    if series.key in COUNTERS:
        middle = (gpu.change(), f"+{write(summary.last - summary.first)}" if summary.last > summary.first else "±0")
    else:
        mean = numbers.decimal(summary.mean, 1) if series.key in _COUNTED else write(summary.mean)
        middle = (gpu.mean(), mean if summary.exact else gpu.about(mean))
    return (gpu.lowest(), write(summary.low)), middle, (gpu.highest(), write(summary.high))


def in_a_head(pairs: tuple[tuple[str, str], ...]) -> tuple[str, ...]:
    """The same for the head of a chart, where there is room for half of it: from lowest to highest without words."""
    if pairs and pairs[0][0] == gpu.lowest():
        (_, low), (name, middle), (_, high) = pairs
        return f"{low} \N{EN DASH} {high}", f"{name} {middle}"
    return tuple(f"{name} {value}" for name, value in pairs)


# The mean of a number of things is no whole number.
_COUNTED: Final = frozenset(
    {"performance_state", "pcie_generation", "pcie_width", "nvlinks_active", "mps_clients", "encoder_sessions"}
)


def inset(widget: QWidget) -> QWidget:
    """``widget`` with the margin that the chart beside it keeps for its ring, so that their edges meet."""
    outer = QWidget()
    layout = QVBoxLayout(outer)
    layout.setContentsMargins(MARGIN, MARGIN, MARGIN, MARGIN)
    layout.addWidget(widget)
    return outer
