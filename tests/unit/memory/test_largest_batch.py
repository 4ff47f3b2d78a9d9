"""The largest batch that fits: it fits, the next one does not, and few traces are needed to know."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import pytest

from desktop_app.core.units import GIB, MIB
from desktop_app.memory.allocator_settings import AllocatorSettings
from desktop_app.memory.convolutions import ConvolutionCall
from desktop_app.memory.estimate_outlook import Outlook, Unknowns
from desktop_app.memory.estimate_steady import steady
from desktop_app.memory.estimate_table import EventTable
from desktop_app.memory.largest_batch import MOST, BatchAnswer, BatchSearch
from desktop_app.memory.trace import trace_training
from desktop_app.memory.trace_data import Trace
from desktop_app.memory.trace_errors import TracerError, UntraceableError
from tests.unit.memory.made_traces import network
from tests.unit.memory.trainings import HUGE, Residual, Training, adam_loop, adamw, cnn, mlp, sgd, sgd_momentum


@dataclass(frozen=True)
class Times:
    """So many bytes per sample of each call."""

    probability: float
    per_sample_bytes: int

    def bytes_for(self, call: ConvolutionCall) -> int:
        return call.batch * self.per_sample_bytes


KNOWN = Unknowns((100 * MIB,), (Times(1.0, 0),))
CONTEXTS = tuple((200 + 10 * index) * MIB for index in range(21))
OPEN = Unknowns(CONTEXTS, (Times(0.3, 0), Times(0.5, MIB), Times(0.2, 3 * MIB)), spread=0.02)


class Counted:
    def __init__(self, make: Callable[[int], Trace]) -> None:
        self.make = make
        self.batches: list[int] = []

    def __call__(self, batch_size: int) -> Trace:
        self.batches.append(batch_size)
        return self.make(batch_size)


def search(
    make: Callable[[int], Trace], *, start: int, room_bytes: int, unknowns: Unknowns = KNOWN, most: int = MOST
) -> BatchAnswer:
    return BatchSearch(make, unknowns, room_bytes=room_bytes, risk=0.05, most=most).run(make(start))


def fits(trace: Trace, *, room_bytes: int, unknowns: Unknowns = KNOWN, risk: float = 0.05) -> bool:
    return Outlook(EventTable.of(steady(trace)), unknowns, room_bytes=room_bytes).fits(risk=risk)


def plain(batch_size: int) -> Trace:
    """Without optimizer state, whose blocks would cut up a segment of the activations for good."""
    return network(batch_size, optimizer_states=0)


LIMIT = 120  # of ``plain`` in 1100 MiB, as added up below


@pytest.mark.parametrize("start", [1, 16, 500, 5000])
def test_a_network_whose_limit_is_added_up_on_paper(start: int) -> None:
    """Of 1000 MiB beside the context the parameters take 32 and the loss a segment of 2; backward begins with four
    blocks of 2 MiB per sample (images, hidden, out and its gradient): (1000 - 34) / 8 = 120.75."""
    make = Counted(plain)
    found = search(make, start=start, room_bytes=1100 * MIB)
    assert found.largest == LIMIT
    assert (found.next_batch, found.confirmed) == (LIMIT + 1, True)
    assert {LIMIT, LIMIT + 1} <= set(make.batches)
    assert found.traces == len(make.batches) <= 5


def test_less_risk_less_room_and_more_context_mean_a_smaller_batch() -> None:
    def largest(*, risk: float = 0.05, room_bytes: int = 2 * GIB, unknowns: Unknowns = OPEN) -> int:
        def make(batch: int) -> Trace:
            return network(batch, convolves=True)

        return BatchSearch(make, unknowns, room_bytes=room_bytes, risk=risk).run(make(8)).largest or 0

    risks = [largest(risk=risk) for risk in (0.01, 0.05, 0.2, 0.5)]
    assert risks == sorted(risks)
    assert risks[0] < risks[-1]
    rooms = [largest(room_bytes=room * MIB) for room in (700, 1000, 1500, 3000)]
    assert rooms == sorted(set(rooms))
    more = Unknowns(tuple(context + 300 * MIB for context in CONTEXTS), OPEN.workspaces, OPEN.spread)
    assert largest(unknowns=more) < largest()


TRAININGS: Mapping[str, Training] = {
    "cnn": Training(cnn, adamw),
    "cnn bf16 sgd": Training(cnn, sgd_momentum, precision="bf16"),
    "cnn in two": Training(cnn, sgd, accumulation=2),
    "mlp": Training(mlp, adam_loop),
    "mlp clipped": Training(lambda: mlp(64), adamw, grad_clip=1.0),
    "residual": Training(Residual, sgd),
    "residual bf16": Training(Residual, adamw, precision="bf16"),
}


@pytest.mark.parametrize("name", TRAININGS)
@pytest.mark.parametrize("unknowns", [KNOWN, OPEN], ids=["known", "open"])
def test_the_answer_fits_and_the_next_batch_does_not_by_full_traces(name: str, unknowns: Unknowns) -> None:
    training = TRAININGS[name]
    make = Counted(lambda batch: trace_training(training, batch_size=batch, card=HUGE))
    room_bytes = 520 * MIB
    found = search(make, start=32, room_bytes=room_bytes, unknowns=unknowns)
    assert found.largest is not None
    assert found.confirmed
    assert found.next_batch == found.largest + 1
    for batch, expected in ((found.largest, True), (found.largest + 1, False)):
        assert fits(make.make(batch), room_bytes=room_bytes, unknowns=unknowns) is expected
    assert found.traces <= 8


def test_none_where_not_even_one_sample_fits() -> None:
    found = search(network, start=8, room_bytes=180 * MIB)
    assert (found.largest, found.next_batch, found.confirmed) == (None, 1, True)


def test_the_search_ends_where_there_are_no_more_samples() -> None:
    make = Counted(plain)
    found = search(make, start=8, room_bytes=1100 * MIB, most=50)
    assert (found.largest, found.next_batch) == (50, None)
    assert max(make.batches) == 50
    assert search(plain, start=8, room_bytes=1100 * MIB, most=500).largest == LIMIT
    assert search(plain, start=64, room_bytes=1100 * MIB, most=50).largest == 50


def test_memory_that_does_not_grow_ends_at_the_largest_batch_there_is() -> None:
    found = search(lambda batch: network(batch, sample_bytes=0), start=8, room_bytes=1100 * MIB)
    assert (found.largest, found.next_batch, found.confirmed) == (MOST, None, True)


def irregular(batch_size: int) -> Trace:
    """Another op for every batch size: no two traces align."""
    trace = plain(batch_size)
    events = tuple(event._replace(op=f"{event.op}{batch_size}") for event in trace.events)
    return Trace(events=events, batch_size=batch_size)


def test_traces_that_do_not_align_are_halved_to_the_same_answer() -> None:
    make = Counted(irregular)
    found = search(make, start=8, room_bytes=1100 * MIB)
    assert (found.largest, found.confirmed) == (LIMIT, True)
    assert len(make.batches) <= 16


def bent(batch_size: int) -> Trace:
    """From 100 samples on each takes twice as much, with the same ops."""
    return network(batch_size, sample_bytes=2 * MIB if batch_size < 100 else 4 * MIB)


def test_sizes_that_are_not_affine_do_not_mislead_it() -> None:
    found = search(bent, start=8, room_bytes=1100 * MIB)
    assert found.largest is not None
    assert found.confirmed
    assert fits(bent(found.largest), room_bytes=1100 * MIB)
    assert not fits(bent(found.largest + 1), room_bytes=1100 * MIB)


def test_a_batch_size_that_the_model_refuses_is_no_answer() -> None:
    def picky(batch_size: int) -> Trace:
        if batch_size > 100:
            raise TracerError("bad_model", "no more than 100")
        if batch_size == 99:
            raise UntraceableError("aten.nonzero")
        return network(batch_size)

    found = search(picky, start=8, room_bytes=1100 * MIB)
    assert found.largest is not None
    assert found.largest <= 100
    assert not found.confirmed


def test_a_search_that_is_cancelled_ends() -> None:
    def cancelled(batch_size: int) -> Trace:
        raise TracerError("cancelled", f"not {batch_size}")

    finder = BatchSearch(cancelled, KNOWN, room_bytes=1100 * MIB, risk=0.05)
    with pytest.raises(TracerError, match="not"):
        finder.run(network(8))


def test_the_allocator_settings_are_those_of_the_training() -> None:
    """With two steps per power of two, blocks of 2 MiB per sample are 192 MiB up to 96 samples and 256 from 97 on,
    of which the room has no four."""
    settings = AllocatorSettings(roundup_power2_divisions=2)
    found = BatchSearch(plain, KNOWN, room_bytes=1100 * MIB, risk=0.05, settings=settings).run(plain(8))
    assert (found.largest, found.next_batch) == (96, 97)
