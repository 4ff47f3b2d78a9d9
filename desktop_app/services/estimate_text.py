"""An estimate for a terminal: the verdict, where the memory goes as a waterfall, and what would help."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from desktop_app.core.forecasts import Estimate, Verdict
from desktop_app.core.steps import Category, Phase
from desktop_app.core.units import format_bytes
from desktop_app.memory.largest_batch import MOST
from desktop_app.services import estimate_words as words

NARROW: Final = 60
WIDE: Final = 110  # longer bars say no more
_LABEL: Final = 17
_FIGURE: Final = 11
_MODULES: Final = 6
_BLOCKS: Final = " ▏▎▍▌▋▊▉█"
_RESET: Final = "\x1b[0m"
_VERDICT_COLORS: Final = {
    Verdict.FITS: "\x1b[1;32m",
    Verdict.TIGHT: "\x1b[1;33m",
    Verdict.DOES_NOT_FIT: "\x1b[1;31m",
    Verdict.CANNOT_SAY: "\x1b[1;35m",
}
_DIM: Final = "\x1b[2m"
_BOLD: Final = "\x1b[1m"
_BAR_COLORS: Final = {
    "others": "\x1b[90m",
    "context": "\x1b[37m",
    Category.PARAMETERS.value: "\x1b[34m",
    Category.GRADIENTS.value: "\x1b[35m",
    Category.OPTIMIZER_STATE.value: "\x1b[36m",
    Category.ACTIVATIONS.value: "\x1b[33m",
    Category.TEMPORARIES.value: "\x1b[91m",
    Category.WORKSPACE.value: "\x1b[32m",
    "idle": "\x1b[90m",
}


@dataclass(frozen=True, slots=True)
class Terminal:
    """What the output can show. ``color``: only on a terminal that wants it. ``unicode``: blocks and dashes."""

    width: int = 80
    color: bool = False
    unicode: bool = True

    def paint(self, text: str, color: str) -> str:
        return f"{color}{text}{_RESET}" if self.color and text else text


@dataclass(frozen=True, slots=True)
class Heading:
    """What was estimated on what, in words."""

    training: str
    card: str


@dataclass(frozen=True, slots=True)
class _Bar:
    name: str
    label: str
    size_bytes: int


def as_text(estimate: Estimate, heading: Heading, terminal: Terminal, *, risk: float) -> str:
    """The whole answer, without a line longer than the terminal is wide where that can be."""
    lines = [
        terminal.paint(words.verdict(estimate), _VERDICT_COLORS[estimate.verdict]),
        f"{heading.training} on {heading.card}",
    ]
    if estimate.verdict is not Verdict.CANNOT_SAY:
        for part in (
            _waterfall(estimate, terminal),
            _phases(estimate, terminal),
            _modules(estimate, terminal),
            _batch(estimate, risk),
            _levers(estimate, terminal),
        ):
            if written := list(part):
                lines += ["", *written]
    lines += ["", *_how(estimate, terminal)]
    text = "\n".join(line.rstrip() for line in lines)
    return text if terminal.unicode else text.encode("ascii", "replace").decode()


def _title(text: str, terminal: Terminal) -> str:
    return terminal.paint(text, _BOLD)


def _waterfall(estimate: Estimate, terminal: Terminal) -> Iterator[str]:
    """Each owner's bar begins where the one before it ends; the brim of the card stands in every line."""
    yield _title(f"At the peak, in {words.phase(estimate.peak_phase)}", terminal)
    width = _bar_width(terminal)
    end_bytes = estimate.others_bytes + estimate.device_peak_bytes.p95
    scale = width / max(estimate.capacity_bytes, end_bytes, 1)
    brim = min(width - 1, round(estimate.capacity_bytes * scale))
    at_bytes = 0
    for bar in _owners(estimate):
        cells = _cells(at_bytes * scale, (at_bytes + bar.size_bytes) * scale, width, terminal)
        yield _line(bar.label, bar.size_bytes, _with_brim(cells, brim, terminal, _BAR_COLORS.get(bar.name, "")))
        at_bytes += bar.size_bytes
    peak = estimate.device_peak_bytes
    middle, late = (estimate.others_bytes + size for size in (peak.p50, peak.p95))
    likely, unlikely = "▒░" if terminal.unicode else "=-"
    begin = estimate.others_bytes * scale
    for label, size_bytes, cells in (
        ("device, P50", peak.p50, _cells(begin, middle * scale, width, terminal, full=likely)),
        ("device, P95", peak.p95, _cells(middle * scale, late * scale, width, terminal, full=unlikely)),
    ):
        yield _line(label, size_bytes, _with_brim(cells, brim, terminal, _VERDICT_COLORS[estimate.verdict]))
    capacity = f"{format_bytes(estimate.capacity_bytes)} capacity"
    mark = "└" if terminal.unicode else "^"
    margin = " " * (_LABEL + _FIGURE + 4)
    right = f"{mark} {capacity}"
    if brim + len(right) <= width:
        yield f"{margin}{' ' * brim}{right}"
    else:
        yield f"{margin}{f'{capacity} ' + ('┘' if terminal.unicode else '^'):>{brim + 1}}"


def _owners(estimate: Estimate) -> Iterator[_Bar]:
    if estimate.others_bytes:
        yield _Bar("others", "other processes", estimate.others_bytes)
    yield _Bar("context", "CUDA context", estimate.context_bytes)
    for category in Category:
        size_bytes = estimate.categories.get(category, 0)
        if size_bytes:
            yield _Bar(category.value, words.category(category), size_bytes)
    if estimate.idle_bytes > 0:
        yield _Bar("idle", "cached, idle", estimate.idle_bytes)


def _phases(estimate: Estimate, terminal: Terminal) -> Iterator[str]:
    """As if the cache were emptied before each: what earlier phases left cached is in the waterfall only."""
    if not estimate.phase_peaks:
        return
    yield _title(f"{'Each phase on its own':<{_LABEL + 2}}{'live':>{_FIGURE}}{'reserved':>12}{'device':>12}", terminal)
    for phase in Phase:
        peaks = estimate.phase_peaks.get(phase)
        if peaks is None:
            continue
        figures = (peaks.live.p50, peaks.reserved.p50, peaks.device.p50)
        mark = (" ◂ peak" if terminal.unicode else " < peak") if phase is estimate.peak_phase else ""
        yield f"  {words.phase(phase):<{_LABEL}}{''.join(f'{format_bytes(size):>12}' for size in figures)}{mark}"


def _modules(estimate: Estimate, terminal: Terminal) -> Iterator[str]:
    """The largest modules that are not in one another."""
    chosen: list[str] = []
    rows = []
    for module in sorted(estimate.modules, key=lambda module: -module.total_bytes):
        within = any(module.path.startswith(f"{path}.") or path.startswith(f"{module.path}.") for path in chosen)
        if module.path and not within and module.total_bytes and _leads_nowhere_smaller(module.path, estimate):
            chosen.append(module.path)
            rows.append(f"  {module.path:<30}{format_bytes(module.total_bytes):>12}  {module.kind}")
        if len(rows) == _MODULES:
            break
    if rows:
        yield _title("Largest modules, with all in them", terminal)
        yield from rows


def _leads_nowhere_smaller(path: str, estimate: Estimate) -> bool:
    """A module with several children is better named by them when it holds most of the model."""
    whole = next((module.total_bytes for module in estimate.modules if not module.path), 0)
    own = next(module.total_bytes for module in estimate.modules if module.path == path)
    return own * 2 <= whole or not any(module.path.startswith(f"{path}.") for module in estimate.modules)


def _batch(estimate: Estimate, risk: float) -> Iterator[str]:
    if estimate.largest_batch is None:
        yield f"Largest batch at a risk of {100 * risk:g} %: none, not even one sample."
    else:
        asked = f" (asked for: {estimate.batch_size})"
        more = " or more" if estimate.largest_batch >= MOST else ""
        yield f"Largest batch at a risk of {100 * risk:g} %: {estimate.largest_batch}{more}{asked}"


def _levers(estimate: Estimate, terminal: Terminal) -> Iterator[str]:
    if not estimate.levers:
        return
    yield _title("What would lower the peak", terminal)
    longest = max(len(words.lever(found)) for found in estimate.levers)
    for found in estimate.levers:
        minus = "\N{MINUS SIGN}" if terminal.unicode else "-"
        saved = f"{minus}{format_bytes(found.saved_bytes)}"
        options = terminal.paint(words.lever_options(found), _DIM)
        yield f"  {saved:>{_FIGURE}}  {words.lever(found):<{longest}}  {options}"


def _how(estimate: Estimate, terminal: Terminal) -> Iterator[str]:
    width = f"; adds {100 * estimate.rung_width:.1f} % to the spread" if estimate.rung_width else ""
    yield terminal.paint(f"Rung: {estimate.rung}{width}. {estimate.seconds:.1f} s.", _DIM)
    if estimate.kernels_assumed:
        yield f"Kernels assumed: {_listed(' '.join(re.split('[: ]+', name)) for name in estimate.kernels_assumed)}."
    if estimate.guesses:
        counted = _listed(f"{op} {count}" for op, count in estimate.guesses.items())
        yield f"Values made up where the model reads data: {counted}."
    if estimate.verdict is not Verdict.CANNOT_SAY:
        yield from (f"Note: {words.warning(code)}" for code in estimate.warnings)


def _listed(items: Iterator[str]) -> str:
    return ", ".join(items)


def _bar_width(terminal: Terminal) -> int:
    return max(NARROW, min(terminal.width, WIDE)) - _LABEL - _FIGURE - 5


def _line(label: str, size_bytes: int, cells: str) -> str:
    return f"  {label:<{_LABEL}}{format_bytes(size_bytes):>{_FIGURE}}  {cells}"


def _cells(start: float, end: float, width: int, terminal: Terminal, *, full: str | None = None) -> str:
    """``width`` characters with a bar from ``start`` to ``end`` (in characters); never without a trace of it."""
    whole = full or ("█" if terminal.unicode else "#")
    first, last = min(int(start), width - 1), min(round(end), width)
    count = max(last - first, 0)
    if count == 0:
        share = min(max(end - start, 0.125), 1.0)
        piece = _BLOCKS[max(1, round(8 * share))] if terminal.unicode else "|"
        return f"{' ' * first}{piece}".ljust(width)
    return f"{' ' * first}{whole * count}".ljust(width)


def _with_brim(cells: str, brim: int, terminal: Terminal, color: str) -> str:
    """The bar in its colour, with the card's brim where it leaves room."""
    mark = "│" if terminal.unicode else "|"
    before, at, after = cells[:brim], cells[brim : brim + 1], cells[brim + 1 :]
    middle = mark if at == " " or not at else at
    return _painted(before, terminal, color) + middle + _painted(after, terminal, color)


def _painted(cells: str, terminal: Terminal, color: str) -> str:
    return terminal.paint(cells, color) if cells.strip() else cells


def describe(parts: Sequence[str]) -> str:
    """``timm:resnet50, batch 32, bf16, adamw``."""
    return ", ".join(part for part in parts if part)
