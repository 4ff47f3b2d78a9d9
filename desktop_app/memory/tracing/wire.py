"""What goes through the pipe between our interpreter and the one that traces: one JSON object per line.

Standard library only. A frame begins with ``MARK``: whatever else comes through the pipe before the tracing
interpreter has claimed it (a ``sitecustomize`` that prints) is passed over.
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final

from desktop_app.core.steps import Category, Phase
from desktop_app.memory.card_spec import CardSpec
from desktop_app.memory.convolutions import ConvolutionCall
from desktop_app.memory.trace_data import ModuleFacts, Trace, TraceEvent
from desktop_app.memory.trace_errors import CODES, TracerError, UntraceableError

MARK: Final = b"\x1e"  # ASCII record separator
_UNTRACEABLE: Final = "untraceable"
_JSON: Final = (str, int, float, list)
# Columns of texts, that repeat: sent as positions in a table of their own, with what makes a value of a text.
_TABLES: Final[Mapping[str, Callable[[str], Any]]] = {"op": str, "phase": Phase, "category": Category, "module": str}


def pack(message: Mapping[str, Any]) -> bytes:
    """One frame."""
    return MARK + json.dumps(message, separators=(",", ":")).encode() + b"\n"


def unpack(line: bytes) -> dict[str, Any] | None:
    """The message of a frame; ``None`` for a line that is none."""
    if not line.startswith(MARK):
        return None
    try:
        message = json.loads(line[len(MARK) :])
    except ValueError:
        return None
    return message if isinstance(message, dict) else None


def trace_as_json(trace: Trace) -> dict[str, Any]:
    """The trace with its events in columns. ``trace_from_json`` reads it back."""
    columns = {
        name: _table(column) if name in _TABLES else list(column)
        for name, column in zip(TraceEvent._fields, _columns(trace.events), strict=True)
    }
    others = {item.name: getattr(trace, item.name) for item in dataclasses.fields(trace) if item.name != "events"}
    return {**others, "guesses": dict(trace.guesses), "events": columns}


def trace_from_json(values: Mapping[str, Any]) -> Trace:
    columns = values["events"]
    events = zip(
        *(
            _from_table(columns[name], _TABLES[name]) if name in _TABLES else columns[name]
            for name in TraceEvent._fields
        ),
        strict=True,
    )
    read: dict[str, Any] = {
        **values,
        "events": tuple(map(TraceEvent._make, events)),
        "convolutions": tuple(_convolution(item) for item in values["convolutions"]),
        "modules": tuple(ModuleFacts(*item) for item in values["modules"]),
        "kernels_assumed": tuple(values["kernels_assumed"]),
        "warnings": tuple(values["warnings"]),
    }
    return Trace(**read)


def card_as_json(card: CardSpec) -> dict[str, Any]:
    return dataclasses.asdict(card)


def card_from_json(values: Mapping[str, Any]) -> CardSpec:
    capability = values.get("compute_capability")
    return CardSpec(**{**values, "compute_capability": None if capability is None else tuple(capability)})


def error_as_json(error: TracerError | UntraceableError) -> dict[str, Any]:
    """An error as it crosses the border: its kind, its line, its figures."""
    if isinstance(error, UntraceableError):
        return {"kind": _UNTRACEABLE, "op": error.op, "detail": error.detail, "facts": error.facts}
    return {"kind": error.kind, "message": error.message, "params": _plain(error.params)}


def error_from_json(values: Mapping[str, Any]) -> TracerError | UntraceableError:
    if values["kind"] == _UNTRACEABLE:
        return UntraceableError(values["op"], values["detail"], facts=values.get("facts"))
    kind = values["kind"] if values["kind"] in CODES else "failed"
    return TracerError(kind, values["message"], params=dict(values.get("params", {})))


def _columns(events: Sequence[TraceEvent]) -> Iterable[tuple[Any, ...]]:
    return zip(*events, strict=True) if events else ((),) * len(TraceEvent._fields)


def _table(column: Sequence[str]) -> dict[str, Any]:
    """``{"values": [each text once], "at": [its position for each event]}``."""
    positions: dict[str, int] = {}
    at = [positions.setdefault(text, len(positions)) for text in column]
    return {"values": [str(text) for text in positions], "at": at}


def _from_table(table: Mapping[str, Any], make: Callable[[str], Any]) -> list[Any]:
    made = [make(text) for text in table["values"]]
    return [made[position] for position in table["at"]]


def _convolution(values: Sequence[Any]) -> ConvolutionCall:
    return ConvolutionCall._make(tuple(value) if isinstance(value, list) else value for value in values)


def _plain(params: Mapping[str, object]) -> dict[str, object]:
    """Only what JSON holds; the rest as text."""
    return {
        name: value if isinstance(value, str | int | float | list) else str(value) for name, value in params.items()
    }
