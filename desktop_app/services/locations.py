"""Where Floodmark keeps things, and whether it can."""

from __future__ import annotations

import os
import shutil
import tempfile
from pathlib import Path
from typing import Final

import platformdirs

from desktop_app.core.errors import FloodmarkError

DATA_VARIABLE: Final = "FLOODMARK_DATA"
# A session of a day is about 150 MB and a checkpoint of the recipes a few; below this a run is not started.
LEAST_FREE_BYTES: Final = 64 * 1024**2


def data_folder() -> Path:
    """``$FLOODMARK_DATA``, else the platform's folder for user data."""
    chosen = os.environ.get(DATA_VARIABLE)
    return (
        Path(chosen).expanduser().absolute()
        if chosen
        else Path(platformdirs.user_data_dir("floodmark", appauthor=False))
    )


def sessions_folder() -> Path:
    return data_folder() / "sessions"


def writable_problem(folder: Path) -> FloodmarkError | None:
    """Why nothing can be kept in ``folder``: not creatable, not writable, or disk full. ``None`` if all is well."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder) as probe:
            probe.write(b"\0" * 4096)
            probe.flush()
        free_bytes = shutil.disk_usage(folder).free
    except OSError as error:
        return FloodmarkError(
            "data_folder.unwritable",
            f"Cannot write to the data folder {folder}: {error.strerror or error}. "
            f"Set {DATA_VARIABLE} to a folder you can write to.",
            params={"folder": str(folder), "detail": error.strerror or str(error)},
        )
    if free_bytes < LEAST_FREE_BYTES:
        return FloodmarkError(
            "data_folder.full",
            f"Only {free_bytes // 1024**2} MiB are free in the data folder {folder}. Free some space, or set "
            f"{DATA_VARIABLE} to a folder on another disk.",
            params={"folder": str(folder), "free_bytes": free_bytes},
        )
    return None
