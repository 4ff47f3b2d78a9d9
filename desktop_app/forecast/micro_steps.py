"""What micro-steps leave live until the update: their gradients once, or anew with each of them."""

from __future__ import annotations

from typing import Final

_ANEW: Final = 0.1  # of what the first one leaves: gradients that are summed in place leave less with the next ones
_AS_BEFORE: Final = 1.01  # times what a step has borne at this micro-step


class MicroSteps:
    """Live bytes before each micro-step of the step under way, and the most that whole steps have had there.

    Gradients are summed in place as a rule, so from the second micro-step on no more is live than before it. Where each
    leaves its own (gradients that are not reduced until the last one, kept graphs), a later one meets less room.
    """

    def __init__(self) -> None:
        self._step = 0
        self._live: list[int] = []
        self._borne: dict[int, int] = {}

    def take(self, *, step: int, done: int, live_bytes: int) -> float | None:
        """``done`` micro-steps of ``step`` are over. By how much the peak of the next one is above that of a step of
        one, in bytes, where they leave something anew and no step before had as much; else ``None``."""
        if step != self._step or done == 0:
            if step > self._step:  # the one before is over, and the card has borne it
                for at, live in enumerate(self._live):
                    self._borne[at] = max(self._borne.get(at, 0), live)
            self._step, self._live = step, []
        if done != len(self._live):  # not told of each
            return None
        self._live.append(live_bytes)
        if done < 2:  # the first one leaves gradients in any case
            return None
        begin, first, before = self._live[0], self._live[1], self._live[-2]
        left, anew = first - begin, live_bytes - before
        if anew <= _ANEW * max(left, 1) or live_bytes <= _AS_BEFORE * self._borne.get(done, 0):
            return None
        return float(live_bytes - begin + anew - left)
