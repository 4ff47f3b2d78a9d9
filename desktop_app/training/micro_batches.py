"""What memory sees of a batch: parts of it, one after the other, whose gradients add up to those of the whole."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from desktop_app.training.recipes.data import Batch


def split_sizes(samples: int, limit: int) -> tuple[int, ...]:
    """Sizes of the parts of ``samples``, none above ``limit``: equal ones where a divisor of at least half the limit
    exists, else parts that differ by one sample at most. Larger parts first."""
    if samples <= limit:
        return (samples,)
    for size in range(limit, (limit - 1) // 2, -1):
        if samples % size == 0:
            return (size,) * (samples // size)
    count = -(-samples // limit)
    size, larger = divmod(samples, count)
    return (size + 1,) * larger + (size,) * (count - larger)


class MicroBatches:
    """Splits the batches of a source into parts of at most ``limit`` samples (``None``: as they come).

    ``whole`` is the largest batch of the source; ``accumulation`` of them make one optimizer step. The order of the
    samples, and how they were augmented, stay those of the source's batches. Runs in: trainer thread.
    """

    def __init__(self, *, whole: int, accumulation: int = 1, limit: int | None = None) -> None:
        self.whole = whole
        self.limit = limit
        self._accumulation = accumulation

    @property
    def size(self) -> int:
        """Samples of the largest part of a whole batch."""
        return self._sizes(self.whole)[0]

    @property
    def accumulation(self) -> int:
        """Parts of one optimizer step."""
        return self._accumulation * len(self._sizes(self.whole))

    def parts(self, batch: Batch) -> Iterator[tuple[Batch, float]]:
        """Each part, and what its mean loss is divided by so that the parts of a step add up to the mean over all its
        samples. Equal parts are divided by their number, as a run of such batches would."""
        samples = batch.samples
        self.whole = max(self.whole, samples)
        sizes = self._sizes(samples)
        if len(sizes) == 1:
            yield batch, float(self._accumulation)
            return
        start = 0
        for size in sizes:
            end = start + size
            part = replace(batch, inputs=batch.inputs[start:end], targets=batch.targets[start:end])
            yield part, self._accumulation * samples / size
            start = end

    def shrink(self, to: int | None = None) -> bool:
        """Half the size, or at most ``to`` where that is smaller than now. False: it is one sample already."""
        now = self.size
        if now <= 1:
            return False
        self.limit = to if to is not None and 1 <= to < now else now // 2
        return True

    def _sizes(self, samples: int) -> tuple[int, ...]:
        return (samples,) if self.limit is None else split_sizes(samples, self.limit)
