"""Packed layouts of quantised weights in memory.

A matrix [out, in] is cut into groups of 16 columns (its outputs) and blocks of 32 along ``in``. A
weight is ``scale * (code - offset)``, or ``scale * code + minimum`` where its layout has a minimum.
Scales and minimums are fp16, one for a column and block, or two scales, one for each half of it.
Where eight blocks together are a super block, they are whole numbers of eight bits with a sign,
times an fp16 number of the column and super block, rounded to fp16.

A group has the scales of all its blocks, then, from a line of the cache on, their codes. A super
block has what its scales are times, and its minimums, and then both of each block. A block's codes
are stored in planes of 64 bytes: one byte for each of four numbers along ``in`` of 16 columns.
``word`` w of a block is its numbers from 4 * w on. With eight bits plane w is word w. Otherwise
plane p of the first four has the low four bits of word 2 * p, and above them those of word 2 * p +
1; after these come the higher bits: the fifth of word w is bit w of its plane, the fifth and sixth
are bits 2 * (w % 4) and the next of plane w // 4.

For Arm, codes of four and eight bits that have an offset are signed instead. For its products of
small matrices, two and two planes lie side by side: of each column, what is in the one, then what
is in the other.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

COLUMNS = 16
"""Of a group."""

BLOCK = 32
"""Numbers along ``in`` of a block."""

WORDS = 8
"""Of a block, four numbers each."""

PLANE = 64
"""Bytes of a plane."""

SCALES = 2 * COLUMNS
"""Bytes of a block's scales, or of its minimums."""

SUPER = 8
"""Blocks of a super block."""


@dataclass(frozen=True)
class PackedLayout:
    """Layout of packed weights. number: the index in ``PACKED_LAYOUTS``; bits: of a code; offset:
    of a code above its number; parts: scales for a column and block; is_signed: codes have a sign;
    is_paired: planes lie two and two side by side; has_super_blocks: scales are whole numbers."""

    number: int
    bits: int
    offset: int = 0
    has_minimum: bool = False
    parts: int = 1
    is_signed: bool = False
    is_paired: bool = False
    has_super_blocks: bool = False

    @property
    def width(self) -> int:
        """Words of a column that lie side by side."""
        return 1 + self.is_paired

    def words(self, offset: int) -> tuple[int, ...]:
        """Return the words that lie at a place in the order of their codes."""
        if not self.is_paired:
            return (offset,)
        if self.bits == 8:
            return 2 * offset, 2 * offset + 1
        first = offset // 2 * 4 + offset % 2
        return first, first + 2

    @property
    def scale_bytes(self) -> int:
        """Bytes of the scales and minimums of a block of a group, with its share of a super
        block's."""
        if self.has_super_blocks:
            return COLUMNS * (self.parts + self.has_minimum) + self.super_bytes // SUPER
        return SCALES * (self.parts + self.has_minimum)

    @property
    def super_bytes(self) -> int:
        """Bytes of what a super block's scales and minimums are times."""
        return SCALES * (1 + self.has_minimum) if self.has_super_blocks else 0

    @property
    def in_halves(self) -> PackedLayout:
        """Return this layout with fp16 scales for each block, as tiles take them."""
        return replace(self, has_super_blocks=False)

    @property
    def code_bytes(self) -> int:
        """Bytes of the codes of a block of a group."""
        return self.bits * PLANE

    def scales_bytes(self, blocks: int) -> int:
        """Return the bytes before the codes of a group of ``blocks`` blocks."""
        return -(-blocks * self.scale_bytes // PLANE) * PLANE

    def group_bytes(self, blocks: int) -> int:
        """Return the bytes of a group of ``blocks`` blocks."""
        return self.scales_bytes(blocks) + blocks * self.code_bytes


EIGHT = PackedLayout(0, bits=8, offset=128)
FOUR = PackedLayout(1, bits=4, offset=8)
FOUR_MINIMUM = PackedLayout(2, bits=4, has_minimum=True)
FIVE_MINIMUM = PackedLayout(3, bits=5, has_minimum=True)
SIX = PackedLayout(4, bits=6, offset=32, parts=2)

FOUR_SUPER = replace(FOUR_MINIMUM, number=5, has_super_blocks=True)
FIVE_SUPER = replace(FIVE_MINIMUM, number=6, has_super_blocks=True)
SIX_SUPER = replace(SIX, number=7, has_super_blocks=True)

LAYOUTS = (EIGHT, FOUR, FOUR_MINIMUM, FIVE_MINIMUM, SIX, FOUR_SUPER, FIVE_SUPER, SIX_SUPER)

_SIGNED = PackedLayout(8, bits=8, is_signed=True), PackedLayout(9, bits=4, is_signed=True)
SIGNED_LAYOUTS = (*_SIGNED, *LAYOUTS[2:])

_PAIRED = tuple(
    replace(layout, number=number, is_paired=True)
    for number, layout in enumerate((*_SIGNED, FOUR_MINIMUM, FOUR_SUPER), 10)
)
PAIRED_LAYOUTS = (*_PAIRED[:3], FIVE_MINIMUM, SIX, _PAIRED[3], FIVE_SUPER, SIX_SUPER)
"""The same weights for Arm's dot products, and for its products of small matrices: there, to
arrange more than four bits takes longer than it saves."""

PACKED_LAYOUTS = (*LAYOUTS, *_SIGNED, *_PAIRED)
"""By their numbers."""
