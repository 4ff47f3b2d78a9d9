"""The Python that traces, found from what a user may write: a file, a name on the path, or an environment's folder."""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path
from typing import Final

from desktop_app.memory.trace_errors import TracerError

_INSIDE: Final = ("bin/python", "bin/python3", "Scripts/python.exe", "python.exe")  # of an environment
# Ours, wrong for another interpreter.
_OWN_VARIABLES: Final = ("PYTHONHOME", "__PYVENV_LAUNCHER__", "PYTHONEXECUTABLE")


def find_interpreter(python: Path | None) -> Path:
    """The executable. ``None``: our own. Raises ``TracerError`` (``no_interpreter``) in one line.

    Links are kept as they are: in a virtual environment the link is what makes the environment.
    """
    if python is None:
        if getattr(sys, "frozen", False) or not sys.executable:
            raise TracerError("no_interpreter", "This build of Floodmark has no Python of its own to start.")
        return Path(sys.executable)
    named = python.expanduser()
    if named.is_dir():
        inside = next((path for name in _INSIDE if (path := named / name).is_file()), None)
        if inside is None:
            raise _missing(python, f"the folder {python} is no Python environment")
        return inside.absolute()
    if named.is_file():
        if not os.access(named, os.X_OK):
            raise _missing(python, f"{python} cannot be run")
        return named.absolute()
    found = shutil.which(str(python)) if len(python.parts) == 1 else None
    if found is None:
        raise _missing(python, f"there is no Python at {python}")
    return Path(found).absolute()


def environment_for(executable: Path) -> dict[str, str]:
    """The variables of the interpreter's process: those of ours, but for what only goes with our own Python."""
    variables = dict(os.environ)
    if executable != Path(sys.executable):
        for name in _OWN_VARIABLES:
            variables.pop(name, None)
    return variables


def _missing(python: Path, what: str) -> TracerError:
    line = f"{what[0].upper()}{what[1:]}. Give the file of a Python that has torch."
    return TracerError("no_interpreter", line, params={"python": str(python)})
