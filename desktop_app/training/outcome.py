"""How a run ended. Strings and numbers only."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from desktop_app.core.steps import OomReport, RunState, RunStatus


class EndReason(StrEnum):
    """Why a finished run finished."""

    EPOCHS = "epochs"
    EARLY_STOP = "early_stop"
    MAX_SECONDS = "max_seconds"


@dataclass(frozen=True, slots=True)
class RunOutcome:
    """The end of a run. ``status`` is the last one that the sink has seen."""

    status: RunStatus
    reason: EndReason | None = None  # of FINISHED

    @property
    def state(self) -> RunState:
        """FINISHED, STOPPED, FAILED or OUT_OF_MEMORY."""
        return self.status.state

    @property
    def oom(self) -> OomReport | None:
        return self.status.oom

    @property
    def error(self) -> tuple[str, str] | None:
        """Code and one line, of FAILED."""
        if self.status.error_code is None:
            return None
        return self.status.error_code, self.status.error_message or ""
