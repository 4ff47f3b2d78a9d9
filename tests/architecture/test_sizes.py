"""Modules stay small enough to read, and are named for what they hold."""

from __future__ import annotations

from pathlib import Path

import desktop_app

ROOT = Path(desktop_app.__file__).parent
LONGEST = 500  # lines
EMPTY_NAMES = {"utils", "util", "helpers", "helper", "common", "manager", "misc"}


def modules() -> list[Path]:
    return sorted(ROOT.rglob("*.py"))


def test_no_module_is_too_long_to_read() -> None:
    sizes = {str(path.relative_to(ROOT)): len(path.read_text(encoding="utf-8").splitlines()) for path in modules()}
    assert sizes
    assert {name: size for name, size in sizes.items() if size > LONGEST} == {}


def test_no_module_has_a_name_that_says_nothing() -> None:
    parts = {part for path in modules() for part in path.relative_to(ROOT).with_suffix("").parts}
    assert parts & EMPTY_NAMES == set()
