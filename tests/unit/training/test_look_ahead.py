"""What is told of batches before they are on the card, and of phases while they last."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from desktop_app.core.steps import BatchShape, Phase, PhaseSample
from desktop_app.training.config import RunConfig
from desktop_app.training.control import ControlToken, Shrink
from desktop_app.training.look_ahead import LookAhead, part_of, shape_of, state_bytes
from desktop_app.training.recipes.data import Batch, PreparedData, ShapedSource
from desktop_app.training.recipes.resized_batches import ResizedBatches

from .doubles import NumberBatches, NumberRecipe, RecordingSink
from .test_loop import CONFIG, train


def batch(*size: int, dtype: torch.dtype = torch.float32) -> Batch:
    return Batch(torch.zeros(size, dtype=dtype), torch.zeros(size[0], dtype=torch.int64))


@pytest.mark.parametrize(
    ("made", "expected"),
    [
        (batch(8, 3, 32, 20, dtype=torch.uint8), BatchShape(8, pixels=8 * 32 * 20)),
        (batch(4, 100, dtype=torch.int64), BatchShape(4, tokens=400)),
        (batch(4, 100, 16), BatchShape(4, tokens=400)),
        (batch(4, 6), BatchShape(4)),  # rows of numbers are no sequences
        (batch(4), BatchShape(4)),
    ],
)
def test_shape_of_images_sequences_and_rows(made: Batch, expected: BatchShape) -> None:
    assert shape_of(made) == expected


def test_part_of_a_batch_has_its_share_rounded_up() -> None:
    assert part_of(BatchShape(8, tokens=801), 4) == BatchShape(4, tokens=401)
    assert part_of(BatchShape(8, pixels=800), 9) == BatchShape(8, pixels=800)


class Growing(NumberBatches):
    """Batches of the sizes given, from the first rows on, the same in every epoch."""

    def __init__(self, rows: torch.Tensor, labels: torch.Tensor, *, sizes: tuple[int, ...]) -> None:
        super().__init__(rows, labels, batch_size=max(sizes))
        self._sizes = sizes

    @property
    def batches(self) -> int:
        return len(self._sizes)

    def batch(self, *, epoch: int, index: int) -> Batch:  # noqa: ARG002
        return Batch(self._rows[: self._sizes[index]], self._labels[: self._sizes[index]])

    def shape(self, *, epoch: int, index: int) -> BatchShape:  # noqa: ARG002
        return BatchShape(self._sizes[index])


class GrowingRecipe(NumberRecipe):
    """Numbers in batches of the sizes given."""

    def __init__(self, *sizes: int) -> None:
        super().__init__()
        self._sizes = sizes

    def prepare(self, config: RunConfig, *, cancelled: Callable[[], bool] | None = None) -> PreparedData:
        data = super().prepare(config, cancelled=cancelled)
        whole = NumberBatches.batch(data.train, epoch=1, index=0)  # type: ignore[arg-type]
        return replace(data, train=Growing(whole.inputs, whole.targets, sizes=self._sizes))


def test_only_a_batch_that_is_larger_than_all_before_is_told_ahead() -> None:
    _, sink = train(replace(CONFIG, epochs=2), recipe=GrowingRecipe(4, 4, 6, 5, 8, 2))
    told = [sample for sample in sink.phases if sample.phase is Phase.FORWARD]
    assert [(sample.step, sample.batch) for sample in told] == [(3, BatchShape(6)), (5, BatchShape(8))]
    before = [sample for sample in sink.steps if sample.t_s <= told[0].t_s]
    assert [sample.step for sample in before] == [1, 2]
    assert [sample.micro_batch_samples for sample in sink.steps[:6]] == [4, 4, 6, 5, 8, 2]


def test_a_rule_can_make_the_batch_smaller_before_it_is_on_the_card() -> None:
    sink, token = RecordingSink(), ControlToken()

    def shrink(sample: PhaseSample) -> None:
        if sample.phase is Phase.FORWARD:
            token.request_shrink(Shrink.TRAINING)

    sink.on_each_phase = shrink
    _, sink = train(replace(CONFIG, epochs=1), recipe=GrowingRecipe(4, 8, 8), sink=sink, token=token)
    assert [sample.micro_batch_samples for sample in sink.steps] == [4, 4, 4]


def test_a_part_is_told_as_large_as_it_is_cut() -> None:
    """At most 5 of 8 are two parts of 4: no larger than the batch before, so there is nothing to tell."""
    sink, token = RecordingSink(), ControlToken()

    def shrink(sample: PhaseSample) -> None:
        if sample.phase is Phase.FORWARD:
            token.request_shrink(Shrink.TRAINING)

    sink.on_each_phase = shrink
    recipe = GrowingRecipe(4, 8, 8, 8)
    _, sink = train(replace(CONFIG, epochs=1), recipe=recipe, sink=sink, token=token, largest_batch=lambda: 5)
    assert [sample.micro_batch_samples for sample in sink.steps] == [4, 4, 4, 4]
    assert [sample.step for sample in sink.phases if sample.phase is Phase.FORWARD] == [2]


def test_longest_batch_of_each_epoch_is_told_with_its_step() -> None:
    _, sink = train(replace(CONFIG, epochs=2), recipe=GrowingRecipe(4, 4, 6, 5, 8, 2))
    known = {(status.longest_batch, status.longest_batch_step) for status in sink.statuses if status.longest_batch}
    assert known == {(BatchShape(8), 5), (BatchShape(8), 11)}


def test_batches_that_are_alike_have_no_longest_one() -> None:
    _, sink = train(replace(CONFIG, epochs=1), recipe=GrowingRecipe(4, 4, 4))
    assert all(status.longest_batch is None for status in sink.statuses)
    assert Phase.FORWARD not in [sample.phase for sample in sink.phases]


def test_longest_counts_steps_of_several_batches() -> None:
    look = LookAhead(GrowingRecipe(4, 4, 6, 5, 8, 2).prepare(CONFIG).train)
    assert look.longest(epoch=1, first=0, per_step=2) == (BatchShape(8), 3)
    assert look.longest(epoch=1, first=0, per_step=4) == (BatchShape(6), 1)  # the last two are left out
    assert look.longest(epoch=1, first=5, per_step=1) is None


def test_resized_images_are_a_source_that_knows_its_sizes() -> None:
    class Images:
        samples, batches = 6, 3

        def batch(self, *, epoch: int, index: int) -> Batch:  # noqa: ARG002
            return batch(2, 1, 8, 8)

    source = ResizedBatches(Images(), side_of=lambda _, index: 8 + index)
    assert isinstance(source, ShapedSource)
    made = [shape_of(source.batch(epoch=1, index=index)) for index in range(3)]
    assert made == [source.shape(epoch=1, index=index) for index in range(3)]


def test_validation_is_told_before_in_its_midst_and_after() -> None:
    _, sink = train(replace(CONFIG, epochs=1))
    told = [(sample.done, sample.ended) for sample in sink.phases if sample.phase is Phase.VALIDATION]
    count = next(sample.count for sample in sink.phases if sample.phase is Phase.VALIDATION)
    assert told == [*((done, False) for done in range(count or 0)), (count, True)]


def test_resume_tells_what_the_state_takes(tmp_path: Path) -> None:
    config = replace(CONFIG, epochs=1, output_dir=str(tmp_path))
    train(config)
    _, sink = train(replace(config, epochs=2), resume_from=tmp_path / "last.pt")
    build = [sample for sample in sink.phases if sample.phase is Phase.BUILD]
    assert [(sample.step, sample.ended) for sample in build] == [(6, False), (6, True)]
    # Tensors of 48, 8, 8, 8, 16 and 2 floats, and buffers of 8, 8 and 1, in blocks of 512; two states per parameter.
    assert build[0].known_demand_bytes == (6 * 3 + 3) * 512


def test_state_of_a_fresh_optimizer_is_nothing() -> None:
    model = torch.nn.Linear(1000, 10)
    assert state_bytes(model, None) == 40_448 + 512  # 40,000 and 40 bytes
    optimizer = torch.optim.Adam(model.parameters())
    assert state_bytes(model, optimizer.state_dict()) == 40_448 + 512


def test_the_longest_batch_is_told_anew_as_it_is_cut_after_a_shrink() -> None:
    sink, token = RecordingSink(), ControlToken()
    sink.on_each_step = lambda sample: token.request_shrink(to=4) if sample.step == 2 else None
    train(replace(CONFIG, epochs=1), recipe=GrowingRecipe(4, 4, 6, 5, 8, 2), sink=sink, token=token)
    known = [(status.longest_batch, status.longest_batch_step) for status in sink.statuses if status.longest_batch]
    assert known[0] == (BatchShape(8), 5)
    assert known[-1] == (BatchShape(4), 5)
