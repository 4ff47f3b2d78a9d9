"""The documents say what the program does: links lead somewhere, tables and options are those of the code."""

from __future__ import annotations

import importlib.util
import re
import sys
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).resolve().parents[2]
DOCUMENTS = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md"), *ROOT.glob("resources/**/*.md")])


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_links_lead_somewhere(document: Path) -> None:
    links = re.findall(r"\]\(([^)#\s]+)", document.read_text(encoding="utf-8"))
    local = [link for link in links if "://" not in link]
    missing = [link for link in local if not (document.parent / link).exists()]
    assert not missing


@pytest.mark.parametrize("file", ["training.md", "window.md"])
def test_tables_are_those_of_the_code(file: str) -> None:
    documentation = _documentation()
    name, table = documentation.TABLES[file]
    text = (ROOT / "docs" / "guide" / file).read_text(encoding="utf-8")
    assert text == documentation.with_table(text, name, table()), "run: python packaging/documentation.py"


def test_every_option_is_described() -> None:
    from desktop_app.cli import _parser

    folder = ROOT / "docs" / "guide"
    guide = (folder / "command-line.md").read_text(encoding="utf-8")
    of_commands = [folder / f"{name}.md" for name in ("estimate", "snapshot", "import")]
    pages = {page.name: page.read_text(encoding="utf-8") for page in of_commands}
    assert all(f"]({name})" in guide for name in pages), "the page of the command line leads to them"
    guide += "".join(pages.values())
    parser = _parser()
    (commands,) = [action.choices for action in parser._actions if isinstance(action.choices, dict)]
    options = {option for part in (parser, *commands.values()) for option in part._option_string_actions}
    undocumented = {option for option in options - {"-h", "--help", "--version"} if f"`{option}" not in guide}
    assert not undocumented - {"--json"}
    assert all(f"floodmark {command}" in guide for command in commands)


def test_every_scenario_is_described() -> None:
    from desktop_app.services.scenarios import SCENARIOS

    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    guide = (ROOT / "docs" / "guide" / "command-line.md").read_text(encoding="utf-8")
    assert all(name in guide for name in SCENARIOS)
    assert all(f"floodmark demo {name}" in readme for name in SCENARIOS if name != "cats-dogs")


def test_readme_counts_the_catalogue() -> None:
    from desktop_app.telemetry.catalogue import load_catalogue

    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    assert f"any of {len(load_catalogue())} from the catalogue" in readme


def test_every_room_is_on_the_architecture_page() -> None:
    page = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
    rooms = {path.parent.name for path in ROOT.glob("desktop_app/*/__init__.py")}
    assert all(f"`{room}`" in page for room in rooms)


def _documentation() -> ModuleType:
    spec = importlib.util.spec_from_file_location("documentation", ROOT / "packaging" / "documentation.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module
