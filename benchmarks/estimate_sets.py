"""The estimate against each set of published peaks: one function per set, a list of judged rows each."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import estimate_truth as truth
from estimate_traces import Traces

from desktop_app.core.units import GIB, MIB
from desktop_app.memory.card_spec import CardSpec
from desktop_app.memory.estimate_outlook import Outlook, Unknowns, workspace_sizes
from desktop_app.memory.estimate_replay import replay_table
from desktop_app.memory.estimate_steady import steady
from desktop_app.memory.estimate_table import EventTable
from desktop_app.memory.estimate_unknowns import DEFAULT_SPREAD
from desktop_app.memory.overheads import EAGER, ContextPrior, WorkspaceScenario, workspace_scenarios
from desktop_app.memory.training_spec import TrainingSpec

# What the drivers of these cards leave of their memory, MiB; NVML's total without the part the driver keeps.
A100 = CardSpec("A100-SXM4-40GB", 39_500 * MIB, 40 * GIB, "Ampere", (8, 0), 108)
RTX_3090 = CardSpec("RTX 3090", 24_268 * MIB, 24 * GIB, "Ampere", (8, 6), 82)
V100 = CardSpec("V100-SXM2-16GB", 16_160 * MIB, 16 * GIB, "Volta", (7, 0), 80)
CNN_CARDS = {
    46: CardSpec("46 SM", 8 * GIB, 8 * GIB, "Ampere", (8, 6), 46),
    80: CardSpec("80 SM", 16 * GIB, 16 * GIB, "Volta", (7, 0), 80),
    82: CardSpec("82 SM", 24 * GIB, 24 * GIB, "Ampere", (8, 6), 82),
}
# The tables do not say which optimizer. Momentum and weight decay explain what is left over best, on models that are
# not judged: docs/decisions/015.
SGD = {
    "optimizer": "sgd",
    "optimizer_arguments": {"lr": 0.1, "momentum": 0.9, "weight_decay": 1e-4},
    "validates": False,
}
STATED_CONTEXT_MIB = 1343
MODELS = Path(__file__).with_name("estimate_models.py")
# The software of the five-card table took no workspaces that its peaks would show; see docs/decisions/015.
NO_WORKSPACES = (WorkspaceScenario(1.0, 0.0),)


@dataclass(frozen=True, slots=True)
class Judged:
    """One row: measured and estimated device peaks, MiB."""

    model: str
    batch: int
    measured: float
    p50: float
    p95: float
    seconds: float

    @property
    def error(self) -> float:
        return (self.p50 - self.measured) / self.measured


@dataclass(frozen=True, slots=True)
class _Replayed:
    row: truth.PeakRow
    table: EventTable
    reserved_mib: float
    seconds: float


def judge_timm(traces: Traces, rows: Sequence[truth.PeakRow]) -> list[Judged]:
    specs = [TrainingSpec(model=f"timm:{row.model}", batch_size=row.batch, **SGD) for row in rows]
    return _judge(traces, rows, specs, A100, workspace_scenarios(A100, benchmark=False), traced_on=A100)


def judge_cnns(traces: Traces, rows: Sequence[truth.PeakRow]) -> list[Judged]:
    """Each card for itself, from one trace for the three: what else differs are staging buffers of some MiB."""
    found = []
    for sms, card in CNN_CARDS.items():
        mine = [row for row in rows if row.sms == sms]
        specs = [cnn_spec(row.model, row.batch) for row in mine]
        found += _judge(traces, mine, specs, card, NO_WORKSPACES, traced_on=CNN_CARDS[82])
    return found


def cnn_spec(model: str, batch: int) -> TrainingSpec:
    """torchvision's models: timm's ResNets and DenseNets are the same, its VGGs have convolutions for a head."""
    if model.startswith("vgg"):
        name = f"python:{MODELS}:vgg"
        return TrainingSpec(model=name, arguments={"name": model}, batch_size=batch, **SGD)
    return TrainingSpec(model=f"timm:{model}", batch_size=batch, image_size=224, **SGD)


def judge_bert(traces: Traces, *, stated_context: bool, old_softmax: bool = False) -> list[Judged]:
    """``old_softmax``: the row without checkpointing with the softmax of its torch, which kept its input as well."""
    found = []
    for row in truth.bert_rows():
        trains_long = "checkpointing" in row.model
        spec = TrainingSpec(
            model="transformers:bert-large-uncased",
            arguments={"task": "sequence_classification", "attn_implementation": "eager"},
            batch_size=row.batch,
            sequence_length=512,
            optimizer="adamw",
            foreach=False,  # torch of 2022
            accumulation=4 if trains_long else 1,
            checkpointing="full" if trains_long else "none",
            precision="fp16" if "amp" in row.precision else "fp32",
            set_to_none=False,  # zero_grad of torch 1.x keeps the gradients, as zeros
            validates=False,
        )
        if old_softmax and not trains_long:
            name = f"python:{MODELS}:old_bert"
            spec = spec.changed(model=name, arguments={"tokens": 512}, sequence_length=None)
        trace = traces.get(spec, V100)
        if trace is None:
            continue
        contexts = (STATED_CONTEXT_MIB * MIB,) if stated_context else ContextPrior.of(V100, software=EAGER).grid()
        device = outlook_of(
            EventTable.of(steady(trace)), V100, contexts, NO_WORKSPACES, DEFAULT_SPREAD.of(trace)
        ).device()
        name = "accumulation, checkpointing" if trains_long else "plain"
        found.append(
            Judged(
                f"{name}, {row.precision}",
                row.batch,
                row.measured_mib,
                device.p50 / MIB,
                device.p95 / MIB,
                trace.seconds,
            )
        )
    return found


def _judge(
    traces: Traces,
    rows: Sequence[truth.PeakRow],
    specs: Sequence[TrainingSpec],
    card: CardSpec,
    workspaces: Sequence[WorkspaceScenario],
    *,
    traced_on: CardSpec,
) -> list[Judged]:
    """With the context of the table's software as the median over all models but the judged one."""
    traces.ask((spec, traced_on) for spec in specs)
    median = max(workspaces, key=lambda scenario: scenario.probability)
    replayed = []
    for row, spec in zip(rows, specs, strict=True):
        trace = traces.get(spec, traced_on)
        if trace is None:
            continue
        table = EventTable.of(steady(trace))
        sizes = workspace_sizes(table, median)
        reserved = replay_table(table, sizes).reserved_peak_bytes / MIB
        replayed.append(_Replayed(row, table, reserved, trace.seconds))
    found = []
    for one in replayed:
        others = [item.row.measured_mib - item.reserved_mib for item in replayed if item.row.model != one.row.model]
        if not others:
            continue
        context = max(0, round(statistics.median(others))) * MIB
        outlook = outlook_of(one.table, card, (context,), workspaces, DEFAULT_SPREAD.residual)
        device = outlook.device()
        p50, p95 = (min(value, card.capacity_bytes) / MIB for value in (device.p50, device.p95))
        found.append(Judged(one.row.model, one.row.batch, one.row.measured_mib, p50, p95, one.seconds))
    return found


def outlook_of(
    table: EventTable,
    card: CardSpec,
    contexts: tuple[int, ...],
    workspaces: Sequence[WorkspaceScenario],
    spread: float,
) -> Outlook:
    unknowns = Unknowns(contexts=contexts, workspaces=workspaces, spread=spread)
    return Outlook(table, unknowns, room_bytes=card.capacity_bytes)
