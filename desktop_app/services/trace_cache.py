"""Traces that were made already: the pass that looks for levers begins where the verdict ended, and forms go back."""

from __future__ import annotations

import dataclasses
import json
from collections import OrderedDict
from typing import Final

from desktop_app.memory.card_spec import CardSpec
from desktop_app.memory.trace_data import Trace
from desktop_app.memory.training_spec import TrainingSpec

_MOST_EVENTS: Final = 400_000  # about 60 MB; a ResNet-50 has 9,000


class TraceCache:
    """The newest traces, up to a number of events in all. Not thread-safe: one thread estimates."""

    def __init__(self, most_events: int = _MOST_EVENTS) -> None:
        self._most_events: Final = most_events
        self._traces: OrderedDict[str, Trace] = OrderedDict()
        self._events = 0

    def get(self, spec: TrainingSpec, card: CardSpec) -> Trace | None:
        key = _key(spec, card)
        if key in self._traces:
            self._traces.move_to_end(key)
        return self._traces.get(key)

    def put(self, spec: TrainingSpec, card: CardSpec, trace: Trace) -> None:
        key = _key(spec, card)
        if key in self._traces:
            return
        self._traces[key] = trace
        self._events += len(trace.events)
        while self._events > self._most_events and len(self._traces) > 1:
            self._events -= len(self._traces.popitem(last=False)[1].events)

    def clear(self) -> None:
        self._traces.clear()
        self._events = 0


def _key(spec: TrainingSpec, card: CardSpec) -> str:
    return json.dumps([spec.as_json(), dataclasses.astuple(card)], sort_keys=True, default=str)
