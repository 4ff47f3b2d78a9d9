"""Bring the tables of the user guide up to date with the code. The tests compare them.

python packaging/documentation.py
"""

from __future__ import annotations

import ast
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
GUIDE = ROOT / "docs" / "guide"


def field_table() -> str:
    """The fields of a run file, from ``training.config``."""
    from desktop_app.training.config import FIELDS

    notes = _field_notes(ROOT / "desktop_app" / "training" / "config.py")
    rows = ["| field | default | takes | meaning |", "|---|---|---|---|"]
    for spec in FIELDS:
        default = "not set" if spec.default is None or spec.default == "" else str(spec.default).lower()
        rows.append(f"| `{spec.name}` | {default} | {spec.expected} | {notes[spec.name]} |")
    return "\n".join(rows)


def key_table() -> str:
    """The commands that have a key, from ``ui.commands``."""
    from desktop_app.ui.actions import shortcut_text
    from desktop_app.ui.commands import COMMANDS

    rows = ["| command | key |", "|---|---|"]
    rows += [f"| {command.text} | {keys} |" for command in COMMANDS if (keys := shortcut_text(command.id))]
    return "\n".join(rows)


def with_table(text: str, name: str, table: str) -> str:
    """``text`` with everything between the markers of ``name`` replaced."""
    begin, end = f"<!-- {name} -->\n", f"\n<!-- /{name} -->"
    before, found, rest = text.partition(begin)
    _, closed, after = rest.partition(end)
    if not (found and closed):
        raise ValueError(f"no markers <!-- {name} --> … <!-- /{name} -->")
    return before + begin + table + end + after


TABLES = {"training.md": ("fields", field_table), "window.md": ("keys", key_table)}


def main() -> int:
    for file, (name, table) in TABLES.items():
        path = GUIDE / file
        path.write_text(with_table(path.read_text(encoding="utf-8"), name, table()), encoding="utf-8")
        print(f"{file}: {name} written")
    return 0


def _field_notes(source: Path) -> dict[str, str]:
    """The line below each field of ``RunConfig``."""
    tree = ast.parse(source.read_text(encoding="utf-8"))
    config = next(node for node in tree.body if isinstance(node, ast.ClassDef) and node.name == "RunConfig")
    notes = {}
    for field, note in zip(config.body, config.body[1:], strict=False):
        if isinstance(field, ast.AnnAssign) and isinstance(field.target, ast.Name) and isinstance(note, ast.Expr):
            assert isinstance(note.value, ast.Constant)
            notes[field.target.id] = " ".join(str(note.value.value).split())
    return notes


if __name__ == "__main__":
    sys.exit(main())
