"""One session: every object between the machine and the window, wired, started and closed in order."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final, Protocol

from desktop_app.core.clock import SessionClock
from desktop_app.core.errors import FloodmarkError
from desktop_app.core.events import Event, EventKind, EventQueue, Level
from desktop_app.core.forecasts import Alert, Forecast
from desktop_app.core.lifecycle import ClosingStages, StageResult
from desktop_app.core.load import CardLoad
from desktop_app.core.steps import MemoryStats, RunState, RunStatus
from desktop_app.core.store import Cell, Store
from desktop_app.core.telemetry import Card, ProcessSample, Reading, SelfCost
from desktop_app.forecast.worker import ForecasterThread
from desktop_app.services.alert_desk import AlertDesk, Rule
from desktop_app.services.estimator import EstimateRequest, Estimator
from desktop_app.services.facade import EstimateStatus, Notice, ResumeOffer, TelemetryStatus
from desktop_app.services.locations import sessions_folder, writable_problem
from desktop_app.services.recorder import Recorder
from desktop_app.services.run_feed import RunFeed
from desktop_app.services.session_folder import (
    SessionFolder,
    create_session,
    find_resume_offer,
    mark_ended,
)
from desktop_app.services.telemetry_feed import TelemetryFeed
from desktop_app.telemetry.backend import Backend
from desktop_app.telemetry.sampler import Sampler
from desktop_app.training.config import RunConfig, config_to_toml

_log = logging.getLogger(__name__)
