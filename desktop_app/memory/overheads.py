"""What a training holds on a card beyond its tensors: context, cuBLAS and cuDNN workspaces, as distributions.

Torch-free. A figure read from the real card should replace a prior from here as soon as there is one.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
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
from desktop_app.memory.convolutions import ConvolutionCall, workspace_bytes

__all__ = [
    "CUBLAS_WORKSPACE_BYTES",
    "CUBLAS_WORKSPACE_LARGE_BYTES",
    "CUDNN_OP",
    "CUDNN_SCALES",
    "EAGER",
    "LAZY",
    "CardSpec",
    "ContextPrior",
    "WorkspaceScenario",
    "cublas_workspace_bytes",
    "sm_count",
    "software_of",
    "threads_per_sm",
    "workspace_scenarios",
]


# Bytes outside an exact replay (context, handles, kernels) where all kernels are loaded at the start, by SM count:
# medians over the published runs of old software, each with the workspaces of its time (docs/decisions/015): 465 MiB
# at 13, 1,049 at 40, 1,229 at 46, 1,294 at 80, 1,351 at 82, 1,695 at 108. Least squares; the largest residual
# is 220 MiB (46 SM).
_EAGER_BASE_MIB: Final = 499.0
_EAGER_MIB_PER_SM: Final = 11.09
_EAGER_SHARES: Final = ((0.0, 0.7), (0.05, 0.82), (0.25, 0.94), (0.5, 1.0), (0.75, 1.08), (0.95, 1.24), (1.0, 1.35))

# Share of that which today's torch holds. Since CUDA 11.7 kernels load when first used: an idle process shows 256 MiB
# (82 SM, driver 610) to 426 MiB (142 SM, CUDA 13.0), which is 0.18 to 0.21, and 300 to 400 MiB on others; a training
# loads the kernels it calls on top. All at once again (1.0) with CUDA_MODULE_LOADING=EAGER or an old torch.
_LAZY_SHARES: Final = (
    (0.0, 0.19),
    (0.05, 0.21),
    (0.25, 0.31),
    (0.5, 0.42),
    (0.75, 0.57),
    (0.9, 0.78),
    (0.95, 1.0),
    (1.0, 1.18),
)
LAZY: Final = "lazy"
EAGER: Final = "eager"
_SHARES: Final = {LAZY: _LAZY_SHARES, EAGER: _EAGER_SHARES}
_FIRST_LAZY: Final = (11, 7)  # CUDA; torch sets CUDA_MODULE_LOADING=LAZY where nobody else has

# Buffers of a communicator of NCCL, outside the allocator: 4 MiB (NCCL_BUFFSIZE) per channel, direction and protocol,
# 2 to 32 channels by card and links, in MiB. Read off NCCL's documentation, not measured.
_NCCL_SHARES: Final = ((0.0, 60.0), (0.25, 150.0), (0.5, 300.0), (0.75, 500.0), (0.95, 900.0), (1.0, 1200.0))

CUDNN_SCALES: Final = ((0.0, 0.27), (1.0, 0.53), (3.0, 0.2))  # (factor on the median rule, probability)
# With cudnn.benchmark the fastest algorithm is taken whatever it needs, so that none is rarer.
_BENCHMARK_SCALES: Final = ((0.0, 0.17), (1.0, 0.53), (3.0, 0.3))


@dataclass(frozen=True, slots=True)
class WorkspaceScenario:
    """One way in which cuDNN may choose its algorithms: the median rule times a factor."""

    probability: float
    scale: float
    card: CardSpec | None = None

    def bytes_for(self, call: ConvolutionCall) -> int:
        """The workspace of one call; 0: none."""
        return int(workspace_bytes(call, card=self.card) * self.scale)


def workspace_scenarios(card: CardSpec, *, benchmark: bool) -> tuple[WorkspaceScenario, ...]:
    """What cuDNN may choose on a card. More than half lies on the rule itself, so that it is the median.

    ``benchmark`` is ``torch.backends.cudnn.benchmark``.
    """
    scales = _BENCHMARK_SCALES if benchmark else CUDNN_SCALES
    return tuple(WorkspaceScenario(probability, scale, card) for scale, probability in scales)


def software_of(cuda: tuple[int, int] | None) -> str:
    """How a release of CUDA loads kernels; today's where it is not known."""
    return EAGER if cuda is not None and cuda < _FIRST_LAZY else LAZY


@dataclass(frozen=True, slots=True)
class ContextPrior:
    """What a process will hold outside its allocator on a card nobody has measured yet.

    ``software`` says how kernels are loaded: ``LAZY`` (today) or ``EAGER`` (CUDA below 11.7). ``ranks`` above 1 add a
    communicator of NCCL.
    """

    eager_bytes: float
    software: str = LAZY
    ranks: int = 1

    @classmethod
    def of(cls, card: CardSpec, *, software: str = LAZY, ranks: int = 1) -> ContextPrior:
        if software not in _SHARES:
            raise ValueError(f"software must be one of {', '.join(_SHARES)}, got {software!r}")
        return cls((_EAGER_BASE_MIB + _EAGER_MIB_PER_SM * sm_count(card)) * MIB, software, ranks)

    def quantile(self, probability: float) -> int:
        """Bytes that the context stays below with this probability, in whole MiB."""
        if not 0.0 <= probability <= 1.0:
            raise ValueError(f"probability must be in [0, 1], got {probability}")
        context = _interpolate(_SHARES[self.software], probability) * self.eager_bytes / MIB
        links = _interpolate(_NCCL_SHARES, probability) if self.ranks > 1 else 0.0
        return round(context + links) * MIB

    def quantiles(self) -> Quantiles:
        return Quantiles(p50=self.quantile(0.5), p90=self.quantile(0.9), p95=self.quantile(0.95))

    def grid(self, points: int = 101) -> tuple[int, ...]:
        """Equally likely values; with an odd number the middle one is the median."""
        return tuple(self.quantile((index + 0.5) / points) for index in range(points))

    def draw(self, seed: int) -> int:
        """The context of one simulated card: the median for seed 0, a draw from the middle 90 % for any other."""
        return self.quantile(0.5 if seed == 0 else random.Random(seed).uniform(0.05, 0.95))


def _interpolate(table: Sequence[tuple[float, float]], probability: float) -> float:
    """The quantile of a distribution given by (probability, value), straight between them."""
    for (p_low, low), (p_high, high) in pairwise(table):
        if probability <= p_high:
            return low + (high - low) * (probability - p_low) / (p_high - p_low)
    raise AssertionError("the table ends at 1")
