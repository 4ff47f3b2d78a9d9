"""After an out-of-memory error: what was full, who held it, what torch said, and what to change."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from PySide6.QtCore import QRectF, QSize, Qt, Signal
from PySide6.QtGui import QGuiApplication, QPainter, QPaintEvent
from PySide6.QtWidgets import QFrame, QHBoxLayout, QPushButton, QScrollArea, QSizePolicy, QVBoxLayout, QWidget

from desktop_app.core.forecasts import Cause
from desktop_app.core.steps import OomReport, RunStatus
from desktop_app.services.facade import Workspace
from desktop_app.ui.commands import BY_ID
from desktop_app.ui.form_editors import ComboBox
from desktop_app.ui.labels import Divider, ElidedLabel, Label, clear_layout
from desktop_app.ui.lever_row import CodeLine
from desktop_app.ui.texts import advice, numbers, outlooks, post_mortem, verdicts
from desktop_app.ui.theme import FontRole, Theme, color

_BAR_HEIGHT: Final = 4
Share = tuple[str, int]


class ShareBar(QWidget):
    """A thin bar of a share between 0 and 1."""

    def __init__(self, share: float, tint: str) -> None:
        super().__init__()
        self._share = share
        self._tint = tint
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)

    def sizeHint(self) -> QSize:
        return QSize(80, _BAR_HEIGHT)

    def paintEvent(self, event: QPaintEvent) -> None:
        del event
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        painter.setPen(Qt.PenStyle.NoPen)
        painter.setBrush(color(self._tint))
        width = max(2.0, self.width() * self._share)
        painter.drawRoundedRect(QRectF(0, 0, width, _BAR_HEIGHT), _BAR_HEIGHT / 2, _BAR_HEIGHT / 2)


def all_reports(status: RunStatus) -> tuple[OomReport, ...]:
    """Every out-of-memory error of the run, oldest first: those it survived, and the one that ended it."""
    return status.rescues if status.oom is None else (*status.rescues, status.oom)


# Causes that a smaller batch does nothing about.
_OTHER_REMEDIES: Final = frozenset({Cause.LEAK.value, Cause.HOST_MEMORY.value, Cause.NEIGHBOUR.value})


class PostMortemPanel(QScrollArea):
    """Shows the report of the last out-of-memory error of the workspace's run, or of an earlier one that is chosen.

    ``command_chosen`` carries the id of a command.
    """

    command_chosen = Signal(str)

    def __init__(self, workspace: Workspace, theme: Theme, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._workspace = workspace
        self._theme = theme
        self._report: OomReport | None = None
        self._copy = QPushButton()
        self._choice = ComboBox()
        self._reports: tuple[OomReport, ...] = ()
        self._body = QVBoxLayout()
        self.setWidgetResizable(True)
        self.setFrameShape(QFrame.Shape.NoFrame)
        self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        content = QWidget()
        content.setObjectName("panelContent")
        layout = QVBoxLayout(content)
        layout.setContentsMargins(16, 12, 16, 16)
        layout.setSpacing(12)
        self._body.setSpacing(8)
        layout.addWidget(self._choice)
        layout.addLayout(self._body)
        layout.addWidget(self._copy)
        layout.addStretch()
        self.setWidget(content)
        self._choice.hide()
        self._choice.activated.connect(self._on_chosen)
        self._copy.clicked.connect(self.copy)
        self.retranslate()

    @property
    def report(self) -> OomReport | None:
        return self._report

    def refresh(self) -> None:
        reports = all_reports(self._workspace.run.get())
        if reports == self._reports:
            return
        self._reports = reports
        self._report = reports[-1] if reports else None
        self._list_reports()
        self._rebuild()

    def _list_reports(self) -> None:
        """One can choose where there are several: every rescue, and the end."""
        self._choice.clear()
        self._choice.addItems([post_mortem.choice(report) for report in self._reports])
        self._choice.setVisible(len(self._reports) > 1)
        if self._report is not None:
            self._choice.setCurrentIndex(self._reports.index(self._report))

    def _on_chosen(self, row: int) -> None:
        self._report = self._reports[row]
        self._rebuild()

    def copy(self) -> None:
        """Everything on this page as text, for a bug report or a colleague."""
        if self._report is not None:
            QGuiApplication.clipboard().setText(post_mortem.as_text(self._report))

    def _rebuild(self) -> None:
        clear_layout(self._body)
        self._copy.setVisible(self._report is not None)
        if self._report is None:
            return
        report = self._report
        self._add(verdicts.out_of_memory(report), font=FontRole.TITLE)
        self._add(post_mortem.what_was_full(report), font=FontRole.LABEL)
        rescued = report.rescued_batch_size is not None
        self._add(post_mortem.outcome(report), font=FontRole.LABEL, role="ok" if rescued else "")
        if report.memory is not None:
            self._add_section(self.tr("What held it"), post_mortem.holders(report, report.memory))
        if report.largest_owners:
            self._add_section(self.tr("Largest owners"), post_mortem.owners(report))
        self._add_advice(report)
        self._add_heading(self.tr("What torch said"))
        # Not to be selected: the places to break would be copied along. The button copies torch's own text.
        message = self._add(post_mortem.breakable(report.message), font=FontRole.LABEL, role="muted")
        message.setAccessibleName(report.message)

    def _add_advice(self, report: OomReport) -> None:
        self._add_heading(self.tr("What to change"))
        if report.cause is not None:
            self._add(outlooks.cause_name(report.cause), font=FontRole.LABEL)
        self._add(post_mortem.advice(report), font=FontRole.LABEL, role="muted")
        line = advice.code_for(report.cause)
        if line:
            self._body.addWidget(CodeLine(advice.before_the_start(), line, self.tr("Copy")))
        if not self._workspace.run.get().state.active and report.cause not in _OTHER_REMEDIES:
            self._add_shrink()
        estimate = self._workspace.estimate.get().estimate
        if report.cause != Cause.LEAK.value and estimate is not None and estimate.largest_batch is not None:
            self._add(verdicts.largest_batch(estimate), font=FontRole.LABEL, role="muted")

    def _add_shrink(self) -> None:
        """Puts half of the batch into the form."""
        button = QPushButton(BY_ID["run.shrink_batch"].title)
        button.clicked.connect(lambda: self.command_chosen.emit("run.shrink_batch"))
        self._body.addWidget(button)

    def _add(self, text: str, *, font: FontRole = FontRole.BODY, role: str = "") -> Label:
        label = Label(text, font=font, role=role, wrap=True)
        self._body.addWidget(label)
        return label

    def _add_heading(self, text: str) -> None:
        self._body.addWidget(Divider())
        self._add(text, font=FontRole.TITLE)

    def _add_section(self, heading: str, shares: Iterable[Share]) -> None:
        self._add_heading(heading)
        rows = list(shares)
        most = max((size for _, size in rows), default=1) or 1
        for name, size in rows:
            self._add_share(name, size, size / most)

    def _add_share(self, name: str, size: int, share: float) -> None:
        holder = QWidget()
        layout = QVBoxLayout(holder)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.setSpacing(3)
        row = QHBoxLayout()
        row.addWidget(ElidedLabel(name, font=FontRole.LABEL), stretch=1)
        row.addWidget(Label(numbers.size(size), font=FontRole.LABEL, role="muted"))
        layout.addLayout(row)
        layout.addWidget(ShareBar(share, self._theme.accent))
        self._body.addWidget(holder)

    def retranslate(self) -> None:
        self._copy.setText(self.tr("Copy all of this"))
        self._choice.setAccessibleName(self.tr("Which out-of-memory error"))
        self._list_reports()
        self._rebuild()
        self.refresh()

    def set_theme(self, theme: Theme) -> None:
        self._theme = theme
        self._rebuild()
