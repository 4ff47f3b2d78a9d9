"""Whose memory it is: a step that allocates between two readings is not another process."""

from __future__ import annotations

from collections.abc import Sequence

from desktop_app.core.steps import MemoryStats
from desktop_app.core.telemetry import ProcessSample
from desktop_app.core.units import GIB, MIB
from desktop_app.services.card_use import CardUse

from .doubles import make_memory

NOBODY: tuple[ProcessSample, ...] = ()


def process(memory_bytes: int | None, *, own: bool) -> ProcessSample:
    return ProcessSample(7, "GPU-a", "python", None, None, "compute", memory_bytes, own=own)


def observe(
    use: CardUse,
    used_bytes: int | None,
    *,
    processes: Sequence[ProcessSample] = NOBODY,
    memory: MemoryStats | None = None,
    training: bool = False,
    uuid: str = "GPU-a",
) -> int:
    use.observe(uuid, used_bytes=used_bytes, processes=processes, memory=memory, training=training)
    return use.others_bytes


def test_without_a_run_everything_is_the_others() -> None:
    use = CardUse()
    assert use.others_bytes == 0
    assert observe(use, 700 * MIB, processes=[process(300 * MIB, own=False)]) == 700 * MIB
    assert use.outside_bytes is None


def test_what_the_driver_books_on_this_process_is_not_the_others() -> None:
    use = CardUse()
    own = [process(900 * MIB, own=True), process(300 * MIB, own=False)]
    observe(use, 1200 * MIB, processes=own, memory=make_memory(500 * MIB), training=True)
    assert use.others_bytes == 300 * MIB
    assert use.outside_bytes == 400 * MIB


def test_a_context_left_behind_by_an_earlier_run_is_not_the_others() -> None:
    use = CardUse()
    assert observe(use, 500 * MIB, processes=[process(400 * MIB, own=True)]) == 100 * MIB


def test_a_step_that_grows_between_two_readings_is_smoothed_away() -> None:
    use = CardUse()
    for _ in range(3):
        observe(use, 600 * MIB, processes=[process(500 * MIB, own=True)], memory=make_memory(400 * MIB), training=True)
    observe(use, 3 * GIB, processes=[process(500 * MIB, own=True)], memory=make_memory(400 * MIB), training=True)
    assert use.others_bytes == 100 * MIB
    observe(use, 600 * MIB, processes=[process(3 * GIB, own=True)], memory=make_memory(400 * MIB), training=True)
    assert use.others_bytes == 100 * MIB
    assert use.outside_bytes == 100 * MIB


def test_a_real_neighbour_is_seen_in_three_seconds() -> None:
    use = CardUse()
    for _ in range(5):
        observe(use, 100 * MIB)
    seen = [observe(use, 2 * GIB) for _ in range(3)]
    assert seen == [100 * MIB, 100 * MIB, 2 * GIB]


def test_where_the_driver_does_not_know_this_process_the_allocator_tells() -> None:
    """In a container the list has other pids; under WDDM it has no sizes."""
    for processes in (NOBODY, [process(None, own=True)]):
        use = CardUse()
        memory = make_memory(500 * MIB, outside_bytes=300 * MIB)
        observe(use, 1000 * MIB, processes=processes, memory=memory, training=True)
        assert use.others_bytes == 200 * MIB
        assert use.outside_bytes is None


def test_until_the_allocator_has_told_what_was_known_before_the_run_holds() -> None:
    use = CardUse()
    observe(use, 100 * MIB)
    assert observe(use, 2 * GIB, training=True) == 100 * MIB
    assert observe(use, None) == 100 * MIB


def test_nobody_holds_less_than_nothing() -> None:
    use = CardUse()
    own = [process(900 * MIB, own=True)]
    observe(use, 800 * MIB, processes=own, memory=make_memory(1000 * MIB), training=True)
    assert (use.others_bytes, use.outside_bytes) == (0, 0)


def test_another_card_begins_anew() -> None:
    use = CardUse()
    for _ in range(5):
        observe(use, 2 * GIB)
    assert observe(use, 50 * MIB, uuid="GPU-b") == 50 * MIB
