"""Which card is which: CUDA's numbering against UUIDs and bus ids. No torch, no driver."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

_INDEX: Final = re.compile(r"\s*\+?(\d+)")
_UUID_PREFIXES: Final = ("GPU-", "MIG-")


@dataclass(frozen=True, slots=True)
class CardIdentity:
    """What CUDA orders cards by. ``bus_id`` as NVML writes it (``00000000:01:00.0``)."""

    uuid: str
    bus_id: str | None
    name: str


def visible_order(
    cards: Sequence[CardIdentity], *, visible_devices: str | None, device_order: str | None
) -> tuple[str | None, ...]:
    """UUIDs in the order of CUDA's (and torch's) indexes; ``None`` where it cannot be known from outside.

    ``visible_devices`` and ``device_order`` are the values of ``CUDA_VISIBLE_DEVICES`` and ``CUDA_DEVICE_ORDER``.
    Rules of the CUDA programming guide, "Environment Variables", as torch reads them too: the list ends at the first
    entry that is not valid, a repeated entry hides everything, short UUID prefixes count when they fit one card only,
    MIG ids stand for themselves. Without ``PCI_BUS_ID`` CUDA puts the fastest card first, which is known here only for
    cards of one model: those stay in bus order.
    """
    numbered = _numbered(cards, device_order)
    if visible_devices is None:
        return numbered
    entries = [entry.strip() for entry in visible_devices.split(",")]
    chosen: list[tuple[str, str | None]] = []  # (what the entry stands for, UUID)
    for entry in entries:
        found = _by_uuid(entry, cards) if entry.startswith(_UUID_PREFIXES) else _by_index(entry, numbered)
        if found is None:
            break
        if found[0] in {key for key, _ in chosen}:
            return ()
        chosen.append(found)
    return tuple(uuid for _, uuid in chosen)


def torch_index(uuid: str, order: Sequence[str | None]) -> int | None:
    """CUDA's index of a card, or ``None`` when it is hidden or not known."""
    return order.index(uuid) if uuid in order else None


def _numbered(cards: Sequence[CardIdentity], device_order: str | None) -> tuple[str | None, ...]:
    known = device_order == "PCI_BUS_ID" or len({card.name for card in cards}) <= 1
    if not known or any(card.bus_id is None for card in cards if len(cards) > 1):
        return (None,) * len(cards)
    return tuple(card.uuid for card in sorted(cards, key=lambda card: (card.bus_id or "").lower()))


def _by_index(entry: str, numbered: Sequence[str | None]) -> tuple[str, str | None] | None:
    match = _INDEX.match(entry)  # CUDA reads digits as strtoul does: "1gpu" is 1
    if match is None or int(match[1]) >= len(numbered):
        return None
    index = int(match[1])
    return numbered[index] or f"index {index}", numbered[index]


def _by_uuid(entry: str, cards: Sequence[CardIdentity]) -> tuple[str, str | None] | None:
    if entry.startswith("MIG-"):
        return entry, entry
    fitting = [card.uuid for card in cards if card.uuid.startswith(entry)]
    return (fitting[0], fitting[0]) if len(fitting) == 1 else None


def visible_problem(
    cards: Sequence[CardIdentity],
    *,
    visible_devices: str,
    device_order: str | None,
    instances: Sequence[str] = (),
) -> str | None:
    """What is wrong with a list of visible devices, in words; ``None`` when each entry is one card or instance.

    ``instances``: UUIDs of MIG instances. CUDA says nothing of any of this: it hides cards.
    """
    if not visible_devices.strip():
        return "empty, so CUDA sees no card"
    numbered = _numbered(cards, device_order)
    seen: dict[str, str] = {}
    for entry in (text.strip() for text in visible_devices.split(",")):
        trouble, key = _trouble(entry, cards, numbered, instances)
        if trouble is not None:
            rest = "nothing is visible" if not seen else f"only {len(seen)} before it count"
            return f"{trouble}; {rest}"
        if key in seen:
            return f"{entry!r} and {seen[key]!r} are the same card, so CUDA sees none"
        seen[key] = entry
    return None


def _trouble(
    entry: str, cards: Sequence[CardIdentity], numbered: Sequence[str | None], instances: Sequence[str]
) -> tuple[str | None, str]:
    """(what is wrong with an entry, what it stands for)."""
    if entry.startswith("MIG-"):
        known = not instances or any(uuid.startswith(entry) for uuid in instances)
        return (None if known else f"there is no MIG instance {entry!r}"), entry
    if entry.startswith("GPU-"):
        fitting = [card.uuid for card in cards if card.uuid.startswith(entry)]
        if len(fitting) == 1:
            return None, fitting[0]
        return (f"{entry!r} fits {len(fitting)} cards" if fitting else f"no card has the UUID {entry!r}"), entry
    match = _INDEX.match(entry)
    if match is None:
        return f"{entry!r} is neither a number nor a UUID", entry
    if int(match[1]) >= len(numbered):
        return f"there is no card number {int(match[1])}, the last is {len(numbered) - 1}", entry
    return None, numbered[int(match[1])] or f"index {int(match[1])}"
