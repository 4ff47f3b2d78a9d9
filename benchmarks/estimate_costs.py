"""What the estimate costs, single operators, and the check of the largest batch."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from pathlib import Path

import psutil
from estimate_sets import SGD
from estimate_traces import Traces

from desktop_app.core.units import GIB, MIB
from desktop_app.memory.card_spec import CardSpec
from desktop_app.memory.estimate import estimate
from desktop_app.memory.trace_data import Trace
from desktop_app.memory.trace_errors import TracerError, UntraceableError
from desktop_app.memory.tracer_process import TracerProcess
from desktop_app.memory.training_spec import TrainingSpec

CARD = CardSpec("24 GiB", int(23.5 * GIB), 24 * GIB, "Ampere", (8, 6), 82)
LARGE_CARD = CardSpec("80 GiB", 79 * GIB, 80 * GIB, "Hopper", (9, 0), 132)
_BERT = {"model": "transformers:bert-large-uncased", "arguments": {"task": "sequence_classification"}}
# The shape of Llama 3 8B.
_LLAMA = {
    "hidden_size": 4096,
    "intermediate_size": 14336,
    "num_hidden_layers": 32,
    "num_attention_heads": 32,
    "num_key_value_heads": 8,
    "vocab_size": 128256,
}
SPEEDS = (
    ("ResNet-50", TrainingSpec(model="timm:resnet50", batch_size=32), CARD),
    ("ViT-B/16", TrainingSpec(model="timm:vit_base_patch16_224", batch_size=32), CARD),
    ("BERT-large", TrainingSpec(**_BERT, batch_size=8, sequence_length=512, precision="bf16"), CARD),
    (
        "Llama 8B",
        TrainingSpec(
            model="transformers:llama", arguments=_LLAMA, batch_size=1, sequence_length=2048, precision="pure_bf16"
        ),
        LARGE_CARD,
    ),
)
LARGEST = (
    TrainingSpec(model="timm:resnet50", **SGD),
    TrainingSpec(model="timm:vit_base_patch16_224", precision="bf16"),
    TrainingSpec(model="timm:densenet121", **SGD),
    TrainingSpec(model="timm:convnext_tiny"),
    TrainingSpec(model="timm:mobilenetv3_large_100", precision="fp16"),
    TrainingSpec(model="timm:swin_tiny_patch4_window7_224"),
    TrainingSpec(model="timm:vgg16", **SGD),
    TrainingSpec(model="timm:efficientnet_b0", channels_last=True, precision="bf16"),
    TrainingSpec(model="timm:mixer_b16_224"),
    TrainingSpec(**_BERT, sequence_length=512, precision="bf16"),
    TrainingSpec(model="transformers:gpt2", sequence_length=1024, precision="bf16"),
    TrainingSpec(model="transformers:bert-base-uncased", sequence_length=128),
)
_START = 8
_FEW = 3


def op_peaks() -> list[float] | None:
    """Live peaks in MiB of the operators of the tests, in the order of the table; on meta tensors, in this process."""
    root = str(Path(__file__).resolve().parents[1])
    if root not in sys.path:
        sys.path.insert(0, root)  # the tests' operators
    try:
        from tests.unit.memory.tracing.op_cases import CASES, op_peak
    except ImportError:
        return None
    return [op_peak("meta", name=name) for name in CASES]


def speeds(python: Path | None, *, rung: str | None) -> Iterator[str]:
    """The second of two traces in a warm child: seconds, and the most memory the child has held."""
    for name, spec, card in SPEEDS:
        with TracerProcess(python, time_limit_s=300, hide_cards=True) as tracer:
            try:
                tracer.trace(spec.changed(batch_size=1), card, rung=rung)
                begun = time.perf_counter()
                trace = tracer.trace(spec, card, rung=rung)
                wall_s = time.perf_counter() - begun
                begun = time.perf_counter()
                estimate(
                    spec, card, trace=lambda asked, _, trace=trace: _only(trace, asked), most_batch=spec.batch_size
                )
                answer_s = time.perf_counter() - begun
            except (UntraceableError, TracerError) as error:
                yield f"{name:12} {error}"
                continue
            yield (
                f"{name:12} {trace.rung:5} trace {trace.seconds:5.1f} s, with the way back {wall_s:5.1f} s, "
                f"{len(trace.events):6} events, answer {answer_s:4.1f} s, {_most_resident_mib():5.0f} MiB"
            )


def _only(trace: Trace, asked: TrainingSpec) -> Trace:
    """The one trace that is there; no other batch size is asked for."""
    if asked.batch_size != trace.batch_size:
        raise UntraceableError("another batch size")
    return trace


def _most_resident_mib() -> float:
    """Of the children of this process, the most that one has ever held."""
    most = 0.0
    for child in psutil.Process().children(recursive=True):
        try:
            status = Path(f"/proc/{child.pid}/status").read_text()
        except OSError:
            most = max(most, child.memory_info().rss / MIB)
            continue
        most = max([most] + [int(line.split()[1]) / 1024 for line in status.splitlines() if line.startswith("VmHWM")])
    return most


def largest_batches(traces: Traces, *, few: bool) -> Iterator[str]:
    """For each training: the answer, and whether P(fits) by a full trace of its own is above the limit there and
    below it one further."""
    for spec in LARGEST[:_FEW] if few else LARGEST:
        begun = time.perf_counter()

        def trace(asked: TrainingSpec, card: CardSpec) -> Trace:
            found = traces.get(asked, card)
            if found is None:
                raise UntraceableError(traces.errors[asked.model])
            return found

        answer = estimate(spec.changed(batch_size=_START), CARD, trace=trace)
        largest = answer.largest_batch
        if largest is None:
            yield f"{spec.model:44} none: {', '.join(answer.warnings)}"
            continue
        chances = [
            estimate(spec.changed(batch_size=size), CARD, trace=trace, most_batch=size).fits_probability
            for size in (largest, largest + 1)
        ]
        right = chances[0] >= 0.95 > chances[1]
        yield (
            f"{spec.model:44} {spec.precision:5} {largest:5}  P(fits) {chances[0]:.3f} and {chances[1]:.3f} next  "
            f"{'right' if right else 'WRONG'}  {time.perf_counter() - begun:5.0f} s"
        )
