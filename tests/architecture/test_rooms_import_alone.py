"""The rooms that need no window, no torch and no driver can be imported where there is none."""

from __future__ import annotations

import subprocess
import sys

import pytest

BLOCKED = ("PySide6", "shiboken6", "pyqtgraph", "torch", "pynvml")
TIMEOUT_S = 60

# Imports what is named on its command line, packages with all of their modules, where nothing blocked can be found.
PROGRAM = f"""
import importlib, pkgutil, sys

BLOCKED = {BLOCKED!r}

class Blocker:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in BLOCKED:
            raise ModuleNotFoundError(f"{{name}} is blocked in this test", name=name)

sys.meta_path.insert(0, Blocker())
for name in sys.argv[1:]:
    room = importlib.import_module(name)
    for module in pkgutil.walk_packages(getattr(room, "__path__", []), prefix=name + "."):
        importlib.import_module(module.name)
        print(module.name)
    print(name)
"""


def imported_alone(*names: str) -> list[str]:
    """Names of the modules that could be imported, in order; the test fails with the traceback otherwise."""
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", PROGRAM, *names],
        capture_output=True,
        text=True,
        timeout=TIMEOUT_S,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.split()


@pytest.mark.parametrize("room", ["desktop_app.core", "desktop_app.forecast"])
def test_a_room_imports_without_window_torch_and_driver(room: str) -> None:
    modules = imported_alone(room)
    assert modules[-1] == room
    assert len(modules) > 1


def test_the_allocator_imports_without_torch() -> None:
    assert imported_alone("desktop_app.memory.allocator") == ["desktop_app.memory.allocator"]


@pytest.mark.parametrize("name", BLOCKED)
def test_the_blockade_holds(name: str) -> None:
    with pytest.raises(AssertionError, match=f"{name} is blocked"):
        imported_alone(name)
