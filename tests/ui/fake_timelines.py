"""Timelines and modules with the shapes of real ones: a transformer of many blocks, and small random ones."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from desktop_app.core.estimates import ALIVE, ModuleMemory, PhaseSpan, Timeline
from desktop_app.core.steps import Category, Phase
from desktop_app.core.units import MIB

KINDS = tuple(Category)
# Parts of one encoder layer of BERT-large: (module below the layer, parameters, MiB kept for the backward at batch 8).
PARTS = (
    ("attention.self.query", 1024 * 1024 + 1024, 8.0),
    ("attention.self.key", 1024 * 1024 + 1024, 8.0),
    ("attention.self.value", 1024 * 1024 + 1024, 8.0),
    ("attention.output.dense", 1024 * 1024 + 1024, 8.0),
    ("attention.output.LayerNorm", 2048, 8.0),
    ("intermediate.dense", 4096 * 1024 + 4096, 32.0),
    ("output.dense", 4096 * 1024 + 1024, 8.0),
    ("output.LayerNorm", 2048, 8.0),
)
LAYERS = 24
EMBEDDING = 30522 * 1024


@dataclass
class Recorder:
    """Books allocations in order, as a replay does."""

    born: list[int] = field(default_factory=list)
    died: list[int] = field(default_factory=list)
    size: list[int] = field(default_factory=list)
    category: list[int] = field(default_factory=list)
    owner: list[int] = field(default_factory=list)
    op: list[int] = field(default_factory=list)
    owners: list[str] = field(default_factory=list)
    ops: list[str] = field(default_factory=list)
    live: list[int] = field(default_factory=list)
    spans: list[PhaseSpan] = field(default_factory=list)
    now: int = 0

    def before(self, size: int, category: Category, owner: str, op: str) -> int:
        """A block that is there when the step begins."""
        self.born.append(0)
        self.died.append(ALIVE)
        self.size.append(512 * -(-size // 512))
        self.category.append(KINDS.index(category))
        self.owner.append(_place(self.owners, owner))
        self.op.append(_place(self.ops, op))
        self.now += self.size[-1]
        return len(self.size) - 1

    def allocate(self, size: int, category: Category, owner: str, op: str) -> int:
        block = self.before(size, category, owner, op)
        self.born[block] = len(self.live)
        self.live.append(self.now)
        return block

    def free(self, block: int) -> None:
        self.died[block] = len(self.live)
        self.now -= self.size[block]
        self.live.append(self.now)

    def phase(self, phase: Phase, first: int) -> None:
        self.spans.append(PhaseSpan(phase, first, len(self.live) - 1))

    def timeline(self, title: str = "") -> Timeline:
        live = np.array(self.live, dtype=np.int64)
        reserved = 2 * MIB * -(-np.maximum.accumulate(live) // (2 * MIB))
        return Timeline(
            live_bytes=live,
            reserved_bytes=reserved,
            phases=tuple(self.spans),
            born=np.array(self.born, dtype=np.int64),
            died=np.array(self.died, dtype=np.int64),
            size_bytes=np.array(self.size, dtype=np.int64),
            category=np.array(self.category, dtype=np.int32),
            owner=np.array(self.owner, dtype=np.int32),
            op=np.array(self.op, dtype=np.int32),
            owners=tuple(self.owners),
            ops=tuple(self.ops),
            title=title,
        )


def _place(words: list[str], word: str) -> int:
    if word not in words:
        words.append(word)
    return words.index(word)


def bert_large_like(*, blocks: int = 20_000, seed: int = 7) -> Timeline:
    """One step of a BERT-large with Adam, with about ``blocks`` blocks: most of them short-lived."""
    rng = np.random.default_rng(seed)
    made = Recorder()
    modules = [
        (f"bert.encoder.layer.{layer}.{part}", count, kept) for layer in range(LAYERS) for part, count, kept in PARTS
    ]
    every = [("bert.embeddings.word_embeddings", EMBEDDING, 8.0), *modules, ("classifier", 2048, 0.1)]
    for path, count, _ in every:
        made.before(4 * count, Category.PARAMETERS, path, "aten.empty")
    for path, count, _ in every:
        for _ in range(2):
            made.before(4 * count, Category.OPTIMIZER_STATE, path, "aten.zeros_like")
    short = max(1, (blocks - 5 * len(every)) // (3 * len(every)))
    inputs = made.allocate(8 * 512 * 8, Category.INPUTS, "", "aten.to")
    kept: list[list[int]] = []
    first = 0
    for path, _, mib in every:
        blocks_kept = [made.allocate(int(mib * MIB), Category.ACTIVATIONS, path, "aten.addmm")]
        _short_lived(made, rng, path, short, largest=8 * MIB)
        if "query" in path:
            blocks_kept.append(made.allocate(32 * MIB, Category.ACTIVATIONS, path, "aten.native_dropout"))
        kept.append(blocks_kept)
    made.phase(Phase.FORWARD, first)
    first = len(made.live)
    gradients = []
    for (path, count, _), blocks_kept in zip(reversed(every), reversed(kept), strict=True):
        _short_lived(made, rng, path, short, largest=16 * MIB)
        gradients.append(made.allocate(4 * count, Category.GRADIENTS, path, "aten.mm"))
        for block in reversed(blocks_kept):
            made.free(block)
    made.free(inputs)
    made.phase(Phase.BACKWARD, first)
    first = len(made.live)
    for start in range(0, len(every), 40):
        group = [
            made.allocate(4 * count, Category.TEMPORARIES, path, "aten._foreach_sqrt")
            for path, count, _ in every[start : start + 40]
        ]
        _short_lived(made, rng, "", short * 40, largest=MIB)
        for block in group:
            made.free(block)
    made.phase(Phase.OPTIMIZER, first)
    first = len(made.live)
    for block in gradients:
        made.free(block)
    made.phase(Phase.ZERO, first)
    return made.timeline("bert-large")


def _short_lived(made: Recorder, rng: np.random.Generator, path: str, count: int, *, largest: int) -> None:
    held: list[int] = []
    for _ in range(count):
        size = int(largest * rng.random() ** 4) + 512
        category = Category.WORKSPACE if rng.random() < 0.05 else Category.TEMPORARIES
        held.append(made.allocate(size, category, path, "aten.view_as_real" if size < MIB else "aten.bmm"))
        while held and rng.random() < 0.7:
            made.free(held.pop(int(rng.integers(len(held)))))
    for block in held:
        made.free(block)


def bert_modules() -> tuple[ModuleMemory, ...]:
    """The modules of ``bert_large_like`` at its peak, parents first."""
    found: dict[str, dict[Category, int]] = {}
    counts: dict[str, int] = {}
    kinds = {"": "BertForSequenceClassification", "query": "Linear", "key": "Linear", "value": "Linear"}

    def book(path: str, sizes: dict[Category, int], count: int) -> None:
        steps = path.split(".")
        for depth in range(len(steps) + 1):
            place = ".".join(steps[:depth])
            counts[place] = counts.get(place, 0) + count
            known = found.setdefault(place, {})
            for category, size in sizes.items():
                known[category] = known.get(category, 0) + size

    book("bert.embeddings.word_embeddings", _held(EMBEDDING, 8.0), EMBEDDING)
    for layer in range(LAYERS):
        for part, count, mib in PARTS:
            book(f"bert.encoder.layer.{layer}.{part}", _held(count, mib), count)
    book("classifier", _held(2048, 0.1), 2048)
    names = {"bert": "BertModel", "encoder": "BertEncoder", "layer": "ModuleList", "attention": "BertAttention"}
    kinds |= names | {"LayerNorm": "LayerNorm", "dense": "Linear", "classifier": "Linear", "self": "BertSelfAttention"}
    return tuple(
        ModuleMemory(path, kinds.get(path.rpartition(".")[2], "Module"), counts[path], found[path]) for path in found
    )


def _held(count: int, mib: float) -> dict[Category, int]:
    return {
        Category.PARAMETERS: 4 * count,
        Category.GRADIENTS: 4 * count,
        Category.OPTIMIZER_STATE: 8 * count,
        Category.ACTIVATIONS: int(mib * MIB),
    }


def random_timeline(*, blocks: int, seed: int) -> Timeline:
    """Blocks of any kind, size and life, in no order that a training would have."""
    rng = np.random.default_rng(seed)
    made = Recorder()
    alive = [
        made.before(int(rng.integers(1, 4 * MIB)), KINDS[int(rng.integers(8))], f"module.{index % 5}", "aten.empty")
        for index in range(blocks // 4)
    ]
    for index in range(blocks - blocks // 4):
        alive.append(
            made.allocate(int(rng.integers(1, 4 * MIB)), KINDS[int(rng.integers(8))], f"module.{index % 5}", "aten.mul")
        )
        while alive and rng.random() < 0.45:
            made.free(alive.pop(int(rng.integers(len(alive)))))
    made.phase(Phase.FORWARD, 0)
    return made.timeline()
