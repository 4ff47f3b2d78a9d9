"""Notices a run that does not learn: its loss is that of guessing, and so is its accuracy."""

from __future__ import annotations

import math
import statistics
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

# Log points looked at together: 6 s at the usual five a second.
_WINDOW: Final = 30
# No verdict before: warm-up and the first steps look like guessing in every run.
_FIRST_STEP: Final = 100
# Guessing by class frequency has the entropy of the classes as its loss. Within 2 % of it or above: not learning.
_STUCK_LOSS: Final = 0.98
_LEARNT_LOSS: Final = 0.9
# Accuracy may exceed the majority share by this and by twice its own standard error and still be guessing.
_SLACK: Final = 0.02
_LEARNT_ACCURACY: Final = 0.1


@dataclass(frozen=True, slots=True)
class LearningChange:
    """The run was found not to learn (``stuck``), or to learn after all."""

    stuck: bool
    params: Mapping[str, object]


class LearningWatch:
    """Judges the training loss and accuracy of recent log points against guessing by class frequency."""

    def __init__(self, class_counts: Sequence[int]) -> None:
        total = sum(class_counts)
        shares = [count / total for count in class_counts if count]
        self.chance_loss = -sum(share * math.log(share) for share in shares)
        self.chance_accuracy = max(shares)
        self._losses: deque[float] = deque(maxlen=_WINDOW)
        self._accuracies: deque[float] = deque(maxlen=_WINDOW)
        self._stuck = False

    def observe(self, *, step: int, loss: float, accuracy: float, samples: int) -> LearningChange | None:
        """One log point of ``samples`` samples; the verdict when it has changed."""
        self._losses.append(loss)
        self._accuracies.append(accuracy)
        if len(self._losses) < _WINDOW or step < _FIRST_STEP:
            return None
        middle = statistics.median(self._losses)
        mean = statistics.fmean(self._accuracies)
        stuck = self._is_stuck(middle, mean, samples * _WINDOW)
        if stuck == self._stuck or (self._stuck and not self._has_learnt(middle, mean)):
            return None
        self._stuck = stuck
        return LearningChange(
            stuck,
            {
                "step": step,
                "loss": middle,
                "chance_loss": self.chance_loss,
                "accuracy": mean,
                "chance_accuracy": self.chance_accuracy,
            },
        )

    def _is_stuck(self, loss: float, accuracy: float, samples: int) -> bool:
        chance = self.chance_accuracy
        noise = 2 * math.sqrt(chance * (1 - chance) / samples)
        return loss >= _STUCK_LOSS * self.chance_loss and accuracy <= chance + _SLACK + noise

    def _has_learnt(self, loss: float, accuracy: float) -> bool:
        return loss <= _LEARNT_LOSS * self.chance_loss and accuracy >= min(1.0, self.chance_accuracy + _LEARNT_ACCURACY)
