"""Adam with 8-bit states as bitsandbytes allocates them: a model of its memory, not of its arithmetic.

Source: bitsandbytes, ``optim/optimizer.py``, ``Optimizer2State.init_state`` and ``get_state_buffer``: two ``uint8``
states of the parameter's shape, a fp32 maximum for each block of 256 elements and state (2,048 before 0.44), and one
table of 256 fp32 values per kind of state for all parameters together. Parameters of fewer than 4,096 elements keep
fp32 states. The update is one kernel per parameter that works in place.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Final

import torch
from torch.optim import Optimizer

BLOCK: Final = 256  # elements that share a maximum
MINIMUM_ELEMENTS: Final = 4096  # min_8bit_size
_TABLE: Final = 256  # values of an 8-bit code


class Adam8bit(Optimizer):
    """``bitsandbytes.optim.Adam8bit`` and ``AdamW8bit`` (the same memory), not paged. ``step`` changes no value."""

    def __init__(
        self,
        params: Iterable[torch.Tensor],
        lr: float = 1e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0.0,
        *,
        min_8bit_size: int = MINIMUM_ELEMENTS,
    ) -> None:
        super().__init__(params, {"lr": lr, "betas": betas, "eps": eps, "weight_decay": weight_decay})
        self._minimum: Final = max(min_8bit_size, MINIMUM_ELEMENTS)
        self._tables: tuple[torch.Tensor, torch.Tensor] | None = None

    @torch.no_grad()
    def step(self, closure: Callable[[], Any] | None = None) -> None:  # type: ignore[override]
        """Allocate what the first step allocates; later steps allocate nothing."""
        if closure is not None:
            raise ValueError("a closure is not supported")
        for group in self.param_groups:
            for parameter in group["params"]:
                if parameter.grad is None:
                    continue
                if not self.state[parameter]:
                    self._begin(parameter)
                parameter.grad = parameter.grad.contiguous()
                self.state[parameter]["step"] += 1

    def _begin(self, parameter: torch.Tensor) -> None:
        state = self.state[parameter]
        state["step"] = 0
        if parameter.numel() < self._minimum:
            for name in ("state1", "state2"):
                state[name] = torch.zeros_like(parameter, dtype=torch.float32)
            return
        if self._tables is None:
            self._tables = tuple(torch.zeros(_TABLE, device=parameter.device) for _ in range(2))  # type: ignore[assignment]
        assert self._tables is not None
        for index, table in enumerate(self._tables, start=1):
            state[f"state{index}"] = torch.zeros_like(parameter, dtype=torch.uint8)
            state[f"qmap{index}"] = table
        blocks = -(-parameter.numel() // BLOCK)
        for index in (1, 2):
            state[f"absmax{index}"] = torch.zeros(blocks, dtype=torch.float32, device=parameter.device)
