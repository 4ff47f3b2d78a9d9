"""Expandable segments in the plainest form: each range is a list of pieces, put in order after every change."""

from __future__ import annotations

from dataclasses import dataclass

from desktop_app.memory.allocator_settings import AllocatorSettings, round_request, segment_bytes
from desktop_app.memory.driver_addresses import FreshAddresses

LIVE, WAITING, FREE, HOLE = "live", "waiting", "free", "hole"


@dataclass(eq=False)
class Piece:
    address: int
    size: int
    kind: str
    owner: int | None = None
    shared: bool = False


@dataclass(eq=False)
class Range:
    base: int
    page: int
    pieces: list[Piece]

    def tidy(self) -> None:
        """Neighbours that are both free, or both holes, are one."""
        kept: list[Piece] = []
        for piece in self.pieces:
            if kept and piece.kind == kept[-1].kind and piece.kind in {FREE, HOLE}:
                kept[-1].size += piece.size
            else:
                kept.append(piece)
        self.pieces = kept

    def cut(self, piece: Piece, size: int) -> Piece:
        """The first ``size`` bytes as a piece of their own."""
        if size == piece.size:
            return piece
        front = Piece(piece.address, size, piece.kind)
        piece.address += size
        piece.size -= size
        self.pieces.insert(self.pieces.index(piece), front)
        return front

    def room_from(self, index: int) -> int:
        room = 0
        for piece in self.pieces[index:]:
            if piece.kind not in {FREE, HOLE}:
                break
            room += piece.size
        return room

    def growth(self, piece: Piece) -> int:
        index = self.pieces.index(piece) + 1
        behind = self.pieces[index : index + 1]
        return piece.size + sum(other.size for other in behind if other.kind == HOLE)


class NaiveExpandable:
    def __init__(self, limit: int | None, total: int, settings: AllocatorSettings) -> None:
        fraction = settings.per_process_memory_fraction
        self.limit = limit
        self.total = total
        self.allowed = None if fraction is None else int(fraction * total)
        self.settings = settings
        self.addresses = FreshAddresses()
        self.ranges: dict[tuple[int, bool], list[Range]] = {}
        self.retries = 0

    @property
    def all_ranges(self) -> list[Range]:
        return [each for ranges in self.ranges.values() for each in ranges]

    @property
    def reserved(self) -> int:
        return sum(piece.size for each in self.all_ranges for piece in each.pieces if piece.kind != HOLE)

    def allocate(self, owner: int, request: int, stream: int) -> int | None:
        size = round_request(request, self.settings.division_table())
        ranges = self.ranges.setdefault((stream, size <= 1 << 20), [])
        found = self.search(ranges, size) or self.grow(ranges, size, small=size <= 1 << 20)
        if found is None:
            self.empty_cache()
            self.retries += 1
            found = self.grow(ranges, size, small=size <= 1 << 20)
        if found is None:
            return None
        where, piece = found
        front = where.cut(piece, size)
        front.kind, front.owner, front.shared = LIVE, owner, False
        return front.address

    def search(self, ranges: list[Range], size: int) -> tuple[Range, Piece] | None:
        free = [(piece.size, piece.address, each, piece) for each in ranges for piece in each.pieces]
        free = sorted((entry for entry in free if entry[3].kind == FREE and entry[0] >= size), key=lambda e: e[:2])
        if not free:
            return None
        best = 0
        while best + 1 < len(free) and free[best + 1][2].growth(free[best + 1][3]) < free[best][2].growth(
            free[best][3]
        ):
            best += 1
        if size < self.max_split <= free[best][0]:
            return None
        if size >= self.max_split and free[best][0] >= size + self.settings.max_non_split_rounding_bytes:
            return None
        return free[best][2:]

    @property
    def max_split(self) -> int:
        return self.settings.max_split_size_bytes or 1 << 64

    def grow(self, ranges: list[Range], size: int, *, small: bool) -> tuple[Range, Piece] | None:
        if self.allowed is not None and self.reserved + segment_bytes(size) > self.allowed:
            return None
        holes = [(piece.address, each, piece) for each in ranges for piece in each.pieces if piece.kind == HOLE]
        for _, where, hole in sorted(holes, key=lambda entry: entry[0]):
            index = where.pieces.index(hole)
            if index and where.pieces[index - 1].kind == FREE:
                index -= 1
            if where.room_from(index) >= size:
                break
        else:
            page = 2 << 20 if small else self.settings.large_segment_size_bytes
            span = -(-(self.total * 9 // 8) // page) * page
            base = self.addresses.reserve(span)
            where, index = Range(base, page, [Piece(base, span, HOLE)]), 0
            ranges.append(where)
        address = where.pieces[index].address
        while True:
            where.tidy()
            first = next(piece for piece in where.pieces if piece.address <= address < piece.address + piece.size)
            if first.kind == FREE and first.size >= size:
                return where, first
            have = first.size if first.kind == FREE else 0
            hole = where.pieces[where.pieces.index(first) + 1] if first.kind == FREE else first
            pages = -(-min(size - have, hole.size) // where.page) * where.page
            if self.limit is not None and self.reserved + pages > self.limit:
                return None
            where.cut(hole, pages).kind = FREE

    def piece_of(self, owner: int) -> tuple[Range, Piece]:
        return next((each, piece) for each in self.all_ranges for piece in each.pieces if piece.owner == owner)

    def share(self, owner: int) -> None:
        self.piece_of(owner)[1].shared = True

    def free(self, owner: int) -> None:
        where, piece = self.piece_of(owner)
        if piece.shared:
            piece.kind = WAITING
        else:
            piece.kind, piece.owner = FREE, None
            where.tidy()

    def empty_cache(self) -> None:
        unused = [
            each for each in self.all_ranges if [piece.kind for piece in each.pieces] == [HOLE]
        ]  # torch keeps them
        for where in self.all_ranges:
            for piece in where.pieces:
                if piece.kind == WAITING:
                    piece.kind, piece.owner = FREE, None
            where.tidy()
            for piece in [piece for piece in where.pieces if piece.kind == FREE]:
                begin = -(-(piece.address - where.base) // where.page) * where.page + where.base
                end = (piece.address + piece.size - where.base) // where.page * where.page + where.base
                if begin < end:
                    if begin > piece.address:
                        where.cut(piece, begin - piece.address)
                    where.cut(piece, end - begin).kind = HOLE
            where.tidy()
        for ranges in self.ranges.values():
            ranges[:] = [each for each in ranges if each in unused or [piece.kind for piece in each.pieces] != [HOLE]]
