"""What an import found, for a terminal, as JSON, and for ``session.json``."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any, Final

from desktop_app.core.telemetry import Reading
from desktop_app.core.units import format_bytes
from desktop_app.services.import_axis import Clock
from desktop_app.services.import_cards import FieldSummary, ImportedCard
from desktop_app.services.import_result import Import, ImportedFile
from desktop_app.services.import_run_report import run_facts, run_lines
from desktop_app.services.import_words import encodable, printable, short, some
from desktop_app.telemetry.logs.record import LoggedInstance, LoggedProcess

_WITHOUT_TIMES: Final = frozenset({Clock.NONE, Clock.INTERVAL, Clock.ELAPSED})
_MOST_PASSED_OVER: Final = 200
_CLOCKS: Final = {
    Clock.UTC: "UTC",
    Clock.LOCAL: "local time of a place that the log does not name",
    Clock.TIME_OF_DAY: "times of a day that the log does not name",
    Clock.ELAPSED: "seconds since the training began; the log does not say when that was (--start TIME does)",
    Clock.INTERVAL: "no times in the log; rows as far apart as you said",
    Clock.NONE: "no times in the log; t_s is the number of the row (--interval SECONDS sets it)",
}


def as_facts(result: Import) -> dict[str, Any]:
    """Everything but the place of the session."""
    said = {
        "files": [
            {
                "file": str(file.path),
                "kinds": list(file.kinds),
                "records": file.records,
                "problem": None if file.problem is None else file.problem.lstrip(" :,"),
                "left_out": [{"line": item.line, "why": item.why, "text": item.text} for item in file.notes.left_out],
                "left_out_counts": dict(file.notes.counts),
                "remarks": [{"line": line, "text": text} for text, line in file.notes.remarks.items()],
            }
            for file in result.files
            if not file.passed_over
        ],
        "passed_over": [str(file.path) for file in result.files if file.passed_over][:_MOST_PASSED_OVER],
        "clock": result.clock.value,
        "first": _moment(result, result.first_s),
        "last": _moment(result, result.last_s),
        "span_s": None if result.first_s is None or result.last_s is None else result.last_s - result.first_s,
        "rows": result.rows,
        "rows_without_time": result.untimed_rows,
        "times_that_step_back": result.steps_back,
        "local_times_taken_as_this_computers": result.assumes_zone,
        "runs": [run_facts(run) for run in result.runs],
        "cards": [_card_facts(card) for card in result.cards],
        "kept_as_written": result.raw_fields,
    }
    return {name: _encodable(value) for name, value in said.items()}


def as_json(result: Import) -> str:
    paths = [str(session.path) for session in result.sessions]
    said = {"session": paths[0] if paths else None, "sessions": paths, **as_facts(result)}
    return json.dumps(_plain(said), ensure_ascii=False, indent=1)


def as_text(result: Import) -> str:
    """A few lines: the session, its cards, their fields, and what was left out."""
    return "\n".join(printable(line) for line in _lines(result))


def _lines(result: Import) -> Iterator[str]:
    for session in result.sessions:
        yield f"Session: {session.path}"
    for file in result.files:
        if file.problem is None:
            yield f"  {file.path}: {', '.join(file.kinds)}, {_many(file.records, 'record')}"
    yield f"Times: {_span(result)}" + (f"; {_many(result.rows, 'row')}" if result.cards else "")
    if result.assumes_zone:
        yield "  local times are taken as this computer's, to compare them with UTC; --zone says another"
    if result.untimed_rows:
        have = "has" if result.untimed_rows == 1 else "have"
        when = f" ({_moment(result, result.first_s)})" if result.cards_apart else ""
        yield f"  {_many(result.untimed_rows, 'row')}{when} {have} no time to compare: kept apart in telemetry_untimed"
    if result.steps_back:
        yield f"  {result.steps_back:,} times the clock steps back; rows stay at the times that they say"
    for run in result.runs:
        yield from run_lines(run, several=len(result.runs) > 1)
    for card in result.cards:
        yield from _card_lines(card)
    raw = result.raw_fields
    if raw:
        yield f"Kept as written, not among our fields ({len(raw)}): {_all_of(raw)}"
    for file in result.files:
        if not file.passed_over:
            yield from _file_lines(file)
    passed_over = [file.path for file in result.files if file.passed_over]
    if passed_over:
        names = _all_of([str(path) for path in passed_over])
        yield f"Passed over in folders, of no kind that is read ({len(passed_over):,}): {names}"


def _file_lines(file: ImportedFile) -> Iterator[str]:
    for text, line in file.notes.remarks.items():
        yield f"Note: {file.path.name}, line {line}: {text}"
    for why, count in file.notes.counts.items():
        first = next(item for item in file.notes.left_out if item.why == why)
        quoted = f": {first.text}" if first.text else ""
        more = f" ({count:,} lines)" if count > 1 else ""
        yield f"Left out: {file.path.name}, line {first.line}: {why}{more}{quoted}"
    if file.problem is not None:
        yield f"Not read: {file.path}{file.problem}"


def _card_lines(card: ImportedCard) -> Iterator[str]:
    who = card.card
    about = [who.name, who.uuid, who.bus_id, None if who.index is None else f"index {who.index}"]
    yield f"Card: {', '.join(short(part) for part in about if part) or short(card.key)}; {_many(card.rows, 'row')}"
    total = card.facts.get("total_bytes")
    if total is not None:
        said = format_bytes(total.value) if total.value is not None else f"n/a ({total.reason})"
        yield f"  memory: {said}" + (f", MIG with {len(card.instances)} instances" if card.instances else "")
    for name, summary in card.fields.items():
        yield f"  {name}: {_field(name, summary)}"
    if card.processes:
        yield f"  processes: {len(card.processes)}"


def _field(name: str, summary: FieldSummary) -> str:
    parts = []
    if summary.lowest is not None and summary.highest is not None:
        low, high = _figure(name, summary.lowest), _figure(name, summary.highest)
        parts.append(f"{_many(summary.values, 'value')}, {low}" + (f" to {high}" if high != low else ""))
    parts += [f"{count:,} n/a ({reason.value})" for reason, count in summary.reasons.most_common()]
    return "; ".join(parts)


def _figure(name: str, value: float) -> str:
    return format_bytes(value) if name.endswith("_bytes") else f"{value:.10g}"


def _span(result: Import) -> str:
    if result.first_s is None or result.last_s is None or result.clock in _WITHOUT_TIMES:
        return _CLOCKS[result.clock]
    first, last = _moment(result, result.first_s), _moment(result, result.last_s)
    return (first or "") + (f" to {last}" if first != last else "") + f" ({_CLOCKS[result.clock]})"


def _moment(result: Import, seconds: float | None) -> str | None:
    """As the log has it."""
    if seconds is None:
        return None
    try:
        moment = datetime.fromtimestamp(seconds, UTC)
    except (OverflowError, OSError, ValueError):
        return f"{seconds} s"
    clock = moment.strftime("%H:%M:%S") + (f".{moment.microsecond // 1000:03}" if moment.microsecond else "")
    if result.clock is Clock.TIME_OF_DAY:
        day = 1 + moment.toordinal() - datetime(1970, 1, 1, tzinfo=UTC).toordinal()
        return clock + (f" (day {day})" if day > 1 else "")
    return f"{moment:%Y-%m-%d} {clock}" + (" UTC" if result.clock is Clock.UTC else "")


def _card_facts(card: ImportedCard) -> dict[str, Any]:
    who = card.card
    return {
        "key": card.key,
        "uuid": who.uuid,
        "bus_id": who.bus_id,
        "name": who.name,
        "index": who.index,
        "rows": card.rows,
        "facts": {name: _reading(reading) for name, reading in card.facts.items()},
        **card.texts,
        "fields": {
            name: {
                "values": summary.values,
                "min": summary.lowest,
                "max": summary.highest,
                "last": summary.last,
                "reasons": {reason.value: count for reason, count in summary.reasons.items()},
            }
            for name, summary in card.fields.items()
        },
        "processes": [_process(process) for process in card.processes.values()],
        "instances": [_instance(instance) for instance in card.instances],
    }


def _plain(value: Any) -> Any:
    """JSON has neither NaN nor infinity: unknown is null."""
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, dict):
        return {name: _plain(item) for name, item in value.items()}
    return [_plain(item) for item in value] if isinstance(value, list) else value


def _encodable(value: Any) -> Any:
    if isinstance(value, str):
        return encodable(value)
    if isinstance(value, dict):
        return {_encodable(name): _encodable(item) for name, item in value.items()}
    return [_encodable(item) for item in value] if isinstance(value, list) else value


def _reading(reading: Reading) -> dict[str, Any]:
    return {"value": reading.value, "reason": None if reading.reason is None else reading.reason.value}


def _process(process: LoggedProcess) -> dict[str, Any]:
    return {
        "pid": process.pid,
        "name": process.name,
        "kind": process.kind,
        "memory_bytes": process.memory_bytes.value,
        "memory_reason": None if process.memory_bytes.reason is None else process.memory_bytes.reason.value,
    }


def _instance(instance: LoggedInstance) -> dict[str, Any]:
    return {
        "index": instance.index,
        "uuid": instance.uuid,
        "total_bytes": _reading(instance.total_bytes),
        "used_bytes": _reading(instance.used_bytes),
    }


def _many(count: int, what: str) -> str:
    return f"{count:,} {what}" + ("" if count == 1 else "s")


def _all_of(names: list[str]) -> str:
    return some(names, where="session.json")
