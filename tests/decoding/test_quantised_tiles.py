"""Tiles as they are generated for processors that are not at hand."""

from __future__ import annotations

import ctypes
import hashlib
import re
from collections import Counter

import llvmlite.binding as llvm
import numpy as np
import pytest
from assembly_loops import innermost_loops
from llvmlite import ir
from slow_weights import empty_q8, products, random_blocks
from text_cases import data_beside

from accel.models.cpu.quantised.activations import Q8_BYTES, quantise_rows
from accel.models.cpu.quantised.instruction_sets import (
    INSTRUCTION_SETS,
    Avx512Vnni,
    AvxVnni,
    Portable,
    layout_of,
)
from accel.models.cpu.quantised.matrix import QuantisedMatrix
from accel.models.cpu.quantised.packed_layouts import (
    BLOCK,
    COLUMNS,
    LAYOUTS,
    PLANE,
    SUPER,
    PackedLayout,
)
from accel.models.cpu.quantised.registers import InstructionSet
from accel.models.cpu.quantised.super_blocks import write_in_halves
from accel.models.cpu.quantised.tile import Arguments, write_tile
from accel.native.levels import ARM_LEVELS

DATA = data_beside(__file__)

I64 = ir.IntType(64)

TILES = tuple(layout for layout in LAYOUTS if not layout.has_super_blocks)
"""The others are multiplied by these, their scales in halves."""

KINDS = {0: "Q8_0", 1: "Q4_0", 2: "Q4_1", 3: "Q5_1", 4: "Q6_K"}
"""A type of each form."""

MEASURED = DATA["MEASURED"]
"""Digests of the steps of all tiles of a set."""


def tile(layout: PackedLayout, rows: int, machine: InstructionSet) -> str:
    """LLVM's language for a function ``tile`` that takes ``Arguments``."""
    module = ir.Module("tile")
    function = ir.Function(module, ir.FunctionType(ir.VoidType(), [I64] * 7), "tile")
    builder = ir.IRBuilder(function.append_basic_block())
    write_tile(builder, layout, rows, machine, Arguments(*function.args))
    builder.ret_void()
    return str(module)


def machine_for(
    processor: str, features: str = "", triple: str = "x86_64-unknown-linux-gnu"
) -> llvm.TargetMachine:
    llvm.initialize_all_targets()
    llvm.initialize_all_asmprinters()
    target = llvm.Target.from_triple(triple)
    made: llvm.TargetMachine = target.create_target_machine(cpu=processor, features=features, opt=3)
    return made


@pytest.mark.parametrize("layout", TILES, ids=str)
@pytest.mark.parametrize(
    ("processor", "machine", "instruction"),
    [
        ("sapphirerapids", Avx512Vnni(), "%zmm"),
        ("znver4", Avx512Vnni(), "%zmm"),
        ("alderlake", AvxVnni(), "%ymm"),
    ],
)
def test_each_form_is_multiplied_by_dot_products(
    layout: PackedLayout, processor: str, machine: InstructionSet, instruction: str
) -> None:
    module = llvm.parse_assembly(tile(layout, machine.rows, machine))
    module.verify()
    lines = machine_for(processor).emit_assembly(module).splitlines()
    dots = [line for line in lines if "vpdpbusd" in line]
    assert len(dots) == machine.rows * 8 * (COLUMNS // machine.lanes)
    assert all(instruction in line for line in dots)
    spilled = [line for line in lines if "(%rsp)" in line and "vmov" in line]
    # Sums of floats are written to memory where there are few registers, weights nowhere.
    assert len(spilled) <= machine.rows * (1 if machine.lanes == COLUMNS else 10)


def steps(module: str) -> list[str]:
    """Return the instructions in order, the same for all of LLVM's spellings of types."""
    actual = []
    for line in filter(lambda line: line[:2] == "  ", module.splitlines()):
        called, words = re.search(r'call .*@"?([\w.]+)', line), line.partition(" = ")[2].split()
        name = (
            called[1] if called else words[0] if words else line.split()[0] if line.split() else ""
        )
        if name not in ("bitcast", "inttoptr"):
            actual.append(name)
    return actual


@pytest.mark.parametrize("name", MEASURED)
def test_tiles_of_x86_are_those_that_were_measured(name: str) -> None:
    """A change to what instruction sets share changes them unseen: measure it on x86, then put the
    new digest here."""
    machine, digest = INSTRUCTION_SETS[name], hashlib.sha256()
    for layout in TILES:
        for rows in range(1, machine.rows + 1):
            digest.update(" ".join(steps(tile(layout, rows, machine))).encode())
    assert digest.hexdigest()[:16] == MEASURED[name]


@pytest.mark.parametrize("triple", ["aarch64-unknown-linux-gnu", "arm64-apple-macosx12"])
@pytest.mark.parametrize("rows", [1, 2, 3, 4])
@pytest.mark.parametrize("form", TILES, ids=str)
@pytest.mark.parametrize("level", ARM_LEVELS)
def test_each_form_is_multiplied_by_dot_products_of_arm(
    level: str, form: PackedLayout, rows: int, triple: str
) -> None:
    """Wherever this runs: LLVM writes for Arm, too."""
    machine = INSTRUCTION_SETS[level]
    layout = machine.layouts[form.number]
    instruction = "smmla" if layout.is_paired else "sdot"
    module = llvm.parse_assembly(tile(layout, rows, machine))
    target = machine_for(ARM_LEVELS[level].cpu, ARM_LEVELS[level].features, triple)
    loops = innermost_loops(target.emit_assembly(module))
    assert len(loops) == (1 if rows < 3 else 2), "as many columns as fit into registers"
    actual = Counter(name for loop in loops for name, *_ in loop)
    registers = rows * COLUMNS // machine.lanes
    dots = 4 * (rows + rows % 2) * COLUMNS // machine.lanes if layout.is_paired else 8 * registers
    assert actual[instruction] == dots
    if instruction == "sdot":
        of_row = [words[-1] for loop in loops for words in loop if words[0] == instruction]
        assert all(re.search(r"\[\d\]$", word) for word in of_row), "it spreads a word by itself"
    assert actual["fsub"] == actual["fmul"] == layout.parts * registers
    assert actual["fmla"] == (layout.parts + layout.has_minimum) * registers
    if form.bits in (4, 8):
        assert actual["eor"] == actual["orr"] == 0, "signs are those of the codes"
        assert actual["str"] + actual["stp"] <= (2 if rows == 2 else 0), "sums stay in registers"
    # Anything else that works on a number alone, or puts one into a vector, is a slow way.
    vectors = {"ldr", "ldp", "ldur", "ld1r", "str", "stp", "mov", "movi", "prfm", "fcvtl", "dup"}
    bits = {"and", "eor", "orr", "ushr", "shl", "usra", "sli", "sri", "bic", "bif", "bit"}
    counting = {"add", "sub", "subs", "cmp", "b.lt", "b.ne", "mvni"}
    most = {instruction, "fsub", "fmul", "fmla", "fcvtl2", "ld1"}
    moves = {"zip1", "zip2", "uzp1", "uzp2", "ext", "trn1", "trn2"}
    assert set(actual) <= vectors | bits | counting | most | moves
    both = [words for loop in loops for words in loop]
    assert not [words for words in both if words[0] in bits and words[1][0] != "v"]
    moved = [words for words in both if words[0] in ("mov", "dup") and words[1][0] == "v"]
    assert len([words for words in moved if words[-1][0] in "wx"]) <= len(loops), (
        "what sums begin with"
    )


X86 = {name: (name, "", "x86_64-unknown-linux-gnu") for name in ("haswell", "alderlake", "znver4")}
ARM = {
    f"{name} {triple[:5]}": (level.cpu, level.features, triple)
    for name, level in ARM_LEVELS.items()
    for triple in ("aarch64-unknown-linux-gnu", "arm64-apple-macosx12")
}


@pytest.mark.parametrize("layout", [each for each in LAYOUTS if each.has_super_blocks], ids=str)
@pytest.mark.parametrize("target", X86 | ARM)
def test_scales_of_super_blocks_are_multiplied_out_in_vectors(
    target: str, layout: PackedLayout
) -> None:
    module = ir.Module("scales")
    function = ir.Function(module, ir.FunctionType(ir.VoidType(), [I64] * 4), "scales")
    builder = ir.IRBuilder(function.append_basic_block())
    write_in_halves(builder, layout, *function.args)
    builder.ret_void()
    processor, features, triple = (X86 | ARM)[target]
    assembly = machine_for(processor, features, triple).emit_assembly(
        llvm.parse_assembly(str(module))
    )
    (loop,) = innermost_loops(assembly)
    actual = Counter(name for name, *_ in loop)
    assert not {"call", "callq", "bl"} & set(actual)
    lanes = 4 if target in ARM else 16 if target == "znver4" else 8
    count = SUPER * (layout.parts + layout.has_minimum) * COLUMNS // lanes
    assert actual["vmulps"] + actual["fmul"] == count
    assert actual["vcvtps2ph"] + actual["fcvtn"] + actual["fcvtn2"] == count


class WideRegisters(Portable):
    """The tiles of AVX-512, from steps that every processor has."""

    rows = Avx512Vnni.rows


@pytest.mark.parametrize("layout", TILES, ids=str)
def test_tiles_of_wide_registers_give_the_same(layout: PackedLayout) -> None:
    generator, rows, in_features = np.random.default_rng(layout.number), 8, 256
    kind = KINDS[layout.number]
    # Whole numbers times a factor are halves.
    raw = random_blocks(kind, COLUMNS, in_features, generator)
    matrix = QuantisedMatrix.from_file(kind, raw, in_features, factor=2)
    assert matrix.layout == layout_of(layout)
    x = generator.normal(size=(rows, in_features)).astype(np.float32)
    q8 = empty_q8(rows, in_features)
    quantise_rows(x, rows, q8)
    actual = np.zeros((rows, COLUMNS), np.float32)

    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    module = llvm.parse_assembly(tile(layout, rows, WideRegisters()))
    target = llvm.Target.from_default_triple().create_target_machine(
        cpu=llvm.get_host_cpu_name(), features=llvm.get_host_cpu_features().flatten(), opt=1
    )
    with llvm.create_mcjit_compiler(module, target) as engine:
        engine.finalize_object()
        call = ctypes.CFUNCTYPE(None, *[ctypes.c_int64] * 7)(engine.get_function_address("tile"))
        blocks, group = in_features // BLOCK, matrix.packed.ctypes.data
        codes = group + layout.scales_bytes(blocks)
        assert layout.scales_bytes(blocks) % PLANE == 0
        call(q8.ctypes.data, blocks * Q8_BYTES, group, codes, blocks, actual.ctypes.data, 64)
    assert np.array_equal(actual, products(matrix, x))
