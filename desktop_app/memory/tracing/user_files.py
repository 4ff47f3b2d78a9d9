"""The user's own modules that this interpreter has imported: once one has changed on disk, a fresh one is needed."""

from __future__ import annotations

import sys
import sysconfig
from pathlib import Path
from typing import Final

_LIBRARIES: Final = tuple(
    Path(path).resolve()
    for name in ("stdlib", "platstdlib", "purelib", "platlib")
    if (path := sysconfig.get_path(name))
)
_OURS: Final = Path(__file__).resolve().parents[2]


class UserFiles:
    """Modules from anywhere but libraries and our package, with the time their file was last written."""

    def __init__(self) -> None:
        self._seen: set[str] = set()
        self._written: dict[Path, int | None] = {}

    def look(self) -> None:
        """Take note of what has been imported since the last look."""
        new = sys.modules.keys() - self._seen
        self._seen |= new
        for name in new:
            file = getattr(sys.modules.get(name), "__file__", None)
            if isinstance(file, str) and _is_users(path := Path(file).resolve()):
                self._written.setdefault(path, _written_at(path))

    def have_changed(self) -> bool:
        """Whether a file that was imported is not what it was."""
        return any(_written_at(path) != written for path, written in self._written.items())


def _is_users(path: Path) -> bool:
    folders = (*_LIBRARIES, _OURS)
    return not any(path.is_relative_to(folder) for folder in folders) and "site-packages" not in path.parts


def _written_at(path: Path) -> int | None:
    try:
        return path.stat().st_mtime_ns
    except OSError:
        return None
