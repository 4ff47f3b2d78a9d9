"""Which part of a model holds the memory: the modules with their bytes at one moment. Torch-free."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence

from desktop_app.core.estimates import ModuleMemory
from desktop_app.core.steps import Category
from desktop_app.memory.estimate_replay import Curves, alive_at, block_bytes
from desktop_app.memory.estimate_table import CATEGORIES, EventTable
from desktop_app.memory.trace_data import ModuleFacts


def module_tree(
    modules: Sequence[ModuleFacts], table: EventTable, curves: Curves, *, index: int
) -> tuple[ModuleMemory, ...]:
    """Every module after the event ``index``, children included, parents first and in the order of the model.

    The first is the model itself, with all that is live. What belongs to a module that is not listed counts for its
    nearest listed parent. Empty when no module is known.
    """
    if not modules:
        return ()
    owned = _owned(table, curves, index)
    listed = {module.path for module in modules} | {""}
    bytes_by_path: dict[str, dict[Category, int]] = defaultdict(lambda: defaultdict(int))
    for (path, category), size_bytes in owned.items():
        for parent in _upwards(path):
            if parent in listed:
                bytes_by_path[parent][category] += size_bytes
    parameters: dict[str, int] = defaultdict(int)
    for module in modules:
        for parent in _upwards(module.path):
            parameters[parent] += module.parameters
    ordered = _in_order(modules)
    return tuple(
        ModuleMemory(module.path, module.kind, parameters[module.path], _by_category(bytes_by_path[module.path]))
        for module in ordered
    )


def _owned(table: EventTable, curves: Curves, index: int) -> Mapping[tuple[str, Category], int]:
    owned: dict[tuple[str, Category], int] = defaultdict(int)
    rows = alive_at(table, index)
    sizes = block_bytes(curves)[rows].tolist()
    for row, category, size_bytes in zip(rows.tolist(), table.categories[rows].tolist(), sizes, strict=True):
        owned[table.modules[row], CATEGORIES[category]] += size_bytes
    return owned


def _upwards(path: str) -> Iterator[str]:
    """The path, its parents, and the model."""
    while path:
        yield path
        path = path.rpartition(".")[0]
    yield ""


def _in_order(modules: Sequence[ModuleFacts]) -> list[ModuleFacts]:
    """As given, with the model in front; each path once, as ``named_modules()`` lists them."""
    seen: dict[str, ModuleFacts] = {"": ModuleFacts("", "", 0)}
    for module in modules:
        if not seen.get(module.path, ModuleFacts("", "", 0)).kind:
            seen[module.path] = module
    return list(seen.values())


def _by_category(sizes: Mapping[Category, int]) -> dict[Category, int]:
    return {category: sizes[category] for category in CATEGORIES if sizes.get(category)}
