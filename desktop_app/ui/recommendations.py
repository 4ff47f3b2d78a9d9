"""Which commands the window offers for an alert: the recommended one first, and only what can be done now."""

from __future__ import annotations

from typing import Final

from desktop_app.core.forecasts import Alert, AlertSeverity, Cause
from desktop_app.core.steps import RunState
from desktop_app.core.telemetry import ProcessSample
from desktop_app.services.facade import Workspace
from desktop_app.ui.tank_reader import selected_card

SAVE_AND_PAUSE: Final = "run.save_and_pause"
PAUSE: Final = "run.pause"
SHRINK: Final = "run.shrink_batch"
RECORD_STEP: Final = "run.record_step"
COPY_SETTING: Final = "run.copy_allocator_setting"
SHOW_NEIGHBOUR: Final = "view.neighbour"

# By the codes of ``core.forecasts.ACTIONS``, in order of preference. What only the training's own code can change is
# advice; the window then offers to save what is learnt. Saving is not offered where saving is what would fail.
_COMMANDS: Final = {
    "save_and_pause": (SAVE_AND_PAUSE,),
    "pause": (PAUSE,),
    "reduce_batch": (SHRINK, PAUSE),
    "split_batch": (SHRINK, PAUSE),
    "find_leak": (RECORD_STEP, SAVE_AND_PAUSE),
    "expandable_segments": (COPY_SETTING, SAVE_AND_PAUSE),
    "close_neighbour": (SHOW_NEIGHBOUR, SAVE_AND_PAUSE),
    "smaller_validation_batch": (SAVE_AND_PAUSE,),
    "no_grad_validation": (SAVE_AND_PAUSE,),
    "save_to_host": (PAUSE,),
    "load_to_host": (SAVE_AND_PAUSE,),
    "free_outside": (SAVE_AND_PAUSE,),
    "fewer_workers": (SAVE_AND_PAUSE,),
    "free_host_memory": (SAVE_AND_PAUSE,),
    "leave_room": (SHRINK, SAVE_AND_PAUSE),
}
# What helps with a cause beside the recommended action.
_ALSO: Final = {
    Cause.LEAK: (RECORD_STEP,),
    Cause.FRAGMENTATION: (COPY_SETTING,),
    Cause.NEIGHBOUR: (SHOW_NEIGHBOUR,),
}
_MOST: Final = 2  # buttons beside each other in the narrow panel


def recommended_command(alert: Alert, workspace: Workspace) -> str:
    """The one command for the banner; empty when there is none, as for a mere watch."""
    if alert.severity is AlertSeverity.WATCH:
        return ""
    return next(iter(commands_for(alert, workspace)), "")


def commands_for(alert: Alert, workspace: Workspace) -> tuple[str, ...]:
    """Ids of commands that make sense now, best first, ``_MOST`` at most."""
    wanted = (*_COMMANDS.get(alert.action, (SAVE_AND_PAUSE,)), *_ALSO.get(alert.cause, ()))
    possible = [name for name in dict.fromkeys(wanted) if _can(name, workspace)]
    return tuple(possible[:_MOST])


def _can(command: str, workspace: Workspace) -> bool:
    state = workspace.run.get().state
    if command in (SAVE_AND_PAUSE, PAUSE):
        return state is RunState.RUNNING
    if command == SHRINK:
        return can_shrink(workspace)
    if command == RECORD_STEP:
        recording = workspace.step_recording.get()
        return recording.possible and not recording.recording
    if command == SHOW_NEIGHBOUR:
        return largest_neighbour(workspace) is not None
    return state.active


def can_shrink(workspace: Workspace) -> bool:
    """A run lives whose micro-batch has more than one sample."""
    status = workspace.run.get()
    return status.state in (RunState.RUNNING, RunState.PAUSED) and status.batch_size > 1


def largest_neighbour(workspace: Workspace) -> ProcessSample | None:
    """The other process that holds most of the run's card; ``None`` when none is known."""
    card = selected_card(workspace)
    others = [
        process
        for process in (workspace.processes.get().get(card.uuid, ()) if card is not None else ())
        if not process.own
    ]
    return max(others, key=lambda process: process.memory_bytes or 0, default=None)
