"""The verdict: which one sentence the banner shows now. Reads the workspace, changes nothing."""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import StrEnum
from typing import TYPE_CHECKING, Final

from desktop_app.core.forecasts import Alert, AlertSeverity, Estimate, Forecast, Verdict
from desktop_app.core.steps import RunState, RunStatus
from desktop_app.core.telemetry import Reason
from desktop_app.services.facade import EstimateState
from desktop_app.ui.answers import answer_of
from desktop_app.ui.recommendations import recommended_command
from desktop_app.ui.tank_reader import lost_reason, selected_card
from desktop_app.ui.texts import errors, evidence, figures, numbers, outlooks, verdicts

if TYPE_CHECKING:
    from desktop_app.services.facade import Workspace

_RESCUE_NEWS_S: Final = 120.0  # as long as somebody who was away for a moment may take to look


class Band(StrEnum):
    """How the banner looks: colour and icon shape together."""

    NEUTRAL = "neutral"
    OK = "ok"
    WARN = "warn"
    DANGER = "danger"


class HeadlineAction(StrEnum):
    """The one primary action; values are ids of commands."""

    NONE = ""
    SAVE_AND_PAUSE = "run.save_and_pause"
    PAUSE = "run.pause"
    RESUME = "run.resume"
    USE_LARGEST_BATCH = "run.use_largest_batch"
    POST_MORTEM = "run.post_mortem"
    SHRINK = "run.shrink_batch"
    RECORD_STEP = "run.record_step"
    COPY_SETTING = "run.copy_allocator_setting"
    SHOW_NEIGHBOUR = "view.neighbour"


@dataclass(frozen=True, slots=True)
class Headline:
    """One sentence, the evidence below it, one action right of it. ``alert_id`` is set when it can be ignored."""

    band: Band
    sentence: str
    evidence: str = ""
    action: HeadlineAction = HeadlineAction.NONE
    alert_id: int | None = None
    explained: bool = False  # "Why" leads to the details of an alert


def current_headline(workspace: Workspace) -> Headline:
    """The most urgent thing there is to say."""
    status = workspace.run.get()
    ended = None if _plans_anew(workspace, status) else _ended(status)
    if ended is not None:
        return ended
    if status.state is RunState.STOPPING:
        return Headline(Band.WARN, verdicts.waiting(status), verdicts.waiting_help())
    alert = _alerting(workspace, status)
    if alert is not None and alert.band is Band.DANGER:
        return alert
    lost = _lost_card(workspace)
    if lost is not None:
        return lost
    if alert is not None:
        return alert
    rescued = _rescued(workspace, status)
    if rescued is not None:
        return rescued
    if status.state.active:
        return _active(workspace, status)
    return _idle(workspace)


def device_bytes(workspace: Workspace) -> int | None:
    """What is used on the run's card now; ``None`` when it cannot be read."""
    readings = workspace.readings.get().get(workspace.card_uuid.get() or "")
    reading = readings.get("memory_used_bytes") if readings else None
    return None if reading is None or reading.value is None else int(reading.value)


def open_alert(workspace: Workspace) -> Alert | None:
    """The newest alert that is not over, ignored or not; the most severe first."""
    order = list(AlertSeverity)
    alerts = [alert for alert in workspace.alerts.get() if alert.cleared_t_s is None]
    return max(alerts, key=lambda alert: (order.index(alert.severity), alert.t_s), default=None)


def _ended(status: RunStatus) -> Headline | None:
    if status.state is RunState.OUT_OF_MEMORY and status.oom is not None:
        return Headline(
            Band.DANGER,
            verdicts.out_of_memory(status.oom),
            verdicts.out_of_memory_help(status.oom),
            action=HeadlineAction.POST_MORTEM,
        )
    if status.state is RunState.FAILED:
        text = errors.text(status.error_code, status.error_message)
        return Headline(Band.DANGER, verdicts.failed(), text)
    if status.state is RunState.FINISHED:
        return Headline(Band.OK, verdicts.finished(status), verdicts.ended_help(status))
    if status.state is RunState.STOPPED:
        return Headline(Band.NEUTRAL, verdicts.stopped(status), verdicts.ended_help(status))
    return None


def _plans_anew(workspace: Workspace, status: RunStatus) -> bool:
    """The run has ended and the form has been changed since: now the next run is what matters."""
    known = workspace.estimate.get()
    return not status.state.active and known.config is not None and known.config != workspace.run_config.get()


def _alerting(workspace: Workspace, status: RunStatus) -> Headline | None:
    alert = open_alert(workspace) if status.state.active else None
    if alert is None:
        return None
    outlook = outlooks.outlook_of(alert, workspace.forecast.get())
    headline = Headline(
        band=Band.WARN if alert.severity is AlertSeverity.WATCH else Band.DANGER,
        sentence=outlooks.sentence(outlook),
        evidence=_evidence(outlook, workspace.forecast.get()),
        action=_recommended(alert, workspace),
        alert_id=alert.alert_id,
        explained=True,
    )
    if alert.alert_id in workspace.ignored_alerts.get():
        return replace(
            headline,
            band=Band.WARN,
            sentence=verdicts.ignored(headline.sentence),
            action=HeadlineAction.NONE,
            alert_id=None,
        )
    return headline


def _evidence(outlook: outlooks.Outlook, forecast: Forecast | None) -> str:
    """The figures; for a mere watch also how likely it is, as that is why it is no alert."""
    line = evidence.line(outlook)
    if outlook.severity is not AlertSeverity.WATCH or forecast is None or forecast.cause is not outlook.cause:
        return line
    return numbers.sentences(line, figures.chances(forecast))


def _recommended(alert: Alert, workspace: Workspace) -> HeadlineAction:
    state = workspace.run.get().state
    if state is RunState.PAUSED:
        return HeadlineAction.RESUME
    return HeadlineAction(recommended_command(alert, workspace))


def _rescued(workspace: Workspace, status: RunStatus) -> Headline | None:
    """An out-of-memory error that the run has survived, while it is news."""
    if status.state is not RunState.RUNNING or not status.rescues:
        return None
    report = status.rescues[-1]
    if workspace.clock.now_s() - report.t_s > _RESCUE_NEWS_S:
        return None
    return Headline(
        Band.WARN,
        verdicts.rescued(report, status),
        verdicts.rescued_help(report),
        action=HeadlineAction.POST_MORTEM,
    )


def _lost_card(workspace: Workspace) -> Headline | None:
    card = selected_card(workspace)
    lost = lost_reason(workspace, card)
    if card is None or lost is None:
        return None
    return Headline(Band.WARN, verdicts.card_lost(card.name), verdicts.card_lost_help(lost))


def _active(workspace: Workspace, status: RunStatus) -> Headline:
    if status.state is RunState.PREPARING:
        return _foretold(workspace) or Headline(Band.NEUTRAL, verdicts.preparing(), verdicts.preparing_help(status))
    if status.state is RunState.PAUSING:
        return Headline(Band.NEUTRAL, verdicts.waiting(status), verdicts.waiting_help())
    if status.state is RunState.PAUSED:
        return Headline(
            Band.NEUTRAL,
            verdicts.paused(status),
            verdicts.paused_help(device_bytes(workspace)),
            action=HeadlineAction.RESUME,
        )
    return _running(workspace, status)


def _running(workspace: Workspace, status: RunStatus) -> Headline:
    forecast = workspace.forecast.get()
    watched = outlooks.watched(forecast)
    if watched is not None:
        return Headline(Band.NEUTRAL, outlooks.sentence(watched), _evidence(watched, forecast))
    if forecast is not None and forecast.flood_low_bytes is not None and forecast.flood_high_bytes is not None:
        return _calm(forecast, forecast.flood_low_bytes, forecast.flood_high_bytes, status)
    if workspace.run_config.get().device == "cpu":
        return Headline(Band.NEUTRAL, verdicts.running_on_cpu(), verdicts.progress(status))
    return _foretold(workspace) or Headline(Band.NEUTRAL, verdicts.running(), verdicts.progress(status))


def _foretold(workspace: Workspace) -> Headline | None:
    """Until the forecast has something to say, the estimate of this run stands, if it is a warning."""
    known = workspace.estimate.get()
    if known.estimate is None or known.config != workspace.run_config.get():
        return None
    if known.estimate.verdict not in (Verdict.TIGHT, Verdict.DOES_NOT_FIT):
        return None
    return replace(estimate_headline(known.estimate), action=HeadlineAction.NONE)


def _calm(forecast: Forecast, low_bytes: int, high_bytes: int, status: RunStatus) -> Headline:
    spare = forecast.capacity_bytes - max(high_bytes, forecast.device_bytes)
    flood = verdicts.flood_facts(low_bytes, high_bytes, forecast.capacity_bytes)
    evidence = numbers.sentences(flood, verdicts.progress(status))
    if spare <= 0:
        return Headline(Band.WARN, verdicts.tight(1.0 - forecast.p_oom_run), evidence)
    return Headline(Band.OK, verdicts.fits(spare), evidence)


def _idle(workspace: Workspace) -> Headline:
    status = workspace.estimate.get()
    if status.state is EstimateState.FAILED:
        return Headline(Band.WARN, verdicts.no_estimate(), errors.text(status.error_code, status.error))
    answer = answer_of(status)
    if answer is not None:
        return estimate_headline(answer)
    if status.state is EstimateState.WORKING:
        return Headline(Band.NEUTRAL, verdicts.estimating(), verdicts.estimating_help())
    return _nothing_yet(workspace)


def estimate_headline(estimate: Estimate) -> Headline:
    """The verdict before the first step."""
    facts = verdicts.estimate_facts(estimate)
    if estimate.verdict is Verdict.FITS:
        spare_bytes = verdicts.room_bytes(estimate) - estimate.device_peak_bytes.p95
        return Headline(Band.OK, verdicts.fits(spare_bytes), facts)
    if estimate.verdict is Verdict.TIGHT:
        return Headline(Band.WARN, verdicts.tight(estimate.fits_probability), facts)
    if estimate.verdict is Verdict.DOES_NOT_FIT:
        usable = estimate.largest_batch is not None
        action = HeadlineAction.USE_LARGEST_BATCH if usable else HeadlineAction.NONE
        return Headline(Band.DANGER, verdicts.does_not_fit(estimate), facts, action=action)
    return Headline(Band.NEUTRAL, verdicts.cannot_say(), verdicts.cannot_say_help(estimate))


def _nothing_yet(workspace: Workspace) -> Headline:
    card = selected_card(workspace)
    if card is None:
        telemetry = workspace.telemetry.get()
        band = Band.NEUTRAL if telemetry.reason is Reason.NOT_READ_YET else Band.WARN
        return Headline(band, verdicts.no_card(telemetry.reason), verdicts.no_card_help())
    used = device_bytes(workspace)
    capacity = card.capacity_bytes
    free = None if used is None or capacity is None else capacity - used
    return Headline(Band.NEUTRAL, verdicts.no_run(), verdicts.card_facts(card, free))
