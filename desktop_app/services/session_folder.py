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
from desktop_app.services.facade import ResumeOffer

_log = logging.getLogger(__name__)

SCHEMA: Final = 1
# A start looks no further back than this for runs that did not end well.
_NEWEST_LOOKED_AT: Final = 30
_PACKAGES: Final = ("torch", "PySide6-Essentials", "pyqtgraph", "numpy", "nvidia-ml-py", "psutil")


@dataclass(frozen=True, slots=True)
class SessionFolder:
    """Paths of one session. The lock is held by the program that writes it and is freed even by ``kill -9``."""

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
        return filelock.FileLock(self.path / "session.lock", blocking=False)

    def read_facts(self) -> dict[str, Any]:
        """The content of ``session.json``; empty when it is missing or damaged."""
        try:
            facts = json.loads(self.facts_path.read_text(encoding="utf-8"))
        except (OSError, ValueError) as error:
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

    def newest_checkpoint(self) -> Path | None:
        try:
            checkpoints = [path for path in self.checkpoints_path.iterdir() if path.suffix == ".pt"]
            return max(checkpoints, key=lambda path: path.stat().st_mtime_ns, default=None)
        except OSError:
            return None


def create_session(
    parent: Path, *, run_name: str, config_toml: str, card: Mapping[str, Any], anchor_wall_s: float
) -> SessionFolder:
    """Make a new folder under ``parent`` and write what is known at the start. Raises ``OSError``."""
    stem = time.strftime("%Y-%m-%d_%H-%M-%S", time.localtime()) + "_" + _safe_name(run_name)
    parent.mkdir(parents=True, exist_ok=True)
    folder = SessionFolder(_make_unique(parent, stem))
    folder.checkpoints_path.mkdir()
    folder.config_path.write_text(config_toml, encoding="utf-8")
    folder.write_facts(
        {
            "schema": SCHEMA,
            "run_name": run_name,
            "started_wall_s": time.time(),
            "clock_anchor_wall_s": anchor_wall_s,
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
        names = sorted((entry.name for entry in os.scandir(parent) if entry.is_dir()), reverse=True)
    except OSError:
        return
    for name in names:
        folder = SessionFolder(parent / name)
        if folder.facts_path.exists():
            yield folder


def find_resume_offer(parent: Path) -> ResumeOffer | None:
    """The newest run that neither ended nor is being written, and has a checkpoint to go on from."""
    for _, folder in zip(range(_NEWEST_LOOKED_AT), sessions(parent), strict=False):
        facts = folder.read_facts()
        checkpoint = folder.newest_checkpoint()
        if facts.get("ended") is not None or checkpoint is None or _is_being_written(folder):
            continue
        epoch, step = _position(checkpoint)
        return ResumeOffer(
            session_path=folder.path,
            checkpoint_path=checkpoint,
            run_name=str(facts.get("run_name", folder.path.name)),
            step=step,
            epoch=epoch,
            ended_wall_s=checkpoint.stat().st_mtime,
        )
    return None


def mark_ended(folder: SessionFolder, *, state: str, details: Mapping[str, Any] | None = None) -> None:
    """Write how the run ended. Raises ``OSError``."""
    facts = folder.read_facts()
    facts["ended"] = {"state": state, "wall_s": time.time(), **(details or {})}
    folder.write_facts(facts)


def _is_being_written(folder: SessionFolder) -> bool:
    lock = folder.lock()
    try:
        lock.acquire()
    except (filelock.Timeout, OSError):
        return True
    lock.release()
    return False


def _position(checkpoint: Path) -> tuple[int, int]:
    """Epoch and step out of a checkpoint's name, ``epoch-0003-step-000412.pt``; zeros when it has another name."""
    found = re.search(r"epoch-(\d+)-step-(\d+)", checkpoint.name)
    return (int(found[1]), int(found[2])) if found else (0, 0)


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
