"""Sums of products of bytes with AVX-512 VNNI: one instruction multiplies four weights without a
sign by four values with one, 16 times, and adds all to 32 bits."""

from __future__ import annotations

from accel.models.cpu.quantised.dot_instruction import DotInstruction


class Avx512Vnni(DotInstruction):
    """The instruction set."""

    features = frozenset({"avx512f", "avx512bw", "avx512vl", "avx512vnni"})
    lanes = 16
    rows = 8
    name = "llvm.x86.avx512.vpdpbusd.512"
    keeps_order = False
