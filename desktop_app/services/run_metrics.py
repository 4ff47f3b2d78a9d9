"""The run of a session, its forecast and its estimate as families of metrics, and the program itself."""

from __future__ import annotations

from typing import Final

from desktop_app import __version__
from desktop_app.core.forecasts import AlertSeverity, Cause
from desktop_app.core.steps import RunState
from desktop_app.services.card_metrics import Families
from desktop_app.services.facade import Workspace
from desktop_app.telemetry.metric_names import COUNTER, GAUGE

_HORIZONS: Final = (1, 10, 100)
_ALERTS: Final = (AlertSeverity.LIKELY, AlertSeverity.IMMINENT)  # ``WATCH`` is none


def add_program(families: Families, session: Workspace) -> None:
    """The version and what watching costs."""
    cost = session.cost.get()
    families.add("floodmark_build_info", "Version of Floodmark.", 1.0, kind=GAUGE, labels={"version": __version__})
    for name, text, value, kind in (
        ("floodmark_samples_total", "Readings of cards so far.", cost.samples, COUNTER),
        ("floodmark_late_samples_total", "Readings that came late or not at all.", cost.late, COUNTER),
        ("floodmark_sampling_hertz", "Readings of a card in a second.", cost.sampling_hz, GAUGE),
    ):
        families.add(name, text, float(value), kind=kind, labels={})


def add_run(families: Families, session: Workspace) -> None:
    """The run that is on or was last. Before the first there is nothing to say, and nothing is said."""
    status = session.run.get()
    if status.state is RunState.IDLE:
        return
    labels = {"run": status.run_name}

    def gauge(name: str, text: str, value: float | None) -> None:
        families.add(f"floodmark_{name}", text, value, kind=GAUGE, labels=labels)

    for state in RunState:
        now = 1.0 if state is status.state else 0.0
        families.add(
            "floodmark_run_state",
            "1 for the state of the run.",
            now,
            kind=GAUGE,
            labels={**labels, "state": state.value},
        )
    gauge("run_step", "Optimizer steps so far.", status.step)
    gauge("run_steps_planned", "Optimizer steps of the whole run.", status.total_steps)
    gauge("run_epoch", "Epoch under way, from 1.", status.epoch or None)
    gauge("run_loss", "Loss of the training, as logged last.", status.loss_last)
    gauge("run_accuracy_ratio", "Accuracy on the validation data, as measured last.", status.accuracy_last)
    gauge("run_batch_samples", "Samples of a micro-batch.", status.batch_size or None)
    gauge("run_accumulation", "Micro-batches of one optimizer step.", status.accumulation)
    gauge("run_rescues", "Out-of-memory errors that the run survived.", len(status.rescues))
    if status.state.active:
        gauge("run_samples_per_second", "Samples a second.", status.samples_per_s)
        gauge("run_eta_seconds", "Time to the end of the run.", status.eta_s)
        _add_memory(families, session, labels)
        _add_forecast(families, session, labels)
    _add_alerts(families, session, labels)
    _add_estimate(families, session)


def _add_memory(families: Families, session: Workspace, labels: dict[str, str]) -> None:
    memory = session.memory.get()
    if memory is None:
        return
    for name, text, value in (
        ("live", "Memory in allocated blocks (torch: allocated).", memory.live_bytes),
        ("live_peak", "The most that was live in the last step.", memory.live_peak_bytes),
        ("reserved", "Memory the caching allocator holds (torch: reserved).", memory.reserved_bytes),
        ("reserved_peak", "The most that was reserved in the last step.", memory.reserved_peak_bytes),
        ("returnable", "Reserved memory in wholly free segments.", memory.returnable_bytes),
        ("idle_split", "Idle memory in pieces that cannot be given back.", memory.idle_split_bytes),
    ):
        families.add(f"floodmark_memory_{name}_bytes", text, float(value), kind=GAUGE, labels=labels)
    text = "Allocations that had to free idle memory first."
    families.add("floodmark_alloc_retries_total", text, float(memory.alloc_retries), kind=COUNTER, labels=labels)


def _add_forecast(families: Families, session: Workspace, labels: dict[str, str]) -> None:
    forecast = session.forecast.get()
    if forecast is None:
        return
    name, text = (
        "floodmark_oom_probability",
        "Probability that memory runs out: within so many steps, the epoch, the run.",
    )
    for steps in _HORIZONS:
        chance = forecast.p_oom.get(steps)
        families.add(name, text, chance, kind=GAUGE, labels={**labels, "within": f"{steps}_steps"})
    families.add(name, text, forecast.p_oom_epoch, kind=GAUGE, labels={**labels, "within": "epoch"})
    families.add(name, text, forecast.p_oom_run, kind=GAUGE, labels={**labels, "within": "run"})
    for percentile, eta_s in (("10", forecast.eta_low_s), ("50", forecast.eta_s), ("90", forecast.eta_high_s)):
        text = "Time until memory runs out, while that is forecast."
        families.add("floodmark_oom_eta_seconds", text, eta_s, kind=GAUGE, labels={**labels, "percentile": percentile})
    for percentile, size in (("50", forecast.flood_low_bytes), ("95", forecast.flood_high_bytes)):
        text = "Forecast peak of the card's memory still to come: the flood mark."
        families.add("floodmark_flood_mark_bytes", text, size, kind=GAUGE, labels={**labels, "percentile": percentile})


def _add_alerts(families: Families, session: Workspace, labels: dict[str, str]) -> None:
    """A zero here is a fact: the causes are known, and none of the others has an alert."""
    held = {(alert.cause, alert.severity) for alert in session.alerts.get() if alert.cleared_t_s is None}
    for cause in Cause:
        for severity in _ALERTS:
            families.add(
                "floodmark_alert_open",
                "1 for an alert that is not over, by cause.",
                1.0 if (cause, severity) in held else 0.0,
                kind=GAUGE,
                labels={**labels, "cause": cause.value, "severity": severity.value},
            )


def _add_estimate(families: Families, session: Workspace) -> None:
    estimate = session.estimate.get().estimate
    if estimate is None:
        return
    for name, text, peak in (
        ("device", "Estimated peak of the card's memory.", estimate.device_peak_bytes),
        ("reserved", "Estimated peak of reserved memory.", estimate.reserved_peak_bytes),
    ):
        for percentile, size in (("50", peak.p50), ("90", peak.p90), ("95", peak.p95)):
            families.add(
                f"floodmark_estimate_{name}_peak_bytes",
                text,
                float(size),
                kind=GAUGE,
                labels={"percentile": percentile},
            )
    text = "Estimated probability that the run fits."
    families.add("floodmark_estimate_fits_probability", text, estimate.fits_probability, kind=GAUGE, labels={})
