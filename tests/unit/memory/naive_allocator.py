"""The same rules in the plainest form: lists, linear searches, no running totals. Slow; the tests compare with it."""

from __future__ import annotations

from dataclasses import dataclass, field

from desktop_app.memory.allocator_settings import AllocatorSettings, round_request, segment_bytes
from desktop_app.memory.driver_addresses import FreshAddresses


@dataclass(eq=False)
class Piece:
    address: int
    size: int
    owner: int | None = None  # None: free
    waiting: bool = False
    shared: bool = False
    born: int = 0


@dataclass(eq=False)
class Segment:
    address: int
    size: int
    stream: int
    small: bool
    pieces: list[Piece] = field(default_factory=list)

    @property
    def free(self) -> bool:
        return len(self.pieces) == 1 and self.pieces[0].owner is None


class NaiveAllocator:
    def __init__(self, limit: int | None, total: int | None, settings: AllocatorSettings) -> None:
        fraction = settings.per_process_memory_fraction
        self.limit = limit
        self.allowed = None if fraction is None or total is None else int(fraction * total)
        self.settings = settings
        self.addresses = FreshAddresses()
        self.segments: list[Segment] = []
        self.lookups = 0
        self.retries = 0

    @property
    def reserved(self) -> int:
        return sum(segment.size for segment in self.segments)

    def allocate(self, owner: int, request: int, stream: int) -> int | None:
        """The address, or ``None`` when memory runs out."""
        size = round_request(request, self.settings.division_table())
        small = size <= 1 << 20
        self.lookups += not small
        found = self.search(size, stream, small=small) or self.grow(size, stream, small=small)
        if found is None:
            return None
        segment, piece = found
        rest = piece.size - size
        splits = rest >= 512 if small else rest > 1 << 20 and size < self.max_split
        if splits:
            at = segment.pieces.index(piece)
            segment.pieces.insert(at + 1, Piece(piece.address + size, rest, born=self.lookups))
            piece.size = size
        piece.owner, piece.shared = owner, False
        return piece.address

    @property
    def max_split(self) -> int:
        return self.settings.max_split_size_bytes or 1 << 64

    def search(self, size: int, stream: int, *, small: bool) -> tuple[Segment, Piece] | None:
        found = [
            (piece.size, piece.address, segment, piece)
            for segment in self.segments
            if segment.stream == stream and segment.small == small
            for piece in segment.pieces
            if piece.owner is None and piece.size >= size
        ]
        if not found:
            return None
        best, _, segment, piece = min(found, key=lambda entry: entry[:2])
        if size < self.max_split <= best:
            return None
        if size >= self.max_split and best >= size + self.settings.max_non_split_rounding_bytes:
            return None
        return segment, piece

    def grow(self, size: int, stream: int, *, small: bool) -> tuple[Segment, Piece] | None:
        wanted = segment_bytes(size, large_segment_bytes=self.settings.large_segment_size_bytes)
        if self.allowed is not None and self.settings.garbage_collection_threshold > 0:
            self.collect(int(self.settings.garbage_collection_threshold * self.allowed))
        granted = self.grants(wanted) or (self.release_oversize(size, stream, small=small) and self.grants(wanted))
        if not granted:
            self.empty_cache()
            self.retries += 1
            if not self.grants(wanted):
                return None
        address = self.addresses.reserve(wanted)
        segment = Segment(address, wanted, stream, small, [Piece(address, wanted)])
        self.segments.append(segment)
        return segment, segment.pieces[0]

    def grants(self, wanted: int) -> bool:
        limits = [limit for limit in (self.limit, self.allowed) if limit is not None]
        return all(self.reserved + wanted <= limit for limit in limits)

    def collect(self, threshold: int) -> None:
        if self.reserved <= threshold:
            return
        target = self.reserved - threshold
        reclaimed = 0
        idle = [segment for segment in self.segments if segment.free and not segment.small]
        while idle and reclaimed < target:
            average = sum(self.lookups - segment.pieces[0].born for segment in idle) / len(idle)
            for segment in [each for each in idle if self.lookups - each.pieces[0].born >= average]:
                reclaimed += segment.size
                idle.remove(segment)
                self.segments.remove(segment)

    def release_oversize(self, size: int, stream: int, *, small: bool) -> bool:
        if self.settings.max_split_size_bytes is None:
            return False
        needed = max(size, self.max_split)
        idle = [segment for segment in self.segments if segment.free and segment.size >= self.max_split]
        idle = [segment for segment in idle if segment.stream == stream and segment.small == small]
        idle.sort(key=lambda segment: (segment.size, segment.address))
        enough = [segment for segment in idle if segment.size >= needed]
        if enough:
            self.segments.remove(enough[0])
            return True
        released = 0
        while idle and released < needed:
            released += idle[-1].size
            self.segments.remove(idle.pop())
        return released >= needed

    def share(self, owner: int) -> None:
        self.piece_of(owner).shared = True

    def piece_of(self, owner: int) -> Piece:
        return next(piece for segment in self.segments for piece in segment.pieces if piece.owner == owner)

    def free(self, owner: int) -> None:
        piece = self.piece_of(owner)
        if piece.shared:
            piece.waiting = True
        else:
            self.recycle(piece)

    def recycle(self, piece: Piece) -> None:
        segment = next(segment for segment in self.segments if piece in segment.pieces)
        piece.owner, piece.waiting, piece.born = None, False, self.lookups
        at = segment.pieces.index(piece)
        if at + 1 < len(segment.pieces) and segment.pieces[at + 1].owner is None:
            piece.size += segment.pieces.pop(at + 1).size
        if at > 0 and segment.pieces[at - 1].owner is None:
            before = segment.pieces.pop(at - 1)
            piece.address, piece.size = before.address, before.size + piece.size

    def empty_cache(self) -> None:
        for piece in [piece for segment in self.segments for piece in segment.pieces if piece.waiting]:
            self.recycle(piece)
        self.segments = [segment for segment in self.segments if not segment.free]
