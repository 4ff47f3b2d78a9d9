"""What is told of a model that stops the trace."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import pytest
from torch import nn

from desktop_app.memory.card_spec import CardSpec
from desktop_app.memory.formula import FormulaFacts
from desktop_app.memory.trace_errors import UntraceableError
from desktop_app.memory.tracing import wire
from desktop_app.memory.tracing.child import trace_spec
from desktop_app.memory.tracing.formula_facts import formula_facts
from desktop_app.memory.training_spec import TrainingSpec

SPEC = TrainingSpec(model="python:some.py:make", sequence_length=128)


class Configured(nn.Module):
    def __init__(self, **config: object) -> None:
        super().__init__()
        self.body = nn.Linear(10, 10)
        self.head = nn.Linear(10, 3, bias=False)
        self.tied = self.head.weight
        self.body.bias.requires_grad = False
        self.config = SimpleNamespace(**config)


def test_parameters_are_counted_once_and_the_shape_is_read() -> None:
    gpt = formula_facts(Configured(n_layer=12, n_embd=768, n_head=12, vocab_size=50257, n_positions=1024), SPEC)
    assert FormulaFacts(**gpt) == FormulaFacts(
        parameters=140, trainable=130, layers=12, hidden=768, heads=12, sequence_length=128, vocabulary=50257
    )
    bert = formula_facts(
        Configured(num_hidden_layers=2, hidden_size=8, num_attention_heads=2, max_position_embeddings=512),
        SPEC.changed(sequence_length=None),
    )
    assert FormulaFacts(**bert).sequence_length == 512
    assert FormulaFacts(**bert).has_shape
    plain = formula_facts(Configured(hidden_size="wide"), SPEC.changed(sequence_length=None))
    assert plain == {"parameters": 140, "trainable": 130}


def test_they_cross_the_border_with_the_error(tmp_path: Path) -> None:
    file = tmp_path / "counts.py"
    file.write_text(
        "import torch\n"
        "@torch.library.custom_op('floodmark_tests::counts', mutates_args=())\n"
        "def counts(x: torch.Tensor) -> torch.Tensor:\n"
        "    return x.clone()\n"  # nobody says what it makes of tensors without data
        "class Counts(torch.nn.Module):\n"
        "    def __init__(self):\n"
        "        super().__init__()\n"
        "        self.head = torch.nn.Linear(8, 3)\n"
        "    def forward(self, x):\n"
        "        return self.head(counts(x))\n"
        "def make():\n"
        "    return {'model': Counts(), 'step': lambda m, b: m(b).sum(),"
        " 'batch': lambda n, device: torch.empty(n, 8, device=device)}\n"
    )
    card = CardSpec("card", 1 << 34, 1 << 34, "Ampere", (8, 6), 82)
    with pytest.raises(UntraceableError, match="floodmark_tests") as raised:
        trace_spec(TrainingSpec(model=f"python:{file}:make", batch_size=2), card, rung="meta")
    told = wire.error_from_json(wire.error_as_json(raised.value))
    assert isinstance(told, UntraceableError)
    assert (told.op, told.facts) == (raised.value.op, {"parameters": 27, "trainable": 27, "optimizer": "adamw"})
