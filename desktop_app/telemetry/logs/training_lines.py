"""Lines of training scripts, one by one. A line counts when all of its form is known, never for a word in it.

llm.c (``main.log`` and terminal), nanoGPT, build-nanogpt, modded-nanogpt, torchtitan, Megatron, Transformers' Trainer,
bars of tqdm that have a loss, and lines that follow the same plan: a step, then names with numbers.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from typing import Final

from desktop_app.telemetry.logs.log_lines import is_open
from desktop_app.telemetry.logs.record import Notes, Stamp, shown
from desktop_app.telemetry.logs.times import stamp_of
from desktop_app.telemetry.logs.training_log import Target, TrainingLog
from desktop_app.telemetry.logs.training_names import NUMBER, plain, target_of

KIND: Final = "training log"
_LONGEST_LINE: Final = 4096
_HINT: Final = re.compile(r"loss|step|iter|s:\d|it/s|s/it|train|val |hella", re.IGNORECASE)
_COLOUR: Final = re.compile(r"\x1b\[[0-9;]*m")
_STAMP: Final = re.compile(
    r"(?:\[[A-Za-z][\w.-]{0,30}\]\s*)?\[?(?P<time>\d{4}[-/]\d\d?[-/]\d\d?[T ]\d\d?:\d\d:\d\d(?:[.,]\d{1,9})?"
    r"(?:Z|[-+]\d\d:?\d\d)?)\]?[\s|:,-]*"
)
# What loggers put before a line: names, levels, ranks, and then a mark that ends it.
_LOGGER: Final = re.compile(
    r"[\w\s.\[\]()<>/@|:,-]{0,100}?[\]\-:|>]\s*(?=(?:epoch|global|step|iter)|\{')", re.IGNORECASE
)
_NO_TRAINING: Final = re.compile(r"\b(?:val|valid|validation|eval|evaluation|test|dev)\b", re.IGNORECASE)
_RANK: Final = re.compile(r"rank[ =:_]?0*([1-9]\d*)|default0*([1-9]\d*)\]", re.IGNORECASE)
_EPOCH: Final = r"epoch\s*[:=]?\s*[\[(]?\s*(?P<epoch>\d{1,9}(?:\.\d{1,9})?)(?:\s*/\s*\d{1,9})?\s*[\])]?[\s,|;:-]+"
_STEP: Final = re.compile(
    rf"(?:{_EPOCH})?(?P<word>global[_ ]step|steps?|iter|iteration|s)\s*[:=#]?\s*[\[(]?\s*"
    r"(?P<step>\d{1,15})(?![.,]?\d)(?:\s*/\s*\d{1,15})?\s*[\])]?(?=[\s,|;:-])[\s,|;:-]*",
    re.IGNORECASE,
)
_PAIR: Final = re.compile(
    rf"(?P<name>[A-Za-z][\w./@()% -]{{0,60}}?)(?:\s*[:=]\s*|\s+)(?P<value>{NUMBER})\s?"
    r"(?P<unit>[A-Za-z%][A-Za-z%/]{0,12})?\s*(?P<more>\([^()]{0,40}\))?",
    re.IGNORECASE,
)
_BARE: Final = re.compile(rf"(?P<value>{NUMBER})\s?(?P<unit>[A-Za-z%][\w%/ ]{{0,20}})", re.IGNORECASE)
_TOKENS: Final = re.compile(r"(?:[A-Za-z][\w./@()%-]*\s*[:=]\s*[^\s:=]+(?:\s+|$))+")
_TOKEN: Final = re.compile(r"[A-Za-z][\w./@()%-]*\s*[:=]\s*[^\s:=]+")
_QUOTED: Final = re.compile(
    rf"'(?P<name>[\w./ @-]{{1,60}})':\s*(?P<quote>'?)(?P<value>{NUMBER})(?P=quote)", re.IGNORECASE
)
_BAR: Final = re.compile(
    r"(?:(?P<title>[^|:]{0,60}):)?\s*\d{1,3}%\|[^|]{0,200}\|\s*(?P<step>\d{1,12})/\d{1,12} "
    r"\[(?P<elapsed>(?:\d{1,4}:)?\d{1,2}:\d\d)<[^,\]]{1,12},[^,\]]{0,16}(?:it/s|s/it)(?:, (?P<rest>[^\]]{1,400}))?\]"
)
_KARPATHY: Final = re.compile(rf"(?P<step>\d{{1,12}}) (?P<name>train|val|hella) (?P<value>{NUMBER})")
_LAST_TOKEN: Final = re.compile(r"(?:^|(?<=\s))[A-Za-z][\w./@()%-]*\s*[:=]\s*[^\s:=]*\Z")
_MARKS: Final = ("|", ", ", " - ")
_ALONE: Final = re.compile(rf"(?:val|validation)[ _]loss\s*[:=]?\s*(?P<value>{NUMBER})", re.IGNORECASE)

_LOSS: Final = Target("steps", "loss")
_VALIDATION: Final = Target("validation", "loss")
_NORM: Final = Target("steps", "grad_norm")
# Beside the names that hold everywhere, those of these lines: units as they are written, and llm.c's abbreviations
# (its logger.h: ``trl`` train_loss, ``tel`` val_loss, ``eval`` the share of HellaSwag answered right).
_TARGETS: Final = {
    "trl": _LOSS,
    "tel": _VALIDATION,
    "valid_loss": _VALIDATION,
    "norm": _NORM,
    "gnorm": _NORM,
    "gradnorm": _NORM,
    "ms": Target("steps", "step_s", 0, 1e-3),
    "time_[ms]": Target("steps", "step_s", 0, 1e-3),
    "dt_[ms]": Target("steps", "step_s", 0, 1e-3),
    "dt_[s]": Target("steps", "step_s", 0, 1.0),
    "elapsed_time_per_iteration_(ms)": Target("steps", "step_s", 0, 1e-3),
    "eval": None,
    "train_time_[ms]": None,
    "step_avg_[ms]": None,
}
_SINCE_START: Final = {"train_time_[ms]": 1e-3}
# Units that are part of a number and change nothing.
_UNITS: Final = frozenset(
    {"ms", "s", "sec", "us", "%", "it/s", "s/it", "tok/s", "samples/s", "img/s", "gib", "gb", "mib", "mb"}
)
_ONCE: Final = frozenset({"train_runtime", "eval_runtime"})
_AVERAGE: Final = "avr_loss is a running average of the epoch, and taken as the loss"

Scalar = tuple[str, float, Target | None]


class TrainingLines:
    """``feed`` takes the lines of one text; what they say is in ``log``."""

    def __init__(self, notes: Notes) -> None:
        self.log = TrainingLog(notes)
        self.first_line: int | None = None
        self._notes = notes
        self._bar: tuple[float, tuple[Scalar, ...]] | None = None
        self._clock_s = 0.0
        self._clock_before_s = 0.0

    def feed(self, number: int, line: str) -> bool:
        """Whether ``line`` is one of a training; then it is in the log, or left out with its reason."""
        if len(line) > _LONGEST_LINE or _HINT.search(line) is None:
            return False
        text = _COLOUR.sub("", line).strip()
        stamp = None
        if found := _STAMP.match(text):
            stamp, text = stamp_of(found["time"].replace(",", ".")), text[found.end() :]
        cut = is_open(line)
        if not cut and self._bare_line(number, text, stamp):
            return True
        if (prefix := _LOGGER.match(text)) is not None:
            if _NO_TRAINING.search(prefix[0]):
                return False
            rank = _RANK.search(prefix[0])
            taken = self._body(number, text[prefix.end() :], stamp, silent=rank is not None, cut=cut)
            if taken and rank is not None:
                self._notes.leave_out(number, "a step as another rank has it")
            return taken
        return self._body(number, text, stamp, cut=cut)

    def _bare_line(self, number: int, text: str, stamp: Stamp | None) -> bool:
        """Lines that have neither a name for their step nor any step."""
        if found := _KARPATHY.fullmatch(text):
            target = {"train": _LOSS, "val": _VALIDATION}.get(found["name"])
            self._take(number, float(found["step"]), stamp, [(found["name"], float(found["value"]), target)])
            return True
        if found := _ALONE.fullmatch(text):
            self._take(number, None, stamp, [("val loss", float(found["value"]), _VALIDATION)])
            return True
        if found := _BAR.search(text):
            return self._take_bar(number, found, text, stamp)
        return False

    def _body(self, number: int, text: str, stamp: Stamp | None, *, silent: bool = False, cut: bool = False) -> bool:
        """``cut``: the file ends inside the line, and its last part does not count."""
        if text.startswith("{'") and text.endswith("}"):
            scalars = _dictionary(text)
            if scalars and not silent:
                self._take(number, None, stamp, scalars)
            return bool(scalars)
        head = _STEP.match(text)
        if head is None:
            return False
        scalars, words = [], []
        rest = text[head.end() :]
        for part in _parts(_without_last(rest) if cut else rest):
            scalar = _scalar(part)
            if scalar is not None:
                scalars.append(scalar)
            elif part:
                words.append(part)
        if any(_NO_TRAINING.fullmatch(re.split(r"[\s:=]+", word)[-1]) for word in words):
            return False  # a row of validation whose names are those of training
        if not any(target is not None or plain(name) in _TARGETS for name, _, target in scalars):
            return False
        if silent:
            return True
        if head["epoch"] is not None:
            scalars.append(("epoch", float(head["epoch"]), Target("steps", "epoch")))
        row = self._take(number, float(head["step"]), stamp, scalars)
        for word in words:
            name, _, rest = word.partition(":") if ":" in word else word.partition(" ")
            self.log.keep_text(row, shown(name), shown(rest.strip() or word))
        return True

    def _take(
        self,
        number: int,
        step: float | None,
        stamp: Stamp | None,
        scalars: list[Scalar],
        *,
        since_s: float | None = None,
    ) -> int:
        self.first_line = number if self.first_line is None else self.first_line
        for name, value, _ in scalars:
            scale = _SINCE_START.get(plain(name))
            if scale is not None and math.isfinite(value):
                since_s = self._counted_on(number, value * scale)
        row = self.log.add_row(number, step=step, stamp=stamp, elapsed_s=None if stamp is not None else since_s)
        for name, value, target in scalars:
            self.log.add(row, name, value, target)
        return row

    def _take_bar(self, number: int, found: re.Match[str], text: str, stamp: Stamp | None) -> bool:
        """A bar that is drawn again, with nothing new, is no second step."""
        scalars = [
            scalar for part in (found["rest"] or "").split(", ") if (scalar := _scalar(part.strip())) is not None
        ]
        average = any(plain(name) == "avr_loss" for name, _, _ in scalars)
        scalars = [(n, v, _LOSS if plain(n) == "avr_loss" else target) for n, v, target in scalars]
        losses = any(target is not None and target.column == "loss" for _, _, target in scalars)
        if not losses or found.end() != len(text) or _NO_TRAINING.search(text[: found.start("step")].split("%")[0]):
            return False
        if average:
            self._notes.remark(number, _AVERAGE)
        drawn = (float(found["step"]), tuple(scalars))
        if drawn == self._bar:
            return True
        self._bar = drawn
        self._take(number, drawn[0], stamp, scalars, since_s=self._bar_time(number, found["elapsed"]))
        return True

    def _bar_time(self, number: int, text: str) -> float:
        """Seconds since the first bar began."""
        seconds = 0.0
        for part in text.split(":"):
            seconds = seconds * 60 + int(part)
        return self._counted_on(number, seconds)

    def _counted_on(self, number: int, seconds: float) -> float:
        """A clock that begins again, with the next bar or after a warm-up, goes on where it was."""
        if seconds < self._clock_s:
            self._clock_before_s += self._clock_s
            self._notes.remark(number, "the script's clock begins again: counted on from the row before")
        self._clock_s = seconds
        return self._clock_before_s + seconds


def _dictionary(text: str) -> list[Scalar]:
    """The words of Transformers' Trainer, numbers as they are or in quotes; empty when anything else is in there."""
    found = list(_QUOTED.finditer(text))
    if not found or _QUOTED.sub("", text).replace(" ", "") != "{" + "," * (len(found) - 1) + "}":
        return []
    names = {match["name"] for match in found}
    if "loss" not in names and not names & _ONCE and not any(name.startswith("eval_") for name in names):
        return []
    whole_run = "train_runtime" in names  # printed once, at the end: means of all
    return [(match["name"], float(match["value"]), None if whole_run else target_of(match["name"])) for match in found]


def _parts(text: str) -> Iterator[str]:
    """The pieces between bars, between commas, or else words with a colon each."""
    text = text.strip()
    for mark in _MARKS:
        if mark in text:
            yield from (_bared(part) for part in text.split(mark))
            return
    if _TOKENS.fullmatch(text):
        yield from (token[0] for token in _TOKEN.finditer(text))
    else:
        yield _bared(text)


def _without_last(text: str) -> str:
    """The text before the last of its ``_parts``."""
    for mark in _MARKS:
        if mark in text:
            return text.rpartition(mark)[0]
    found = _LAST_TOKEN.search(text)
    return "" if found is None else text[: found.start()]


def _bared(part: str) -> str:
    part = part.strip(" ,;")
    if part.startswith("(") and ")" not in part:
        return part[1:]
    return part[:-1] if part.endswith(")") and "(" not in part else part


def _scalar(part: str) -> Scalar | None:
    """A name with its number; the unit becomes part of the name."""
    if found := _PAIR.fullmatch(part):
        name, unit = found["name"].strip(), found["unit"] or ""
        if unit and unit.lower() not in _UNITS:
            return None
        name = f"{name} [{unit}]" if unit else name
    elif found := _BARE.fullmatch(part):
        name, unit = found["unit"].strip(), ""
    else:
        return None
    value = float(found["value"])
    held = plain(name)
    if held in _TARGETS:
        return name, value, _TARGETS[held]
    return name, value, _percent(held) if unit == "%" else target_of(held)


def _percent(name: str) -> Target | None:
    target = target_of(name.removesuffix("_[%]"))
    return (
        Target(target.table, target.column, target.rank, 0.01, share=True)
        if target is not None and target.share
        else None
    )
