"""What is known of the machine's cards from session to session: one that sleeps need not be woken to be known."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Sequence
from dataclasses import asdict, fields
from pathlib import Path
from typing import Any, Final

from desktop_app.core.telemetry import Card, EnergySource, Reason
from desktop_app.telemetry.runtime_power import kernel_bus_id

_log = logging.getLogger(__name__)

_FORMAT: Final = 1


class CardMemory:
    """Facts of cards in a file, by their places. ``identity``: which part is in a place now, or ``None``: another part
    in the same place is another card. Neither raises; what cannot be kept or read is not known."""

    def __init__(self, path: Path, *, identity: Callable[[str], str | None]) -> None:
        self._path = path
        self._identity = identity

    def keep(self, cards: Sequence[Card]) -> None:
        """Remember these cards, in place of all others; none where one is split into instances or has no place."""
        if any(card.instances or card.bus_id is None for card in cards):
            return
        kept = [{"part": self._identity(card.bus_id or ""), "card": asdict(card)} for card in cards]
        text = json.dumps({"format": _FORMAT, "cards": kept}, indent=1)
        try:
            if self._path.is_file() and self._path.read_text(encoding="utf-8") == text:
                return
            self._path.parent.mkdir(parents=True, exist_ok=True)
            self._path.write_text(text, encoding="utf-8")
        except OSError as error:
            _log.info("the cards are not remembered: %s", error)

    def recall(self, places: Sequence[str]) -> tuple[Card, ...]:
        """The cards in exactly these places (the kernel's bus ids), or nothing."""
        try:
            found = json.loads(self._path.read_text(encoding="utf-8"))
            if found["format"] != _FORMAT:
                return ()
            cards = tuple(_card(entry["card"]) for entry in found["cards"])
            parts = [entry["part"] for entry in found["cards"]]
        except (OSError, ValueError, TypeError, KeyError, AttributeError):
            return ()
        known = {kernel_bus_id(card.bus_id or ""): part for card, part in zip(cards, parts, strict=True)}
        same = set(known) == set(places) and all(part and part == self._identity(bus) for bus, part in known.items())
        return cards if same else ()


def _card(values: dict[str, Any]) -> Card:
    """A card out of what ``asdict`` and JSON have made of one. Raises ``ValueError`` and its like for anything else."""
    if set(values) != {field.name for field in fields(Card)}:
        raise ValueError("the facts of another version")
    capability, energy = values["compute_capability"], values["energy_source"]
    return Card(
        **{
            **values,
            "uuid": str(values["uuid"]),
            "name": str(values["name"]),
            "compute_capability": None if capability is None else (int(capability[0]), int(capability[1])),
            "energy_source": None if energy is None else EnergySource(energy),
            "instances": (),
            "reasons": {name: Reason(reason) for name, reason in values["reasons"].items()},
        }
    )
