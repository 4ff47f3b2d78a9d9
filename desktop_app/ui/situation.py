"""What the window's commands and its heartbeat need to know of the workspace."""

from __future__ import annotations

from desktop_app.core.forecasts import AlertSeverity
from desktop_app.services.facade import Workspace
from desktop_app.training.config import RunConfig
from desktop_app.ui.charts.load import Load, why_not
from desktop_app.ui.commands import Situation
from desktop_app.ui.headline import open_alert
from desktop_app.ui.recommendations import can_shrink, largest_neighbour
from desktop_app.ui.tank_reader import selected_card


def current_situation(workspace: Workspace, config: RunConfig | None, *, endable: bool = False) -> Situation:
    """What decides which commands can be chosen. ``config`` is the form's, ``None`` while it is not valid.

    ``endable``: a process that can be ended is chosen.
    """
    alert = open_alert(workspace)
    loud = alert is not None and alert.severity is not AlertSeverity.WATCH
    estimate, recording = workspace.estimate.get().estimate, workspace.step_recording.get()
    largest = estimate.largest_batch if estimate is not None else None
    card = selected_card(workspace)
    readings = workspace.readings.get().get(card.uuid, {}) if card is not None else {}
    state = workspace.run.get().state
    active = state.active
    return Situation(
        run=state,
        form_valid=config is not None,
        alerting=loud and alert is not None and alert.alert_id not in workspace.ignored_alerts.get(),
        alerted=bool(workspace.alerts.get()),
        other_batch=largest is not None and config is not None and config.batch_size != largest,
        shrinkable=can_shrink(workspace) or (not active and config is not None and config.batch_size > 1),
        rescued=bool(workspace.run.get().rescues),
        accompanied=largest_neighbour(workspace) is not None,
        endable=endable,
        sm_activity=why_not(Load.SM_ACTIVITY, card, readings) is None,
        power_share=why_not(Load.POWER, card, readings) is None,
        recordable=recording.possible and not recording.recording,
        offered=workspace.resume_offer.get() is not None,
        cards=len(workspace.cards.get()),
    )


def news(workspace: Workspace) -> tuple[int, ...]:
    """Changes whenever something did that must not wait for the next half second."""
    cells = (
        workspace.run,
        workspace.alerts,
        workspace.ignored_alerts,
        workspace.estimate,
        workspace.step_recording,
        workspace.snapshot,
        workspace.notices,
        workspace.cards,
        workspace.card_uuid,
        workspace.telemetry,
        workspace.resume_offer,
    )
    return tuple(cell.version for cell in cells)
