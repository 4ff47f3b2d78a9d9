"""What an import found of trainings, for a terminal and for ``session.json``."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from desktop_app.services.import_runs import TABLES, ImportedRun
from desktop_app.services.import_words import short, some


def run_facts(run: ImportedRun) -> dict[str, Any]:
    """One training, whole."""
    return {
        "name": run.name,
        "files": [str(log.path) for log in run.logs],
        "rows": {table: len(run.tables[table]) for table in TABLES},
        "steps": {table: run.step_range(table) for table in TABLES},
        "apart": run.apart,
        "restarts": run.restarts,
        "steps_out_of_order": run.out_of_order,
        "taken_back_by_restarts": run.purged,
        "scalars": {
            name: {
                "column": scalar.column,
                "values": scalar.values,
                "not_numbers": scalar.not_numbers,
                "min": scalar.lowest,
                "max": scalar.highest,
                "last": scalar.last,
            }
            for name, scalar in run.scalars.items()
        },
        "texts": sorted({name for log in run.logs for _, name, _ in log.log.texts}),
        "not_imported": run.kept_out,
        "remarks": run.remarks,
    }


def run_lines(run: ImportedRun, *, several: bool) -> Iterator[str]:
    """A few lines. ``several``: which session is whose must be said."""
    counts = [
        f"{len(run.tables[table]):,} {words}" for table, words in (("steps", "steps"), ("validation", "validations"))
    ]
    where = f", in {run.session.name}" if several and run.session is not None else ""
    yield f"Training: {short(run.name)}; {', '.join(counts)}{where}"
    for table in TABLES:
        held = run.step_range(table)
        if held is not None:
            yield f"  {table}: step {held[0]:.0f} to {held[1]:.0f}"
    for name, scalar in run.scalars.items():
        if scalar.column is None:
            continue
        nan = f"; NaN or infinite: {scalar.not_numbers:,}" if scalar.not_numbers else ""
        figures = ""
        if scalar.lowest is not None and scalar.highest is not None and scalar.last is not None:
            figures = f", {scalar.lowest:.6g} to {scalar.highest:.6g}, last {scalar.last:.6g}"
        yield f"  {scalar.column}: {short(name)}, {scalar.values:,} values{figures}{nan}"
    others = [name for name, scalar in run.scalars.items() if scalar.column is None]
    if others:
        yield f"  under their own names in import_scalars ({len(others)}): {_all_of(others)}"
    texts = sorted({name for log in run.logs for _, name, _ in log.log.texts})
    if texts:
        yield f"  words in import_texts ({len(texts)}): {_all_of(texts)}"
    for kind, names in run.kept_out.items():
        yield f"  not imported, {kind} ({len(names)}): {_all_of(list(names))}"
    if run.purged:
        yield f"  taken back by a restart: {run.purged:,}, in import_scalars with purged = 1 only"
    if run.restarts:
        yield f"  steps go back {run.restarts:,} times; all are kept at their times"
    if run.out_of_order:
        yield f"  steps come a row late {run.out_of_order:,} times, as of several ranks; all are kept at their times"
    for remark in run.remarks:
        yield f"  {remark}"


def _all_of(names: list[str]) -> str:
    return some(names, where="session.json")
