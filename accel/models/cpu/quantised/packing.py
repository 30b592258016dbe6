"""Codes and scales of weights, packed as ``packed_layouts`` says."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from accel.models.cpu.quantised.file_blocks import (
    BYTES,
    NIBBLES,
    NIBBLES_OF_PARTS,
    SIX_BITS,
    BlockType,
    Scales,
    read_codes,
)
from accel.models.cpu.quantised.packed_layouts import (
    BLOCK,
    COLUMNS,
    PLANE,
    SUPER,
    WORDS,
    PackedLayout,
)
from accel.native.numba_cache import compiled

Packed = NDArray[np.uint8]
"""uint8 [groups, ``PackedLayout.group_bytes``]."""

_LOW, _FIFTH, _HIGH = np.uint32(0x0F0F0F0F), np.uint32(0x01010101), np.uint32(0x03030303)
_PLANE_WORDS = PLANE // 4


def pack_scales(layout: PackedLayout, scales: NDArray[np.float16], groups: Packed) -> None:
    """Write the scales of whole groups of columns.

    scales: float16 [columns, blocks, ..], of all parts and then the minimum where the layout has
    one.
    """
    blocks, missing = scales.shape[1], len(groups) * COLUMNS - len(scales)
    scales = np.pad(scales, [(0, missing), (0, 0), (0, 0)]) if missing else scales
    by_group = scales.reshape(len(groups), COLUMNS, blocks, -1).transpose(0, 2, 3, 1)
    first, count = layout.scales_bytes(blocks), blocks * layout.scale_bytes
    assert by_group[0].size * 2 == count, "a scale for every part, and a minimum where there is one"
    groups[:, :count] = np.ascontiguousarray(by_group).view(np.uint8).reshape(len(groups), -1)
    groups[:, count:first] = 0


def pack_super_scales(layout: PackedLayout, scales: Scales, groups: Packed) -> None:
    """Write the scales of whole groups of columns, as ``file_blocks`` has those of super blocks."""
    by_group = []
    for each in scales:
        missing = len(groups) * COLUMNS - len(each)
        padded = np.pad(each, [(0, missing), *[(0, 0)] * (each.ndim - 1)])
        columns_last = np.moveaxis(padded.reshape(len(groups), COLUMNS, *padded.shape[1:]), 1, -1)
        in_bytes = np.ascontiguousarray(columns_last).view(np.uint8)
        by_group.append(in_bytes.reshape(len(groups), padded.shape[1], -1))
    written = np.concatenate(by_group, -1).reshape(len(groups), -1)
    first = layout.scales_bytes(scales[0].shape[1] * SUPER)
    groups[:, : written.shape[1]] = written
    groups[:, written.shape[1] : first] = 0


def arrange(layout: PackedLayout, blocks: int, groups: Packed) -> None:
    """Give codes, packed as ``LAYOUTS`` has them, their signs, and put planes side by side, as a
    layout says."""
    codes = groups[:, layout.scales_bytes(blocks) :]
    if layout.is_signed:
        codes ^= np.uint8(0x80 if layout.bits == 8 else 0x88)
    if layout.is_paired:
        words = codes.view(np.uint32).reshape(len(groups), blocks, -1, 2, COLUMNS)
        words[:] = words.swapaxes(-1, -2).reshape(words.shape)


def pack_codes(layout: PackedLayout, codes: NDArray[np.uint8], groups: Packed) -> None:
    """Write the codes of whole groups of columns, uint8 [columns, in]."""
    first = layout.scales_bytes(codes.shape[1] // BLOCK)
    _pack_codes(codes.view(np.uint32), layout.bits, groups.view(np.uint32), first // 4)


def pack_blocks(
    layout: PackedLayout, block_type: BlockType, rows: NDArray[np.uint8], groups: Packed
) -> None:
    """Write the codes of columns as a file has them, uint8 [columns, ..], a row of blocks each, and
    zeros for the columns that are missing to whole groups."""
    blocks_per_type = block_type.weights // BLOCK
    first = layout.scales_bytes(rows.shape[1] // block_type.size * blocks_per_type)
    if missing := len(groups) * COLUMNS - len(rows):
        words = groups[-1, first:].view(np.uint32).reshape(-1, COLUMNS)
        words[:, COLUMNS - missing :] = 0
    _pack_blocks(
        *(rows, block_type.codes, block_type.size, block_type.first, block_type.fifth or -1),
        *(layout.bits, groups.view(np.uint32), first // 4, np.empty(WORDS, np.uint32)),
    )


@compiled(borrows=True, error_model="numpy")
def _pack_blocks(
    rows: NDArray[np.uint8],
    codes: int,
    size: int,
    low: int,
    fifth: int,
    bits: int,
    groups: NDArray[np.uint32],
    first: int,
    words: NDArray[np.uint32],
) -> None:
    """``low``, ``fifth``: see ``BlockType``; words: room for a block's codes. The kinds are
    distinguished outside of all loops over blocks, so that each has a loop of its own."""
    for column in range(len(rows)):
        row, group, lane = rows[column], groups[column // COLUMNS], first + column % COLUMNS
        if codes == BYTES:
            _pack_column(row, BYTES, (size, low, -1), (1, 8), group, lane, words)
        elif codes == NIBBLES and bits == 4:
            _pack_column(row, NIBBLES, (size, low, -1), (1, 4), group, lane, words)
        elif codes == NIBBLES:
            _pack_column(row, NIBBLES, (size, low, fifth), (1, 5), group, lane, words)
        elif codes == NIBBLES_OF_PARTS and bits == 4:
            _pack_column(row, NIBBLES_OF_PARTS, (size, low, -1), (8, 4), group, lane, words)
        elif codes == NIBBLES_OF_PARTS:
            _pack_column(row, NIBBLES_OF_PARTS, (size, low, fifth), (8, 5), group, lane, words)
        else:
            _pack_column(row, SIX_BITS, (size, low, -1), (8, 6), group, lane, words)


@compiled(borrows=True, forceinline=True)
def _pack_column(
    row: NDArray[np.uint8],
    codes: int,
    fields: tuple[int, int, int],
    layout: tuple[int, int],
    group: NDArray[np.uint32],
    offset: int,
    words: NDArray[np.uint32],
) -> None:
    """Pack a row of blocks. fields: bytes of a block, and the offsets of low and fifth bits in it;
    layout: packed blocks of each, and bits of a code; words: room for a block's codes."""
    (size, low, fifth), (packed_blocks, bits) = fields, layout
    for block in range(row.shape[0] // size):
        start = block * size
        more = start + fifth if fifth >= 0 else -1
        for number in range(packed_blocks):
            for word in range(WORDS):
                words[word] = read_codes(row, codes, start + low, number, more, word)
            address = offset + (block * packed_blocks + number) * bits * _PLANE_WORDS
            _pack_block(words, 0, bits, group, address)


@compiled(borrows=True, error_model="numpy")
def _pack_codes(
    words: NDArray[np.uint32], bits: int, groups: NDArray[np.uint32], first: int
) -> None:
    """Write the planes of all blocks, in each group from word ``first`` on."""
    for column in range(len(words)):
        group, lane = column // COLUMNS, first + column % COLUMNS
        for block in range(words.shape[1] // WORDS):
            start = lane + block * bits * _PLANE_WORDS
            _pack_block(words[column], block * WORDS, bits, groups[group], start)


@compiled(borrows=True, forceinline=True)
def _pack_block(
    words: NDArray[np.uint32], first: int, bits: int, group: NDArray[np.uint32], start: int
) -> None:
    """Write a column's words of a block, the first of them at an offset in its group."""
    if bits == 8:
        for word in range(WORDS):
            group[start + word * _PLANE_WORDS] = words[first + word]
        return
    for plane in range(WORDS // 2):
        low, high = words[first + 2 * plane] & _LOW, words[first + 2 * plane + 1] & _LOW
        group[start + plane * _PLANE_WORDS] = low | high << np.uint32(4)
    more = bits - 4
    if more == 0:
        return
    in_plane, mask = WORDS // more, _FIFTH if more == 1 else _HIGH
    for plane in range(more):
        bits_of_all = np.uint32(0)
        for word in range(in_plane):
            of_word = words[first + plane * in_plane + word] >> np.uint32(4) & mask
            bits_of_all |= of_word << np.uint32(word * more)
        group[start + (WORDS // 2 + plane) * _PLANE_WORDS] = bits_of_all
