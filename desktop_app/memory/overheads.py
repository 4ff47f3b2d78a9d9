"""What a training holds on a card beyond its tensors: context, cuBLAS and cuDNN workspaces, as distributions.

Torch-free. A figure read from the real card should replace a prior from here as soon as there is one.
"""

from __future__ import annotations

import random
from dataclasses import dataclass
from itertools import pairwise
from typing import Final

from desktop_app.core.forecasts import Quantiles
from desktop_app.core.units import MIB
from desktop_app.memory.card_limits import (
    CUBLAS_WORKSPACE_BYTES,
    CUBLAS_WORKSPACE_LARGE_BYTES,
    CUDNN_OP,
    cublas_workspace_bytes,
    sm_count,
    threads_per_sm,
)
from desktop_app.memory.card_spec import CardSpec

__all__ = [
    "CUBLAS_WORKSPACE_BYTES",
    "CUBLAS_WORKSPACE_LARGE_BYTES",
    "CUDNN_OP",
    "CUDNN_SCALES",
    "CardSpec",
    "ContextPrior",
    "cublas_workspace_bytes",
    "sm_count",
    "threads_per_sm",
]


# Bytes outside an exact replay (context, handles, kernels) with all kernels loaded at the start, by SM count:
# 490 MiB at 13, 1,066 at 40, 1,258 at 46, 1,303 at 80, 1,401 at 82 and 1,955 at 108. Least squares; the largest
# residual is 214 MiB (46 SM).
_EAGER_BASE_MIB: Final = 448.0
_EAGER_MIB_PER_SM: Final = 12.97

# Share of that which today's torch holds. Since CUDA 11.7 kernels load when first used: an idle process shows 256 MiB
# (82 SM, driver 610) to 426 MiB (142 SM, CUDA 13.0), which is 0.17 to 0.19, and 300 to 400 MiB on others; a training
# loads the kernels it calls on top. All at once again (1.0) with CUDA_MODULE_LOADING=EAGER or an old torch.
_CONTEXT_SHARES: Final = (
    (0.0, 0.17),
    (0.05, 0.20),
    (0.25, 0.30),
    (0.5, 0.40),
    (0.75, 0.55),
    (0.9, 0.75),
    (0.95, 1.0),
    (1.0, 1.15),
)

# The crude workspace rule (lowering.convolution_workspace) times one of these. At 0 cuDNN has picked an algorithm
# that needs none; the upward residuals of the rule (grouped and very wide convolutions) reach about twice its size.
# The middle value is the simulated card's.
CUDNN_SCALES: Final = ((0.0, 0.2), (1.0, 0.6), (2.0, 0.2))  # (scale, probability)


@dataclass(frozen=True, slots=True)
class ContextPrior:
    """What a process will hold outside its allocator on a card nobody has measured yet."""

    eager_bytes: float

    @classmethod
    def of(cls, card: CardSpec) -> ContextPrior:
        return cls((_EAGER_BASE_MIB + _EAGER_MIB_PER_SM * sm_count(card)) * MIB)

    def quantile(self, probability: float) -> int:
        """Bytes that the context stays below with this probability, in whole MiB."""
        if not 0.0 <= probability <= 1.0:
            raise ValueError(f"probability must be in [0, 1], got {probability}")
        for (p_low, low), (p_high, high) in pairwise(_CONTEXT_SHARES):
            if probability <= p_high:
                share = low + (high - low) * (probability - p_low) / (p_high - p_low)
                return round(share * self.eager_bytes / MIB) * MIB
        raise AssertionError("the table ends at 1")

    def quantiles(self) -> Quantiles:
        return Quantiles(p50=self.quantile(0.5), p90=self.quantile(0.9), p95=self.quantile(0.95))

    def grid(self, points: int = 101) -> tuple[int, ...]:
        """Equally likely values; with an odd number the middle one is the median."""
        return tuple(self.quantile((index + 0.5) / points) for index in range(points))

    def draw(self, seed: int) -> int:
        """The context of one simulated card: the median for seed 0, a draw from the middle 90 % for any other."""
        return self.quantile(0.5 if seed == 0 else random.Random(seed).uniform(0.05, 0.95))
