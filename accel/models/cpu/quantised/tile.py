"""The innermost loops: a few rows times one or two groups of 16 columns, all whole sums in
registers."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from typing import Any, NamedTuple

from llvmlite import ir

from accel.models.cpu.quantised.activations import CORRECTIONS, Q8_BYTES, SCALE, SUM
from accel.models.cpu.quantised.packed_layouts import COLUMNS, PLANE, SCALES, WORDS, PackedLayout
from accel.models.cpu.quantised.registers import (
    InstructionSet,
    Total,
    bytes_of,
    same,
    splat,
    words_of,
)
from accel.native.aligned_memory import LINE
from accel.native.simd import F32, I32, I64, call, prefetch

# Measure with `python -m tests.benchmarks forward --model FILE`.
_AHEAD, _FAR_AHEAD = 4096, 16384
"""Bytes between what is read and what is fetched meanwhile, into the first cache and into the
second: more lines may be on their way to that at a time."""


class _Place:
    """A place in memory, as an address of which the compiler knows a constant offset."""

    def __init__(self, builder: Any, address: Any) -> None:
        self._builder, self._first = builder, builder.inttoptr(address, ir.IntType(8).as_pointer())

    def load(self, offset: int, kind: Any) -> Any:
        """Return the value of ``kind`` at ``offset``."""
        return self._builder.load(self.at(offset, kind), align=2)

    def at(self, offset: int, kind: Any) -> Any:
        """Return a pointer."""
        pointer = self._builder.gep(self._first, [I64(offset)])
        return self._builder.bitcast(pointer, kind.as_pointer())


def _weights(
    builder: Any, layout: PackedLayout, codes: _Place, register: int, machine: InstructionSet
) -> Any:
    """Return a function that gives a block's word for a register's columns, all bits."""
    lanes = machine.lanes
    kind, first = words_of(lanes), 4 * lanes * register
    size = layout.width * PLANE
    planes: dict[int, Any] = {}

    def plane(number: int) -> Any:
        if number not in planes:
            planes[number] = codes.load(size * number + first, kind)
        return planes[number]

    def bits_at(register: Any, from_bit: int, to_bit: int, count: int) -> Any:
        """``count`` bits of every byte, moved."""
        move = abs(to_bit - from_bit)
        if machine.shifts_bytes and from_bit + count == 8 and not to_bit:
            in_bytes = builder.bitcast(register, bytes_of(lanes))
            moved = builder.lshr(in_bytes, same(bytes_of(lanes), move))
            return builder.bitcast(moved, kind)
        if move:
            shift = builder.shl if to_bit > from_bit else builder.lshr
            register = shift(register, ir.Constant(kind, [move] * lanes))
        mask = ((1 << count) - 1) << to_bit
        mask_word = int.from_bytes(bytes([mask] * 4), "little", signed=True)
        return builder.and_(register, ir.Constant(kind, [mask_word] * lanes))

    def word(number: int) -> Any:
        if layout.bits == 8:
            return plane(number)
        if layout.is_signed:
            return sixteenfold(plane(number // 2), number % 2)
        low = bits_at(plane(number // 2), 4 * (number % 2), 0, 4)
        more = layout.bits - 4
        if not more:
            return low
        in_plane = WORDS // more
        high = plane(WORDS // 2 + number // in_plane)
        return builder.or_(low, bits_at(high, more * (number % in_plane), 4, more))

    def sixteenfold(register: Any, half: int) -> Any:
        """Return numbers of four bits with their signs, in the upper bits of bytes."""
        if half:
            return builder.and_(register, ir.Constant(kind, [-0x0F0F0F10] * lanes))
        in_bytes = builder.bitcast(register, bytes_of(lanes))
        return builder.bitcast(builder.shl(in_bytes, same(bytes_of(lanes), 4)), kind)

    return word


class _RowOfTwo:
    """A sum for one of two rows, in the lanes of two sums: two columns by two rows each."""

    def __init__(self, builder: Any, sums: Sequence[Total], row: int) -> None:
        self._builder, self._sums, self._row = builder, sums, row

    def total(self) -> Any:
        first, other = (each.total() for each in self._sums)
        order = ir.Constant(first.type, [self._row + 2 * column for column in range(4)])
        return self._builder.shuffle_vector(first, other, order)


class _Block:
    """A block of rows and of columns of a group, as one instruction set multiplies them."""

    def __init__(
        self,
        builder: Any,
        layout: PackedLayout,
        machine: InstructionSet,
        registers: range,
        q8: list[_Place],
        scales: list[_Place],
        codes: list[_Place],
    ) -> None:
        """registers: those of columns, of all groups; scales, codes: of each group."""
        self._builder, self._layout, self._machine = builder, layout, machine
        self._q8, self._scales, self._codes = q8, scales, codes
        lanes = machine.lanes
        self._lanes, self._floats = lanes, ir.VectorType(F32, lanes)
        self._registers, self._in_group = registers, COLUMNS // lanes
        width = layout.width
        self._words = [
            _weights(builder, layout, *self._at(codes, each, width), machine)
            for each in range(width * registers.start, width * registers.stop)
        ]

    def fetch_later(self) -> None:
        """Ask for codes that are read later."""
        for level, ahead in ((1, _AHEAD), (2, _FAR_AHEAD)):
            for offset in range(ahead, ahead + self._layout.code_bytes, LINE):
                prefetch(self._builder, self._codes[0].at(offset, ir.IntType(8)), level)

    def added_to(self, sums: Any) -> Any:
        """Return sums [rows][registers] and the products with this block."""
        for part_number in range(self._layout.parts):
            sums = self._with_part(part_number, sums)
        return self._with_minimum(sums) if self._layout.has_minimum else sums

    def _with_part(self, part_number: int, sums: Any) -> Any:
        dots = self._dots(part_number)
        counts = [self._factor(part_number, register) for register in self._registers]
        rows = []
        for q8_block, row_dots, row_sums in zip(self._q8, dots, sums, strict=True):
            scale = self._of_row(q8_block, SCALE)
            rows.append(
                [
                    self._fused(
                        self._machine.in_floats(self._builder, self._layout, dot.total()),
                        self._builder.fmul(count, scale),
                        before,
                    )
                    for dot, count, before in zip(row_dots, counts, row_sums, strict=True)
                ]
            )
        return rows

    def _dots(self, part_number: int) -> Sequence[Sequence[Total]]:
        """Return sums of products of whole numbers, by rows and registers."""
        builder, bits, machine = self._builder, self._layout.bits, self._machine
        correction = CORRECTIONS[bits][part_number] if self._layout.offset else None
        corrections = (
            None if correction is None else q8_block.load(correction, I32) for q8_block in self._q8
        )
        dots = machine.sums_of(builder, self._layout, corrections, len(self._words))
        width = self._layout.width
        count = WORDS // width // self._layout.parts
        words = range(part_number * count, (part_number + 1) * count)
        # Registers by turns where rows are: else LLVM copies sums.
        at_once = 1 if width > 1 else len(self._words)
        for first, word in product(range(0, len(self._words), at_once), words):
            some = slice(first, first + at_once)
            weights = [machine.prepared(builder, of(word), bits) for of in self._words[some]]
            for number, row_dots in enumerate(dots):
                values = self._values(self._q8[width * number :][:width], word)
                for dot, weight in zip(row_dots[some], weights, strict=True):
                    dot.add(weight, values)
        return dots if width == 1 else self._by_rows(dots)

    def _by_rows(self, dots: Sequence[Sequence[Total]]) -> Sequence[Sequence[Total]]:
        """Of two rows with two columns each."""
        return [
            [
                _RowOfTwo(self._builder, dots[row // 2][2 * each : 2 * each + 2], row % 2)
                for each in range(len(self._registers))
            ]
            for row in range(len(self._q8))
        ]

    def _values(self, rows: list[_Place], index: int) -> Any:
        """Return the activations of ``rows`` for the codes at ``index``, in all lanes."""
        together, words = self._machine.words_at_once, self._layout.words(index)
        if together == 1:
            return splat(self._builder, rows[0].load(4 * words[0], I32), self._lanes)
        first = words[0] - words[0] % together
        loaded = [row.load(4 * first, words_of(together)) for row in rows]
        lanes = [row * together + word - first for row in range(len(rows)) for word in words]
        order = ir.Constant(words_of(self._lanes), (lanes * self._lanes)[: self._lanes])
        return self._builder.shuffle_vector(loaded[0], loaded[-1], order)

    def _with_minimum(self, sums: Any) -> Any:
        least = [self._factor(self._layout.parts, register) for register in self._registers]
        rows = []
        for q8_block, row_sums in zip(self._q8, sums, strict=True):
            total = self._of_row(q8_block, SUM)
            pairs = zip(least, row_sums, strict=True)
            rows.append([self._fused(minimum, total, before) for minimum, before in pairs])
        return rows

    def _at(self, groups: list[_Place], register: int, width: int = 1) -> tuple[_Place, int]:
        """Return the place of a register's group among ``groups``, and its number there. width:
        registers of weights for one of columns."""
        in_group = width * self._in_group
        return groups[register // in_group], register % in_group

    def _factor(self, index: int, register: int) -> Any:
        """Return the scales of a register's columns, or their minimum."""
        scales, number = self._at(self._scales, register)
        offset = SCALES * index + 2 * self._lanes * number
        halves = scales.load(offset, ir.VectorType(ir.HalfType(), self._lanes))
        return self._builder.fpext(halves, self._floats)

    def _of_row(self, q8_block: _Place, offset: int) -> Any:
        return splat(self._builder, q8_block.load(offset, F32), self._lanes)

    def _fused(self, a: Any, b: Any, c: Any) -> Any:
        return call(self._builder, f"llvm.fma.v{self._lanes}f32", self._floats, a, b, c)


class Arguments(NamedTuple):
    """Of a tile, int64: addresses of its first row's blocks, of the first group's scales and codes;
    how many blocks; where to write float32; and how far rows are apart, in bytes. Of two groups,
    also how far these are apart, and their scales, and what to fetch meanwhile. Where blocks are a
    part of the groups', the number of the first: what those before have written is added to."""

    x: Any
    x_stride: Any
    scales: Any
    codes: Any
    blocks: Any
    out: Any
    out_stride: Any
    group_bytes: Any = None
    scales_apart: Any = None
    ahead: Any = None
    continues: Any = None


def fetched_bytes(layout: PackedLayout) -> int:
    """Of two groups' blocks, what each of eight tiles fetches beforehand."""
    return 2 * layout.code_bytes // 8


def write_tile(
    builder: Any, layout: PackedLayout, rows: int, machine: InstructionSet, arguments: Arguments
) -> None:
    """Generate code that writes the products of rows with one group of columns or two. They are
    added block by block, in the same order for every row and column."""
    if arguments.group_bytes is not None:
        registers = range(2 * COLUMNS // machine.lanes)
        _write_columns(builder, layout, rows, machine, arguments, registers)
        return
    at_once = registers_at_once(machine, rows)
    for first in range(0, COLUMNS // machine.lanes, at_once):
        _write_columns(builder, layout, rows, machine, arguments, range(first, first + at_once))


def registers_at_once(machine: InstructionSet, rows: int) -> int:
    """Registers of columns that a loop over the blocks of some rows has."""
    registers = COLUMNS // machine.lanes
    return min(registers, machine.sums // rows) if machine.sums else registers


def _write_columns(
    builder: Any,
    layout: PackedLayout,
    rows: int,
    machine: InstructionSet,
    arguments: Arguments,
    registers: range,
) -> None:
    """Those columns of one group, or of two, that some registers have."""
    lanes = machine.lanes
    floats = ir.VectorType(F32, lanes)
    x, x_stride, scales, codes, blocks, out, out_stride, *of_pair, continues = arguments
    group_bytes, scales_apart, ahead = of_pair
    is_pair = group_bytes is not None
    starts = [builder.add(x, builder.mul(x_stride, I64(row))) for row in range(rows)]
    nothing = ir.Constant(floats, [0.0] * lanes)

    def place_of(row: int) -> _Place:
        return _Place(builder, builder.add(out, builder.mul(out_stride, I64(row))))

    def begun(row: int, register: int) -> Any:
        """Return the value that a sum begins with."""
        if continues is None:
            return nothing
        written = builder.load(place_of(row).at(4 * lanes * register, floats), align=4)
        return builder.select(builder.icmp_signed(">", continues, I64(0)), written, nothing)

    first_sums = [[begun(row, register) for register in registers] for row in range(rows)]
    before = builder.block
    loop, after = (builder.append_basic_block(name) for name in ("blocks", "done"))
    builder.branch(loop)
    builder.position_at_end(loop)
    block = builder.phi(I64)
    block.add_incoming(I64(0), before)
    sums = [[builder.phi(floats) for _ in registers] for _ in starts]

    def here(start: Any, size: int) -> _Place:
        return _Place(builder, builder.add(start, builder.mul(block, I64(size))))

    def both(start: Any, apart: Any) -> list[Any]:
        """Of one group or two."""
        return [start, builder.add(start, apart)] if is_pair else [start]

    reader = _Block(
        *(builder, layout, machine, registers, [here(start, Q8_BYTES) for start in starts]),
        [here(start, layout.scale_bytes) for start in both(scales, scales_apart)],
        [here(start, layout.code_bytes) for start in both(codes, group_bytes)],
    )
    if ahead is not None:
        fetched = here(ahead, fetched_bytes(layout))
        for offset in range(0, fetched_bytes(layout), LINE):
            prefetch(builder, fetched.at(offset, ir.IntType(8)), level=2)
    elif registers.start == 0:
        reader.fetch_later()
    ends = reader.added_to(sums)
    for row_first, row_sums, row_ends in zip(first_sums, sums, ends, strict=True):
        for first, start, end in zip(row_first, row_sums, row_ends, strict=True):
            start.add_incoming(first, before)
            start.add_incoming(end, loop)
    following = builder.add(block, I64(1))
    block.add_incoming(following, loop)
    builder.cbranch(builder.icmp_signed("<", following, blocks), loop, after)
    builder.position_at_end(after)
    for row, row_ends in enumerate(ends):
        target = place_of(row)
        for register, end in zip(registers, row_ends, strict=True):
            builder.store(end, target.at(4 * lanes * register, floats), align=4)
