"""Traces written by hand, whose peaks can be added up on paper."""

from __future__ import annotations

from dataclasses import dataclass, field

from desktop_app.core.steps import Category, Phase
from desktop_app.core.units import MIB
from desktop_app.memory.card_limits import CUDNN_OP
from desktop_app.memory.card_spec import CardSpec
from desktop_app.memory.convolutions import FORWARD, ConvolutionCall
from desktop_app.memory.trace_data import ModuleFacts, Trace, TraceEvent
from desktop_app.memory.training_spec import TrainingSpec

CARD = CardSpec("paper", 1024 * MIB, 1024 * MIB, "Ampere", (8, 6), 82)


@dataclass
class Script:
    """Writes events: ``take`` allocates under a name, ``drop`` frees it."""

    events: list[TraceEvent] = field(default_factory=list)
    phase: Phase = Phase.BUILD
    step: int = 0
    convolutions: list[ConvolutionCall] = field(default_factory=list)
    _keys: dict[str, TraceEvent] = field(default_factory=dict)
    _made: int = 0

    def enter(self, phase: Phase, step: int | None = None) -> None:
        self.phase = phase
        self.step = self.step if step is None else step

    def take(
        self,
        name: str,
        size_bytes: int,
        category: Category = Category.ACTIVATIONS,
        *,
        op: str = "mm",
        module: str = "",
        call: ConvolutionCall | None = None,
    ) -> None:
        self._made += 1
        convolution = -1
        if call is not None:
            convolution = len(self.convolutions)
            self.convolutions.append(call)
        event = TraceEvent(self._made, size_bytes, op, self.phase, self.step, category, module, convolution)
        self._keys[name] = event
        self.events.append(event)

    def drop(self, *names: str) -> None:
        for name in names:
            event = self._keys.pop(name)
            self.events.append(TraceEvent(-event.key, 0, "", self.phase, self.step, event.category, event.module))

    def blink(self, size_bytes: int, *, op: str, call: ConvolutionCall | None = None) -> None:
        """What a kernel takes for itself."""
        self.take("blink", size_bytes, Category.WORKSPACE, op=op, call=call)
        self.drop("blink")


def convolution(batch: int) -> ConvolutionCall:
    """Input and output of 64 KiB each per sample; the median rule asks for 2.25 times both."""
    side, stride = (64, 64), (1, 1)
    return ConvolutionCall(FORWARD, "float32", batch, 4, 4, side, side, (3, 3), stride, (1, 1), 1, channels_last=False)


def network(
    batch_size: int,
    *,
    parameters_bytes: int = 32 * MIB,
    sample_bytes: int = 2 * MIB,
    optimizer_states: int = 2,
    convolves: bool = False,
    validates: bool = True,
    rung: str = "shim",
    kernels: tuple[str, ...] = (),
) -> Trace:
    """A training of two layers. Live peak: parameters, their state, and four activations per sample, or in the
    optimizer step parameters, gradients, state and a temporary of the size of the parameters."""
    script = Script()
    script.take("weight", parameters_bytes, Category.PARAMETERS, op="to", module="body.first")
    for step in (1, 2):
        _step(script, batch_size, step, parameters_bytes, sample_bytes, optimizer_states, convolves=convolves)
    if validates:
        script.drop("images", "loss")
        script.enter(Phase.VALIDATION)
        script.take("images", batch_size * sample_bytes, Category.INPUTS, op="to")
        script.take("hidden", batch_size * sample_bytes, module="body.first")
        script.take("loss", 4, module="")
        script.drop("hidden", "loss", "images")
    return Trace(
        events=tuple(script.events),
        batch_size=batch_size,
        convolutions=tuple(script.convolutions),
        modules=(
            ModuleFacts("", "Network", 0),
            ModuleFacts("body", "Sequential", 0),
            ModuleFacts("body.first", "Linear", parameters_bytes // 4),
            ModuleFacts("body.second", "ReLU", 0),
        ),
        rung=rung,
        kernels_assumed=kernels,
    )


def _step(
    script: Script,
    batch_size: int,
    step: int,
    parameters_bytes: int,
    sample_bytes: int,
    optimizer_states: int,
    *,
    convolves: bool,
) -> None:
    size = batch_size * sample_bytes
    script.enter(Phase.FORWARD, step)
    if step > 1:
        script.drop("images")
    script.take("images", size, Category.INPUTS, op="to")
    script.take("hidden", size, module="body.first")
    if convolves:
        script.blink(1, op=CUDNN_OP, call=convolution(batch_size))
    script.take("scratch", size // 2, module="body.second", op="relu")
    script.drop("scratch")
    script.take("out", size, module="body.second", op="relu")
    if step > 1:
        script.drop("loss")
    script.take("loss", 4)
    script.enter(Phase.BACKWARD)
    script.take("grad_out", size, module="body.second")
    script.drop("out")
    script.take("gradient", parameters_bytes, Category.GRADIENTS, module="body.first")
    script.drop("grad_out", "hidden")
    script.enter(Phase.OPTIMIZER)
    if step == 1:
        for index in range(optimizer_states):
            script.take(f"state{index}", parameters_bytes, Category.OPTIMIZER_STATE, op="zeros_like")
    script.take("update", parameters_bytes, Category.WORKSPACE, op="_foreach_sqrt")
    script.drop("update")
    script.enter(Phase.ZERO)
    script.drop("gradient")


class Source:
    """A ``TraceSource`` of made traces that counts its calls."""

    def __init__(self, **options: object) -> None:
        self.options = options
        self.asked: list[TrainingSpec] = []

    def __call__(self, spec: TrainingSpec, card: CardSpec) -> Trace:
        assert card.capacity_bytes > 0
        self.asked.append(spec)
        return network(spec.batch_size, **self.options)  # type: ignore[arg-type]

    @property
    def batches(self) -> list[int]:
        return [spec.batch_size for spec in self.asked]
