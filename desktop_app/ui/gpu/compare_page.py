"""Which of several cards with one job lags: a sentence, and the cards in a table."""

from __future__ import annotations

from typing import Final

from PySide6.QtCore import QEvent, QObject, Qt
from PySide6.QtGui import QGuiApplication, QKeyEvent, QKeySequence, QResizeEvent
from PySide6.QtWidgets import QAbstractItemView, QFrame, QHeaderView, QTableView, QVBoxLayout, QWidget

from desktop_app.services.card_minutes import card_minutes
from desktop_app.services.facade import Workspace
from desktop_app.services.stragglers import Group, Pace, compare
from desktop_app.ui.gpu.compare_model import Column, CompareModel, Line, cell
from desktop_app.ui.labels import Label
from desktop_app.ui.texts import gpu
from desktop_app.ui.texts import stragglers as texts
from desktop_app.ui.theme import FontRole, Theme

_EVERY_S: Final = 1.0  # a minute does not change quicker
_WIDEST: Final = {
    Column.LOAD: "100 %  −100",
    Column.POWER: "1,000 W  −100",
    Column.CLOCK: "2,000 MHz  −1,000",
    Column.TEMPERATURE: "100 °C  −10",
}
_AIR: Final = 22
_STACKED_AIR: Final = 18
_ROW_AIR: Final = 10
_SIDE: Final = 14
_SCROLL_BAR: Final = 12
_FIRST_SHOWN: Final = (Column.CLOCK, Column.LOAD, Column.POWER, Column.TEMPERATURE)  # where room is short


class ComparePage(QFrame):
    """The page calls ``refresh``; it works once a second at most. Runs in: GUI thread."""

    def __init__(self, workspace: Workspace, theme: Theme, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setProperty("panel", True)
        self._workspace = workspace
        self._judged_at_s = -_EVERY_S
        self.groups: tuple[Group, ...] = ()
        self.model = CompareModel(theme, self)
        self.verdict = Label(font=FontRole.TITLE, wrap=True)
        self._explanation = Label(font=FontRole.LABEL, role="muted", wrap=True)
        self.table = QTableView()
        self._build()
        self.retranslate()

    def _build(self) -> None:
        table = self.table
        table.setObjectName("compareTable")
        table.setModel(self.model)
        table.setSelectionBehavior(QAbstractItemView.SelectionBehavior.SelectRows)
        table.setSelectionMode(QAbstractItemView.SelectionMode.SingleSelection)
        table.setShowGrid(False)
        table.setWordWrap(False)
        table.setTabKeyNavigation(False)
        table.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        table.verticalHeader().hide()
        table.verticalHeader().setSectionResizeMode(QHeaderView.ResizeMode.Fixed)
        header = table.horizontalHeader()
        header.setHighlightSections(False)
        header.setSectionResizeMode(QHeaderView.ResizeMode.Fixed)
        table.installEventFilter(self)
        layout = QVBoxLayout(self)
        layout.setContentsMargins(_SIDE, 12, _SIDE, 12)
        layout.setSpacing(8)
        layout.addWidget(self.verdict)
        layout.addWidget(self._explanation)
        layout.addWidget(table, stretch=1)
        layout.addStretch(0)

    # -- what the page calls --------------------------------------------------------------------------------------

    def refresh(self) -> None:
        """Judge the last minute anew, once a second."""
        now_s = self._workspace.clock.now_s()
        if now_s - self._judged_at_s < _EVERY_S:
            return
        self._judged_at_s = now_s
        workspace = self._workspace
        works = card_minutes(workspace.store, workspace.cards.get(), workspace.processes.get(), now_s=now_s)
        self.groups = compare(works)
        self._show()

    def _show(self) -> None:
        names = {card.uuid: gpu.index(card) for card in self._workspace.cards.get()}
        worst = sorted(self.groups, key=lambda group: group.pace is not Pace.LAGGING)
        marks = job_marks(len(worst))
        lines = [
            Line(mark + names.get(each.work.uuid, ""), each)
            for mark, group in zip(marks, worst, strict=True)
            for each in group.standings
        ]
        if self.model.set_lines(lines):
            self._fit()
        self.table.setVisible(bool(lines))
        self._explanation.setVisible(bool(lines))
        self.verdict.setText(self._verdict(worst, names))
        self.verdict.set_role("warn" if worst and worst[0].pace is Pace.LAGGING else "" if worst else "muted")

    def _verdict(self, groups: list[Group], names: dict[str, str]) -> str:
        if not groups:
            return texts.one_card() if len(names) < 2 else texts.nothing_to_compare()
        said = [
            mark + texts.sentence(group, lambda uuid: names.get(uuid, uuid))
            for mark, group in zip(job_marks(len(groups)), groups, strict=True)
        ]
        return "\n".join(said)

    def retranslate(self) -> None:
        self._explanation.setText(texts.explanation())
        self.table.setAccessibleName(texts.table_name())
        self.model.headerDataChanged.emit(Qt.Orientation.Horizontal, 0, len(Column) - 1)
        self._judged_at_s = -_EVERY_S
        self._show()
        self._fit()

    def set_theme(self, theme: Theme) -> None:
        self.model.set_theme(theme)
        self._fit()
        self.table.viewport().update()

    # -- events ---------------------------------------------------------------------------------------------------

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        """Copy takes the whole table."""
        pressed = isinstance(event, QKeyEvent) and event.type() is QEvent.Type.KeyPress and watched is self.table
        if pressed and isinstance(event, QKeyEvent) and event.matches(QKeySequence.StandardKey.Copy):
            QGuiApplication.clipboard().setText(self.model.as_text())
            return True
        return super().eventFilter(watched, event)

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._fit()

    def _fit(self) -> None:
        """One line for a card; two where that is too wide; columns are left out only where that is too."""
        table, metrics = self.table, self.table.fontMetrics()
        # Of the page, not of the table, which follows it only later.
        room = self.width() - 2 * _SIDE - _SCROLL_BAR
        flat = self._widths(stacked=False)
        stacked = sum(flat.values()) > room
        widths = self._widths(stacked=True) if stacked else flat
        self.model.set_stacked(stacked=stacked)
        table.verticalHeader().setDefaultSectionSize((1 + stacked) * metrics.lineSpacing() + _ROW_AIR)
        header = table.horizontalHeader()
        table.setColumnHidden(Column.PACE, stacked)
        for column in (Column.CARD, Column.PACE):
            wide = column is (Column.CARD if stacked else Column.PACE)  # takes the room that is left
            header.setSectionResizeMode(
                column, QHeaderView.ResizeMode.Stretch if wide else QHeaderView.ResizeMode.Fixed
            )
            if not wide and not table.isColumnHidden(column):
                table.setColumnWidth(column, widths[column])
        room -= sum(widths.get(column, 0) for column in (Column.CARD, Column.PACE))
        for column in _FIRST_SHOWN:
            table.setColumnWidth(column, widths[column])
            table.setColumnHidden(column, widths[column] > room)
            room -= widths[column]

    def _widths(self, *, stacked: bool) -> dict[Column, int]:
        """What each column needs for its title and everything that can stand in it."""
        advance, titles = self.table.fontMetrics().horizontalAdvance, texts.columns()
        paces = [texts.keeps_pace(), *(cell(line, Column.PACE) for line in self.model.lines)]
        words = {column: [titles[column], _WIDEST[column]] for column in _FIRST_SHOWN}
        words[Column.CARD] = [titles[Column.CARD], "A · GPU 00", "A · 显卡 00"]
        if stacked:
            words = {column: [part for text in found for part in text.split("  ")] for column, found in words.items()}
            words[Column.CARD] += paces
        else:
            words[Column.PACE] = [titles[Column.PACE], *paces]
        air = _STACKED_AIR if stacked else _AIR
        return {column: max(map(advance, found)) + air for column, found in words.items()}


def job_marks(count: int) -> list[str]:
    """A letter for each job; one job needs none."""
    return [""] if count == 1 else [f"{chr(ord('A') + place % 26)} · " for place in range(count)]
