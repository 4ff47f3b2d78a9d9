"""Which tool wrote a file, by its content, and the reader for it."""

from __future__ import annotations

import codecs
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final

from desktop_app.telemetry.logs import training_tables
from desktop_app.telemetry.logs.log_lines import GZIP, decoded, unpacked
from desktop_app.telemetry.logs.prometheus_text import is_prometheus, read_prometheus
from desktop_app.telemetry.logs.record import LogRecord, Notes
from desktop_app.telemetry.logs.rocm_json import looks_like_rocm, read_rocm_json
from desktop_app.telemetry.logs.smi_xml import read_smi_xml
from desktop_app.telemetry.logs.text_log import TextReader
from desktop_app.telemetry.logs.tfevents import KIND as EVENTS_KIND
from desktop_app.telemetry.logs.tfevents import looks_like_events, read_events, says_version
from desktop_app.telemetry.logs.times import DateOrder
from desktop_app.telemetry.logs.training_log import TrainingLog

_ROOT: Final = re.compile(r"<nvidia_smi_log\b")
_FIRST_LINES: Final = 65536
# How files begin that people take for logs. A pickle: protocol 2 and later.
_BINARY: Final = (
    (re.compile(rb"\x89PNG"), "a PNG image"),
    (re.compile(rb"\xff\xd8\xff"), "a JPEG image"),
    (re.compile(rb"%PDF-"), "a PDF document"),
    (re.compile(rb"PK\x03\x04"), "a zip archive, as checkpoints (.pt), .npz and .xlsx are"),
    (
        re.compile(rb"\x80[\x02-\x05]"),
        "a pickle (a recording of torch.cuda.memory is read by 'floodmark snapshot')",
    ),
    (
        re.compile(rb"SQLite format 3\x00"),
        "an SQLite database (a session of Floodmark is read by 'floodmark export')",
    ),
    (re.compile(rb"PAR1"), "a Parquet file, which can be exported as CSV"),
    (re.compile(rb":W&B"), "a run file of Weights & Biases, whose metrics can be exported as CSV"),
    (re.compile(rb"\x7fELF|MZ\x90"), "a program"),
    (
        re.compile(rb"\x28\xb5\x2f\xfd|\xfd7zXZ|BZh|7z\xbc\xaf"),
        "compressed in a way that is not read, and must be unpacked",
    ),
)
_CONTROL: Final = bytes(byte for byte in range(32) if byte not in b"\t\n\r\x1b\x0c\x08")
_MOST_CONTROL: Final = 0.1  # of the first 64 KiB; a damaged log has a few


class UnknownKindError(ValueError):
    """No tool that we know writes such a file; the text says what it looks like.

    ``suggests``: a list of what is read would help.
    """

    def __init__(self, text: str, *, suggests: bool = True) -> None:
        super().__init__(text)
        self.suggests = suggests


@dataclass(frozen=True, slots=True)
class OpenLog:
    """``records`` come as they are read; ``notes``, the kinds and ``training`` are whole after the last of them."""

    records: Iterator[LogRecord]
    notes: Notes
    kinds: dict[str, int]  # kind → line where it begins
    training: TrainingLog = field(default_factory=lambda: TrainingLog(Notes()))


def open_log(data: bytes, *, dates: DateOrder = DateOrder.UNKNOWN) -> OpenLog:
    """The reader for a file's content. Raises ``UnknownKindError``; ``ValueError`` for a damaged gzip file."""
    notes = Notes()
    content = unpacked(data)
    if looks_like_events(content):
        log = read_events(content, notes)
        if not log and not log.kept_out and not says_version(content):
            raise UnknownKindError("holds records of TensorFlow, but no events of TensorBoard")
        return OpenLog(iter(()), notes, {EVENTS_KIND: 1}, log)
    refuse_binary(content)
    text = decoded(content)
    start = text[:_FIRST_LINES].lstrip() or text.lstrip()[:_FIRST_LINES]
    if not start:
        raise UnknownKindError("is empty: nothing has been written to it yet", suggests=False)
    if start.startswith("<") and _ROOT.search(text):
        return OpenLog(read_smi_xml(text, notes), notes, {"nvidia-smi -q -x": 1})
    if start.startswith("<"):
        raise UnknownKindError("is XML or HTML, but not of nvidia-smi -q -x")
    if looks_like_rocm(text):
        return OpenLog(read_rocm_json(text, notes), notes, {"rocm-smi --json": 1})
    training = _training_table(text, start, notes)
    if training is not None:
        kind, log = training
        return OpenLog(iter(()), notes, {kind: 1}, log)
    if start.startswith(("{\n", "{\r", '{"', "[{", "[\n")):
        raise UnknownKindError("is JSON, but neither of rocm-smi --json nor with steps of a training")
    if is_prometheus(start):
        return OpenLog(read_prometheus(text, notes), notes, {"Prometheus text": 1})
    reader = TextReader(notes, order=dates)
    return OpenLog(reader.read(text), notes, reader.sections, reader.training.log)


def _training_table(text: str, start: str, notes: Notes) -> tuple[str, TrainingLog] | None:
    if start.startswith("{"):
        if training_tables.opens_json_lines(start):
            return training_tables.LINES_KIND, training_tables.read_json_lines(text, notes)
        state = training_tables.read_trainer_state(text, notes)
        return None if state is None else (training_tables.STATE_KIND, state)
    columns = training_tables.metrics_header(start.split("\n", 1)[0])
    if columns is None:
        return None
    return training_tables.CSV_KIND, training_tables.read_metrics_csv(text, columns, notes)


def refuse_binary(content: bytes) -> None:
    """Raises ``UnknownKindError`` for a file that starts as no text and no packed text does."""
    start = content[:_FIRST_LINES]
    for pattern, what in _BINARY:
        if pattern.match(start):
            raise UnknownKindError(f"is {what}: no log (floodmark import --help names what is read)", suggests=False)
    if start.startswith((GZIP, codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        return
    strange = len(start) - len(start.translate(None, _CONTROL))
    if strange > _MOST_CONTROL * len(start):
        raise UnknownKindError("is binary, not the text of a tool")
