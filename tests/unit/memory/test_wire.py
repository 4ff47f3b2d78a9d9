"""What crosses the border between the interpreters comes out as it went in."""

from __future__ import annotations

import dataclasses
import json
from typing import Any, get_type_hints

import pytest

from desktop_app.core.errors import ExitCode
from desktop_app.core.steps import Category, Phase
from desktop_app.memory.card_spec import CardSpec
from desktop_app.memory.convolutions import ConvolutionCall
from desktop_app.memory.trace_data import ModuleFacts, Trace, TraceEvent
from desktop_app.memory.trace_errors import CODES, TracerError, UntraceableError
from desktop_app.memory.tracing import wire

CALL = ConvolutionCall("forward", "float32", 4, 3, 8, (32, 32), (16, 16), (3, 3), (2, 2), (1, 1), 1, True)
SAMPLES: dict[str, Any] = {
    "events": (
        TraceEvent(1, 7, "aten.add", Phase.FORWARD, 1, Category.ACTIVATIONS, "layer.0", 0),
        TraceEvent(2, 1 << 40, "to", Phase.BUILD, 0, Category.PARAMETERS),
        TraceEvent(-1, 0, "", Phase.BACKWARD, 1, Category.ACTIVATIONS),
    ),
    "batch_size": 4,
    "convolutions": (CALL,),
    "modules": (ModuleFacts("", "Net", 3), ModuleFacts("层", "Linear", 0)),
    "rung": "shim",
    "kernels_assumed": ("attention: flash",),
    "guesses": {"aten.item": 3},
    "warnings": ("odd",),
    "torch_version": "2.13.0",
    "optimizer": "adamw",
    "seconds": 1.25,
}


def through(message: dict[str, Any]) -> dict[str, Any]:
    back = wire.unpack(wire.pack(message))
    assert back is not None
    return back


def test_every_field_of_a_trace_comes_through() -> None:
    """A field that is added to the trace has to be carried too: it is missing here until it has a sample."""
    trace = Trace(**SAMPLES)
    back = wire.trace_from_json(through(wire.trace_as_json(trace)))
    for field in dataclasses.fields(Trace):
        assert SAMPLES[field.name] != field.default
        assert getattr(back, field.name) == SAMPLES[field.name], field.name
    for event, sent in zip(back.events, SAMPLES["events"], strict=True):
        assert [type(value) for value in event] == [type(value) for value in sent]
    assert get_type_hints(TraceEvent).keys() == set(TraceEvent._fields)


def test_a_trace_without_events_comes_through() -> None:
    assert wire.trace_from_json(through(wire.trace_as_json(Trace((), 1)))).events == ()


@pytest.mark.parametrize("capability", [(8, 6), None])
def test_a_card_comes_through(capability: tuple[int, int] | None) -> None:
    card = CardSpec("Card", 1 << 33, 1 << 34, "Ampere", capability, 82)
    assert wire.card_from_json(through(wire.card_as_json(card))) == card


def test_errors_come_through_with_kind_line_and_figures() -> None:
    sent = TracerError("old_torch", "too old", params={"torch": "2.5", "wanted": [2, 6], "path": ValueError("x")})
    back = wire.error_from_json(through(wire.error_as_json(sent)))
    assert isinstance(back, TracerError)
    assert (back.kind, back.code, back.message, back.exit_code) == (
        "old_torch",
        "trace.old_torch",
        "too old",
        ExitCode.USAGE,
    )
    assert back.params == {"torch": "2.5", "wanted": [2, 6], "path": "x"}
    op = wire.error_from_json(through(wire.error_as_json(UntraceableError("aten.odd", "why"))))
    assert isinstance(op, UntraceableError)
    assert (op.op, op.detail) == ("aten.odd", "why")
    assert wire.error_from_json({"kind": "of a newer version", "message": "m"}).args == ("m",)


def test_only_frames_are_read() -> None:
    for line in (b"", b"hello\n", b'{"id": 1}\n', wire.MARK + b"{torn\n", wire.MARK + json.dumps([1]).encode()):
        assert wire.unpack(line) is None


def test_unknown_kinds_of_errors_are_refused_where_they_are_made() -> None:
    with pytest.raises(ValueError, match="unknown kind"):
        TracerError("odd", "no")
    assert {TracerError(kind, "x").exit_code for kind in CODES} == {ExitCode.USAGE, ExitCode.RUN_FAILED}
