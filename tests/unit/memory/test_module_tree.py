"""Memory by module."""

from __future__ import annotations

from desktop_app.core.steps import Category, Phase
from desktop_app.core.units import MIB
from desktop_app.memory.estimate_replay import owners_at, replay_table
from desktop_app.memory.estimate_table import EventTable
from desktop_app.memory.module_tree import module_tree
from desktop_app.memory.trace_data import ModuleFacts
from tests.unit.memory.made_traces import Script, network

MODULES = (
    ModuleFacts("", "Net", 5),
    ModuleFacts("body", "Sequential", 0),
    ModuleFacts("body.0", "Linear", 100),
    ModuleFacts("body.10", "Linear", 7),
    ModuleFacts("head", "Linear", 3),
)


def tree_of(script: Script) -> dict[str, dict[Category, int]]:
    table = EventTable.from_events(script.events)
    curves = replay_table(table)
    found = module_tree(MODULES, table, curves, index=len(table) - 1)
    return {module.path: dict(module.categories) for module in found}


def test_children_count_for_their_parents_and_parents_come_first() -> None:
    script = Script()
    script.enter(Phase.FORWARD, 1)
    script.take("a", 1 * MIB, Category.PARAMETERS, module="body.0")
    script.take("b", 2 * MIB, Category.ACTIVATIONS, module="body.0")
    script.take("c", 4 * MIB, Category.ACTIVATIONS, module="body.10")
    script.take("d", 8 * MIB, Category.ACTIVATIONS, module="head")
    script.take("e", 16 * MIB, Category.OTHER)  # nobody's
    script.take("gone", 32 * MIB, Category.ACTIVATIONS, module="head")
    script.drop("gone")
    assert tree_of(script) == {
        "": {Category.PARAMETERS: 1 * MIB, Category.ACTIVATIONS: 14 * MIB, Category.OTHER: 16 * MIB},
        "body": {Category.PARAMETERS: 1 * MIB, Category.ACTIVATIONS: 6 * MIB},
        "body.0": {Category.PARAMETERS: 1 * MIB, Category.ACTIVATIONS: 2 * MIB},
        "body.10": {Category.ACTIVATIONS: 4 * MIB},
        "head": {Category.ACTIVATIONS: 8 * MIB},
    }


def test_parameters_are_counted_with_the_children() -> None:
    table = EventTable.from_events(())
    found = module_tree(MODULES, table, replay_table(table), index=-1)
    assert [(module.path, module.kind, module.parameters) for module in found] == [
        ("", "Net", 115),
        ("body", "Sequential", 107),
        ("body.0", "Linear", 100),
        ("body.10", "Linear", 7),
        ("head", "Linear", 3),
    ]


def test_a_module_that_is_not_listed_counts_for_its_nearest_parent() -> None:
    script = Script()
    script.enter(Phase.FORWARD, 1)
    script.take("a", MIB, module="body.0.inner.deep")
    script.take("b", MIB, module="elsewhere")
    found = tree_of(script)
    assert found["body.0"] == found["body"] == {Category.ACTIVATIONS: MIB}
    assert found[""] == {Category.ACTIVATIONS: 2 * MIB}
    assert "elsewhere" not in found


def test_the_model_holds_all_that_is_live_and_nothing_is_known_without_modules() -> None:
    trace = network(8)
    table = EventTable.of(trace)
    curves = replay_table(table)
    index = curves.peak_index
    model = module_tree(trace.modules, table, curves, index=index)[0]
    assert model.total_bytes == curves.live_peak_bytes
    assert model.categories == {k: v for k, v in owners_at(table, curves, index).items() if v}
    assert module_tree((), table, curves, index=index) == ()
