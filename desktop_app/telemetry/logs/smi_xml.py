"""``nvidia-smi -q -x``: one document or many in a row, of any driver.

The DTD is never fetched and no entity is unfolded.
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final
from xml.parsers import expat

from desktop_app.core.telemetry import Reading, Reason
from desktop_app.telemetry.logs import detail_fields
from desktop_app.telemetry.logs import fields as f
from desktop_app.telemetry.logs.maker import RecordMaker
from desktop_app.telemetry.logs.record import LoggedInstance, LoggedProcess, LogRecord, Notes, Stamp
from desktop_app.telemetry.logs.times import stamp_of
from desktop_app.telemetry.logs.values import Rule, measure, reason_of, uuid_of, whole

_DEEPEST: Final = 40
_UNITS_OF_ONE: Final = ("process_info", "mig_device")  # a part of one of these says nothing
_WHOLE_CARD: Final = re.compile(r"<gpu\b[^<>]*>(?:(?!<gpu\b).)*?</gpu\s*>", re.DOTALL)
_POWER: Final = ("gpu_power_readings", "power_readings")  # since driver 535, and before
# Paths under <gpu>. The module's power stands beside the card's and is another number (cases NV-75): it stays raw.
_PATHS: Final[dict[str, Rule]] = {
    "utilization/gpu_util": f.UTILIZATION,
    "utilization/memory_util": f.MEMORY_UTILIZATION,
    "utilization/encoder_util": f.ENCODER,
    "utilization/decoder_util": f.DECODER,
    "fb_memory_usage/total": f.TOTAL,
    "fb_memory_usage/reserved": f.RESERVED,
    "fb_memory_usage/used": f.USED,
    "bar1_memory_usage/used": f.BAR1_USED,
    "bar1_memory_usage/total": f.BAR1_TOTAL,
    "temperature/gpu_temp": f.TEMPERATURE,
    "temperature/memory_temp": f.MEMORY_TEMPERATURE,
    "temperature/gpu_temp_slow_threshold": f.SLOWDOWN,
    "temperature/gpu_temp_max_threshold": f.SHUTDOWN,
    "clocks/sm_clock": f.SM_CLOCK,
    "clocks/mem_clock": f.MEMORY_CLOCK,
    "max_clocks/sm_clock": f.CLOCK_MAX,
    "fan_speed": f.FAN,
    "performance_state": f.STATE,
    "pci/tx_util": f.TX,
    "pci/rx_util": f.RX,
    "pci/pci_gpu_link_info/pcie_gen/current_link_gen": f.GENERATION,
    "pci/pci_gpu_link_info/link_widths/current_link_width": f.WIDTH,
    "ecc_errors/volatile/double_bit/total": f.ECC,
    **detail_fields.XML,
}
_POWER_PATHS: Final = {
    "power_draw": f.DRAW,
    "average_power_draw": f.AVERAGE,
    "instant_power_draw": f.INSTANT,
    "enforced_power_limit": f.LIMIT,
    "current_power_limit": f.LIMIT,
    "max_power_limit": f.POWER_MAX,
}
_PATHS.update({f"{block}/{tag}": rule for block in _POWER for tag, rule in _POWER_PATHS.items()})
_TEXTS: Final = {
    "product_architecture": "architecture",
    "mig_mode/current_mig": "mig_mode",
    "driver_model/current_dm": "driver_model",
    "vbios_version": "vbios_version",
}
_CARD: Final = {"uuid": "uuid", "pci/pci_bus_id": "bus_id", "product_name": "name"}
_KINDS: Final = {"C": "compute", "G": "graphics", "C+G": "both"}


@dataclass(slots=True)
class _Node:
    tag: str
    line: int
    text: list[str] = field(default_factory=list)
    children: list[_Node] = field(default_factory=list)
    attributes: dict[str, str] = field(default_factory=dict)
    whole: bool = True

    def child(self, tag: str) -> _Node | None:
        return next((node for node in self.children if node.tag == tag), None)

    def value(self, tag: str) -> str:
        node = self.child(tag)
        return "" if node is None else "".join(node.text).strip()


class _ForbiddenError(ValueError):
    """Something that no ``nvidia-smi`` writes and an attacker does."""


def read_smi_xml(text: str, notes: Notes) -> Iterator[LogRecord]:
    """A record for each card of each document. What was whole before a damaged place is kept."""
    starts = _document_starts(text)
    line = 1 + text.count("\n", 0, starts[0]) if starts else 1
    for start, end in zip(starts, [*starts[1:], len(text)], strict=True):
        yield from _read_document(text[start:end], line, notes)
        line += text.count("\n", start, end)


def _document_starts(text: str) -> list[int]:
    """Where documents begin: at their declaration, their DOCTYPE or their root, whichever comes first."""
    starts: list[int] = []
    ended = True
    for found in re.finditer(r"<\?xml|<!DOCTYPE|<nvidia_smi_log\b|</nvidia_smi_log\s*>", text):
        if found[0].startswith("</"):
            ended = True
        elif found[0] == "<?xml" or ended:  # a document that was cut off ends where the next is declared
            starts.append(found.start())
            ended = False
    return starts


def _read_document(text: str, first_line: int, notes: Notes) -> Iterator[LogRecord]:
    reader = _Reader(first_line)
    end = text.rfind("</nvidia_smi_log")
    close = text.find(">", end) + 1 if end >= 0 else 0
    body, rest = (text[:close], text[close:]) if close else (text, "")
    try:
        reader.parse(body)
    except expat.ExpatError as error:
        reader.cards += _whole_cards(body, first_line, known=len(reader.cards))
        notes.leave_out(first_line + error.lineno - 1, *_damage(error, reader, cut=not close))
    except _ForbiddenError as error:
        notes.leave_out(first_line, str(error))
        return
    if rest.strip():
        notes.leave_out(first_line + body.count("\n"), "text after the XML document", rest.strip())
    if not reader.cards and not notes.left_out:
        notes.leave_out(first_line, "a document without a card")
    stamp = _time(reader, notes)
    heads = {name: reader.heads.get(name, "") for name in ("driver_version", "cuda_version")}
    all_there = whole(reader.heads.get("attached_gpus", "")) == len(reader.cards)
    if not all_there and reader.cards:
        attached = reader.heads.get("attached_gpus") or "nothing"
        notes.remark(first_line, f"attached_gpus says {attached}, the document holds {len(reader.cards)}")
    for place, node in enumerate(reader.cards):
        number = place if all_there else None  # nvidia-smi prints cards in the order of their indexes
        yield _record(node, number, stamp, heads, notes)


def _damage(error: expat.ExpatError, reader: _Reader, *, cut: bool) -> tuple[str, str]:
    """What is broken with what to do, and what is read all the same. Of a file that was cut off the last card is taken
    up to the cut."""
    why = expat.errors.messages[error.code] if error.code in expat.errors.messages else str(error)
    part = reader.open_card() if cut else None
    found = f"column {error.offset + 1} ({why}); read: " + (
        "one whole card" if len(reader.cards) == 1 else f"{len(reader.cards)} whole cards"
    )
    if part is not None:
        reader.cards.append(part)
        part.whole = False
        found += f", {_count(part)} values of the next"
    what = "the XML is cut off here" if cut else "damaged XML"
    return f"{what}; write it again (nvidia-smi -q -x > FILE) or copy it whole", found


def _count(node: _Node) -> int:
    return sum(_count(child) if child.children else 1 for child in node.children)


def _whole_cards(text: str, first_line: int, *, known: int) -> list[_Node]:
    """Cards that can be read by themselves in a damaged document, after the ``known`` ones."""
    found: list[_Node] = []
    for card in list(_WHOLE_CARD.finditer(text))[known:]:
        reader = _Reader(first_line + text.count("\n", 0, card.start()))
        with contextlib.suppress(expat.ExpatError, _ForbiddenError):
            reader.parse(f"<nvidia_smi_log>{card[0]}</nvidia_smi_log>")
            found += reader.cards
    return found


def _time(reader: _Reader, notes: Notes) -> Stamp | None:
    text = reader.heads.get("timestamp", "")
    stamp = stamp_of(text)
    if stamp is None and reader.cards:
        notes.leave_out(reader.cards[0].line, "timestamp: not a time", text)
    return stamp


class _Reader:
    """Collects whole ``<gpu>`` elements and the head of one document."""

    def __init__(self, first_line: int) -> None:
        self.cards: list[_Node] = []
        self.heads: dict[str, str] = {}
        self._stack: list[_Node] = []
        self._first_line = first_line
        self._parser = expat.ParserCreate()
        self._parser.buffer_text = True
        self._parser.StartElementHandler = self._start
        self._parser.EndElementHandler = self._end
        self._parser.CharacterDataHandler = self._text
        self._parser.EntityDeclHandler = self._entity  # before any is unfolded
        self._parser.SetParamEntityParsing(expat.XML_PARAM_ENTITY_PARSING_NEVER)  # the DTD is not fetched

    def parse(self, text: str) -> None:
        self._parser.Parse(re.sub(r"^<\?xml[^>]*\?>", _without_encoding, text, count=1), True)  # noqa: FBT003 - expat's own

    def open_card(self) -> _Node | None:
        """The card that the text ends in, with what is whole of it."""
        if len(self._stack) < 2 or [node.tag for node in self._stack[:2]] != ["nvidia_smi_log", "gpu"]:
            return None
        for parent, node in zip(self._stack[1:], self._stack[2:], strict=False):
            if node.tag in _UNITS_OF_ONE or (node is self._stack[-1] and not node.children):
                parent.children.remove(node)
                break
        card = self._stack[1]
        return card if card.children else None

    def _start(self, tag: str, attributes: dict[str, str]) -> None:
        if len(self._stack) >= _DEEPEST:
            raise _ForbiddenError(f"XML nested deeper than {_DEEPEST} is not from nvidia-smi")
        node = _Node(tag, self._first_line + self._parser.CurrentLineNumber - 1, attributes=attributes)
        if self._stack:
            self._stack[-1].children.append(node)
        self._stack.append(node)

    def _end(self, _tag: str) -> None:
        node = self._stack.pop()
        if len(self._stack) != 1 or self._stack[0].tag != "nvidia_smi_log":
            return
        if node.tag == "gpu":
            self.cards.append(node)
        elif not node.children:
            self.heads.setdefault(node.tag, "".join(node.text).strip())
        self._stack[0].children.clear()

    def _text(self, text: str) -> None:
        if self._stack:
            self._stack[-1].text.append(text)

    def _entity(self, name: str, *_: object) -> None:
        raise _ForbiddenError(f"XML that declares entities ({name[:40]}) is not from nvidia-smi and not read")


def _without_encoding(found: re.Match[str]) -> str:
    """The text is decoded already. As many characters, so that columns stay."""
    return " " * len(found[0])


def _record(node: _Node, number: int | None, stamp: Stamp | None, heads: dict[str, str], notes: Notes) -> LogRecord:
    maker = RecordMaker(node.line, notes)
    maker.stamp = stamp
    maker.index = number
    maker.whole = node.whole
    for name, text in heads.items():
        maker.say(name, text)
    _walk(node, "", maker)
    if maker.bus_id is None:
        maker.identify("bus_id", node.attributes.get("id", ""))
    instances = node.child("mig_devices")
    for instance in () if instances is None else instances.children:
        maker.instances.append(_instance(instance))
    _list_processes(node, maker, notes)
    return maker.make()


def _walk(node: _Node, path: str, maker: RecordMaker) -> None:
    for child in node.children:
        if not path and child.tag in ("mig_devices", "processes", "accounted_processes"):
            continue
        place = f"{path}/{child.tag}" if path else child.tag
        if child.children:
            _walk(child, place, maker)
            continue
        text = "".join(child.text).strip()
        if place in _PATHS:
            maker.number(place, text, _PATHS[place], line=child.line)
        elif place in _TEXTS:
            maker.say(_TEXTS[place], text)
        elif place in _CARD:
            maker.identify(_CARD[place], text)
        else:
            maker.add_part(place, text)
            maker.keep(place, text)


def _instance(node: _Node) -> LoggedInstance:
    memory = node.child("fb_memory_usage") or _Node("", node.line)
    total, used = measure(memory.value("total"), f.TOTAL), measure(memory.value("used"), f.USED)
    unread = Reading(None, Reason.UNKNOWN_ERROR)
    return LoggedInstance(whole(node.value("index")), total or unread, used or unread, uuid_of(node.value("uuid")))


def _list_processes(node: _Node, maker: RecordMaker, notes: Notes) -> None:
    processes = node.child("processes")
    if processes is None:
        return
    maker.lists_processes = reason_of("".join(processes.text)) is None or bool(processes.children)
    for info in processes.children:
        pid = whole(info.value("pid"))
        if not pid:
            notes.leave_out(info.line, "pid: not a process", info.value("pid"))
            continue
        memory = measure(info.value("used_memory"), f.PROCESS_MEMORY)
        if memory is None:
            notes.leave_out(info.line, "used_memory: not a value with a known unit", info.value("used_memory"))
        maker.processes.append(
            LoggedProcess(
                pid,
                info.value("process_name") or None,
                _KINDS.get(info.value("type")),
                memory or Reading(None, Reason.UNKNOWN_ERROR),
            )
        )
