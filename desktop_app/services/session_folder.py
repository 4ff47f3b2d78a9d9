"""One run on disk: a folder with ``session.json``, ``config.toml``, ``samples.db`` and ``checkpoints``."""

from __future__ import annotations

import json
import logging
import os
import platform
import re
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from typing import Any, Final

import filelock

from desktop_app import __version__
from desktop_app.core.steps import RunState
from desktop_app.services.facade import ResumeOffer
from desktop_app.training.checkpoints import FILE_NAME

_log = logging.getLogger(__name__)

SCHEMA: Final = 1
# A start looks no further back than this for runs that did not end well.
_NEWEST_LOOKED_AT: Final = 30
_PACKAGES: Final = ("torch", "PySide6-Essentials", "pyqtgraph", "numpy", "nvidia-ml-py", "psutil")


@dataclass(frozen=True, slots=True)
class SavedPoint:
    """The newest checkpoint of a run. ``step`` and ``epoch`` are 0 where the facts do not say."""

    path: Path
    step: int = 0
    epoch: int = 0


@dataclass(frozen=True, slots=True)
class SessionFolder:
    """Paths and facts of one session."""

    path: Path

    @property
    def facts_path(self) -> Path:
        return self.path / "session.json"

    @property
    def database_path(self) -> Path:
        return self.path / "samples.db"

    @property
    def config_path(self) -> Path:
        return self.path / "config.toml"

    @property
    def checkpoints_path(self) -> Path:
        return self.path / "checkpoints"

    def lock(self) -> filelock.BaseFileLock:
        """Held by the program that writes the session, and freed even by ``kill -9``. Any thread may release it."""
        return filelock.FileLock(self.path / "session.lock", blocking=False, thread_local=False)

    def is_being_written(self) -> bool:
        """Some program holds the lock, or nobody may take it."""
        lock = self.lock()
        try:
            lock.acquire()
        except (filelock.Timeout, OSError, NotImplementedError):
            return True
        lock.release()
        return False

    def read_facts(self) -> dict[str, Any]:
        """The content of ``session.json``; empty when it is missing or damaged."""
        try:
            facts = json.loads(self.facts_path.read_text(encoding="utf-8"))
        except (OSError, ValueError, RecursionError) as error:
            _log.warning("Ignoring %s: %s", self.facts_path, error)
            return {}
        return facts if isinstance(facts, dict) else {}

    def write_facts(self, facts: Mapping[str, Any]) -> None:
        """Replace ``session.json`` as a whole: a reader sees the old one or the new one. Raises ``OSError``."""
        draft = self.facts_path.with_suffix(".json.new")
        with draft.open("w", encoding="utf-8") as file:
            json.dump(facts, file, ensure_ascii=False, indent=1)
            file.flush()
            os.fsync(file.fileno())
        draft.replace(self.facts_path)

    def note_checkpoint(self, point: SavedPoint) -> None:
        """A checkpoint was written. Raises ``OSError``."""
        facts = self.read_facts()
        facts["checkpoint"] = {"path": str(point.path), "step": point.step, "epoch": point.epoch}
        self.write_facts(facts)

    def mark_ended(self, *, state: str, details: Mapping[str, Any] | None = None) -> None:
        """How the run ended. Raises ``OSError``."""
        facts = self.read_facts()
        facts["ended"] = {"state": state, "wall_s": time.time(), **(details or {})}
        self.write_facts(facts)


def create_session(
    parent: Path,
    *,
    run_name: str,
    config_toml: str,
    card: Mapping[str, Any],
    anchor_wall_s: float,
    resumed_from: Path | None = None,
    scenario: str | None = None,
) -> SessionFolder:
    """Make a new folder under ``parent`` and write what is known at the start. ``scenario``: the demonstration, for a
    run that is one. Raises ``OSError``."""
    stem = time.strftime("%Y-%m-%d_%H-%M-%S", time.localtime()) + "_" + _safe_name(run_name)
    parent.mkdir(parents=True, exist_ok=True)
    folder = SessionFolder(_make_unique(parent, stem))
    folder.checkpoints_path.mkdir()
    folder.config_path.write_text(config_toml, encoding="utf-8")
    folder.write_facts(
        {
            "schema": SCHEMA,
            "run_name": run_name,
            "scenario": scenario,
            "started_wall_s": time.time(),
            "clock_anchor_wall_s": anchor_wall_s,
            "resumed_from": None if resumed_from is None else str(resumed_from),
            "checkpoint": None,
            "ended": None,
            "card": dict(card),
            "host": {"name": platform.node(), "system": platform.platform(), "python": platform.python_version()},
            "versions": {"floodmark": __version__, **_versions()},
        }
    )
    return folder


def sessions(parent: Path) -> Iterator[SessionFolder]:
    """All sessions under ``parent``, newest first. Names begin with the time of the start."""
    try:
        with os.scandir(parent) as entries:
            names = sorted((entry.name for entry in entries if entry.is_dir()), reverse=True)
    except OSError:
        return
    for name in names:
        folder = SessionFolder(parent / name)
        if folder.facts_path.exists():
            yield folder


def find_resume_offer(parent: Path) -> ResumeOffer | None:
    """The newest run that neither ended nor is being written, and has a checkpoint that no other run has built on.

    A folder that cannot be made sense of is passed over: it must not hide the others.
    """
    offers: list[ResumeOffer] = []
    built_on: set[Path] = set()
    for _, folder in zip(range(_NEWEST_LOOKED_AT), sessions(parent), strict=False):
        try:
            _look_into(folder, offers, built_on)
        except (OSError, ValueError, OverflowError, TypeError) as error:
            _log.warning("Passing over %s: %s", folder.path, error)
    return next((offer for offer in offers if offer.checkpoint_path not in built_on), None)


def _look_into(folder: SessionFolder, offers: list[ResumeOffer], built_on: set[Path]) -> None:
    """Add what one folder offers, and what it has built on: that is not offered any more."""
    facts = folder.read_facts()
    point = _newest_checkpoint(folder, facts)
    ended, written = facts.get("ended"), folder.is_being_written()
    if point is not None and ended is None and not written:
        offers.append(
            ResumeOffer(
                session_path=folder.path,
                checkpoint_path=point.path,
                run_name=str(facts.get("run_name", folder.path.name)),
                step=point.step,
                epoch=point.epoch,
                ended_wall_s=point.path.stat().st_mtime,
            )
        )
    elif point is not None:
        built_on.add(point.path)
    # A resumed run that ended with nothing of its own leaves the old one as the place to go on from.
    finished = isinstance(ended, dict) and ended.get("state") == RunState.FINISHED
    if (point is not None or written or finished) and isinstance(facts.get("resumed_from"), str):
        built_on.add(Path(facts["resumed_from"]))


def _newest_checkpoint(folder: SessionFolder, facts: Mapping[str, Any]) -> SavedPoint | None:
    """As the facts say, else the file where it lies unless a run was told another place; ``None`` when it is gone."""
    noted = facts.get("checkpoint")
    try:
        point = SavedPoint(Path(noted["path"]), int(noted["step"]), int(noted["epoch"]))  # type: ignore[index]
    except (KeyError, TypeError, ValueError, OverflowError):
        point = SavedPoint(folder.checkpoints_path / FILE_NAME)
    return point if point.path.is_file() else None


def _safe_name(text: str) -> str:
    """A run's name as part of a folder's name on every system."""
    return re.sub(r"[^\w-]+", "-", text).strip("-")[:60] or "run"


def _make_unique(parent: Path, stem: str) -> Path:
    for number in range(1, 1000):
        path = parent / (stem if number == 1 else f"{stem}-{number}")
        try:
            path.mkdir()
        except FileExistsError:
            continue
        return path
    raise FileExistsError(f"too many sessions named {stem}")


def _versions() -> dict[str, str]:
    versions = {}
    for package in _PACKAGES:
        try:
            versions[package] = metadata.version(package)
        except metadata.PackageNotFoundError:
            continue
    return versions
