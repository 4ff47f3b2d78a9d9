"""The report: the keys that are promised, plain numbers, and the exit codes."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from desktop_app.core.errors import ExitCode, FloodmarkError
from desktop_app.core.forecasts import Verdict
from desktop_app.core.steps import RunState, RunStatus
from desktop_app.core.store import Cell
from desktop_app.core.telemetry import Reading, Reason, SelfCost
from desktop_app.core.units import GIB, MIB
from desktop_app.services.facade import EstimateState, EstimateStatus
from desktop_app.services.report import exit_code, make_report, write_report

from .doubles import make_alert, make_card, make_estimate, make_oom

READINGS = {
    "power_w": Reading(61.0),
    "utilization_percent": Reading(0.0),
    "fan_percent": Reading(None, Reason.NOT_SUPPORTED),
}


def fake_session(status: RunStatus, **parts: Any) -> Any:
    """The cells that a report reads."""
    card = parts.get("card", make_card())
    return SimpleNamespace(
        run=Cell(status),
        selected_card=lambda: card,
        cost=Cell(SelfCost(cpu_percent=2.345678901, rss_bytes=400 * MIB, sampling_hz=5.0, samples=300, late=2)),
        readings=Cell({} if card is None else {card.uuid: READINGS}),
        estimate=Cell(parts.get("estimate", EstimateStatus(EstimateState.READY, make_estimate()))),
        raised_alerts=lambda: parts.get("alerts", ()),
        forecast_at=parts.get("forecast_at", lambda _: None),
        folder=parts.get("folder"),
    )


def test_it_has_every_key_that_is_promised() -> None:
    """The schema of the command line's documentation, key by key."""
    status = RunStatus(
        RunState.OUT_OF_MEMORY,
        run_name="leak",
        step=96,
        epoch=3,
        epochs_done=2,
        loss_first=0.69314718,
        loss_last=float("nan"),
        accuracy_best=0.921875,
        oom=make_oom(step=97, cause="leak"),
    )
    alerts = (make_alert(step=35, t_s=3.14159), make_alert(step=60, eta_s=float("inf")))
    report = make_report(
        fake_session(
            status,
            alerts=alerts,
            forecast_at=lambda step: 31.0 if step == 66 else None,
            folder=SimpleNamespace(path=Path("/data/sessions/x")),
        ),
        scenario="leak",
    )
    assert report["schema"] == 1
    assert report["scenario"] == "leak"
    assert report["card"] == {
        "name": "GeForce GTX 1660",
        "simulated": True,
        "capacity_bytes": 6 * GIB - 128 * MIB,
    }
    assert (report["steps"], report["epochs"]) == (96, 2)
    assert report["loss_first"] == 0.693147
    assert report["loss_last"] is None
    assert report["val_accuracy_best"] == 0.921875
    assert report["telemetry"] == {
        "samples": 300,
        "late": 2,
        "fields_available": ["power_w", "utilization_percent"],
        "fields_missing": {"fan_percent": "not_supported"},
    }
    assert report["estimate"]["device_peak_bytes"] == {"p50": 500 * MIB, "p90": 600 * MIB, "p95": 700 * MIB}
    assert (report["estimate"]["verdict"], report["estimate"]["largest_batch"]) == ("fits", 4096)
    assert [
        {key: alert[key] for key in ("t_s", "step", "cause", "severity", "eta_steps", "eta_s")}
        for alert in report["alerts"]
    ] == [
        {"t_s": 3.142, "step": 35, "cause": "leak", "severity": "likely", "eta_steps": 120.0, "eta_s": 12.0},
        {"t_s": 3.0, "step": 60, "cause": "leak", "severity": "likely", "eta_steps": 120.0, "eta_s": None},
    ]
    assert report["oom"] == {
        "t_s": 4.5,
        "step": 97,
        "phase": "backward",
        "message": "CUDA out of memory. Tried to allocate 20.00 MiB.",
        "cause": "leak",
        "requested_bytes": 20 * MIB,
        "largest_owners": [],
        "batch_size": None,
        "rescued_batch_size": None,
        "least_bytes": None,
        "room_bytes": None,
        "fits_no_batch": False,
    }
    assert report["forecast_half_way"] == {"step": 66, "eta_steps": 31.0, "true_steps": 31}
    assert report["cost"] == {"cpu_percent": 2.34568, "rss_bytes": 400 * MIB}
    assert report["error"] is None
    assert report["session"] == "/data/sessions/x"
    assert report["exit_code"] == 3


def test_what_there_was_not_is_null(tmp_path: Path) -> None:
    status = RunStatus(RunState.FAILED, error_code="data.one_class", error_message="only one class")
    report = make_report(fake_session(status, card=None, estimate=EstimateStatus(EstimateState.NONE)), scenario=None)
    for key in (
        "scenario",
        "card",
        "loss_first",
        "val_accuracy_best",
        "estimate",
        "oom",
        "forecast_half_way",
        "session",
    ):
        assert report[key] is None, key
    assert report["alerts"] == []
    assert report["error"] == {"code": "data.one_class", "message": "only one class"}
    assert report["exit_code"] == 2
    write_report(report, tmp_path / "r.json")
    assert json.loads((tmp_path / "r.json").read_text(encoding="utf-8")) == report


def test_no_number_can_keep_a_report_from_being_written(tmp_path: Path) -> None:
    odd = replace(make_estimate(), fits_probability=math.nan, verdict=Verdict.CANNOT_SAY, largest_batch=None)
    status = RunStatus(RunState.FINISHED, loss_first=math.inf, accuracy_best=-math.inf)
    report = make_report(fake_session(status, estimate=EstimateStatus(EstimateState.READY, odd)), scenario=None)
    write_report(report, tmp_path / "r.json")
    assert report["estimate"]["fits_probability"] is None


@pytest.mark.parametrize("step", [30, 31])
def test_without_steps_between_alert_and_end_there_is_no_half_way(step: int) -> None:
    status = RunStatus(RunState.OUT_OF_MEMORY, oom=make_oom(step=step))
    report = make_report(fake_session(status, alerts=(make_alert(step=30),)), scenario=None)
    assert report["forecast_half_way"] is None


@pytest.mark.parametrize("place", ["missing/r.json", "."])
def test_a_report_that_cannot_be_written_is_one_line(tmp_path: Path, place: str) -> None:
    with pytest.raises(FloodmarkError) as caught:
        write_report({"schema": 1}, tmp_path / place)
    assert caught.value.code == "report.unwritable"
    assert str(tmp_path) in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("state", "error_code", "code"),
    [
        (RunState.FINISHED, None, ExitCode.DONE),
        (RunState.STOPPED, None, ExitCode.DONE),
        (RunState.IDLE, None, ExitCode.DONE),
        (RunState.OUT_OF_MEMORY, None, ExitCode.OUT_OF_MEMORY),
        (RunState.FAILED, "config.range", ExitCode.USAGE),
        (RunState.FAILED, "data.empty_class", ExitCode.USAGE),
        (RunState.FAILED, "data_folder.full", ExitCode.RUN_FAILED),
        (RunState.FAILED, "device.no_cuda", ExitCode.NO_DEVICE),
        (RunState.FAILED, "training.loss_not_finite", ExitCode.RUN_FAILED),
        (RunState.FAILED, None, ExitCode.RUN_FAILED),
    ],
)
def test_exit_codes(state: RunState, error_code: str | None, code: ExitCode) -> None:
    assert exit_code(RunStatus(state, error_code=error_code)) is code


def test_what_the_run_survived_is_told_with_what_it_went_on_with() -> None:
    rescue = replace(
        make_oom(step=3, cause="batch_shape"),
        batch_size=64,
        rescued_batch_size=32,
        largest_owners=(("activations", 3 * GIB), ("parameters", MIB)),
    )
    status = RunStatus(RunState.FINISHED, step=10, batch_size=32, accumulation=2, rescues=(rescue,))
    report = make_report(fake_session(status), scenario=None)
    assert (report["exit_code"], report["oom"]) == (0, None)
    assert (report["batch_size"], report["accumulation"]) == (32, 2)
    (told,) = report["rescues"]
    assert (told["step"], told["phase"], told["cause"]) == (3, "backward", "batch_shape")
    assert (told["batch_size"], told["rescued_batch_size"]) == (64, 32)
    assert told["largest_owners"] == [["activations", 3 * GIB], ["parameters", MIB]]
    json.dumps(report, allow_nan=False)
