"""One optimizer step: forward, backward, clipping, update, clearing. Imported late: needs torch."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import torch
from torch import Tensor, nn

from desktop_app.core.steps import Phase
from desktop_app.training.optimizer_memory import Rehearsal, looping_saves, rehearse_step, state_ballast
from desktop_app.training.recipes.data import Batch

if TYPE_CHECKING:
    from torch.optim import Optimizer

    from desktop_app.training.config import RunConfig
    from desktop_app.training.devices import TrainingDevice
    from desktop_app.training.recipes.faults import Fault
    from desktop_app.training.recipes.recipe import Recipe


@dataclass(frozen=True, slots=True)
class WholeState:
    """State of a model and of the random generators between two steps."""

    model: Mapping[str, Tensor]
    random_state: Tensor
    device_random_state: Tensor | None


class StepEngine:
    """Computes the micro-steps and the update of one step at a time. ``phase`` is what it is at, also after an error.

    Runs in: trainer thread.
    """

    def __init__(
        self,
        recipe: Recipe,
        config: RunConfig,
        *,
        model: nn.Module,
        optimizer: Optimizer,
        device: TrainingDevice,
        fault: Fault | None,
    ) -> None:
        self._recipe = recipe
        self._config = config
        self.model = model
        self.optimizer = optimizer
        self._device = device
        self._fault = fault
        self._validates_with_graph = fault is not None and fault.validates_with_graph
        self._dtype = torch.bfloat16 if config.precision == "bf16" else None
        self._parameters = [p for p in model.parameters() if p.requires_grad]
        self._undo = _Undo(model, device.torch_device)
        self._losses: list[tuple[Tensor, float]] = []  # with the divisor of each
        self._logits: Tensor | None = None
        self._targets: Tensor | None = None
        self._norm: Tensor | None = None
        self.phase = Phase.BUILD
        self.optimizer_intact = True
        self.rehearses_updates = False
        self.update_made = False  # in this step; what goes wrong later is no reason to make it again
        self.micro_batch_samples = 0  # of the largest micro-batch of this step
        self._unfinished = False
        self._ballast: list[Tensor] = []  # in place of the optimizer's state, during the first step
        self._rehearsal = Rehearsal(device)

    @property
    def state_missing(self) -> bool:
        """The optimizer has not made its state yet: the next update is a first one."""
        return not self.optimizer.state

    def begin(self) -> None:
        """Remember what forward passes change beside gradients, so that a broken step can be undone."""
        self.update_made = False
        self.micro_batch_samples = 0
        self._undo.capture()
        self.drop_outputs()
        self._unfinished = True
        if self.rehearses_updates and self.state_missing:
            self._enter(Phase.OPTIMIZER)  # whose state has no room, if this has none
            with self._device.step_scope():
                self._ballast = state_ballast(self.optimizer)

    @property
    def ballast_bytes(self) -> int:
        """Held in place of the optimizer's state."""
        return sum(tensor.numel() * tensor.element_size() for tensor in self._ballast)

    def try_step(self, batch: Batch) -> None:
        """Between ``begin`` and ``undo``: ask the device for what a step of this batch asks for, without an update.
        Raises what a full card raises."""
        self._enter(Phase.FORWARD)
        placed = self._device.place(batch)
        with self._device.step_scope():
            with self._device.autocast(self._dtype):
                loss, _ = self._recipe.loss(self.model, placed)
            self._enter(Phase.BACKWARD)
            loss.backward()  # type: ignore[no-untyped-call] # torch's backward has no annotations
        del loss, placed
        self.enter_optimizer()
        with self._device.step_scope():
            rehearse_step(self.optimizer)

    def micro_step(self, batch: Batch, *, divisor: float | None = None) -> None:
        """Forward and backward of one micro-batch; gradients add up. ``divisor`` of its mean loss, so that the parts of
        a step make a mean; ``None``: the config's accumulation."""
        parts = float(self._config.accumulation) if divisor is None else divisor
        self._enter(Phase.FORWARD)
        self.micro_batch_samples = max(self.micro_batch_samples, batch.samples)
        placed = self._device.place(batch)
        with self._device.step_scope():
            with self._device.autocast(self._dtype):
                loss, logits = self._recipe.loss(self.model, placed)
            self._enter(Phase.BACKWARD)
            scaled = loss / parts if parts != 1 else loss
            # mypy: torch's backward has no annotations
            scaled.backward(retain_graph=self._fault is not None and self._fault.retain_graph)  # type: ignore[no-untyped-call]
        if self._fault is not None:
            self._fault.on_loss(loss)
        self._losses.append((loss.detach(), parts))
        self._logits, self._targets = logits.detach(), placed.targets

    def enter_optimizer(self) -> int:
        """Gradients are complete; the update comes next. Bytes of its state that the peak so far has held already."""
        held = self.ballast_bytes
        self._ballast.clear()
        self._enter(Phase.OPTIMIZER)
        return held

    def update(self, learning_rate: float) -> None:
        """Clip, step, clear the gradients."""
        for group in self.optimizer.param_groups:
            group["lr"] = learning_rate
        with self._device.step_scope():
            self._norm = self._clip()
            if self.rehearses_updates:
                self._rehearsal.make(self.optimizer)
            self.optimizer_intact = False
            self.optimizer.step()
            self.optimizer_intact = self.update_made = True
            self._unfinished = False
            self._enter(Phase.ZERO)
            self.optimizer.zero_grad(set_to_none=True)
        if self._fault is not None:
            self._fault.on_step(self, self._device)

    def note_saved(self) -> None:
        """A checkpoint has been written."""
        if self._fault is not None:
            self._fault.on_saved(self, self._device)

    def loss(self) -> float:
        """Mean loss of the step, each micro-batch by its share of the samples. Waits for the device."""
        whole = sum(1 / divisor for _, divisor in self._losses)
        return sum(loss.item() / divisor for loss, divisor in self._losses) / whole

    def accuracy(self) -> float:
        """Training accuracy of the last micro-batch. Waits for the device."""
        assert self._logits is not None
        assert self._targets is not None
        return float((self._logits.argmax(1) == self._targets).float().mean().item())

    @property
    def accuracy_samples(self) -> int:
        """Samples that ``accuracy`` is about."""
        return 0 if self._targets is None else int(self._targets.shape[0])

    def grad_norm(self) -> float:
        """Norm of the gradient before clipping. Waits for the device."""
        assert self._norm is not None
        return float(self._norm.item())

    @property
    def has_outputs(self) -> bool:
        """There is a loss to read: of the last step, or of the micro-steps done in this one."""
        return bool(self._losses)

    def drop_outputs(self) -> None:
        """Let go of loss, logits and norm of the last step."""
        self._losses.clear()
        self._logits = self._targets = self._norm = None

    def undo(self) -> None:
        """Back to the end of the last whole step: no gradients, buffers and random state as they were.

        Parameters and optimizer state are untouched by an unfinished step, unless ``optimizer_intact`` is false.
        """
        self.drop_outputs()
        self._ballast.clear()
        self.optimizer.zero_grad(set_to_none=True)
        if self._unfinished:
            self._undo.restore()
            self._unfinished = False

    @property
    def can_loop_updates(self) -> bool:
        """Updating one tensor after the other would need less."""
        return looping_saves(self.optimizer)

    def loop_updates(self) -> bool:
        """Update one tensor after the other from now on: temporaries of one instead of all. False: it does already, or
        that would need no less."""
        if not self.can_loop_updates:
            return False
        for group in self.optimizer.param_groups:
            group["foreach"] = False
        self._rehearsal.forget()
        return True

    def forget_step(self) -> None:
        """All state has been put back to the end of a whole step: there is nothing to undo any more."""
        self.optimizer_intact = True
        self._unfinished = False

    def whole_state(self) -> WholeState:
        """The model and the random state at the end of the last whole step, also in the middle of the next one."""
        state = self.model.state_dict()
        if not self._unfinished:
            card = device_random_state(self._device.torch_device)
            return WholeState(state, random_state(), card)
        return WholeState({**state, **self._undo.named_copies(self.model)}, *self._undo.random_states)

    def validate(self, batches: Iterable[Batch]) -> tuple[float, float]:
        """Mean loss and accuracy over the batches, without gradients and with batch norm at rest."""
        self._enter(Phase.VALIDATION)
        self.model.eval()
        total, right, samples = 0.0, 0, 0
        try:
            for batch in batches:
                placed = self._device.place(batch)
                with self._device.step_scope(), torch.set_grad_enabled(self._validates_with_graph):
                    with self._device.autocast(self._dtype):
                        loss, logits = self._recipe.loss(self.model, placed)
                    if self._fault is not None:
                        self._fault.on_prediction(logits)
                    hits = (logits.argmax(1) == placed.targets).sum()
                total += loss.item() * batch.samples
                right += int(hits.item())
                samples += batch.samples
        finally:
            self.model.train()
        return total / samples, right / samples

    def _clip(self) -> Tensor:
        """Clip where the config says so; the norm in any case."""
        foreach = self._config.foreach
        if self._config.grad_clip:
            return nn.utils.clip_grad_norm_(self._parameters, self._config.grad_clip, foreach=foreach)
        gradients = [p.grad for p in self._parameters if p.grad is not None]
        return nn.utils.get_total_norm(gradients, foreach=foreach)

    def _enter(self, phase: Phase) -> None:
        self.phase = phase
        self._device.phase(phase)


class _Undo:
    """Copies of what a forward pass changes for good: buffers (batch norm) and random state."""

    def __init__(self, model: nn.Module, device: torch.device) -> None:
        self._device = device
        self._buffers = list(model.buffers())
        self._copies = [buffer.detach().clone() for buffer in self._buffers]
        self._random = random_state()
        self._device_random = device_random_state(device)

    @torch.no_grad()
    def capture(self) -> None:
        for copy, buffer in zip(self._copies, self._buffers, strict=True):
            copy.copy_(buffer)
        self._random = random_state()
        self._device_random = device_random_state(self._device)

    @property
    def random_states(self) -> tuple[Tensor, Tensor | None]:
        return self._random, self._device_random

    def named_copies(self, model: nn.Module) -> dict[str, Tensor]:
        """The copies of buffers under their names in the model's state."""
        return {name: copy for (name, _), copy in zip(model.named_buffers(), self._copies, strict=True)}

    @torch.no_grad()
    def restore(self) -> None:
        for copy, buffer in zip(self._copies, self._buffers, strict=True):
            buffer.copy_(copy)
        set_random_state(self._random, self._device_random, self._device)


def random_state() -> Tensor:
    """State of torch's generator on the CPU, bytes."""
    return torch.get_rng_state()


def device_random_state(device: torch.device) -> Tensor | None:
    """State of the card's generator; ``None`` on the CPU."""
    return torch.cuda.get_rng_state(device) if device.type == "cuda" else None


def set_random_state(host: Tensor, card: Tensor | None, device: torch.device) -> None:
    """Put both generators back."""
    torch.set_rng_state(host)
    if card is not None and device.type == "cuda":
        torch.cuda.set_rng_state(card, device)
