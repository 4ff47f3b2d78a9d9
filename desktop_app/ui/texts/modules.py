"""The words of the module tree and the list of blocks."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from PySide6.QtCore import QCoreApplication

from desktop_app.core.estimates import ModuleMemory
from desktop_app.core.steps import Category
from desktop_app.ui.texts import fields, numbers

_THOUSAND: Final = 1000


def short_name(module: ModuleMemory) -> str:
    """The last step of its path; the model itself by its class."""
    return module.path.rpartition(".")[2] or module.kind


def count(parameters: int) -> str:
    """``334 M``: as model cards write it."""
    for unit, size in (("B", _THOUSAND**3), ("M", _THOUSAND**2), ("k", _THOUSAND)):
        if parameters >= size:
            digits = 1 if parameters < 100 * size else 0
            return numbers.with_unit(parameters / size, unit, digits)
    return numbers.integer(parameters)


def shares(module: ModuleMemory) -> Iterable[tuple[Category, int]]:
    """What it holds, in the order of the tank."""
    return [(category, module.categories[category]) for category in Category if module.categories.get(category)]


def tooltip(module: ModuleMemory) -> str:
    """Path, class and every kind with its size."""
    head = f"{module.path} · {module.kind}" if module.path else module.kind
    lines = [f"{fields.category(category.value)}: {numbers.small_size(size)}" for category, size in shares(module)]
    return "\n".join([head, *lines])


def described(module: ModuleMemory) -> str:
    """One line for screen readers."""
    return ", ".join(tooltip(module).split("\n"))


def as_table(modules: Iterable[ModuleMemory]) -> str:
    """Tab-separated, with a head: for a spreadsheet. Sizes in bytes."""
    names = [fields.category(category.value) for category in Category]
    head = "\t".join((_path(), _kind(), _parameters(), _total(), *names))
    rows = [
        "\t".join(
            (
                module.path,
                module.kind,
                str(module.parameters),
                str(module.total_bytes),
                *(str(module.categories.get(category, 0)) for category in Category),
            )
        )
        for module in modules
    ]
    return "\n".join([head, *rows])


def _path() -> str:
    return QCoreApplication.translate("Modules", "Module")


def _kind() -> str:
    return QCoreApplication.translate("Modules", "Class")


def _parameters() -> str:
    return QCoreApplication.translate("Modules", "Parameters")


def _total() -> str:
    return QCoreApplication.translate("Modules", "Size")


def found(matches: int, query: str) -> str:
    """What a search has come to."""
    if matches:
        return QCoreApplication.translate("Modules", "{0} found").format(numbers.integer(matches))
    return QCoreApplication.translate("Modules", "No module has “{0}” in its name or class.").format(query)
