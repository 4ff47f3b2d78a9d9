"""The folder that a run's checkpoints go to, looked at before anything long begins."""

from __future__ import annotations

import os.path
from pathlib import Path

from desktop_app.core.errors import ConfigError
from desktop_app.training.config import RunConfig, field_spec


def check_output_folder(config: RunConfig) -> None:
    """``ConfigError`` when ``output_dir`` is a file or would lie under one. Makes nothing."""
    if config.output_dir is None:
        return
    folder = Path(config.output_dir)
    # os.path: names that no file system takes do not exist, and the writer will say so.
    nearest = next((place for place in (folder, *folder.parents) if os.path.exists(place)), None)  # noqa: PTH110
    if nearest is None or os.path.isdir(nearest):  # noqa: PTH112
        return
    where = "" if nearest == folder else f" and cannot hold {folder}"
    raise ConfigError(
        "config.value",
        f"output_dir takes a folder: {nearest} is a file{where}; give another",
        params={"field": "output_dir", "value": config.output_dir, "expected": field_spec("output_dir").expected},
    )
