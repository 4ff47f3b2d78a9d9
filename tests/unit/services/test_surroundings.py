"""What the forecaster is told of card and computer: unknown stays unknown."""

from __future__ import annotations

from dataclasses import fields

from desktop_app.core.telemetry import ProcessSample, Reading, Reason
from desktop_app.core.units import GIB, MIB
from desktop_app.services.card_use import CardUse
from desktop_app.services.surroundings import describe_surroundings

from .doubles import make_card, make_memory


def process(pid: int, memory_bytes: int | None, *, own: bool = False) -> ProcessSample:
    return ProcessSample(pid, "SIM-1", "python", None, None, "compute", memory_bytes, own=own)


def readings(**values: float) -> dict[str, Reading]:
    return {name: Reading(value) for name, value in values.items()}


def test_everything_that_telemetry_knows_is_told() -> None:
    use = CardUse()
    processes = (process(1, 3 * GIB, own=True), process(2, 300 * MIB), process(3, 700 * MIB), process(4, None))
    use.observe("SIM-1", used_bytes=4 * GIB, processes=processes, memory=make_memory(2 * GIB), training=True)
    told = describe_surroundings(
        7.5,
        make_card(spills=True),
        readings(memory_used_bytes=4 * GIB),
        processes,
        use=use,
        host=readings(
            memory_used_bytes=10 * GIB,
            memory_available_bytes=6 * GIB,
            own_rss_bytes=2 * GIB,
            children_rss_bytes=3 * GIB,
            children=4,
            commit_used_bytes=11 * GIB,
            commit_limit_bytes=20 * GIB,
        ),
    )
    assert told.t_s == 7.5
    assert (told.device_used_bytes, told.others_bytes, told.outside_bytes) == (4 * GIB, GIB, GIB)
    assert told.capacity_bytes == 6 * GIB - 128 * MIB
    assert (told.host_used_bytes, told.host_available_bytes, told.host_total_bytes) == (10 * GIB, 6 * GIB, 16 * GIB)
    assert (told.own_rss_bytes, told.children_rss_bytes, told.children) == (2 * GIB, 3 * GIB, 4)
    assert (told.commit_used_bytes, told.commit_limit_bytes) == (11 * GIB, 20 * GIB)
    assert told.largest_neighbour_pid == 3
    assert told.spills


def test_what_cannot_be_read_is_unknown() -> None:
    """A lost card keeps what is known of its size; others that were seen before are not said again as if read now."""
    use = CardUse()
    use.observe("SIM-1", used_bytes=GIB, processes=(), memory=None, training=False)
    lost = {"memory_used_bytes": Reading(None, Reason.GPU_LOST)}
    told = describe_surroundings(1.0, make_card(), lost, (), use=use, host={})
    known = {field.name for field in fields(told) if getattr(told, field.name) is not None}
    assert known == {"t_s", "capacity_bytes", "spills"}
    assert not told.spills
