"""Which tool wrote a file, by its content, and the reader for it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from desktop_app.telemetry.logs.log_lines import decoded, unpacked
from desktop_app.telemetry.logs.record import LogRecord, Notes
from desktop_app.telemetry.logs.smi_xml import read_smi_xml
from desktop_app.telemetry.logs.text_log import TextReader
from desktop_app.telemetry.logs.times import DateOrder, order_of


class UnknownKindError(ValueError):
    """No tool that we know writes such a file; the text says what it looks like and what to do."""


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
    start = text.lstrip()[:4096]
    if not start:
        raise UnknownKindError("is empty")
    if start.startswith("<"):
        if "<nvidia_smi_log" not in text:
            raise UnknownKindError("is XML, but not of nvidia-smi -q -x")
        return OpenLog(read_smi_xml(text, notes), notes, {"nvidia-smi -q -x": 1})
    order = dates if dates is not DateOrder.UNKNOWN else order_of(text)
    reader = TextReader(notes, order=order)
    return OpenLog(reader.read(text), notes, reader.sections)
