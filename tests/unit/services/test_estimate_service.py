"""The window's estimates: traced elsewhere, kept, and given up for newer ones."""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable, Iterator
from dataclasses import replace

import pytest

from desktop_app.core.units import GIB, MIB
from desktop_app.memory.card_spec import CardSpec
from desktop_app.memory.trace_data import Trace
from desktop_app.memory.trace_errors import TracerError
from desktop_app.memory.tracing.child import trace_spec
from desktop_app.memory.training_spec import TrainingSpec
from desktop_app.services.estimate_service import EstimateService
from desktop_app.services.estimator import EstimateRequest
from desktop_app.services.trace_cache import TraceCache
from desktop_app.training.config import RunConfig

from .doubles import PATIENCE_S, make_card

CARD = make_card(architecture="Turing", compute_capability=(7, 5), sm_count=22)
CONFIG = RunConfig(batch_size=6, width=4, hidden=8)


class Tracer:
    """Traces in this process, and notes what it was asked."""

    def __init__(self, before: Callable[[], object] = lambda: None) -> None:
        self.asked: list[TrainingSpec] = []
        self.told: list[str] = []
        self._before = before

    def start(self) -> None:
        self.told.append("start")

    def trace(self, spec: TrainingSpec, card: CardSpec) -> Trace:
        self.asked.append(spec)
        self._before()
        return trace_spec(spec, card)

    def cancel(self, *, patience_s: float = 0.0) -> None:
        assert patience_s > 0
        self.told.append("cancel")

    def close(self) -> None:
        self.told.append("close")


def request(config: RunConfig = CONFIG, *, with_levers: bool = False, others_bytes: int = 0) -> EstimateRequest:
    return EstimateRequest(config, CARD, others_bytes, with_levers)


@pytest.fixture
def tracer() -> Tracer:
    return Tracer()


@pytest.fixture
def service(tracer: Tracer) -> Iterator[EstimateService]:
    made = EstimateService(lambda: tracer)
    yield made
    made.close()


def ignore(_: object) -> None: ...


def test_a_simulated_card_is_known_exactly(service: EstimateService) -> None:
    estimate = service(request(others_bytes=512 * MIB), ignore)
    assert estimate.capacity_bytes == 6 * GIB - 128 * MIB
    assert (estimate.others_bytes, estimate.batch_size, estimate.levers) == (512 * MIB, 6, ())
    peak = estimate.device_peak_bytes
    assert estimate.context_bytes < peak.p50 == peak.p95 < 2 * GIB  # of this run, without the others
    assert estimate.fits_probability == 1.0


def test_a_real_card_is_a_distribution(service: EstimateService) -> None:
    estimate = service(replace(request(), card=replace(CARD, simulated=False)), ignore)
    peak = estimate.device_peak_bytes
    assert peak.p50 < peak.p90 < peak.p95


def test_what_was_traced_is_not_traced_again(service: EstimateService, tracer: Tracer) -> None:
    first = service(request(), ignore)
    asked = len(tracer.asked)
    again = service(request(replace(CONFIG, learning_rate=0.5, name="another")), ignore)  # same memory, same trace
    assert len(tracer.asked) == asked
    assert again.device_peak_bytes == first.device_peak_bytes
    service(request(replace(CONFIG, batch_size=7)), ignore)
    assert len(tracer.asked) > asked


def test_levers_say_what_the_form_would_change(service: EstimateService) -> None:
    config = replace(CONFIG, model="wide-mlp", hidden=4096, optimizer="adamw")
    levers = {lever.code: lever for lever in service(request(config, with_levers=True), ignore).levers}
    assert levers["sgd"].changes == {"optimizer": "sgd"}
    # SGD with the run's momentum keeps one value per parameter where AdamW keeps two.
    parameters = 4 * (784 * 4096 + 4096 * 4096 + 4 * 4096 + 2)
    assert levers["sgd"].saved_bytes == pytest.approx(parameters, rel=0.25)
    assert levers["freeze_backbone"].changes == {}  # the form has no field for it
    assert levers["freeze_backbone"].saved_bytes > 2 * parameters


def test_a_newer_request_ends_the_older_one(tracer: Tracer) -> None:
    newer = request(replace(CONFIG, batch_size=9))
    service = EstimateService(lambda: tracer)
    tracer._before = lambda: service.supersede(newer)
    service.supersede(older := request())
    with pytest.raises(TracerError) as caught:
        service(older, ignore)
    assert caught.value.kind == "cancelled"
    assert (len(tracer.asked), tracer.told) == (1, ["cancel"])
    assert service(newer, ignore).batch_size == 9
    assert tracer.told == ["cancel"]  # its own traces are left alone
    service.close()
    assert tracer.told == ["cancel", "close"]
    with pytest.raises(TracerError):
        service(request(replace(CONFIG, batch_size=11)), ignore)


def test_it_traces_here_where_no_child_can_be_started(tracer: Tracer) -> None:
    def refuse() -> None:
        raise TracerError("no_interpreter", "this build has none")

    tracer._before = refuse
    service = EstimateService(lambda: tracer)
    assert service(request(), ignore).rung == "meta"
    tracer._before = lambda: (_ for _ in ()).throw(TracerError("memory_limit", "too much"))
    with pytest.raises(TracerError, match="too much"):
        service(request(replace(CONFIG, batch_size=8)), ignore)
    service.close()


def test_a_real_child_answers_and_is_ended_in_the_middle_of_its_work() -> None:
    service = EstimateService()
    service.start()
    answers: queue.SimpleQueue[object] = queue.SimpleQueue()
    assert service(request(), ignore).rung in ("native", "shim", "meta")

    def work() -> None:
        try:
            for batch_size in range(100, 1000):
                service(request(replace(CONFIG, batch_size=batch_size)), ignore)
                answers.put(batch_size)
        except TracerError as error:
            answers.put(error.kind)

    thread = threading.Thread(target=work)
    thread.start()
    assert answers.get(timeout=PATIENCE_S * 6) == 100
    service.close()
    thread.join(PATIENCE_S)
    assert not thread.is_alive()
    last: object = None
    while not answers.empty():
        last = answers.get()
    assert last == "cancelled"


def test_the_cache_keeps_the_newest_within_its_size() -> None:
    cache = TraceCache(most_events=5)
    trace = Trace(events=((None,) * 2), batch_size=1)  # type: ignore[arg-type]
    card = CardSpec("any", GIB, GIB)
    specs = [TrainingSpec(model="timm:any", batch_size=size) for size in (1, 2, 3)]
    for spec in specs[:2]:
        cache.put(spec, card, trace)
    assert cache.get(specs[0], card) is trace
    cache.put(specs[2], card, trace)
    assert [cache.get(spec, card) is not None for spec in specs] == [True, False, True]
    assert cache.get(specs[0], CardSpec("any", GIB, GIB, sm_count=3)) is None
