"""Ending a process: whether it can be, the question, and what came of it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from PySide6.QtCore import QObject, Signal
from PySide6.QtWidgets import QWidget

from desktop_app.core.telemetry import Card, ProcessSample
from desktop_app.services.facade import EndOutcome, Workspace
from desktop_app.ui.processes.end_dialog import EndDialog
from desktop_app.ui.texts import cards
from desktop_app.ui.texts import processes as texts
from desktop_app.ui.theme import Theme

# A training that saves a checkpoint when it is asked to end takes seconds; systemd gives 90 s, Docker 10 s.
PATIENCE_S: Final = 10.0
_KEEP_S: Final = 12.0  # good news stand so long


def why_not(process: ProcessSample | None, *, read_only: bool) -> str:
    """Why the process cannot be ended from here; empty when it can."""
    if process is None:
        return texts.why_not_chosen()
    if read_only:
        return texts.why_not_read_only()
    if process.simulated:
        return texts.why_not_simulated()
    if process.own:
        return texts.why_not_own()
    if process.foreign:
        return texts.why_not_foreign()
    return texts.why_not_unknown() if process.started_wall_s is None else ""


@dataclass(slots=True)
class _Told:
    """A process that was told to end."""

    process: ProcessSample
    at_s: float
    force: bool
    reported: bool = False


class Ending(QObject):
    """``said`` carries a sentence about the last one (empty: no more), ``offers_force`` whether force would help."""

    said = Signal(str)

    def __init__(self, workspace: Workspace, window: QWidget, theme: Theme) -> None:
        super().__init__(window)
        self._workspace = workspace
        self._window = window
        self.theme = theme
        self._told: list[_Told] = []
        self._said_until_s: float | None = None
        self._refused: ProcessSample | None = None  # has not followed the request
        self.dialog: EndDialog | None = None

    @property
    def offers_force(self) -> bool:
        return self._refused is not None

    def can_force(self, process: ProcessSample) -> bool:
        """It was asked before, and did not go."""
        return self._refused is not None and _same(self._refused, process)

    def ask(self, process: ProcessSample, card: Card, *, force: bool = False) -> None:
        """Put the question; nothing happens until it is answered."""
        if self.dialog is not None or why_not(process, read_only=self._workspace.read_only):
            return
        name = cards.chip(card, None)
        dialog = EndDialog(process, card=name, force=force, theme=self.theme, parent=self._window)
        dialog.accepted.connect(lambda: self._end(process, force=force))
        dialog.finished.connect(self._on_answered)
        self.dialog = dialog
        dialog.open()

    def force(self, card: Card) -> None:
        """Ask whether the one that stayed shall be ended by force."""
        if self._refused is not None:
            self.ask(self._refused, card, force=True)

    def _on_answered(self, _result: int) -> None:
        dialog, self.dialog = self.dialog, None
        if dialog is not None:
            dialog.deleteLater()

    def _end(self, process: ProcessSample, *, force: bool) -> None:
        self._refused = None
        if not self._is_there(process):
            self._say(texts.gone(process), passing=True)
            return
        outcome = self._workspace.end_process(process.uuid, process.pid, force=force)
        if outcome is EndOutcome.SENT:
            self._told = [told for told in self._told if not _same(told.process, process)]
            self._told.append(_Told(process, self._workspace.clock.now_s(), force))
            self._say(texts.asked(process))
        elif outcome is EndOutcome.NO_PERMISSION:
            self._say(texts.not_permitted(process))
        elif outcome is EndOutcome.GONE:
            self._say(texts.gone(process), passing=True)
        else:
            self._say(why_not(process, read_only=self._workspace.read_only) or texts.why_not_own())

    def refresh(self) -> None:
        """See who has gone. Called with the table."""
        now_s = self._workspace.clock.now_s()
        for told in tuple(self._told):
            if not self._is_there(told.process):
                self._told.remove(told)
                if self._refused is not None and _same(self._refused, told.process):
                    self._refused = None
                self._say(texts.ended(told.process), passing=True)
            elif not told.reported and now_s - told.at_s >= PATIENCE_S:
                told.reported = True
                self._refused = None if told.force else told.process
                self._say(texts.stays(told.process) if told.force else texts.ignored(told.process))
        if self._said_until_s is not None and now_s >= self._said_until_s:
            self._say("")

    def dismiss(self) -> None:
        """The sentence was read."""
        self._refused = None
        self._say("")

    def _say(self, text: str, *, passing: bool = False) -> None:
        self._said_until_s = self._workspace.clock.now_s() + _KEEP_S if passing else None
        self.said.emit(text)

    def _is_there(self, process: ProcessSample) -> bool:
        on_card = self._workspace.processes.get().get(process.uuid, ())
        return any(_same(found, process) for found in on_card)


def _same(one: ProcessSample, other: ProcessSample) -> bool:
    """The same process, and not another one that was given its number."""
    return (one.uuid, one.pid, one.started_wall_s) == (other.uuid, other.pid, other.started_wall_s)
