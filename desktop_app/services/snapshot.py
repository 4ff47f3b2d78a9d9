"""``floodmark snapshot``: read a recording, study it, and hold it against a training."""

from __future__ import annotations

import argparse

from desktop_app.memory.snapshot import Snapshot, read_snapshot
from desktop_app.memory.snapshot_compare import Comparison, compare_with_trace
from desktop_app.memory.snapshot_findings import study
from desktop_app.services.estimate_text import Terminal
from desktop_app.services.snapshot_json import as_json
from desktop_app.services.snapshot_text import as_text


def examine(options: argparse.Namespace, terminal: Terminal) -> str:
    """What ``floodmark snapshot`` prints. Raises ``FloodmarkError`` in one line for whatever is wrong."""
    compared = options.config is not None or options.model is not None
    snapshot = read_snapshot(options.file, device=options.device)
    findings = study(snapshot)
    comparison = _compare(snapshot, options) if compared else None
    if options.json:
        return as_json(findings, comparison, top=options.top)
    return as_text(findings, comparison, terminal, top=options.top)


def _compare(snapshot: Snapshot, options: argparse.Namespace) -> Comparison:
    from desktop_app.memory.tracer_process import TracerProcess
    from desktop_app.services.estimate_order import make_order

    order = make_order(options)
    with TracerProcess(order.python, time_limit_s=order.time_limit_s) as tracer:
        return compare_with_trace(snapshot, tracer.trace(order.spec, order.card.spec, rung=order.rung))
