"""Sums of products of bytes with AVX-VNNI, as laptops have it since 2021: the instruction of
``avx512_vnni`` for registers of half the width, of which there are half as many."""

from __future__ import annotations

from accel.models.cpu.quantised.avx2 import Avx2
from accel.models.cpu.quantised.dot_instruction import DotInstruction


class AvxVnni(DotInstruction):
    """The instruction set."""

    features = Avx2.features | {"avxvnni"}
    lanes = 8
    rows = 4
    name = "llvm.x86.avx512.vpdpbusd.256"
    keeps_order = True
