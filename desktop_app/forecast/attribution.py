"""Which cause it is when several explain one growth: one alert for one thing.

Every rule names the cause that is explained away (``loser``), the one that explains it (``winner``) and what must hold.
The loser says nothing more, so what it feared is not counted twice. Rules look at figures of ``Outlook.evidence``:

============================== =======================================================================================
``slope_bytes_per_step``       how fast what is live grows (leak)
``reserved_slope_bytes_per_step`` how fast what the allocator holds grows
``slope_bytes_per_s``          how fast the memory of a neighbour, of the rest of this process, or of the host grows
``saves_to_go``                the growth comes with saves, and so many more bring it to the brim
``validations_to_go``          the same with validations
``explained_share``            of the demand's growth that follows the shape of the batches
============================== =======================================================================================
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Final

from desktop_app.core.forecasts import AlertSeverity, Cause
from desktop_app.forecast.leak import ENOUGH_STEPS
from desktop_app.forecast.outlook import SEVERITIES, Outlook
from desktop_app.forecast.policy import CLEAR_BELOW_P

_MINOR_SHARE: Final = 0.3  # of all growth: a cause with less than this is not what fills the card
_HALF: Final = 0.5
# Of the growth of what is reserved: with more than this live, the rest are the holes that the live part leaves between
# its blocks. Fragmentation proper has level live memory.
_LIVE_SHARE: Final = 0.15
# The same beside a leak beyond doubt. Holes come in a rush and stop; while they grow faster they would hide it. What is
# live in runs that only fragment wanders: of 31 (tuning half) one slope in a thousand was 8 deviations above 0.
_PROVEN_SHARE: Final = 0.01
_BEYOND_DOUBT_Z: Final = 8.0
_CLEAR_Z: Final = 4.0  # of one that has lasted ``_BEFORE`` times as long as the holes have grown
_BEFORE: Final = 4.0
_EARLY_STEPS: Final = 40.0  # a leak may take this long to be proven; what it explains waits for it
_TIES: Final[Mapping[str, tuple[Cause, str]]] = {  # figure of a leak in stairs: whose stairs they are, what to do
    "saves_to_go": (Cause.CHECKPOINT_SAVE, "save_to_host"),
    "validations_to_go": (Cause.VALIDATION, "no_grad_validation"),
}
# Growths that compete for the card's memory. The computer's RAM and single calls are other matters.
_GROWTHS: Final = (Cause.LEAK, Cause.FRAGMENTATION, Cause.NEIGHBOUR, Cause.OUTSIDE_ALLOCATOR)
_SETTLED: Final = frozenset({Cause.LEAK, Cause.FRAGMENTATION})


@dataclass(frozen=True, slots=True)
class Attribution:
    """Outlooks that are left, and the causes that others explain: their alerts, if any are out, are over."""

    outlooks: Mapping[Cause, Outlook]
    superseded: frozenset[Cause] = frozenset()


_NOTHING: Final = Attribution({})


@dataclass(frozen=True, slots=True)
class _Rule:
    loser: Cause
    winner: Cause
    holds: Callable[[Outlook, Outlook], bool]  # (loser, winner)
    lasts: bool = False  # what has been told of the loser is not taken back at once, but when it is over


def attribute(
    outlooks: Mapping[Cause, Outlook], *, open_causes: Collection[Cause] = (), pace_s: float | None = None
) -> Attribution:
    """Settle who explains what. ``open_causes``: alerts about these are out. ``pace_s``: seconds per step."""
    if not outlooks:
        return _NOTHING
    found = dict(outlooks)
    superseded = set(_hand_over(found))
    certain = {cause for cause, outlook in found.items() if _is_certain(outlook) or cause in open_causes}
    for rule in _RULES if len(found) > 1 else ():
        loser, winner = found.get(rule.loser), found.get(rule.winner)
        if loser is None or winner is None:
            continue
        # What people have been told already is taken back only for something that they have been told as well.
        told = rule.loser in open_causes
        sure = rule.winner in open_causes if told else rule.winner in certain or _is_early_leak(winner)
        if told and rule.lasts and loser.p_run >= CLEAR_BELOW_P:
            continue
        if sure and rule.holds(loser, winner):
            del found[rule.loser]
            superseded.add(rule.loser)
    for cause in list(_minor_growths(found, certain, pace_s)):
        del found[cause]
        superseded.add(cause)
    return Attribution(found, frozenset(superseded))


def _hand_over(found: dict[Cause, Outlook]) -> Iterator[Cause]:
    """A leak in stairs that come with saves or validations is told under that cause, unless that knows more itself."""
    leak = found.get(Cause.LEAK)
    if leak is None:
        return
    for figure, (cause, action) in _TIES.items():
        if figure in leak.evidence:
            known = found.get(cause)
            if known is None or _rank(known) < _rank(leak):
                found[cause] = replace(leak, cause=cause, action=action)
            del found[Cause.LEAK]
            yield Cause.LEAK
            return


def _minor_growths(found: Mapping[Cause, Outlook], certain: Collection[Cause], pace_s: float | None) -> Iterator[Cause]:
    """Growths that are small beside a certain one: they would hardly ever fill the card by themselves first."""
    speeds = {cause: _bytes_per_step(found[cause], pace_s) for cause in _GROWTHS if cause in found}
    known = {cause: speed for cause, speed in speeds.items() if speed is not None and speed > 0}
    total = sum(known.values())
    fastest = max(known, key=lambda cause: known[cause], default=None)
    if fastest is None or fastest not in certain:
        return
    for cause, speed in known.items():
        settled = fastest in _SETTLED and cause in _SETTLED  # by the rules
        if cause is not fastest and not settled and speed < _MINOR_SHARE * total:
            yield cause


def _bytes_per_step(outlook: Outlook, pace_s: float | None) -> float | None:
    evidence = outlook.evidence
    if "slope_bytes_per_step" in evidence:
        return max(evidence["slope_bytes_per_step"], evidence.get("reserved_slope_bytes_per_step", 0.0))
    if "slope_bytes_per_s" in evidence and pace_s is not None:
        return evidence["slope_bytes_per_s"] * pace_s
    return None


def _is_certain(outlook: Outlook) -> bool:
    return outlook.severity in (AlertSeverity.LIKELY, AlertSeverity.IMMINENT)


def _is_early_leak(outlook: Outlook) -> bool:
    """A leak that is seen and not proven yet, because it has only begun."""
    begun = outlook.evidence.get("grown_steps", _EARLY_STEPS) < _EARLY_STEPS
    return outlook.cause is Cause.LEAK and outlook.severity is AlertSeverity.WATCH and begun


def _rank(outlook: Outlook) -> int:
    return SEVERITIES.index(outlook.severity)


def _live_share(leak: Outlook, holes: Outlook) -> float:
    """Of the growth of what is reserved, the share that is live. At the brim nothing more is reserved: holes tell."""
    slope = leak.evidence.get("slope_bytes_per_step", 0.0)
    with_holes = slope + holes.evidence.get("slope_bytes_per_step", 0.0)
    return slope / max(leak.evidence.get("reserved_slope_bytes_per_step", 0.0), with_holes, 1.0)


def _is_mostly_holes(leak: Outlook, holes: Outlook) -> bool:
    steps = leak.evidence.get("grown_steps", ENOUGH_STEPS)
    if steps < min(ENOUGH_STEPS, _HALF * holes.evidence.get("grown_steps", 0.0)):  # it has only begun: they are not its
        return True
    return _live_share(leak, holes) < (_PROVEN_SHARE if _is_beyond_doubt(leak, holes) else _LIVE_SHARE)


def _is_beyond_doubt(leak: Outlook, holes: Outlook) -> bool:
    """Clear by itself, or there long before the holes were."""
    steps, significance = leak.evidence.get("grown_steps", 0.0), leak.evidence.get("significance", 0.0)
    if not _is_certain(leak) or steps < ENOUGH_STEPS:
        return False
    before = _BEFORE * holes.evidence.get("grown_steps", steps) < steps
    return significance >= (_CLEAR_Z if before else _BEYOND_DOUBT_Z)


def _is_mostly_live(holes: Outlook, leak: Outlook) -> bool:
    return not _is_mostly_holes(leak, holes)


def _follows_batches(_: Outlook, batches: Outlook) -> bool:
    return batches.evidence.get("explained_share", 0.0) >= _HALF


def _is_stairs(holes: Outlook, winner: Outlook) -> bool:
    return any(figure in winner.evidence for figure in _TIES) and _live_share(winner, holes) >= _LIVE_SHARE


def _comes_later(call: Outlook, leak: Outlook) -> bool:
    """The card is full before that call is made, and only for what has grown by then."""
    if call.to_go is None or leak.to_go is None or not _is_certain(leak):
        return False
    return leak.to_go.median < call.to_go.median


def _always(_: Outlook, __: Outlook) -> bool:
    return True


_RULES: Final = (
    _Rule(Cause.FRAGMENTATION, Cause.LEAK, _is_mostly_live),
    _Rule(Cause.FRAGMENTATION, Cause.CHECKPOINT_SAVE, _is_stairs),  # copies that stay cut large blocks up
    _Rule(Cause.FRAGMENTATION, Cause.VALIDATION, _is_stairs),
    # Holes come and go: a leak whose stairs are made out anew for a moment is still the same leak.
    _Rule(Cause.LEAK, Cause.FRAGMENTATION, _is_mostly_holes, lasts=True),
    _Rule(Cause.VALIDATION, Cause.LEAK, _comes_later),
    _Rule(Cause.CHECKPOINT_SAVE, Cause.LEAK, _comes_later),
    _Rule(Cause.LEAK, Cause.BATCH_SHAPE, _follows_batches),
    _Rule(Cause.FRAGMENTATION, Cause.BATCH_SHAPE, _follows_batches),
    _Rule(Cause.FIRST_OPTIMIZER_STEP, Cause.RESUME, _always),  # its state had room before
    _Rule(Cause.LEAK, Cause.RESUME, _always),  # one level higher than before, and never twice
    _Rule(Cause.BATCH_SHAPE, Cause.SPILL, _always),  # nothing is refused where the driver moves memory
    _Rule(Cause.HOST_MEMORY, Cause.SPILL, _always),  # what spills, spills into RAM
)
