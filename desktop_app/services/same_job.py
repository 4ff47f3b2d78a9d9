"""Which cards work at the same job, by the processes on them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from desktop_app.core.telemetry import ProcessSample

if TYPE_CHECKING:
    from desktop_app.services.stragglers import Work

# Workers of one job start within moments of one another, even where each reads a large checkpoint first.
_SAME_START_S: Final = 120.0
# Replicas of one model hold about the same; used where nothing is known of the processes.
_SAME_MEMORY: Final = 0.15
# What differs between the ranks of one job: torchrun's and accelerate's rank arguments, pipes of multiprocessing.
_RANK_ARGUMENT: Final = re.compile(r"(--(?:local|node|global)?[-_]?rank[= ])\d+")
_SPAWN: Final = re.compile(r"((?:tracker_fd|pipe_handle|parent_pid)=)\d+")
_RANKED_NAME: Final = re.compile(r"((?:rank|worker|tp|pp|dp|ep)[-_ ]?)\d+", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Mark:
    """What tells one job from another: who runs which command, in which process, since when."""

    pid: int
    user: str | None
    command: str
    started_wall_s: float | None = None


def job_of(processes: Iterable[ProcessSample]) -> Mark | None:
    """The job of a card: its computing process with the most memory. ``None`` where no command is known."""
    known = [each for each in processes if each.kind != "graphics" and (each.command or each.name)]
    if not known:
        return None
    main = max(known, key=lambda each: (each.memory_bytes or 0, each.sm_percent or 0.0, -each.pid))
    return Mark(main.pid, main.user, plain_command(main.command or main.name), main.started_wall_s)


def plain_command(command: str) -> str:
    """A command without what differs between the ranks of one job."""
    for pattern in (_RANK_ARGUMENT, _SPAWN, _RANKED_NAME):
        command = pattern.sub(r"\1#", command)
    return " ".join(command.split())


def others_percent(processes: Sequence[ProcessSample], job: Mark | None) -> float | None:
    """SM time of the processes that are not the job's; ``None`` where nobody tells it."""
    if job is None:
        return None
    strangers = [each for each in processes if plain_command(each.command or each.name) != job.command]
    if not strangers:
        return 0.0
    told = [each.sm_percent for each in strangers if each.sm_percent is not None]
    return sum(told) if told else None


def jobs(works: Sequence[Work]) -> list[list[Work]]:
    """``works`` by job and by model of card; a card of which no process is known goes with those like it."""
    groups: list[list[Work]] = []
    for work in works:
        home = next((group for group in groups if _belongs(work, group)), None)
        if home is None:
            groups.append([work])
        else:
            home.append(work)
    return groups


def _belongs(work: Work, group: Sequence[Work]) -> bool:
    return any(_same(work, other) for other in group)


def _same(one: Work, other: Work) -> bool:
    if one.model != other.model:
        return False
    if one.job is None or other.job is None:
        return one.job is other.job and _same_memory(one, other)
    mine, theirs = one.job, other.job
    if mine.pid == theirs.pid:
        return True
    if (mine.user, mine.command) != (theirs.user, theirs.command):
        return False
    if mine.started_wall_s is None or theirs.started_wall_s is None:
        return True
    return abs(mine.started_wall_s - theirs.started_wall_s) <= _SAME_START_S


def _same_memory(one: Work, other: Work) -> bool:
    mine, theirs = one.mean("memory_used_bytes"), other.mean("memory_used_bytes")
    if mine is None or theirs is None:
        return False
    return abs(mine - theirs) <= _SAME_MEMORY * max(mine, theirs)
