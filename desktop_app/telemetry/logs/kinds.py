"""Which tool wrote a file, by its content, and the reader for it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from desktop_app.telemetry.logs.log_lines import decoded, unpacked
from desktop_app.telemetry.logs.prometheus_text import is_prometheus, read_prometheus
from desktop_app.telemetry.logs.record import LogRecord, Notes
from desktop_app.telemetry.logs.rocm_json import looks_like_rocm, read_rocm_json
from desktop_app.telemetry.logs.smi_xml import read_smi_xml
from desktop_app.telemetry.logs.text_log import TextReader
from desktop_app.telemetry.logs.times import DateOrder, order_of

_ROOT: Final = re.compile(r"<nvidia_smi_log\b")
_FIRST_LINES: Final = 65536


class UnknownKindError(ValueError):
    """No tool that we know writes such a file; the text says what it looks like."""


@dataclass(frozen=True, slots=True)
class OpenLog:
    """``records`` come as they are read; ``notes`` and the kinds are whole after the last of them."""

    records: Iterator[LogRecord]
    notes: Notes
    kinds: dict[str, int]  # kind → line where it begins


def open_log(data: bytes, *, dates: DateOrder = DateOrder.UNKNOWN) -> OpenLog:
    """The reader for a file's content. Raises ``UnknownKindError``; ``ValueError`` for a damaged gzip file."""
    text = decoded(unpacked(data))
    notes = Notes()
    start = text.lstrip()[:_FIRST_LINES]
    if not start:
        raise UnknownKindError("is empty")
    if _ROOT.search(text) and start.startswith("<"):
        return OpenLog(read_smi_xml(text, notes), notes, {"nvidia-smi -q -x": 1})
    if start.startswith("<"):
        raise UnknownKindError("is XML or HTML, but not of nvidia-smi -q -x")
    if looks_like_rocm(text):
        return OpenLog(read_rocm_json(text, notes), notes, {"rocm-smi --json": 1})
    if start.startswith(("{", "[{", "[\n")):
        raise UnknownKindError("is JSON, but not of rocm-smi --json")
    if is_prometheus(start):
        return OpenLog(read_prometheus(text, notes), notes, {"Prometheus text": 1})
    order = dates if dates is not DateOrder.UNKNOWN else order_of(text)
    reader = TextReader(notes, order=order)
    return OpenLog(reader.read(text), notes, reader.sections)
