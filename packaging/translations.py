"""Bring the translation files up to date with the sources: new texts come in unfinished, old ones go.

Run it after changing a text in ``desktop_app/ui``, fill in what it calls unfinished, and run it again to compile.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).resolve().parent.parent
SOURCES: Final = ROOT / "desktop_app" / "ui"
TRANSLATIONS: Final = ROOT / "resources" / "translations"
LANGUAGES: Final = ("zh_CN",)


def tool(name: str) -> str:
    """Qt's own program, from the environment that runs this script."""
    return str(Path(sys.executable).with_name(name))


def update(target: Path, language: str) -> None:
    """Write the texts of the sources into ``target``; what is translated in it stays. No line numbers: they churn."""
    command = [tool("pyside6-lupdate"), "-silent", "-extensions", "py", "-locations", "none", "-no-obsolete"]
    command += ["-source-language", "en", "-target-language", language, str(SOURCES), "-ts", str(target)]
    subprocess.run(command, check=True)


def compile_to(target: Path, source: Path) -> None:
    """Write the compiled form that the program loads."""
    subprocess.run([tool("pyside6-lrelease"), "-silent", str(source), "-qm", str(target)], check=True)


def main() -> int:
    for language in LANGUAGES:
        source = TRANSLATIONS / f"floodmark_{language}.ts"
        update(source, language)
        compile_to(source.with_suffix(".qm"), source)
        unfinished = source.read_text(encoding="utf-8").count('type="unfinished"')
        print(f"{source.name}: {unfinished} unfinished")
    return 0


if __name__ == "__main__":
    sys.exit(main())
