"""Every storage is booked once when it comes and once when it goes, whatever is done with its tensors."""

from __future__ import annotations

import gc
import threading
from collections.abc import Callable
from typing import Any, cast

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn
from torch.nn import functional
from torch.profiler import ProfilerActivity, profile

from desktop_app.core.steps import Category, Phase
from desktop_app.core.units import KIB
from desktop_app.memory.lowering import Lowering
from desktop_app.memory.storage_tracker import StorageTracker
from tests.unit.memory.trainings import HUGE


class Book:
    """A ledger that remembers what is alive, and can misbehave at a moment of the test's choice."""

    def __init__(self) -> None:
        self.alive: dict[int, tuple[int, Category, str]] = {}
        self.log: list[tuple[str, int]] = []  # ("+" op or "-", bytes)
        self.peak_bytes = 0
        self.during_allocate: Callable[[], None] | None = None
        self.refuse_from: int | None = None
        self._next = 0

    def allocate(self, size_bytes: int, *, category: Category, op: str, **_: object) -> int:
        if self.during_allocate is not None:
            action, self.during_allocate = self.during_allocate, None
            action()
        if self.refuse_from is not None and size_bytes >= self.refuse_from:
            raise torch.OutOfMemoryError("full")
        self._next += 1
        self.alive[self._next] = (size_bytes, category, op)
        self.log.append((f"+{op}", size_bytes))
        self.peak_bytes = max(self.peak_bytes, self.live_bytes)
        return self._next

    def free(self, handle: int) -> None:
        self.log.append(("-", self.alive.pop(handle)[0]))  # a second free is a KeyError

    def move(self, handle: int, *, category: Category, **_: object) -> None:
        size_bytes, _, op = self.alive[handle]
        self.alive[handle] = (size_bytes, category, op)

    @property
    def live_bytes(self) -> int:
        return sum(size for size, _, _ in self.alive.values())

    def owned_by(self, category: Category) -> int:
        return sum(size for size, owner, _ in self.alive.values() if owner is category)


@pytest.fixture
def book() -> Book:
    return Book()


@pytest.fixture
def tracker(book: Book) -> StorageTracker:
    return StorageTracker(book, lowering=Lowering(HUGE))


def test_a_new_tensor_is_booked_and_its_end_too(book: Book, tracker: StorageTracker) -> None:
    with tracker:
        tensor = torch.zeros(1000)
        assert book.live_bytes == 4000
        del tensor
        assert book.live_bytes == 0


def test_the_end_is_booked_outside_the_scope_as_well(book: Book, tracker: StorageTracker) -> None:
    with tracker:
        tensor = torch.zeros(1000)
    del tensor
    assert book.live_bytes == 0


def test_views_and_aliases_keep_the_storage_alive(book: Book, tracker: StorageTracker) -> None:
    with tracker:
        tensor = torch.zeros(10, 10)
        views = [tensor[2:], tensor.t(), tensor.view(100), tensor.detach(), tensor.expand(4, 10, 10), tensor.real]
        del tensor
        assert book.log == [("+zeros", 400)]
        del views[1:]
        assert book.live_bytes == 400
        views.clear()
    assert book.live_bytes == 0


def test_in_place_ops_make_nothing(book: Book, tracker: StorageTracker) -> None:
    with tracker:
        tensor = torch.zeros(100)
        tensor.add_(1).mul_(2).clamp_(0, 1)
        tensor[3:5] = 7
        torch._foreach_mul_([tensor], 2.0)
    assert book.log == [("+zeros", 400)]


def test_what_was_there_before_is_not_booked(book: Book, tracker: StorageTracker) -> None:
    before = torch.zeros(100)
    with tracker:
        kept = (
            before.view(10, 10),
            before.detach(),
            before.reshape(100),
            before.contiguous(),
            before.to(torch.float32),
        )
        before.add_(1)
        assert book.log == []
        sum_ = before + 1
        assert book.live_bytes == 400
    del before, kept, sum_
    assert book.live_bytes == 0


def test_under_inference_mode_composite_ops_that_return_their_input_book_nothing(
    book: Book, tracker: StorageTracker
) -> None:
    before = torch.zeros(10, 10)
    with tracker, torch.inference_mode():
        kept = (before.reshape(100), before.contiguous(), before.flatten(), before.to(torch.float32))
        assert book.log == []
        copied = before.t().reshape(100)
        assert book.live_bytes == 400
    del kept, copied


def test_resize_takes_the_new_memory_before_it_gives_the_old_back(book: Book, tracker: StorageTracker) -> None:
    with tracker:
        tensor = torch.zeros(100)
        tensor.resize_(1000)
        assert book.log == [("+zeros", 400), ("+zeros", 4000), ("-", 400)]
        tensor.resize_(10)  # torch keeps the larger storage
        assert book.live_bytes == 4000
    del tensor
    assert book.live_bytes == 0


@pytest.mark.parametrize("device", ["cpu", "meta"])
def test_a_storage_that_is_resized_past_all_ops_is_seen(book: Book, device: str) -> None:
    """FSDP frees what it has gathered with ``untyped_storage().resize_(0)`` and takes the memory again later."""
    stock = torch.UntypedStorage.resize_
    with StorageTracker(book, lowering=Lowering(HUGE), device_type=device):
        gathered = torch.empty(100, device=device)
        gathered.untyped_storage().resize_(0)
        assert book.live_bytes == 0
        gathered.untyped_storage().resize_(400)
        assert book.live_bytes == 400
    assert book.log == [("+empty", 400), ("-", 400), ("+empty", 400)]
    assert torch.UntypedStorage.resize_ is stock


def test_an_out_argument_is_no_new_tensor_unless_it_grows(book: Book, tracker: StorageTracker) -> None:
    out = torch.zeros(10)
    with tracker:
        torch.add(torch.ones(10), 1, out=out)
        grown = torch.empty(0)
        torch.add(torch.ones(20), 1, out=grown)
        assert book.live_bytes == 80
    del grown
    assert book.live_bytes == 0


def test_what_autograd_keeps_lives_until_the_graph_goes(book: Book, tracker: StorageTracker) -> None:
    weight = torch.zeros(100, requires_grad=True)
    with tracker:
        loss = (weight.exp() * 2).sum()  # exp keeps its result
        assert book.live_bytes == 400 + 4
        tracker.phase = Phase.BACKWARD
        loss.backward()  # type: ignore[no-untyped-call]
        del loss
    assert book.live_bytes == 400  # the gradient
    weight.grad = None
    assert book.live_bytes == 0


def test_lists_of_outputs_are_booked_one_by_one(book: Book, tracker: StorageTracker) -> None:
    tensors = [torch.ones(10), torch.ones(20)]
    with tracker:
        roots = torch._foreach_sqrt(tensors)
        assert book.log == [("+_foreach_sqrt", 40), ("+_foreach_sqrt", 80)]
        del roots
    assert book.live_bytes == 0


def test_empty_tensors_and_scalars_made_on_the_host_take_nothing(book: Book, tracker: StorageTracker) -> None:
    with tracker:
        kept = (torch.empty(0), torch.tensor(3.0), torch.empty(0, 7))
    assert book.log == []
    assert kept


def test_a_death_while_the_ledger_is_at_work_waits_for_its_end(book: Book, tracker: StorageTracker) -> None:
    with tracker:
        doomed = [torch.zeros(100)]
        book.during_allocate = doomed.clear
        tensor = torch.zeros(1000)
    assert book.log == [("+zeros", 400), ("+zeros", 4000), ("-", 400)]
    del tensor


def test_a_cycle_that_the_collector_finds_is_booked(book: Book, tracker: StorageTracker) -> None:
    with tracker:
        cycle: list[Any] = [torch.zeros(100)]
        cycle.append(cycle)
        del cycle
        assert book.live_bytes == 400
        gc.collect()
        assert book.live_bytes == 0


def test_a_death_on_another_thread_is_booked_at_the_next_op(book: Book, tracker: StorageTracker) -> None:
    with tracker:
        doomed = [torch.zeros(100)]
        thread = threading.Thread(target=doomed.clear)
        thread.start()
        thread.join(10)
        assert book.live_bytes == 400
        tensor = torch.zeros(1)
        assert book.log == [("+zeros", 400), ("-", 400), ("+zeros", 4)]
    tracker.settle_frees()
    del tensor


def test_an_address_that_is_used_again_is_a_new_storage(book: Book, tracker: StorageTracker) -> None:
    with tracker:
        for _ in range(200):
            tensor = torch.zeros(100)
            assert book.live_bytes >= 400
            del tensor
    assert len(book.log) == 400
    assert book.live_bytes == 0


def test_an_op_that_finds_no_room_raises_and_leaves_nothing(book: Book, tracker: StorageTracker) -> None:
    book.refuse_from = 4000
    tensors = [torch.ones(10), torch.ones(1000)]
    with tracker:
        with pytest.raises(torch.OutOfMemoryError, match="full"):
            torch._foreach_sqrt(tensors)  # the first of the two had found room
        assert book.live_bytes == 0
        small = torch.zeros(10)
        assert book.live_bytes == 40
    del small


def test_an_error_of_the_op_itself_books_nothing(book: Book, tracker: StorageTracker) -> None:
    with tracker, pytest.raises(RuntimeError, match="size of tensor"):
        torch.ones(3) + torch.ones(4)
    assert book.live_bytes == 0


def test_gradients_and_their_hooks(book: Book, tracker: StorageTracker) -> None:
    model = nn.Linear(100, 10)
    tracker.track_model(model)
    assert book.owned_by(Category.PARAMETERS) == 4040
    for _ in range(2):  # the second backward adds in place
        with tracker:
            tracker.phase = Phase.FORWARD
            loss = model(torch.ones(2, 100)).sum()
            tracker.phase = Phase.BACKWARD
            loss.backward()
            del loss
        assert book.owned_by(Category.GRADIENTS) == 4040
        assert book.owned_by(Category.ACTIVATIONS) == 0
    tracker.close()
    assert not any(parameter._post_accumulate_grad_hooks for parameter in model.parameters())


def test_tied_weights_are_moved_once(book: Book, tracker: StorageTracker) -> None:
    model = nn.Sequential(nn.Linear(10, 10, bias=False), nn.Linear(10, 10, bias=False))
    model[1].weight = model[0].weight
    tracker.track_model(model)
    assert book.live_bytes == 400


def test_the_state_of_an_optimizer_is_recognised(book: Book, tracker: StorageTracker) -> None:
    weight = nn.Parameter(torch.zeros(1000))
    weight.grad = torch.ones(1000)
    optimizer = torch.optim.Adam([weight], foreach=True)
    tracker.track_optimizer(optimizer)
    with tracker:
        tracker.phase = Phase.OPTIMIZER
        optimizer.step()
        tracker.sort_state()
    assert book.owned_by(Category.OPTIMIZER_STATE) == 2 * 4000
    assert book.live_bytes == 2 * 4000
    assert book.peak_bytes == 3 * 4000  # the root of the second moment: one copy of the parameters


# What CUDA does otherwise than the CPU


def test_a_dropout_mask_takes_one_byte_per_element(book: Book, tracker: StorageTracker) -> None:
    inputs = torch.ones(1000, requires_grad=True)
    with tracker:
        out = functional.dropout(inputs, 0.5)
        assert book.log == [("+empty_like", 1000), ("+mul", 4000)]
    del out
    assert book.live_bytes == 0


def test_dropout_in_place_keeps_a_float_mask_on_cuda_too(book: Book, tracker: StorageTracker) -> None:
    with tracker:
        functional.dropout(torch.ones(1000), 0.5, inplace=True)
    assert ("+empty_like", 4000) in book.log


def test_alpha_dropout_is_not_taken_for_dropout(book: Book, tracker: StorageTracker) -> None:
    with tracker:
        out = functional.alpha_dropout(torch.ones(1000), 0.5, training=True)
    assert ("+empty_like", 4000) in book.log
    assert ("+empty_like", 1000) not in book.log
    del out
    assert book.live_bytes == 0


def test_dropout_that_is_off_makes_nothing(book: Book, tracker: StorageTracker) -> None:
    inputs = torch.ones(1000)
    with tracker:
        functional.dropout(inputs, 0.5, training=False)
    assert book.log == []


def test_an_empty_like_at_the_end_of_the_scope_is_booked(book: Book, tracker: StorageTracker) -> None:
    inputs = torch.ones(1000)
    with tracker:
        out = torch.empty_like(inputs)
    assert book.live_bytes == 4000
    del out
    assert book.live_bytes == 0


def sum_of_gradients(tracker: StorageTracker, inputs: torch.Tensor) -> None:
    with tracker:
        hidden = inputs * 2
        loss = (hidden.exp() + hidden.sin()).sum()
        tracker.phase = Phase.BACKWARD
        loss.backward()  # type: ignore[no-untyped-call]


def test_two_gradients_are_summed_in_place_as_without_a_dispatch_mode(book: Book, tracker: StorageTracker) -> None:
    inputs = torch.ones(1000, requires_grad=True)
    sum_of_gradients(tracker, inputs)
    inputs.grad = None
    sums = [entry for entry in book.log if entry[0] == "+add"]
    assert sums == [("+add", 4000)]  # the one of the forward pass
    assert book.live_bytes == 0


def two_einsums(x: torch.Tensor) -> torch.Tensor:
    """Weight first, as in the recorded GPT: both gradients of ``x`` come as views of what bmm has made."""
    weights = torch.ones(2, 8, 8, requires_grad=True)
    return torch.einsum("oi,bsi->bso", weights[0], x) + torch.einsum("oi,bsi->bso", weights[1], x)


def three_linears(x: torch.Tensor) -> torch.Tensor:
    first, second, third = (nn.Linear(8, 8, bias=False) for _ in range(3))
    return cast(torch.Tensor, first(x) + second(x) + third(x))


def two_products(x: torch.Tensor) -> torch.Tensor:
    return torch.bmm(x, torch.ones(2, 8, 8)) + torch.bmm(x, torch.ones(2, 8, 8))


def residual_norm(x: torch.Tensor) -> torch.Tensor:
    return cast(torch.Tensor, x + nn.Linear(8, 8)(nn.LayerNorm(8)(x)))


def used_five_times(x: torch.Tensor) -> torch.Tensor:
    return x.exp() + x.sin() + x * x + x[:, :2].sum() + two_einsums(x)


@pytest.mark.parametrize(
    "work", [two_einsums, three_linears, two_products, residual_norm, used_five_times], ids=lambda work: work.__name__
)
def test_a_sum_of_gradients_takes_memory_where_autograd_itself_adds_out_of_place(
    book: Book, tracker: StorageTracker, work: Callable[[torch.Tensor], torch.Tensor]
) -> None:
    """The truth is what autograd does without a dispatch mode, as the profiler sees it."""
    leaf = torch.ones(2, 4, 8, requires_grad=True)
    loss = work(leaf * 1).sum()
    with profile(activities=[ProfilerActivity.CPU]) as recording:
        loss.backward()  # type: ignore[no-untyped-call]
    truth = sum(event.name == "aten::add" for event in recording.events())
    leaf.grad = None
    with tracker:
        tracker.phase = Phase.FORWARD
        loss = work(leaf * 1).sum()
        book.log.clear()
        tracker.phase = Phase.BACKWARD
        loss.backward()  # type: ignore[no-untyped-call]
    assert sum(op == "+add" for op, _ in book.log) == truth


def test_one_cublas_workspace_for_the_forward_thread_and_one_for_the_backward_thread(
    book: Book, tracker: StorageTracker
) -> None:
    weight = torch.ones(8, 8, requires_grad=True)
    workspace = ("+cublas.workspace", 8_519_680)
    with tracker:
        loss = (weight @ weight).sum()
        assert book.log.count(workspace) == 1
        assert book.log.index(workspace) == book.log.index(("+mm", 256)) + 1
        tracker.phase = Phase.BACKWARD
        loss.backward()  # type: ignore[no-untyped-call]
        tracker.phase = Phase.FORWARD
        weight.detach() @ weight.detach()
    assert book.log.count(workspace) == 2
    del loss, weight
    assert book.live_bytes == 2 * 8_519_680


def test_batch_norm_keeps_its_statistics_only_when_it_trains(book: Book, tracker: StorageTracker) -> None:
    norm = nn.BatchNorm2d(4)
    images = torch.ones(2, 4, 8, 8)
    with tracker:
        norm(images)
        assert [entry for entry in book.log if entry[0] == "+native_batch_norm"] == [
            ("+native_batch_norm", 2 * KIB),
            ("+native_batch_norm", 16),
            ("+native_batch_norm", 16),
        ]
        book.log.clear()
        norm.eval()
        norm(images)
        assert [entry for entry in book.log if entry[0].startswith("+")] == [("+native_batch_norm", 2 * KIB)]


@settings(max_examples=60, deadline=None)
@given(
    st.lists(
        st.tuples(st.sampled_from(["new", "view", "copy", "in_place", "drop", "cat"]), st.integers(0, 9)), max_size=40
    )
)
def test_the_book_holds_exactly_the_storages_that_are_alive(actions: list[tuple[str, int]]) -> None:
    book = Book()
    tensors: list[torch.Tensor] = []
    with StorageTracker(book, lowering=Lowering(HUGE)):
        for action, number in actions:
            chosen = tensors[number % len(tensors)] if tensors else None
            if action == "new" or chosen is None:
                tensors.append(torch.zeros(number + 1))
            elif action == "view":
                tensors.append(chosen[: max(1, number)])
            elif action == "copy":
                tensors.append(chosen.clone())
            elif action == "in_place":
                chosen.add_(1)
            elif action == "cat":
                tensors.append(torch.cat([chosen, chosen]))
            else:
                tensors.pop(number % len(tensors))
            chosen = None
            alive = {tensor.untyped_storage()._cdata: tensor.untyped_storage().nbytes() for tensor in tensors}
            assert book.live_bytes == sum(alive.values())
        tensors.clear()
        assert book.live_bytes == 0
