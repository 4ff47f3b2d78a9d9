"""``floodmark forecast``: a recorded run through the forecaster, answered row by row.

With ``as_json`` each alert is one line as soon as its row is read, and the last line is the summary: ``cause``,
``severity``, ``eta_steps`` and ``eta_interval`` are those of the first alert, at ``first_alert_step``; ``p_oom`` is the
forecast after the last row; all of them are null when there was no alert. ``at_end`` is the forecast after the last row
in any case; its ``p_oom`` is null where nothing can be known: no row, or no capacity and no cause that needs none.
"""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any, Final

from desktop_app.core.forecasts import Alert, Forecast
from desktop_app.core.units import format_bytes
from desktop_app.forecast.trace_replay import TraceReplay
from desktop_app.forecast.trace_rows import TraceRow
from desktop_app.services import forecast_text as words
from desktop_app.services.forecast_trace import TraceFile

SCHEMA: Final = 1
_TIMES: Final = frozenset({"t_s", "step_s"})


@dataclass(slots=True)
class _Tally:
    """What the summary needs. Alerts are counted, not kept."""

    first: Alert | None = None
    alerts: int = 0
    last_step: int | None = None
    causes: dict[str, int] = field(default_factory=dict)  # first step by cause
    times_known: bool = True

    def take(self, raised: tuple[Alert, ...], forecast: Forecast) -> None:
        """The first alert: of several in one row that of the cause with the largest share."""
        for alert in raised:
            self.alerts = max(self.alerts, alert.alert_id)  # numbered from 1; a raise in severity keeps its number
            self.causes.setdefault(alert.cause.value, alert.step)
        if self.first is None and raised:
            self.first = next((alert for alert in raised if alert.cause is forecast.cause), raised[0])


def forecast_trace(
    path: Path,
    *,
    as_json: bool,
    capacity_bytes: int | None = None,
    total_steps: int | None = None,
    steps_per_epoch: int | None = None,
    out: IO[str] | None = None,
    notes: IO[str] | None = None,
) -> None:
    """Read ``path`` to its end and tell every alert as it comes. ``ConfigError`` for a file that cannot be read."""
    out, notes = out or sys.stdout, notes or sys.stderr
    run = TraceReplay(capacity_bytes=capacity_bytes, total_steps=total_steps, steps_per_epoch=steps_per_epoch)
    with TraceFile(path) as trace:
        _note(trace, notes)
        tally = _Tally(times_known=not _TIMES.isdisjoint(trace.columns))
        with suppress(KeyboardInterrupt):  # the end of `tail -f`: what was seen until then is summed up
            for row in trace.rows():
                for line in _lines(run, row, tally, as_json=as_json):
                    print(line, file=out, flush=True)
    if run.rows and run.capacity_bytes is None:
        print("floodmark: no row says capacity_bytes, so nothing can be full; give --capacity.", file=notes)
    print(_summary_json(run, tally) if as_json else _summary_text(run, tally, trace), file=out, flush=True)


def _note(trace: TraceFile, notes: IO[str]) -> None:
    if trace.unknown_columns:
        print(f"floodmark: columns passed over: {', '.join(trace.unknown_columns)}.", file=notes)


def _lines(run: TraceReplay, row: TraceRow, tally: _Tally, *, as_json: bool) -> Iterator[str]:
    update = run.take(row)
    changes, forecast = update.changes, update.forecast
    tally.last_step = row.step if row.step is not None else forecast.step
    if not changes.raised and not changes.cleared:
        return
    tally.take(changes.raised, forecast)
    for alert in changes.raised:
        if as_json:
            yield _dumped(_alert(alert, forecast, tally))
        else:
            yield words.alert_lines(alert, times_known=tally.times_known)
    if not as_json:
        for alert in changes.cleared:
            yield words.over_line(alert, step=tally.last_step)


def _alert(alert: Alert, forecast: Forecast, tally: _Tally) -> dict[str, Any]:
    return {
        "kind": "alert",
        "alert_id": alert.alert_id,
        "t_s": alert.t_s if tally.times_known else None,
        "step": alert.step,
        "cause": alert.cause.value,
        "severity": alert.severity.value,
        "eta_steps": alert.eta_steps,
        "eta_interval": _pair(alert.eta_steps_low, alert.eta_steps_high),
        "eta_s": alert.eta_s if tally.times_known else None,
        "eta_s_interval": _pair(alert.eta_low_s, alert.eta_high_s) if tally.times_known else None,
        "p_oom": _chances(forecast),
        "cause_share": forecast.cause_share if forecast.cause is alert.cause else None,
        "action": alert.action,
        "evidence": dict(alert.evidence),
    }


def _summary_json(run: TraceReplay, tally: _Tally) -> str:
    first, end = tally.first, run.forecast
    return _dumped(
        {
            "kind": "summary",
            "schema": SCHEMA,
            "first_alert_step": first.step if first is not None else None,
            "cause": first.cause.value if first is not None else None,
            "severity": first.severity.value if first is not None else None,
            "eta_steps": first.eta_steps if first is not None else None,
            "eta_interval": _pair(first.eta_steps_low, first.eta_steps_high) if first is not None else None,
            "p_oom": _chances(end) if first is not None and _is_known(run) else None,
            "alerts": tally.alerts,
            "causes": dict(tally.causes),
            "rows": run.rows,
            "last_step": tally.last_step,
            "capacity_bytes": run.capacity_bytes,
            "at_end": _at_end(run),
        }
    )


def _at_end(run: TraceReplay) -> dict[str, Any]:
    end = run.forecast
    return {
        "p_oom": _chances(end) if _is_known(run) else None,
        "cause": end.cause.value if end.cause is not None else None,
        "severity": end.severity.value if end.severity is not None else None,
        "eta_steps": end.eta_steps,
        "eta_interval": _pair(end.eta_steps_low, end.eta_steps_high),
        "open_alerts": [alert.cause.value for alert in run.forecaster.open_alerts()],
    }


def _is_known(run: TraceReplay) -> bool:
    """Something can be said: main memory may be full on a card of unknown size."""
    return run.rows > 0 and (run.capacity_bytes is not None or run.forecast.cause is not None)


def _summary_text(run: TraceReplay, tally: _Tally, trace: TraceFile) -> str:
    rows = f"{trace.name}: {run.rows:,} rows"
    card = "" if run.capacity_bytes is None else f", card of {format_bytes(run.capacity_bytes)}"
    until = "" if tally.last_step is None else f", until step {tally.last_step:,}"
    if tally.first is None:
        verdict = "No alert."
    else:
        first = tally.first
        causes = ", ".join(tally.causes)
        verdict = f"First alert at step {first.step:,}: {first.cause.value}, {first.severity.value}. Causes: {causes}."
    outlook = words.outlook_line(run.forecast) if _is_known(run) else "P(out of memory): unknown"
    return f"{rows}{until}{card}. {verdict}\n{outlook}"


def _chances(forecast: Forecast) -> dict[str, float | None]:
    """Within so many steps, to the end of the epoch (null when epochs are not known), and of the run."""
    within: dict[str, float | None] = {str(steps): forecast.p_oom[steps] for steps in sorted(forecast.p_oom)}
    return within | {"epoch": forecast.p_oom_epoch, "run": forecast.p_oom_run}


def _pair(low: float | None, high: float | None) -> list[float] | None:
    return None if low is None or high is None else [low, high]


def _dumped(value: dict[str, Any]) -> str:
    return json.dumps(_finite(value), ensure_ascii=False, allow_nan=False)


def _finite(value: Any) -> Any:
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, dict):
        return {name: _finite(item) for name, item in value.items()}
    if isinstance(value, list):
        return [_finite(item) for item in value]
    return value
