"""The first lines that the tracing interpreter runs, as a script: claim the pipe, find our package, go on in child.py.

Any Python 3 may be asked, so nothing in here is newer than 3.6 and nothing of ours is imported before its age is known.
"""

import enum
import json
import os
import sys
import typing
from importlib.machinery import ModuleSpec, PathFinder
from pathlib import Path
from typing import Any, Optional, Tuple  # noqa: UP035

MINIMUM = (3, 10)
PACKAGE = "desktop_app"
MARK = b"\x1e"  # as in wire.py, which an old interpreter cannot read


def main() -> None:
    """Hand the standard streams over and serve."""
    root = sys.path.pop(0)  # of this script: its modules are not top-level names of the user's environment
    if sys.version_info < MINIMUM:
        refuse()
        return
    jobs, answers = claim_pipes()
    add_missing_names()
    sys.meta_path.insert(0, Finder(str(Path(root).resolve().parents[2])))
    from desktop_app.memory.tracing.child import serve

    serve(jobs, answers, arguments=sys.argv[1:])


def refuse() -> None:
    """Say that this interpreter is too old."""
    found, wanted = (".".join(str(number) for number in version) for version in (sys.version_info[:3], MINIMUM))
    message = "{} is Python {}; tracing needs {} or newer.".format(sys.executable, found, wanted)  # noqa: UP032
    frame = {"error": {"kind": "interpreter_too_old", "message": message}}
    os.write(1, MARK + json.dumps(frame).encode("ascii") + b"\n")


def claim_pipes() -> Tuple[int, int]:  # noqa: UP006
    """Jobs came by standard input and answers go by standard output: both are moved to descriptors of their own that
    no child inherits. What the model prints goes where errors go, and it reads an empty input."""
    jobs, answers = os.dup(0), os.dup(1)  # not inheritable
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)
    os.dup2(2, 1)
    return jobs, answers


class Finder:
    """Finds our package and nothing else there: the folder may be the site-packages of another interpreter."""

    def __init__(self, root: str) -> None:
        self._root = root

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> Optional[ModuleSpec]:  # noqa: ARG002, UP045
        """As ``importlib.abc.MetaPathFinder.find_spec``."""
        return PathFinder.find_spec(name, [self._root], target) if name == PACKAGE else None


def add_missing_names() -> None:
    """Python 3.10 lacks two names that our modules use."""
    if not hasattr(typing, "Self"):
        typing.Self = Any  # type: ignore[assignment]
    if not hasattr(enum, "StrEnum"):
        enum.StrEnum = enum.Enum("StrEnum", {}, type=str)  # type: ignore[misc]
        enum.StrEnum.__str__ = str.__str__  # type: ignore[method-assign]


if __name__ == "__main__":
    main()
