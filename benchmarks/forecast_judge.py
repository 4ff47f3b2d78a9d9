"""One labelled run through the forecaster, row by row as if it were live, and what there is to say about it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

from forecast_runs import LabelledRun

from desktop_app.core.forecasts import Alert, Forecast
from desktop_app.forecast.trace_replay import TraceReplay

LEAD_STEPS: Final = 10
LEAD_S: Final = 60.0
FLAG_STEPS: Final = 40  # a leak is to be flagged within these, or …
FLAG_SHARE: Final = 0.01  # … when this much of the card has grown, whichever is later
POINTS: Final = 24  # per run at which probabilities are compared with what came
HORIZONS: Final = ("10", "100", "run")


@dataclass(slots=True)
class Judged:
    """What one run showed. ``None`` where it does not apply or did not happen.

    ``found_row``: the first row of the earliest alert that was still open when it ran out. ``probabilities`` are
    (forecast, outcome) by horizon. ``eta_errors`` and ``eta_inside`` are those from half-way on.
    """

    scene: str
    name: str
    kind: str
    cause: str | None
    shape: str
    seed: int
    tuning: bool
    grows: bool
    call: bool
    rows: int
    healthy_s: float
    short_steps: bool
    false_alarms: list[str] = field(default_factory=list)
    onset_row: int | None = None
    oom_row: int | None = None
    found_row: int | None = None
    lead_steps: int | None = None
    lead_s: float | None = None
    first_cause: str | None = None
    last_cause: str | None = None
    eta_error: float | None = None
    eta_inside: float | None = None
    eta_known: float | None = None
    late_steps: int | None = None  # after the step by which a leak should have been flagged; ≤ 0: in time
    probabilities: dict[str, list[tuple[float, bool]]] = field(default_factory=dict)

    @property
    def found(self) -> bool:
        return self.found_row is not None

    @property
    def early(self) -> bool:
        """Flagged with enough lead, or before the call."""
        if self.lead_steps is None or self.lead_s is None:
            return False
        return self.call or self.lead_steps >= LEAD_STEPS or self.lead_s >= LEAD_S


@dataclass(slots=True)
class _Told:
    """What the forecaster said over a run."""

    forecasts: list[Forecast] = field(default_factory=list)
    opened: dict[int, tuple[int, Alert]] = field(default_factory=dict)  # by alert id, with the row
    open_at_end: list[int] = field(default_factory=list)


def judge(run: LabelledRun, scene: str) -> Judged:
    """Nothing of the row that says it ran out is shown to the forecaster."""
    told = _tell(run)
    last = run.oom_row if run.oom_row is not None else len(run.rows)
    onset = run.onset_row if run.onset_row is not None else last
    steps = [row.step_s for row in run.rows if row.step_s]
    judged = Judged(
        scene=scene,
        name=run.name,
        kind=run.kind,
        cause=run.cause.value if run.cause is not None else None,
        shape=run.shape,
        seed=run.seed,
        tuning=run.tuning,
        grows=run.grows,
        call=run.call,
        rows=last,
        healthy_s=run.rows[min(onset, len(run.rows) - 1)].t_s or 0.0,
        short_steps=not steps or sum(steps) / len(steps) <= 2.5,
        onset_row=run.onset_row,
        oom_row=run.oom_row,
    )
    judged.false_alarms = [f"{alert.cause.value}@{alert.step}" for row, alert in told.opened.values() if row < onset]
    judged.probabilities = _probabilities(run, told, onset, last)
    if run.oom_row is not None and run.cause is not None:
        _judge_warning(run, told, judged, onset)
        if run.grows:
            _judge_eta(run, told, judged, onset)
    return judged


def _tell(run: LabelledRun) -> _Told:
    told, replay = _Told(), TraceReplay()
    still: dict[int, None] = {}
    for place, row in enumerate(run.rows[: run.oom_row]):
        update = replay.take(row)
        for alert in update.changes.raised:
            told.opened.setdefault(alert.alert_id, (place, alert))
            still[alert.alert_id] = None
        for alert in update.changes.cleared:
            still.pop(alert.alert_id, None)
        told.forecasts.append(update.forecast)
    told.open_at_end = list(still)
    return told


def _judge_warning(run: LabelledRun, told: _Told, judged: Judged, onset: int) -> None:
    assert run.oom_row is not None
    judged.last_cause = told.forecasts[-1].cause
    open_alerts = sorted((told.opened[alert_id] for alert_id in told.open_at_end), key=lambda found: found[0])
    if not open_alerts:
        return
    row, alert = open_alerts[0]
    row = max(row, onset)
    judged.found_row, judged.first_cause = row, alert.cause.value
    end, begin = run.rows[run.oom_row], run.rows[row]
    judged.lead_steps = (end.step or 0) - (begin.step or 0)
    judged.lead_s = (end.t_s or 0.0) - (begin.t_s or 0.0)
    if run.grown_bytes_per_step > 0:
        due = max(FLAG_STEPS, FLAG_SHARE * run.capacity_bytes / run.grown_bytes_per_step)
        due = min(due, (end.step or 0) - (run.rows[onset].step or 0))
        judged.late_steps = int((begin.step or 0) - (run.rows[onset].step or 0) - due)


def _judge_eta(run: LabelledRun, told: _Told, judged: Judged, onset: int) -> None:
    """From half-way between onset and the end, to ``LEAD_STEPS`` before it; no time named counts as 100 % off."""
    assert run.oom_row is not None
    end = run.rows[run.oom_row].step or 0
    middle = ((run.rows[onset].step or 0) + end) / 2.0
    errors, inside = [], []
    for row, forecast in zip(run.rows, told.forecasts, strict=False):
        to_go = end - (row.step or 0)
        if row.step_s is None or (row.step or 0) < middle or to_go < LEAD_STEPS:
            continue
        eta, low, high = forecast.eta_steps, forecast.eta_steps_low, forecast.eta_steps_high
        errors.append(1.0 if eta is None else abs(eta - to_go) / to_go)
        if low is not None and high is not None:
            inside.append(low <= to_go <= high)
    if errors:
        judged.eta_error = sorted(errors)[len(errors) // 2]
        judged.eta_known = len(inside) / len(errors)
        judged.eta_inside = sum(inside) / len(inside) if inside else None


def _probabilities(run: LabelledRun, told: _Told, onset: int, last: int) -> dict[str, list[tuple[float, bool]]]:
    """At evenly spaced rows from which it can be known: all of a healthy run, else those from the onset on."""
    first = 0 if run.cause is None else onset
    count = min(POINTS, last - first)
    places = [first + int(index * (last - first) / count) for index in range(count)]
    end = run.rows[run.oom_row].step if run.oom_row is not None else None
    found: dict[str, list[tuple[float, bool]]] = {horizon: [] for horizon in HORIZONS}
    for place in places:
        forecast = told.forecasts[place]
        to_go = None if end is None else end - (run.rows[place].step or forecast.step)
        for horizon in HORIZONS:
            steps = None if horizon == "run" else int(horizon)
            p_oom = forecast.p_oom_run if steps is None else forecast.p_oom.get(steps, 0.0)
            found[horizon].append((p_oom, to_go is not None and (steps is None or to_go <= steps)))
    return found
