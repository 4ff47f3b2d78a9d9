"""The report of one run as JSON: what happened, in the terms of the command line's documentation."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from desktop_app.core.errors import ExitCode, FloodmarkError
from desktop_app.core.forecasts import Alert, Estimate
from desktop_app.core.steps import OomReport, RunState, RunStatus
from desktop_app.core.telemetry import Card, Reading, SelfCost
from desktop_app.services.whole_file import whole_file

if TYPE_CHECKING:
    from desktop_app.services.session import Session

SCHEMA: Final = 1
# By the first part of an error's code.
_EXIT_CODES: Final = {"config": ExitCode.USAGE, "data": ExitCode.USAGE, "device": ExitCode.NO_DEVICE}


def make_report(session: Session, *, scenario: str | None) -> dict[str, Any]:
    """Everything the report says, from the session's cells. Sizes in bytes, times in seconds of the session's clock."""
    status = session.run.get()
    card = session.selected_card()
    return {
        "schema": SCHEMA,
        "scenario": scenario,
        "run_name": status.run_name,
        "state": status.state.value,
        "card": _card(card),
        "steps": status.step,
        "epochs": status.epochs_done,
        "checkpoint": status.checkpoint_path,
        "skipped_files": status.skipped_files,
        "loss_first": _plain(status.loss_first),
        "loss_last": _plain(status.loss_last),
        "val_accuracy_best": _plain(status.accuracy_best),
        "telemetry": _telemetry(session.cost.get(), session.readings.get().get(card.uuid, {}) if card else {}),
        "estimate": _estimate(session.estimate.get().estimate),
        "alerts": [_alert(alert) for alert in session.raised_alerts()],
        "oom": _oom(status.oom),
        "rescues": [_oom(rescue) for rescue in status.rescues],
        "batch_size": status.batch_size,
        "accumulation": status.accumulation,
        "forecast_half_way": _half_way(session, status),
        "cost": _cost(session.cost.get()),
        "error": None if status.error_code is None else {"code": status.error_code, "message": status.error_message},
        "session": None if session.folder is None else str(session.folder.path),
        "exit_code": int(exit_code(status)),
    }


def write_report(report: Mapping[str, Any], path: Path) -> None:
    """Write the report. ``FloodmarkError`` with one line when the file cannot be written."""
    try:
        with whole_file(path) as file:
            file.write(json.dumps(report, ensure_ascii=False, indent=1, allow_nan=False) + "\n")
    except OSError as error:
        raise FloodmarkError(
            "report.unwritable", f"Cannot write the report {path}: {error.strerror or error}. Choose another file."
        ) from None


def exit_code(status: RunStatus) -> ExitCode:
    """0 done (also when stopped on request), 3 out of memory, 2 a configuration or data that cannot be run, 4 no such
    device, 1 failed in any other way."""
    if status.state is RunState.OUT_OF_MEMORY:
        return ExitCode.OUT_OF_MEMORY
    if status.state is RunState.FAILED:
        room, _, _ = (status.error_code or "").partition(".")
        return _EXIT_CODES.get(room, ExitCode.RUN_FAILED)
    return ExitCode.DONE


def _card(card: Card | None) -> dict[str, Any] | None:
    if card is None:
        return None
    return {"name": card.name, "simulated": card.simulated, "capacity_bytes": card.capacity_bytes}


def _telemetry(cost: SelfCost, readings: Mapping[str, Reading]) -> dict[str, Any]:
    available = sorted(name for name, reading in readings.items() if reading.value is not None)
    missing = {name: str(reading.reason) for name, reading in sorted(readings.items()) if reading.value is None}
    return {
        "samples": cost.samples,
        "late": cost.late,
        "fields_available": available,
        "fields_missing": missing,
    }


def _estimate(estimate: Estimate | None) -> dict[str, Any] | None:
    if estimate is None:
        return None
    return {
        "device_peak_bytes": asdict(estimate.device_peak_bytes),
        "live_peak_bytes": asdict(estimate.live_peak_bytes),
        "reserved_peak_bytes": asdict(estimate.reserved_peak_bytes),
        "capacity_bytes": estimate.capacity_bytes,
        "fits_probability": _plain(estimate.fits_probability),
        "verdict": estimate.verdict.value,
        "batch_size": estimate.batch_size,
        "largest_batch": estimate.largest_batch,
        "peak_phase": estimate.peak_phase.value,
        "rung": estimate.rung,
        "seconds": round(estimate.seconds, 3),
        "warnings": list(estimate.warnings),
    }


def _alert(alert: Alert) -> dict[str, Any]:
    return {
        "t_s": round(alert.t_s, 3),
        "step": alert.step,
        "cause": alert.cause.value,
        "severity": alert.severity.value,
        "eta_steps": _plain(alert.eta_steps),
        "eta_steps_interval": [_plain(alert.eta_steps_low), _plain(alert.eta_steps_high)],
        "eta_s": _plain(alert.eta_s),
    }


def _oom(oom: OomReport | None) -> dict[str, Any] | None:
    if oom is None:
        return None
    return {
        "t_s": round(oom.t_s, 3),
        "step": oom.step,
        "phase": oom.phase.value,
        "message": oom.message,
        "cause": oom.cause,
        "requested_bytes": oom.requested_bytes,
        "largest_owners": [list(owner) for owner in oom.largest_owners],
        "batch_size": oom.batch_size,
        "rescued_batch_size": oom.rescued_batch_size,
        "least_bytes": oom.least_bytes,
        "room_bytes": oom.room_bytes,
        "fits_no_batch": oom.fits_no_batch,
    }


def _half_way(session: Session, status: RunStatus) -> dict[str, Any] | None:
    """What the forecast said half-way between the first alert and the out-of-memory error, beside the truth."""
    alerts = session.raised_alerts()
    if status.oom is None or not alerts or status.oom.step - alerts[0].step < 2:
        return None
    step = (alerts[0].step + status.oom.step) // 2
    eta_steps = session.forecast_at(step)
    return {"step": step, "eta_steps": _plain(eta_steps), "true_steps": status.oom.step - step}


def _cost(cost: SelfCost) -> dict[str, Any]:
    return {"cpu_percent": _plain(cost.cpu_percent), "rss_bytes": cost.rss_bytes}


def _plain(value: float | None) -> float | None:
    """Six significant digits; unknown and not finite are null."""
    if value is None or not math.isfinite(value):
        return None
    return float(f"{value:.6g}")
