"""Memory that the system has promised to programs, where there is an end to what it may promise."""

from __future__ import annotations

import ctypes
import sys
from pathlib import Path
from typing import Final

_MEMINFO: Final = Path("/proc/meminfo")
_OVERCOMMIT: Final = Path("/proc/sys/vm/overcommit_memory")
_STRICT: Final = "2"  # proc(5): only then is CommitLimit a limit


def commit_charge() -> tuple[int, int] | None:
    """(promised, limit) in bytes; ``None`` where the system promises as much as it is asked for.

    Windows always has a limit, RAM plus page files; Linux with ``vm.overcommit_memory`` = 2 only.
    """
    if sys.platform == "win32":
        return _of_windows()
    return of_linux(_MEMINFO, _OVERCOMMIT) if sys.platform == "linux" else None


def of_linux(meminfo: Path, overcommit: Path) -> tuple[int, int] | None:
    """From the kernel's own files (proc(5)); ``None`` when they are not there or set no limit."""
    try:
        if overcommit.read_text(encoding="ascii").strip() != _STRICT:
            return None
        lines = meminfo.read_text(encoding="ascii").splitlines()
        figures = {name: int(rest.split()[0]) * 1024 for name, _, rest in (line.partition(":") for line in lines)}
        return figures["Committed_AS"], figures["CommitLimit"]
    except (OSError, ValueError, KeyError, IndexError):
        return None


if sys.platform == "win32":

    class _PerformanceInformation(ctypes.Structure):
        """``PERFORMANCE_INFORMATION`` of psapi.h; sizes in pages."""

        _fields_ = (
            ("cb", ctypes.c_uint32),
            *((name, ctypes.c_size_t) for name in ("commit_total", "commit_limit", "commit_peak")),
            *((name, ctypes.c_size_t) for name in ("physical_total", "physical_available", "system_cache")),
            *((name, ctypes.c_size_t) for name in ("kernel_total", "kernel_paged", "kernel_nonpaged", "page_size")),
            *((name, ctypes.c_uint32) for name in ("handles", "processes", "threads")),
        )

    def _of_windows() -> tuple[int, int] | None:
        found = _PerformanceInformation()
        found.cb = ctypes.sizeof(found)
        if not ctypes.windll.kernel32.K32GetPerformanceInfo(ctypes.byref(found), found.cb):
            return None
        return found.commit_total * found.page_size, found.commit_limit * found.page_size
