"""The memory page: the estimate in numbers, its step as a picture, its modules and its largest blocks."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from PySide6.QtCore import QSize, Qt, Signal
from PySide6.QtGui import QKeyEvent
from PySide6.QtWidgets import (
    QFrame,
    QHBoxLayout,
    QScrollArea,
    QStackedWidget,
    QTabBar,
    QToolButton,
    QVBoxLayout,
    QWidget,
)

from desktop_app.core.estimates import Timeline
from desktop_app.core.forecasts import Estimate, Verdict
from desktop_app.services.facade import EstimateState, EstimateStatus, SnapshotState, Workspace
from desktop_app.ui import icons
from desktop_app.ui.actions import tooltip
from desktop_app.ui.answers import answer_of
from desktop_app.ui.commands import BY_ID
from desktop_app.ui.icons import IconName
from desktop_app.ui.labels import Divider, Label, type_scale
from desktop_app.ui.memory.answer_panel import AnswerPanel
from desktop_app.ui.memory.block_page import BlockPage
from desktop_app.ui.memory.module_page import ModulePage
from desktop_app.ui.memory.source_switch import Source
from desktop_app.ui.memory.timeline_panel import TimelinePanel
from desktop_app.ui.parts import Part
from desktop_app.ui.texts import errors, fields, verdicts
from desktop_app.ui.texts import memory as texts
from desktop_app.ui.theme import FontRole, Theme

_SPACING: Final = 8
_ICON: Final = 16


class MemoryPage(QWidget):
    """``left``: back to the curves is wanted. The window calls ``refresh``. Runs in: GUI thread."""

    left = Signal()

    def __init__(self, workspace: Workspace, theme: Theme, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._workspace = workspace
        self._theme = theme
        self._versions = (-1, -1, -1)
        self._compact = False
        self._answered = False
        self._title = Label(font=FontRole.TITLE)
        self._state = Label(font=FontRole.LABEL, role="muted")
        self._back = QToolButton()
        self._parts = QTabBar()  # of a small window
        self._tables = QTabBar()  # of the lower card
        self._answer_card = QFrame()
        self._answer_scroll = QScrollArea()  # of a small window
        self._table_card = QFrame()
        self._table_stack = QStackedWidget()
        self.answer = AnswerPanel(theme)
        self.step = TimelinePanel(theme)
        self.modules = ModulePage(theme)
        self.blocks = BlockPage(theme)
        self._build()
        self._connect()
        self.set_theme(theme)
        self.retranslate()

    def _build(self) -> None:
        head = QHBoxLayout()
        head.setContentsMargins(4, 0, 2, 0)
        head.setSpacing(10)
        head.addWidget(self._title)
        head.addWidget(self._parts)
        head.addStretch(1)
        head.addWidget(self._state)
        head.addWidget(self._back)
        for bar, count in ((self._parts, len(Part)), (self._tables, 2)):
            bar.setObjectName("memoryTabs")
            bar.setDrawBase(False)
            bar.setExpanding(False)
            for _ in range(count):
                bar.addTab("")
        for card in (self._answer_card, self._table_card):
            card.setProperty("panel", True)
        self.answer.setObjectName("panelContent")
        self._answer_scroll.setWidgetResizable(True)
        self._answer_scroll.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self._answer_scroll.hide()
        answer = QVBoxLayout(self._answer_card)
        answer.setContentsMargins(1, 1, 1, 1)
        answer.addWidget(self.answer)
        answer.addWidget(self._answer_scroll)
        tables = QVBoxLayout(self._table_card)
        tables.setContentsMargins(1, 2, 1, 1)
        tables.setSpacing(0)
        tables.addWidget(self._tables)
        self._divider = Divider()
        tables.addWidget(self._divider)
        tables.addWidget(self._table_stack, stretch=1)
        self._table_stack.addWidget(self.modules)
        self._table_stack.addWidget(self.blocks)
        layout = QVBoxLayout(self)
        layout.setContentsMargins(2, 2, 2, 2)
        layout.setSpacing(_SPACING)
        layout.addLayout(head)
        layout.addWidget(self._answer_card)
        layout.addWidget(self.step, stretch=7)
        layout.addWidget(self._table_card, stretch=5)

    def _connect(self) -> None:
        self._back.clicked.connect(self.left)
        self._tables.currentChanged.connect(self._table_stack.setCurrentIndex)
        self._parts.currentChanged.connect(self._on_part)
        self.blocks.chosen.connect(self.step.canvas.pin)
        self.step.canvas.pinned.connect(self.blocks.follow)
        self.modules.chosen.connect(self._on_module)
        self.step.source.chosen.connect(self._on_source)
        self.step.source.again.connect(self.record_step)

    # -- what the window calls ------------------------------------------------------------------------------------

    def refresh(self) -> None:
        """Take the newest estimate, if it is another one."""
        workspace = self._workspace
        versions = (workspace.estimate.version, workspace.step_recording.version, workspace.snapshot.version)
        if self._versions != versions:
            self._versions = versions
            self._show(self._workspace.estimate.get())

    def open_part(self, part: Part) -> None:
        """Bring a part on show, and the keyboard to it."""
        self._parts.setCurrentIndex(part)
        if part in (Part.MODULES, Part.BLOCKS):
            self._tables.setCurrentIndex(part - Part.MODULES)
        targets = {
            Part.STEP: self.step.canvas,
            Part.MODULES: self.modules.search,
            Part.BLOCKS: self.blocks.table,
            Part.PEAK: self._parts,
        }
        targets[part].setFocus(Qt.FocusReason.ShortcutFocusReason)

    def set_compact(self, *, compact: bool) -> None:
        """In a small window one part at a time."""
        if compact != self._compact:
            self._compact = compact
            self._move_answer(scrolled=compact)
        self.answer.set_stacked(stacked=compact)
        self._arrange()

    def _move_answer(self, *, scrolled: bool) -> None:
        """Where it may be higher than its place, it scrolls; elsewhere the picture below gives way."""
        self._answer_scroll.setVisible(scrolled)
        layout = self._answer_card.layout()
        assert layout is not None
        if scrolled:
            layout.removeWidget(self.answer)
            self._answer_scroll.setWidget(self.answer)
        else:
            self._answer_scroll.takeWidget()
            layout.addWidget(self.answer)
        self.answer.show()

    def retranslate(self) -> None:
        self._title.setText(texts.title())
        names = (self.tr("Step"), self.tr("Modules"), self.tr("Blocks"), self.tr("Peak"))
        for part, name in zip(Part, names, strict=True):
            self._parts.setTabText(part, name)
        self._parts.setAccessibleName(texts.title())
        self._tables.setTabText(0, self.tr("Modules"))
        self._tables.setTabText(1, self.tr("Largest blocks"))
        self._tables.setAccessibleName(self.tr("Tables"))
        self._answer_scroll.setAccessibleName(texts.peak_heading())
        self._back.setAccessibleName(BY_ID["view.curves"].title)
        self._back.setToolTip(tooltip("view.curves"))
        for piece in (self.answer, self.step, self.modules, self.blocks):
            piece.retranslate()
        self._show(self._workspace.estimate.get())

    def set_theme(self, theme: Theme) -> None:
        self._theme = theme
        self._back.setIcon(icons.icon(IconName.CLOSE, theme))
        self._back.setIconSize(QSize(1, 1) * round(_ICON * type_scale()))
        self._back.setProperty("kind", "quiet")
        for piece in (self.answer, self.step, self.modules, self.blocks):
            piece.set_theme(theme)

    # -- showing --------------------------------------------------------------------------------------------------

    def _show(self, status: EstimateStatus) -> None:
        estimate = status.estimate
        usable = estimate is not None and estimate.verdict is not Verdict.CANNOT_SAY
        failed = status.state is EstimateState.FAILED
        timeline = estimate.timeline if estimate is not None and usable and not failed else None
        modules = estimate.modules if estimate is not None and usable and not failed else ()
        self.answer.show_estimate(None if failed else estimate)
        self._answered = estimate is not None and not failed
        self._arrange()
        hint = self._hint(status)
        self._show_step(timeline, room_bytes=_room_bytes(estimate), hint=hint or texts.no_timeline())
        self.modules.set_modules(modules, hint=hint or texts.no_modules())
        self._on_module(self.modules.chosen_path)
        behind = status.state is EstimateState.WORKING and answer_of(status) is None and estimate is not None
        self._state.setText(verdicts.estimating() if behind else "")

    def _show_step(self, timeline: Timeline | None, *, room_bytes: int | None, hint: str) -> None:
        """The estimate's ``timeline``, or that of the run where it was chosen."""
        recording, snapshot = self._workspace.step_recording.get(), self._workspace.snapshot.get()
        config = self._workspace.estimate.get().config
        about = fields.training(config) if config is not None else ""
        self.step.source.show_sources(recording, snapshot)
        if self.step.source.source is Source.RUN:
            timeline, about = recording.timeline, fields.training(self._workspace.run_config.get())
            hint = texts.recording() if recording.recording else texts.not_recorded()
        elif self.step.source.source is Source.SNAPSHOT:
            timeline, about, room_bytes = snapshot.timeline, snapshot.name, None
            failed = snapshot.state is SnapshotState.FAILED
            hint = errors.text(snapshot.error_code, snapshot.error) if failed else texts.reading(snapshot.name)
        self.step.set_about(about, recording=self.step.source.source is Source.SNAPSHOT)
        self.step.show_timeline(timeline, room_bytes=room_bytes, hint=hint)
        self.blocks.set_timeline(timeline, hint=hint)

    def record_step(self) -> None:
        """Ask the run for its next step, and show it when it is there."""
        self._workspace.record_step()
        self.step.source.choose(Source.RUN)
        self.refresh()

    def open_snapshot(self, path: Path) -> None:
        """Read a recording, and show it when it is read."""
        self._workspace.open_snapshot(path)
        self.refresh()
        self.step.source.choose(Source.SNAPSHOT)

    def _on_source(self, source: Source) -> None:
        """A run that has not been asked yet is asked at once."""
        recording = self._workspace.step_recording.get()
        if source is Source.RUN and recording.timeline is None:
            self._workspace.record_step()
        self._show(self._workspace.estimate.get())

    def _hint(self, status: EstimateStatus) -> str:
        """Why there is nothing to show; empty when the estimate should have something."""
        if status.state is EstimateState.FAILED:
            return errors.text(status.error_code, status.error)
        if status.estimate is None:
            return texts.working() if status.state is EstimateState.WORKING else texts.nothing_yet()
        if status.estimate.verdict is Verdict.CANNOT_SAY:
            return verdicts.cannot_say_help(status.estimate)
        return ""

    def _on_part(self, index: int) -> None:
        if index in (Part.MODULES, Part.BLOCKS):
            self._tables.setCurrentIndex(index - Part.MODULES)
        self._arrange()

    def _arrange(self) -> None:
        part = Part(self._parts.currentIndex())
        every = not self._compact
        self._parts.setVisible(self._compact)
        self._title.setVisible(every)
        self._answer_card.setVisible(self._answered if every else part is Part.PEAK)
        self.step.setVisible(every or part is Part.STEP)
        self._table_card.setVisible(every or part in (Part.MODULES, Part.BLOCKS))
        self._tables.setVisible(every)
        self._divider.setVisible(every)

    def _on_module(self, path: str | None) -> None:
        """Dim in the picture what is not of the module."""
        timeline = self.step.canvas.timeline
        self.step.canvas.set_owners(None if path is None or timeline is None else owners_within(timeline, path))

    def keyPressEvent(self, event: QKeyEvent) -> None:
        """Esc lets go of the chosen module, then leaves."""
        if event.key() == Qt.Key.Key_Escape:
            if self.modules.tree.selectionModel().hasSelection():
                self.modules.clear_choice()
            else:
                self.left.emit()
        else:
            super().keyPressEvent(event)


def owners_within(timeline: Timeline, path: str) -> frozenset[int]:
    """The owners that are ``path`` or lie below it."""
    below = path + "."
    return frozenset(place for place, owner in enumerate(timeline.owners) if owner == path or owner.startswith(below))


def _room_bytes(estimate: Estimate | None) -> int | None:
    """What the card has for the allocator: its capacity less others and the context."""
    if estimate is None:
        return None
    return estimate.capacity_bytes - estimate.others_bytes - estimate.context_bytes
