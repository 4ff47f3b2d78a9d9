"""What is known of the machine's cards from session to session: one that sleeps need not be woken to be known."""

from __future__ import annotations

import json
import logging
import secrets
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, fields
from functools import cache
from pathlib import Path
from typing import Any, Final, NoReturn, get_args, get_type_hints

from desktop_app.core.telemetry import Card, EnergySource, Reason
from desktop_app.telemetry.kernel_driver import nvidia_version
from desktop_app.telemetry.runtime_power import kernel_bus_id

_log = logging.getLogger(__name__)

_FORMAT: Final = 2  # 1: without the driver
_JSON_TYPES: Final = frozenset({str, int, float, bool, type(None)})


class CardMemory:
    """Facts of cards in a file, by their places, as one driver has said them.

    ``identity``: which part is in a place now, or ``None``: another part in the same place is another card. ``driver``:
    the version that is loaded now, or ``None``: another version may say other facts (what it keeps for itself), and
    with none there is nobody to say them. ``keep`` and ``recall`` raise nothing; what cannot be kept or read is not
    known.
    """

    def __init__(
        self,
        path: Path,
        *,
        identity: Callable[[str], str | None],
        driver: Callable[[], str | None] = nvidia_version,
    ) -> None:
        self._path = path
        self._identity = identity
        self._driver = driver

    def keep(self, cards: Sequence[Card]) -> None:
        """Remember these cards, in place of all others; none where one is split into instances or has no place, or
        where nobody knows the driver."""
        try:
            driver = self._driver()
            if driver is None or any(card.instances or card.bus_id is None for card in cards):
                self._path.unlink(missing_ok=True)  # what it says is no longer so
                return
            kept = [{"part": self._identity(card.bus_id or ""), "card": asdict(card)} for card in cards]
            text = json.dumps({"format": _FORMAT, "driver": driver, "cards": kept}, indent=1)
            if not self._path.is_file() or self._path.read_bytes() != text.encode():
                self._write(text)
        except (OSError, ValueError) as error:
            _log.info("the cards are not remembered: %s", error)

    def recall(self, places: Sequence[str]) -> tuple[Card, ...]:
        """The cards in exactly these places (the kernel's bus ids), or nothing."""
        try:
            found = json.loads(self._path.read_text(encoding="utf-8"), parse_constant=_refuse)
            driver = self._driver()
            if found["format"] != _FORMAT or driver is None or found["driver"] != driver:
                return ()
            cards = tuple(_card(entry["card"]) for entry in found["cards"])
            parts = [entry["part"] for entry in found["cards"]]
        except (OSError, ValueError, TypeError, KeyError, AttributeError, RecursionError):
            return ()
        known = {kernel_bus_id(card.bus_id or ""): part for card, part in zip(cards, parts, strict=True)}
        alone = len(known) == len({card.uuid for card in cards}) == len(cards)
        if not alone or set(known) != set(places):
            return ()
        return cards if all(part and part == self._identity(bus) for bus, part in known.items()) else ()

    def _write(self, text: str) -> None:
        """Whole or not at all: another session may read it at this moment."""
        self._path.parent.mkdir(parents=True, exist_ok=True)
        beside = self._path.with_name(f".{self._path.name}-{secrets.token_hex(8)}.part")
        try:
            beside.write_text(text, encoding="utf-8", newline="")
            beside.replace(self._path)
        finally:
            with suppress(OSError):
                beside.unlink(missing_ok=True)


def _card(values: Mapping[str, Any]) -> Card:
    """A card out of what ``asdict`` and JSON have made of one. Raises ``ValueError`` and its like for anything else."""
    if set(values) != {field.name for field in fields(Card)}:
        raise ValueError("the facts of another version")
    for name, allowed in _plain_types().items():
        if type(values[name]) not in allowed:  # and ``True`` is no number
            raise ValueError(f"{name} is {values[name]!r}")
    capability, energy = values["compute_capability"], values["energy_source"]
    if capability is not None and [type(part) for part in capability] != [int, int]:
        raise ValueError(f"compute_capability is {capability!r}")
    card = Card(
        **{
            **values,
            "compute_capability": None if capability is None else tuple(capability),
            "energy_source": None if energy is None else EnergySource(energy),
            "instances": (),
            "reasons": {name: Reason(reason) for name, reason in values["reasons"].items()},
        }
    )
    if card.simulated or not card.uuid or (card.capacity_bytes or 1) < 0 or (card.driver_reserved_bytes or 0) < 0:
        raise ValueError("no card of a driver")
    return card


@cache
def _plain_types() -> dict[str, frozenset[type]]:
    """The types of those facts of ``Card`` that are in JSON as they are."""
    hints = {name: frozenset(get_args(hint) or (hint,)) for name, hint in get_type_hints(Card).items()}
    plain = {name: types for name, types in hints.items() if types <= _JSON_TYPES}
    return {name: types | {int} if float in types else types for name, types in plain.items()}


def _refuse(constant: str) -> NoReturn:
    raise ValueError(f"{constant} is no fact")
