"""Codes and scales of weights, put into the places that ``forms`` says."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from accel.models.cpu.quantised import forms
from accel.models.cpu.quantised.forms import BLOCK, COLUMNS, PLANE, WORDS, Form
from accel.native.numba_cache import compiled_with

Packed = NDArray[np.uint8]
"""uint8 [groups, ``Form.group_bytes``]."""

_LOW, _FIFTH, _HIGH = np.uint32(0x0F0F0F0F), np.uint32(0x01010101), np.uint32(0x03030303)
_PLANE_WORDS = PLANE // 4


def pack(form: Form, codes: NDArray[np.uint8], scales: NDArray[np.float16], groups: Packed) -> None:
    """Write whole groups of columns.

    codes: uint8 [columns, in]; scales: float16 [columns, blocks, ..], of all parts and then the
    minimum where the form has one.
    """
    blocks = codes.shape[1] // BLOCK
    by_group = scales.reshape(len(groups), COLUMNS, blocks, -1).transpose(0, 2, 3, 1)
    first, count = form.scales_bytes(blocks), blocks * form.scale_bytes
    assert by_group[0].size * 2 == count, "a scale for every part, and a minimum where there is one"
    groups[:, :count] = np.ascontiguousarray(by_group).view(np.uint8).reshape(len(groups), -1)
    groups[:, count:first] = 0
    _pack_codes(codes.view(np.uint32), form.bits, groups.view(np.uint32), first // 4)


@compiled_with(forms, borrows=True, error_model="numpy")
def _pack_codes(
    words: NDArray[np.uint32], bits: int, groups: NDArray[np.uint32], first: int
) -> None:
    """Write the planes of all blocks, in each group from word ``first`` on."""
    for column in range(len(words)):
        group, place = column // COLUMNS, first + column % COLUMNS
        for block in range(words.shape[1] // WORDS):
            at = place + block * bits * _PLANE_WORDS
            _pack_block(words[column], block * WORDS, bits, groups[group], at)


@compiled_with(forms, borrows=True, forceinline=True)
def _pack_block(
    words: NDArray[np.uint32], first: int, bits: int, group: NDArray[np.uint32], at: int
) -> None:
    """Write a column's words of a block, the first of them at a place of its group."""
    if bits == 8:
        for word in range(WORDS):
            group[at + word * _PLANE_WORDS] = words[first + word]
        return
    for plane in range(WORDS // 2):
        low, high = words[first + 2 * plane] & _LOW, words[first + 2 * plane + 1] & _LOW
        group[at + plane * _PLANE_WORDS] = low | high << np.uint32(4)
    more = bits - 4
    if more == 0:
        return
    in_plane, mask = WORDS // more, _FIFTH if more == 1 else _HIGH
    for plane in range(more):
        bits_of_all = np.uint32(0)
        for word in range(in_plane):
            of_word = words[first + plane * in_plane + word] >> np.uint32(4) & mask
            bits_of_all |= of_word << np.uint32(word * more)
        group[at + (WORDS // 2 + plane) * _PLANE_WORDS] = bits_of_all


__all__ = ["Packed", "pack"]
