"""The table of known cards: looked up by a forgiving name, never filled in where it is blank."""

from __future__ import annotations

import csv
import difflib
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cache
from importlib import resources
from typing import Final

from desktop_app.core.errors import NoSuchDeviceError
from desktop_app.core.units import GIB, MIB

CATALOGUE_FILE: Final = "gpu_catalogue.csv"
# What the driver keeps for itself where no capture lists the card: the median of reserved / total over the 13 cards
# whose captures show both (2080 SUPER 4.9 %, 3060 3.0 %, 3080 1.7 %, A100 1.1 %, H200 0.4 %, …).
TYPICAL_RESERVED_SHARE: Final = 0.017

_MAKERS: Final = frozenset(
    {"nvidia", "amd", "intel", "google", "huawei", "aws", "apple", "cambricon", "moore", "threads"}
) | {"hygon", "biren", "metax", "iluvatar", "corex", "kunlunxin", "enflame", "gpu", "graphics", "card"}
# Family words that people and drivers leave out: "RTX 3090", "T4", "RX 7900 XTX", "MI300X".
_FAMILIES: Final = frozenset({"geforce", "tesla", "quadro", "radeon", "instinct", "ascend"})
_OPTIONAL: Final = re.compile(r"pcie|sxm\d?|generation$")
_SERIES: Final = re.compile(r"^(gtx|rtx|rx)")
_MEMORY: Final = re.compile(r"(\d+) ?gi?b\b")
_ALTERED: Final = re.compile(
    r"(?P<card>.*?)(?: +capped +at +(?P<gib>\d+(?:\.\d+)?) ?gib)?(?P<windows> +under +windows)?", re.IGNORECASE
)
_LEAST_CAP_MIB: Final = 512  # the contexts of today's cards are 150 to 900 MiB: memory.overheads
_TOKENS: Final = re.compile(r"[a-z]+|\d+")
_NEAREST: Final = 3
_POSSIBLE: Final = 6


@dataclass(frozen=True, slots=True)
class CatalogueCard:
    """One part of the catalogue. ``None``: no verifiable figure. Columns are explained in gpu_catalogue.md.

    Rates are dense: ``fp16_tensor_tflops`` and ``bf16_tensor_tflops`` are those of the matrix units with FP32
    accumulation.
    """

    card_id: str
    vendor: str
    name: str
    aliases: tuple[str, ...]
    segment: str
    architecture: str | None
    compute_capability: str | None  # "8.6", or "gfx942" on AMD
    year: int | None
    memory_gb: float | None
    memory_type: str | None
    shared_memory: bool
    nvml_total_mib: int | None
    driver_reserved_mib: int | None
    memory_bandwidth_gb_s: float | None
    sm_count: int | None
    tensor_cores: int | None
    boost_clock_mhz: float | None
    tdp_w: float | None
    power_min_w: float | None
    power_max_w: float | None
    temperature_target_c: float | None
    temperature_slowdown_c: float | None
    temperature_shutdown_c: float | None
    pcie: str | None
    fp32_tflops: float | None
    fp16_vector_tflops: float | None
    fp16_tensor_tflops: float | None
    bf16_tensor_tflops: float | None
    confidence: str
    spills: bool = False  # simulated as under Windows, where the driver moves memory to RAM when the card is full

    @property
    def total_bytes(self) -> int | None:
        """Total as NVML would report it: from a capture where there is one, else the box's size in GiB."""
        if self.nvml_total_mib is not None:
            return self.nvml_total_mib * MIB
        return None if self.memory_gb is None else int(self.memory_gb * GIB)

    @property
    def driver_reserved_bytes(self) -> int | None:
        """What the driver keeps: from a capture where there is one, else ``TYPICAL_RESERVED_SHARE`` of the total."""
        if self.driver_reserved_mib is not None:
            return self.driver_reserved_mib * MIB
        total = self.total_bytes
        return None if total is None else round(total * TYPICAL_RESERVED_SHARE / MIB) * MIB

    @property
    def cuda_capability(self) -> tuple[int, int] | None:
        """(major, minor) of an NVIDIA card."""
        if self.vendor != "NVIDIA" or self.compute_capability is None:
            return None
        major, _, minor = self.compute_capability.partition(".")
        return int(major), int(minor or 0)

    @property
    def pcie_link(self) -> tuple[int, int] | None:
        """(generation, lanes) of the slot the card is made for."""
        match = re.fullmatch(r"PCIe (\d)\.\d x(\d+)", self.pcie or "")
        return (int(match[1]), int(match[2])) if match else None


@cache
def load_catalogue() -> tuple[CatalogueCard, ...]:
    """All parts, in the order of the file. Read once."""
    text = (resources.files("desktop_app.resources") / CATALOGUE_FILE).read_text(encoding="utf-8")
    return tuple(_parse(row) for row in csv.DictReader(text.splitlines()))


def find_card(text: str) -> CatalogueCard:
    """The one card that ``text`` means. Case, maker, family word, spaces and a memory size are forgiven.

    "A100 80GB" is two cards that differ in their plug alone: the one whose memory was read with NVML stands for both.

    Raises ``NoSuchDeviceError`` in one line: ``device.unknown_card`` with the three nearest names, or
    ``device.ambiguous_card`` with (up to six of) the cards it could be.
    """
    cards = load_catalogue()
    for exact in (_by_name, _by_key, _by_loose_key):
        found = exact(text, cards)
        if len({(card.memory_gb, card.sm_count, card.cuda_capability) for card in found}) == 1:
            return max(found, key=lambda card: (card.driver_reserved_mib is not None, card.nvml_total_mib is not None))
        if found:
            raise _ambiguous(text, found)
    raise _unknown(text, cards)


def find_simulable_card(text: str) -> CatalogueCard:
    """``find_card`` for a card whose memory is known; else ``NoSuchDeviceError`` (``device.memory_unknown``).

    "… capped at 2 GiB" simulates the card with no more memory than that (``device.cap_above_card`` where it has less),
    "… under Windows" with a driver that moves memory to RAM when the card is full instead of refusing. In this order.
    """
    match = _ALTERED.fullmatch(text.strip())
    assert match is not None  # every part of it may be empty
    card = find_card(match["card"])
    if card.total_bytes is None:
        raise NoSuchDeviceError(
            "device.memory_unknown",
            f'"{card.name}" cannot be simulated: there is no verifiable figure for its memory. Choose another card.',
            params={"name": card.name},
        )
    return _altered(card, cap_gib=match["gib"], windows=match["windows"] is not None)


def _altered(card: CatalogueCard, *, cap_gib: str | None, windows: bool) -> CatalogueCard:
    """The card as a part of its own, so that a session can hold both. A cap of all its memory leaves that as it is."""
    if cap_gib is not None:
        cap_mib = round(float(cap_gib) * GIB / MIB)
        if cap_mib < _LEAST_CAP_MIB:
            raise NoSuchDeviceError(
                "device.cap_too_small",
                f'"{card.name}" cannot be capped at {cap_gib} GiB: its CUDA context alone needs most of that. Give '
                f"{_LEAST_CAP_MIB / 1024:g} GiB or more.",
                params={"name": card.name, "cap_mib": cap_mib},
            )
        most_bytes = max(card.total_bytes or 0, round((card.memory_gb or 0) * GIB))  # what the box says is no mistake
        if cap_mib * MIB > most_bytes:
            raise NoSuchDeviceError(
                "device.cap_above_card",
                f'"{card.name}" cannot be capped at {cap_gib} GiB: it has {most_bytes / GIB:g} GiB. Give less, or '
                "leave the cap out.",
                params={"name": card.name, "cap_mib": cap_mib},
            )
        if cap_mib * MIB < (card.total_bytes or 0):
            card = replace(
                card,
                card_id=f"{card.card_id}-capped-{cap_mib}",
                name=f"{card.name} capped at {cap_mib / 1024:g} GiB",
                nvml_total_mib=cap_mib,
                driver_reserved_mib=0,
            )
    if windows:
        card = replace(card, card_id=f"{card.card_id}-windows", name=f"{card.name} under Windows", spills=True)
    return card


def _by_name(text: str, cards: Iterable[CatalogueCard]) -> list[CatalogueCard]:
    wanted = _plain(text)
    return [card for card in cards if wanted in {_plain(name) for name in (card.card_id, card.name, *card.aliases)}]


def _by_key(text: str, cards: Iterable[CatalogueCard]) -> list[CatalogueCard]:
    key, memory_gb = _key(text)
    named = [card for card in cards if key in {_key(name)[0] for name in (card.name, *card.aliases)}]
    return [card for card in named if memory_gb is None or card.memory_gb == memory_gb]


def _by_loose_key(text: str, cards: Iterable[CatalogueCard]) -> list[CatalogueCard]:
    """As ``_by_key`` with form factor and series forgiven where the text names none: "B200", "A10", "5090"."""
    key, memory_gb = _key(text)
    named = [card for card in cards if key in _loose_keys(card.name)]
    return [card for card in named if memory_gb is None or card.memory_gb == memory_gb]


@cache
def _plain(text: str) -> str:
    """Letters and digits only, maker left out: "NVIDIA GeForce GTX 1660" and "geforce-gtx-1660" are one."""
    words = re.findall(r"[a-z0-9+]+", text.lower().replace("laptop gpu", "mobile").replace("laptop", "mobile"))
    return "".join(word for word in words if word not in _MAKERS)


@cache
def _key(text: str) -> tuple[str, int | None]:
    """The name without maker, family and memory size, and the size (GB)."""
    lower = text.lower().replace("laptop gpu", "mobile").replace("laptop", "mobile").replace("-", " ")
    memory = _MEMORY.search(lower)
    words = re.findall(r"[a-z0-9+]+", _MEMORY.sub(" ", lower))
    kept = [word for word in words if word not in _MAKERS | _FAMILIES]
    return "".join(kept), int(memory[1]) if memory else None


@cache
def _loose_keys(name: str) -> frozenset[str]:
    short = _OPTIONAL.sub("", _key(name)[0])
    return frozenset({short, _SERIES.sub("", short)})


def _nearest(text: str, cards: Iterable[CatalogueCard]) -> list[CatalogueCard]:
    wanted, memory_gb = _key(text)
    tokens = set(_TOKENS.findall(wanted))

    def closeness(card: CatalogueCard) -> tuple[float, float, bool]:
        key = _key(card.name)[0]
        shared = len(tokens & set(_TOKENS.findall(key))) / max(1, len(tokens))
        return shared, difflib.SequenceMatcher(None, wanted, key).ratio(), card.memory_gb == memory_gb

    return sorted(cards, key=closeness, reverse=True)[:_NEAREST]


def _names(cards: Iterable[CatalogueCard]) -> list[str]:
    return [card.name for card in cards]


def _unknown(text: str, cards: Iterable[CatalogueCard]) -> NoSuchDeviceError:
    nearest = _names(_nearest(text, cards))
    return NoSuchDeviceError(
        "device.unknown_card",
        f'No card named "{_one_line(text)}" in the catalogue. Nearest: {", ".join(nearest)}.',
        params={"name": _one_line(text), "nearest": nearest},
    )


def _ambiguous(text: str, found: list[CatalogueCard]) -> NoSuchDeviceError:
    nearest = _names(found[:_POSSIBLE])
    return NoSuchDeviceError(
        "device.ambiguous_card",
        f'"{_one_line(text)}" could be {len(found)} cards. Give one in full: {", ".join(nearest)}.',
        params={"name": _one_line(text), "nearest": nearest},
    )


def _one_line(text: str) -> str:
    return " ".join(text.split())[:80]


def _parse(row: Mapping[str, str]) -> CatalogueCard:
    def number(column: str) -> float | None:
        return float(row[column]) if row[column] else None

    def whole(column: str) -> int | None:
        return int(row[column]) if row[column] else None

    return CatalogueCard(
        card_id=row["id"],
        vendor=row["vendor"],
        name=row["name"],
        aliases=tuple(alias for alias in row["aliases"].split(";") if alias),
        segment=row["segment"],
        architecture=row["architecture"] or None,
        compute_capability=row["compute_capability"] or None,
        year=whole("year"),
        memory_gb=number("memory_gb"),
        memory_type=row["memory_type"] or None,
        shared_memory=row["shared_memory"] == "yes",
        nvml_total_mib=whole("nvml_total_mib"),
        driver_reserved_mib=whole("driver_reserved_mib"),
        memory_bandwidth_gb_s=number("memory_bandwidth_gb_s"),
        sm_count=whole("sm_count"),
        tensor_cores=whole("tensor_cores"),
        boost_clock_mhz=number("boost_clock_mhz"),
        tdp_w=number("tdp_w"),
        power_min_w=number("power_min_w"),
        power_max_w=number("power_max_w"),
        temperature_target_c=number("temperature_target_c"),
        temperature_slowdown_c=number("temperature_slowdown_c"),
        temperature_shutdown_c=number("temperature_shutdown_c"),
        pcie=row["pcie"] or None,
        fp32_tflops=number("fp32_tflops"),
        fp16_vector_tflops=number("fp16_vector_tflops"),
        fp16_tensor_tflops=number("fp16_tensor_tflops"),
        bf16_tensor_tflops=number("bf16_tensor_tflops"),
        confidence=row["confidence"],
    )
