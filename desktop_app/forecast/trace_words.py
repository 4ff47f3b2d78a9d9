"""The words of a recorded run: what its ``phase`` and ``event`` cells mean, ours and other people's.

Case, ``_``, ``-`` and full stops do not matter. A word that is not known is kept by its reader and passed over here.

``phase`` cells, and what they are read as:

============== =========================================================================================
step           empty, ``step``, ``train``, ``training``, ``train step``, ``iteration``, ``iter``, ``batch``, ``fit`` …
forward        ``forward``, ``fwd``
backward       ``backward``, ``bwd``, ``loss backward``
optimizer      ``optimizer``, ``optimizer step``, ``optim``, ``optimiser`` …
zero           ``zero``, ``zero grad``
validation     ``validation``, ``val``, ``valid``, ``eval``, ``evaluate``, ``evaluation``, ``test``, ``inference`` …
save           ``save``, ``saving``, ``checkpoint``, ``ckpt``, ``save checkpoint``, ``snapshot`` …
build          ``build``, ``init``, ``setup``, ``start``, ``model`` …
resume         ``resume``, ``restore``, ``load``, ``load checkpoint`` …
============== =========================================================================================

``event`` cells hold such words too, in sentences ("saved checkpoint", "validation begins", "end of epoch 3", "resumed
from step_900.pt", "optimizer step"), separated by ``;`` or ``|``. ``key=value`` figures count wherever they are.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from functools import lru_cache
from typing import Final

from desktop_app.core.steps import BatchShape, Phase


class Mark(StrEnum):
    """Something that an event cell says, besides phases."""

    EPOCH_BEGINS = "epoch_begins"
    EPOCH_ENDS = "epoch_ends"
    RESUME = "resume"
    RESTART = "restart"
    OOM = "oom"


@dataclass(frozen=True, slots=True)
class Words:
    """An event cell, read. ``phase`` is one that it names; ``begins`` and ``ends`` say that it is about to, or over."""

    phase: Phase | None = None
    begins: bool = False
    ends: bool = False
    marks: frozenset[Mark] = frozenset()
    figures: Mapping[str, int] = field(default_factory=dict)  # "total_steps", "steps_per_epoch", "demand" …
    longest_batch: BatchShape | None = None
    longest_batch_step: int | None = None
    ours: bool = False  # it says plainly what the row is about: nothing is to be found out


@dataclass(frozen=True, slots=True)
class PhaseWord:
    """A phase cell, read. No ``phase``: an optimizer step has ended, unless the word is not ``known``."""

    phase: Phase | None
    known: bool = True
    resumes: bool = False
    begins: bool = False
    ends: bool = False


def _set(words: str) -> frozenset[str]:
    return frozenset(words.split())


NOTHING: Final = Words()
_BEGINS: Final = _set("begin begins began begun start starts started starting before next about upcoming")
_ENDS: Final = _set("end ends ended ending done finish finished finishes after complete completed over")
_SEPARATORS: Final = re.compile(r"[;|\n]+")
_FIGURE: Final = re.compile(r"([a-z][a-z ]*?)\s*[=:]\s*(\d+)(?![\d.])")
_OF: Final = re.compile(r"(?:^|\s)(\d+)\s*(?:/|of)\s*(\d+)(?:\s|$)")
_LETTERS: Final = re.compile(r"[a-z]+")

_STEP: Final = _set(
    "step steps train training fit iteration iter iterations batch minibatch update run loop global epoch"
)
_PHASES: Final[Mapping[str, Phase]] = {
    **dict.fromkeys(_set("forward fwd"), Phase.FORWARD),
    **dict.fromkeys(_set("backward bwd backprop"), Phase.BACKWARD),
    **dict.fromkeys(_set("optimizer optimiser optim opt"), Phase.OPTIMIZER),
    **dict.fromkeys(_set("zero zerograd"), Phase.ZERO),
    **dict.fromkeys(
        _set(
            "validation validate validated validating valid val eval evaluate evaluated evaluating evaluation test"
            " testing inference predict prediction"
        ),
        Phase.VALIDATION,
    ),
    **dict.fromkeys(
        _set("save saves saved saving checkpoint checkpoints checkpointed checkpointing ckpt snapshot"), Phase.SAVE
    ),
    **dict.fromkeys(_set("build init setup model construct preparing prepare"), Phase.BUILD),
}
_RESUMES: Final = _set(
    "resume resumes resumed resuming resumption restore restored restoring load loaded loading reload reloaded"
)
_RESUMING: Final = _set("resuming restoring loading")
_RESUMED: Final = _set("resumed restored loaded reloaded")
_RESTARTS: Final = _set("restart restarts restarted restarting relaunch relaunched rerun")
# Figures by the names people give them: ours are first.
_FIGURES: Final[Mapping[str, str]] = {
    **dict.fromkeys(("total steps", "max steps", "num steps", "num training steps", "train steps"), "total_steps"),
    **dict.fromkeys(("steps per epoch", "epoch steps", "batches per epoch", "iters per epoch"), "steps_per_epoch"),
    **dict.fromkeys(("bytes", "demand", "demand bytes"), "demand"),
    **dict.fromkeys(("host", "host bytes"), "host"),
    "done": "done",
    **dict.fromkeys(
        ("count", "total", "eval steps", "val steps", "val batches", "eval batches", "validation batches", "batches"),
        "count",
    ),
    **dict.fromkeys(("samples", "longest samples"), "samples"),
    **dict.fromkeys(("tokens", "longest tokens", "max tokens", "longest batch tokens"), "tokens"),
    **dict.fromkeys(("pixels", "longest pixels", "max pixels"), "pixels"),
    "step": "step",
}


@lru_cache(maxsize=256)
def read_phase(cell: str) -> PhaseWord:
    """What a phase cell means."""
    words = _words(cell)
    if not words:
        return PhaseWord(None)
    begins, ends = not _BEGINS.isdisjoint(words), not _ENDS.isdisjoint(words)
    if not _RESUMES.isdisjoint(words):
        return PhaseWord(Phase.BUILD, resumes=True, begins=begins, ends=ends)
    phase = _phase(words)
    if phase is not None:
        return PhaseWord(phase, begins=begins, ends=ends)
    if words[0] in _STEP or "train" in words or "step" in words:
        return PhaseWord(None)
    if words[0] in _BEGINS:
        return PhaseWord(Phase.BUILD, begins=True)
    return PhaseWord(None, known=False)


@lru_cache(maxsize=1024)
def read_event(cell: str) -> Words:
    """What an event cell means; ``NOTHING`` for an empty one and for words that are not known."""
    if not cell:
        return NOTHING
    phase: Phase | None = None
    begins = ends = False
    marks: set[Mark] = set()
    figures: dict[str, int] = {}
    longest: dict[str, int] = {}
    ours = False
    for part in _SEPARATORS.split(_plain(cell)):
        if part.strip().startswith("alert"):
            continue
        ours = ours or part.strip().startswith(("phase begin", "phase end", "progress:"))
        found = _figures(part)
        words = _LETTERS.findall(part)
        if "longest" in words and "batch" in words:
            longest.update(found)
            continue
        figures.update(found)
        starts, is_over = not _BEGINS.isdisjoint(words), not _ENDS.isdisjoint(words)
        marks |= _marks(words, is_over=is_over)
        named = _phase_of_event(_LETTERS.findall(_FIGURE.sub(" ", part)))
        if named is not None:
            phase, begins, ends = named, starts, is_over or _is_past(words)
        elif Mark.RESUME in marks and not _RESUMES.isdisjoint(words):  # "resume done", "loaded checkpoint"
            starts = starts or not _RESUMING.isdisjoint(words)
            begins, ends = begins or starts, ends or (not starts and (is_over or not _RESUMED.isdisjoint(words)))
        elif words[:1] == ["phase"]:
            begins, ends = begins or starts, ends or is_over
    return Words(phase, begins, ends, frozenset(marks), figures, _shape(longest), longest.get("step"), ours)


def _plain(cell: str) -> str:
    return re.sub(r"[_\-.\t ]+", " ", cell.lower()).strip()


def _words(cell: str) -> list[str]:
    return _LETTERS.findall(_plain(cell))


def _phase(words: list[str]) -> Phase | None:
    """The phase that the words name, the first that does; saving wins ("checkpoint after validation")."""
    phases = [_PHASES[word] for word in words if word in _PHASES]
    return Phase.SAVE if Phase.SAVE in phases else phases[0] if phases else None


def _phase_of_event(words: list[str]) -> Phase | None:
    if not _RESUMES.isdisjoint(words) or not _RESTARTS.isdisjoint(words) or "epoch" in words:
        return Phase.SAVE if "saved" in words or "saving" in words else None
    phase = _phase(words)
    return None if phase is Phase.BUILD else phase


def _is_past(words: list[str]) -> bool:
    """The words themselves say that it has happened."""
    return not {"saved", "checkpointed", "validated", "evaluated"}.isdisjoint(words)


def _marks(words: list[str], *, is_over: bool) -> set[Mark]:
    marks: set[Mark] = set()
    if "oom" in words or {"out", "memory"} <= set(words):
        marks.add(Mark.OOM)
    if not _RESTARTS.isdisjoint(words):
        marks.add(Mark.RESTART)
    elif not _RESUMES.isdisjoint(words):
        marks.add(Mark.RESUME)
    if "epoch" in words and "per" not in words:
        marks.add(Mark.EPOCH_ENDS if is_over else Mark.EPOCH_BEGINS)
    return marks


def _figures(part: str) -> dict[str, int]:
    found: dict[str, int] = {}
    for name, digits in _FIGURE.findall(part):
        words = name.split()
        for length in range(len(words), 0, -1):  # "run total steps": the longest known name at its end
            known = _FIGURES.get(" ".join(words[-length:]))
            if known is not None:
                found[known] = int(digits)
                break
    of = _OF.search(part)
    if of is not None and "epoch" not in part and "step" not in part:
        found.setdefault("done", int(of[1]))
        found.setdefault("count", int(of[2]))
    return found


def _shape(longest: Mapping[str, int]) -> BatchShape | None:
    tokens, pixels = longest.get("tokens"), longest.get("pixels")
    samples = longest.get("samples")
    if samples is None and tokens is None and pixels is None:
        return None
    return BatchShape(samples if samples is not None else 1, tokens, pixels)
