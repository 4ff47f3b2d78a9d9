"""Which container a process runs in, as Linux tells: from its cgroup, and from the marks of this system's own."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Final

# Of more than one name in a path the first of this list counts: a pod's containers are Docker's or containerd's too.
_KINDS: Final = (
    ("kubernetes", re.compile(r"[/-]kubepods(?:[/.-]|$)")),
    ("podman", re.compile(r"/libpod(?:_parent|-[0-9a-f]{8,})")),
    ("docker", re.compile(r"/docker[/-][0-9a-f]{12,}")),
    ("kubernetes", re.compile(r"/crio-[0-9a-f]{12,}")),
    ("containerd", re.compile(r"/(?:cri-containerd|nerdctl|containerd)-[0-9a-f]{12,}|/default/[0-9a-f]{64}(?:/|$)")),
    ("lxc", re.compile(r"/lxc(?:\.payload)?[./][^/.]")),
    ("nspawn", re.compile(r"/systemd-nspawn@[^/]+\.service/payload|/machine-(?!qemu|lxc)[^/]+\.scope/payload")),
    ("other", re.compile(r"[/:-][0-9a-f]{64}(?:\.scope)?(?:/|$)")),
)
# What watches a container from the host is not in it.
_BESIDE: Final = re.compile(r"/lxc\.monitor|-conmon-")
# The first process namespace of a Linux system (PROC_PID_INIT_INO in the kernel's proc_ns.h).
_FIRST_NAMESPACE: Final = "pid:[4026531836]"
_CARD_DEVICES: Final = ("/dev/nvidia", "/dev/dxg")  # dxg: the card of a WSL


def container_of(cgroup: str) -> str | None:
    """The kind of container of a process whose ``/proc/<pid>/cgroup`` is ``cgroup`` (v1, v2 or both).

    ``None``: none is named there. That is also how a process looks from inside its own container.
    """
    paths = [line.split(":", 2)[2] for line in cgroup.splitlines() if line.count(":") >= 2]
    text = "\n".join(path for path in paths if not _BESIDE.search(path))
    return next((kind for kind, pattern in _KINDS if pattern.search(text)), None)


def own_container(
    *, root: Path = Path("/"), environment: Mapping[str, str] | None = None, cgroup: str | None = None
) -> str | None:
    """The kind of container that this program runs in; ``None`` when nothing speaks for one."""
    environment = os.environ if environment is None else environment
    named = container_of(_text(root / "proc/self/cgroup") if cgroup is None else cgroup)
    if "KUBERNETES_SERVICE_HOST" in environment:
        return "kubernetes"
    if named is not None:
        return named
    if (root / "run/.containerenv").exists():
        return "podman"
    if (root / ".dockerenv").exists():
        return "docker"
    marked = environment.get("container", "")  # systemd, podman, lxc and nspawn set it for the first process
    return {"": None, "lxc": "lxc", "podman": "podman", "systemd-nspawn": "nspawn"}.get(marked, "other")


def sees_all_pids(*, root: Path = Path("/")) -> bool | None:
    """Whether this program is in the system's first process namespace, so that the driver's pids are its own.

    ``None``: not to be known (not Linux, ``/proc`` closed).
    """
    try:
        return str((root / "proc/self/ns/pid").readlink()) == _FIRST_NAMESPACE
    except OSError:
        return None


def container_of_pid(pid: int, *, root: Path = Path("/")) -> str | None:
    """``container_of`` for a pid of this system; ``None`` where its cgroup cannot be read."""
    return container_of(_text(root / f"proc/{pid}/cgroup"))


def holds_card(pid: int, *, root: Path = Path("/")) -> bool | None:
    """Whether a process has a card's device open; ``None`` when its files may not be looked at."""
    folder = root / f"proc/{pid}/fd"
    try:
        entries = list(folder.iterdir())
    except OSError:
        return None
    for entry in entries:
        try:
            if str(entry.readlink()).startswith(_CARD_DEVICES):
                return True
        except OSError:  # closed meanwhile
            continue
    return False


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""
