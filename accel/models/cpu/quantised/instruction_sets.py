"""The instruction sets that products are compiled for, and the one for the processor at hand."""

from __future__ import annotations

import os

from accel.errors import InvalidRequest
from accel.models.cpu.quantised.avx2 import Avx2
from accel.models.cpu.quantised.dot_instruction import Avx512Vnni, AvxVnni
from accel.models.cpu.quantised.neon import NeonDotprod, NeonI8mm
from accel.models.cpu.quantised.packed_layouts import PackedLayout
from accel.models.cpu.quantised.portable import Portable
from accel.models.cpu.quantised.registers import InstructionSet
from accel.native.cpu_features import FEATURES
from accel.native.processor import INSTRUCTIONS

INSTRUCTION_SETS: dict[str, InstructionSet] = {
    "avx512-vnni": Avx512Vnni(),
    "avx-vnni": AvxVnni(),
    "avx2": Avx2(),
    "neon-i8mm": NeonI8mm(),
    "neon-dotprod": NeonDotprod(),
    "portable": Portable(),
}
"""From the fastest to the one that every processor has."""


def here() -> list[str]:
    """Return names of those that this processor has, the fastest first."""
    return [name for name, each in INSTRUCTION_SETS.items() if each.features <= FEATURES]


def chosen() -> str:
    """Return the name of the one to use. Raises InvalidRequest where ``REDRAFT_INSTRUCTIONS`` names
    one that is not here."""
    names, named = here(), os.environ.get(INSTRUCTIONS, "")
    if named and named not in names:
        raise InvalidRequest(f"{INSTRUCTIONS}={named}: this processor has {', '.join(names)}")
    return named or names[0]


def layout_of(form: PackedLayout, instructions: str | None = None) -> PackedLayout:
    """Return the layout that has weights of one of ``LAYOUTS`` for an instruction set, None for the
    chosen one."""
    return INSTRUCTION_SETS[instructions or chosen()].layouts[form.number]


def is_fast() -> bool:
    """Return whether the chosen instruction set has quick products of bytes."""
    return chosen() != "portable"
