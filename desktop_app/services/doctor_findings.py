"""One thing that the doctor looked at."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Final


class Level(StrEnum):
    """``NOTE``: works, but you may want to know or change it."""

    OK = "ok"
    NOTE = "note"
    PROBLEM = "problem"


@dataclass(frozen=True, slots=True)
class Finding:
    """``code`` is stable and for programs; ``text`` one line of what is; ``advice`` what to do about it, if anything.

    ``card``: the UUID or bus id of the card it is about.
    """

    code: str
    subject: str
    level: Level
    text: str
    advice: str = ""
    card: str | None = None

    def as_data(self) -> dict[str, object]:
        return {
            "code": self.code,
            "subject": self.subject,
            "level": self.level.value,
            "ok": self.level is not Level.PROBLEM,
            "text": self.text,
            "advice": self.advice or None,
            "card": self.card,
        }


OK: Final = Level.OK
NOTE: Final = Level.NOTE
PROBLEM: Final = Level.PROBLEM
