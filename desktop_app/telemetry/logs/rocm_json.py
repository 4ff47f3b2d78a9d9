"""``rocm-smi --json``, old and new names; one document or several in a row."""

from __future__ import annotations

import contextlib
import json
import re
from collections.abc import Iterator
from typing import Any, Final

from desktop_app.telemetry.logs import fields as f
from desktop_app.telemetry.logs.maker import RecordMaker
from desktop_app.telemetry.logs.record import LogRecord, Notes
from desktop_app.telemetry.logs.values import Quantity, Rule, measure

_START: Final = re.compile(r'\{\s*"(?:card[0-9]{1,3}|system)"\s*:\s*\{')
_ONE_CARD: Final = re.compile(r'"(card[0-9]{1,3})"\s*:\s*(?=\{)', re.ASCII)
_CARD: Final = re.compile(r"card([0-9]{1,3})", re.ASCII)
_CLOCK: Final = re.compile(r"\(?([0-9.]{1,12} ?Mhz)\)?", re.ASCII | re.IGNORECASE)
_LINK: Final = re.compile(r"[0-9]{1,2} \(([0-9.]{3,5})GT/s x([0-9]{1,2})\)", re.ASCII)
# PCI Express base specification: transfers per second of each generation.
_GENERATIONS: Final = {"2.5": "1", "5.0": "2", "8.0": "3", "16.0": "4", "32.0": "5", "64.0": "6"}
_RULES: Final[dict[str, Rule]] = {
    "gpu use (%)": f.UTILIZATION,
    "gpu memory use (%)": f.MEMORY_UTILIZATION,  # until ROCm 5.6: how busy the memory is, not how full
    "gpu memory read/write activity (%)": f.MEMORY_UTILIZATION,
    "temperature (sensor edge) (c)": f.TEMPERATURE,
    "temperature (sensor memory) (c)": f.MEMORY_TEMPERATURE,
    "average graphics package power (w)": f.AVERAGE,
    "current socket graphics package power (w)": f.INSTANT,
    "max graphics package power (w)": f.LIMIT,
    "fan speed (%)": f.FAN,
    "vram total memory (b)": Rule("total_bytes", Quantity.BYTES, f.TOTAL.allowed, "b", fact=True),
    "vram total used memory (b)": Rule("memory_used_bytes", Quantity.BYTES, f.USED.allowed, "b"),
}
_CLOCKS: Final = {"sclk clock speed:": f.SM_CLOCK, "mclk clock speed:": f.MEMORY_CLOCK}
_NAMES: Final = ("card series", "device name", "card model")


def looks_like_rocm(text: str) -> bool:
    """Whether the text is JSON with cards as rocm-smi names them, perhaps behind its warnings."""
    return ('"card' in text or '"system"' in text) and _START.search(text) is not None


def read_rocm_json(text: str, notes: Notes) -> Iterator[LogRecord]:
    """A record for each card of each document."""
    place = text.find("{")
    decoder = json.JSONDecoder()
    while 0 <= place < len(text):
        line = 1 + text.count("\n", 0, place)
        try:
            document, end = decoder.raw_decode(text, place)
        except (ValueError, RecursionError) as error:
            at = error.lineno if isinstance(error, json.JSONDecodeError) else line
            notes.leave_out(at, "damaged JSON; cards that are whole are read", text[place : place + 80])
            yield from _records(_whole_cards(text[place:], decoder), line, text[place:], notes)
            return
        if not any(_CARD.fullmatch(name) for name in document):
            notes.leave_out(line, "a document without cards", text[place : place + 80])
        yield from _records(document, line, text[place:end], notes)
        place = text.find("{", end)


def _whole_cards(text: str, decoder: json.JSONDecoder) -> dict[str, Any]:
    """Cards that can be read by themselves in a damaged document."""
    cards: dict[str, Any] = {}
    for found in _ONE_CARD.finditer(text):
        with contextlib.suppress(ValueError, RecursionError):
            cards[found[1]], _ = decoder.raw_decode(text, found.end())
    return cards


def _records(document: dict[str, Any], line: int, text: str, notes: Notes) -> Iterator[LogRecord]:
    system = document.get("system")
    driver = str(system.get("Driver version", "")) if isinstance(system, dict) else ""
    for name, values in document.items():
        if not _CARD.fullmatch(name):
            continue
        at = line + max(text.count("\n", 0, text.find(f'"{name}"')), 0)
        if not isinstance(values, dict):
            notes.leave_out(at, f"{name}: not a list of values", str(values))
            continue
        maker = RecordMaker(at, notes)
        maker.identify("index", name.removeprefix("card"))
        maker.say("driver_version", driver)
        for source, value in values.items():
            _cell(maker, source, value if isinstance(value, str) else json.dumps(value)[:400])
        yield maker.make()


def _cell(maker: RecordMaker, source: str, text: str) -> None:
    key = source.strip().lower()
    if key in _RULES:
        maker.number(source, text, _RULES[key])
    elif key in _CLOCKS:
        found = _CLOCK.fullmatch(text.strip())
        maker.number(source, found[1] if found is not None else text, _CLOCKS[key])
    elif key == "pcie clock level":
        _link(maker, source, text)
    elif key == "pci bus":
        maker.identify("bus_id", text)
    elif key == "vbios version":
        maker.say("vbios_version", text)
    else:
        if key in _NAMES and not text.startswith("0x"):
            maker.identify("name", text)
        maker.keep(source, text)


def _link(maker: RecordMaker, source: str, text: str) -> None:
    found = _LINK.fullmatch(text.strip())
    maker.keep(source, text)
    if found is None or found[1] not in _GENERATIONS:
        return
    generation, width = measure(_GENERATIONS[found[1]], f.GENERATION), measure(found[2], f.WIDTH)
    if generation is not None and width is not None:
        maker.readings["pcie_generation"], maker.readings["pcie_width"] = generation, width
