"""What is installed is what is here: ``pip install .`` copies only the packages that are listed."""

from __future__ import annotations

import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def test_every_package_is_installed() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    listed = set(project["tool"]["setuptools"]["packages"]) - {"desktop_app.resources"}
    here = {".".join(path.parent.relative_to(ROOT).parts) for path in ROOT.glob("desktop_app/**/__init__.py")}
    assert listed == here


def test_the_tested_set_lies_within_the_ranges() -> None:
    from packaging.requirements import Requirement

    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    ranges = {
        requirement.name.lower(): requirement.specifier
        for text in [*project["dependencies"], *project["optional-dependencies"]["dev"]]
        for requirement in [Requirement(text)]
    }
    lines = (ROOT / "constraints.txt").read_text(encoding="utf-8").splitlines()
    pins = [Requirement(line) for line in lines if line and not line.startswith("#")]
    assert pins
    for pin in pins:
        (version,) = [part.version for part in pin.specifier]
        assert version in ranges.get(pin.name.lower(), pin.specifier)
