"""Facts of a card as they are collected: a value each, or the reason why there is none."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from desktop_app.core.telemetry import Reading, Reason
from desktop_app.telemetry.nvml import Answer


def is_word(text: str) -> bool:
    """Whether a text can name a card: no spaces, nothing that does not show."""
    return bool(text) and text.isprintable() and " " not in text


@dataclass(slots=True)
class FactSheet:
    """Collects values; what has none leaves its reason."""

    reasons: dict[str, Reason] = field(default_factory=dict)

    def text(self, name: str, answer: Answer) -> str | None:
        if answer.reason is None and answer.value and str(answer.value).isprintable():
            return str(answer.value)
        self.reasons[name] = answer.reason or Reason.IMPLAUSIBLE
        return None

    def number(self, name: str, reading: Reading) -> float | None:
        if reading.value is None:
            self.reasons[name] = reading.reason or Reason.UNKNOWN_ERROR
        return reading.value

    def whole(self, name: str, reading: Reading) -> int | None:
        value = self.number(name, reading)
        return None if value is None else int(value)

    def word(self, name: str, answer: Answer, words: Mapping[Any, str]) -> str | None:
        """The driver's number as one of our words."""
        if answer.reason is None and answer.value in words:
            return words[answer.value]
        self.reasons[name] = answer.reason or Reason.IMPLAUSIBLE
        return None
