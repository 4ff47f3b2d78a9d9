"""The shape of every cause: it is told what happens, and says what that leads to."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import ClassVar

from desktop_app.core.forecasts import Cause, Estimate
from desktop_app.core.steps import PhaseSample, StepSample, Surroundings
from desktop_app.forecast.corrected_prior import CorrectedPrior
from desktop_app.forecast.environment import Environment
from desktop_app.forecast.evidence import Evidence
from desktop_app.forecast.outlook import Outlook


@dataclass(frozen=True, slots=True)
class View:
    """What all causes share at one moment: ``evidence`` has taken the newest sample already.

    ``prior`` is the estimate of the run, ``corrected`` the same as its first steps have put it right: for phases that
    have not been seen yet.
    """

    evidence: Evidence
    environment: Environment
    prior: Estimate | None
    corrected: CorrectedPrior | None = None


class CauseModel(ABC):
    """One cause of one run. The forecaster's lock guards it; memory is bounded, each call takes microseconds.

    Samples come in the order of time; a run that goes back (resume, rescue) begins at an earlier step again.
    """

    cause: ClassVar[Cause]

    def take_step(self, sample: StepSample, view: View) -> None:  # noqa: B027 - not every cause needs every sample
        """A step has ended."""

    def take_phase(self, sample: PhaseSample, view: View) -> None:  # noqa: B027
        """A phase begins, goes on or has ended (``PhaseSample``)."""

    def take_surroundings(self, sample: Surroundings, view: View) -> None:  # noqa: B027
        """Telemetry has spoken. ``view.environment`` knows it already."""

    @abstractmethod
    def outlook(self, view: View, *, known: bool) -> Outlook | None:
        """What will happen; ``None`` when this cause has nothing to say. ``known``: an alert about it is out."""
