"""What ``floodmark estimate`` prints: on a terminal, in a file, or for another program."""

from __future__ import annotations

import json
import os
import shutil
from typing import Final, TextIO

from desktop_app.core.forecasts import Estimate
from desktop_app.core.units import format_bytes
from desktop_app.services.estimate_json import as_data
from desktop_app.services.estimate_order import EstimateOrder
from desktop_app.services.estimate_text import Heading, Terminal, as_text, describe

_SAMPLE: Final = "█▏▒░│└┘◂−"
_CLEAR: Final = "\r\x1b[K"


def as_json(estimate: Estimate, order: EstimateOrder) -> str:
    return json.dumps(as_data(estimate, order.spec, order.card.spec, risk=order.risk), ensure_ascii=False, indent=1)


def as_lines(estimate: Estimate, order: EstimateOrder, terminal: Terminal) -> str:
    return as_text(estimate, _heading(order), terminal, risk=order.risk)


def terminal_of(stream: TextIO) -> Terminal:
    """What ``stream`` can show. https://no-color.org: a NO_COLOR that is not empty means no colours."""
    is_terminal = stream.isatty()
    try:
        _SAMPLE.encode(stream.encoding or "ascii")
        unicode = True
    except (UnicodeEncodeError, LookupError):
        unicode = False
    color = is_terminal and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"
    return Terminal(width=shutil.get_terminal_size().columns, color=color, unicode=unicode)


class Waiting:
    """One line on a terminal that says how far the estimate is; nothing anywhere else. ``stop`` takes it away."""

    def __init__(self, stream: TextIO) -> None:
        self._stream: Final = stream if stream.isatty() and os.environ.get("TERM") != "dumb" else None
        self._say("tracing …")

    def __call__(self, estimate: Estimate) -> None:
        found = f"; ways to lower the peak: {len(estimate.levers)}" if estimate.levers else ""
        self._say(f"{estimate.verdict.value.replace('_', ' ')}; still tracing{found} …")

    def stop(self) -> None:
        self._say("")

    def _say(self, text: str) -> None:
        if self._stream is not None:
            self._stream.write(_CLEAR + text)
            self._stream.flush()


def _heading(order: EstimateOrder) -> Heading:
    spec = order.spec
    size = spec.image_size if order.config is None else order.config.image_size
    parts = [
        spec.model if order.config is None else order.config.model,
        f"batch {spec.batch_size}" + (f" × {spec.accumulation}" if spec.accumulation > 1 else ""),
        f"{size} px" if size else "",
        f"{spec.sequence_length} tokens" if spec.sequence_length else "",
        spec.precision,
        spec.optimizer or "",  # none named: that of the user's own function
        f"checkpointing {spec.checkpointing}" if spec.checkpointing != "none" else "",
        f"LoRA {spec.lora_rank}" if spec.lora_rank else "",
        f"{spec.sharding} over {spec.world_size} cards" if spec.world_size > 1 else "",
    ]
    card = order.card.spec
    simulated = "simulated " if order.is_simulated else ""
    return Heading(describe(parts), f"{simulated}{card.name} ({format_bytes(card.capacity_bytes)})")
