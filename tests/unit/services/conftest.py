"""A fake driver library, compiled once a session."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.fake_nvml.driver import compile_driver


@pytest.fixture(scope="session")
def driver_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a current driver library that sees one RTX 3060."""
    return compile_driver(tmp_path_factory.mktemp("nvml") / "current")
