"""What is wrong with the program itself, for as long as it is: the window's bars, the terminal's lines."""

from __future__ import annotations

import logging
import threading
from collections.abc import Mapping
from typing import Final

from desktop_app.core.store import Cell
from desktop_app.services.facade import Notice

_log = logging.getLogger(__name__)

_LEVELS: Final = {"error": logging.ERROR, "warning": logging.WARNING}


class NoticeBoard:
    """One notice for each code. Any thread puts them up and takes them down.

    Each new text is logged once by this module's logger, which ``log_files`` lets through to the terminal.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self.notices: Cell[tuple[Notice, ...]] = Cell(())

    def put(
        self, code: str, message: str, *, level: str = "warning", params: Mapping[str, object] | None = None
    ) -> None:
        """Show a notice in place of the one with the same code."""
        notice = Notice(code, message, level, dict(params or {}))
        with self._lock:
            shown = self.notices.get()
            if notice in shown:
                return
            self.notices.set((*(other for other in shown if other.code != code), notice))
        _log.log(_LEVELS.get(level, logging.INFO), "%s", message)

    def take_down(self, code: str) -> None:
        """The condition is over."""
        with self._lock:
            shown = self.notices.get()
            left = tuple(notice for notice in shown if notice.code != code)
            if left != shown:
                self.notices.set(left)
