"""What both kinds of stage keep of a trace: the values made up, and what was chosen where CUDA has a choice."""

from __future__ import annotations

from collections import Counter
from contextlib import AbstractContextManager, nullcontext
from typing import Final, cast

import torch

from desktop_app.memory.card_spec import CardSpec
from desktop_app.memory.tracing.attention import AttentionChooser
from desktop_app.memory.tracing.stage_answers import autocast_dtype
from desktop_app.memory.tracing.stage_guesses import Guesses


class StageChoices:
    """The part of a ``Stage`` that does not depend on which tensors stand in for CUDA's."""

    def __init__(self, card: CardSpec | None, *, attention: str) -> None:
        self.made_up: Guesses = Guesses()
        self._card: Final = card
        self._chooser: Final = AttentionChooser(card.compute_capability if card else None, attention)

    @property
    def guesses(self) -> Counter[str]:
        return self.made_up.counts

    @property
    def kernels(self) -> dict[str, str]:
        taken = self._chooser.kernels()
        return {"attention": taken} if taken else {}

    def autocast(self, precision: str) -> AbstractContextManager[None]:
        dtype = autocast_dtype(precision)
        if dtype is None:
            return nullcontext()
        return cast(AbstractContextManager[None], torch.autocast("cuda", dtype=dtype))
