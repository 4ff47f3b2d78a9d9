"""What closed forms can do with a model that could not be traced: its size, and its shape where it tells it."""

from __future__ import annotations

from typing import Any, Final

from torch import nn

from desktop_app.memory.training_spec import TrainingSpec

# Fields of memory.formula.FormulaFacts, by the names that configurations of transformers have for them.
_SHAPE: Final = {
    "layers": ("num_hidden_layers", "n_layer", "num_layers"),
    "hidden": ("hidden_size", "n_embd", "d_model"),
    "heads": ("num_attention_heads", "n_head", "num_heads"),
    "vocabulary": ("vocab_size",),
}
_LENGTHS: Final = ("max_position_embeddings", "n_positions")


def formula_facts(model: nn.Module, spec: TrainingSpec) -> dict[str, int]:
    """Parameters that there are and that learn, each once, and the shape of a transformer from its ``config``."""
    sizes = {id(parameter): (parameter.numel(), parameter.requires_grad) for parameter in model.parameters()}
    facts = {
        "parameters": sum(count for count, _ in sizes.values()),
        "trainable": sum(count for count, learns in sizes.values() if learns),
    }
    config = getattr(model, "config", None)
    shape = {field: value for field, names in _SHAPE.items() if (value := _first(config, names)) is not None}
    length = spec.sequence_length or _first(config, _LENGTHS)
    if length is not None:
        shape["sequence_length"] = length
    return {**facts, **shape}


def _first(config: Any, names: tuple[str, ...]) -> int | None:
    found = (getattr(config, name, None) for name in names)
    return next((value for value in found if isinstance(value, int) and value > 0), None)
