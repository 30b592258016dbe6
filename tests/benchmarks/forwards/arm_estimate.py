"""``tests.benchmarks arm-estimate``: what processors of Arm take for the innermost products.

LLVM's models of processors (llvm-mca) count the cycles of each loop, ours and those of llama.cpp
(``peers/arm_loops.c``, and what its ``repack.cpp`` has in assembly), so none has to be here. Caches
and memory are in no such model.

``four pipes`` is counted by hand, for Apple's processors, of which LLVM has no model: four
instructions of vectors a cycle, where zeroing and moves take none.
"""

from __future__ import annotations

import argparse
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import llvmlite.binding as llvm
from llvmlite import ir

from accel.models.cpu.quantised.instruction_sets import INSTRUCTION_SETS
from accel.models.cpu.quantised.packed_layouts import BLOCK, COLUMNS, EIGHT, FOUR, PackedLayout
from accel.models.cpu.quantised.tile import Arguments, registers_at_once, write_tile
from accel.native.levels import ARM_LEVELS
from lsp_server.commands.cli.output import add_json_argument
from lsp_server.shared.errors import BenchError
from tests.assembly_loops import innermost_loops

PROCESSORS = ("neoverse-n1", "neoverse-v1", "neoverse-v2")
BY_HAND = "four pipes"
TRIPLE = "aarch64-unknown-linux-gnu"
LOOPS_OF_LLAMA_CPP = Path(__file__).parents[1] / "peers" / "arm_loops.c"
LAYOUTS = {"Q8_0": EIGHT, "Q4_0": FOUR}
PEERS = {
    "gemv_q8_4x4": (128, 136),
    "gemm_q8_4x4": (512, 136),
    "gemm_q8_4x8_i8mm": (512, 136),
    "gemv_q4_4x4": (128, 72),
    "gemm_q4_4x4": (512, 72),
}
"""Products, and bytes of weights, of a turn of each loop."""
IN_ASSEMBLY = {"gemm_q4_0_4x4_q8_0": "sdot", "gemm_q4_0_4x8_q8_0": "smmla"}
"""Its functions in assembly, with a loop over blocks for 16 rows and one for four."""
ROWS_OF_LABELS = {"3": 16, "7": 4}
ITERATIONS = 200

Loop = list[list[str]]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Options of the command."""
    parser.add_argument("--llvm-mca", default="llvm-mca-19", metavar="PATH",
                        help="LLVM's analyser, 17 or newer")  # fmt: skip
    parser.add_argument("--clang", default="clang-19", metavar="PATH",
                        help="the compiler for llama.cpp's loops")  # fmt: skip
    parser.add_argument("--repack", type=Path, metavar="PATH",
                        help="llama.cpp's ggml/src/ggml-cpu/arch/arm/repack.cpp")  # fmt: skip
    add_json_argument(parser)


def run(args: argparse.Namespace) -> int:
    """Print products a cycle. Raises BenchError where a tool is missing."""
    from tests.benchmarks import report

    for tool in (args.llvm_mca, args.clang):
        if shutil.which(tool) is None:
            raise BenchError(f"{tool} is not here: apt-get install llvm-19 clang-19")
    found: dict[str, dict[str, float]] = {}
    for level in ARM_LEVELS:
        for name, layout in LAYOUTS.items():
            for rows in (1, INSTRUCTION_SETS[level].rows):
                loop = loop_of_tile(level, layout, rows)
                key = f"{level} {name}, {rows} row{'s' * (rows > 1)}"
                found[key] = rates(args.llvm_mca, loop, *products_of(level, layout, rows))
    for name, loop in loops_of_llama_cpp(args.clang).items():
        found[f"llama.cpp {name}"] = rates(args.llvm_mca, loop, *PEERS[name])
    if args.repack is not None:
        for (name, rows), loop in loops_in_assembly(args.repack.read_text()).items():
            size = FOUR.code_bytes + FOUR.scale_bytes
            found[f"llama.cpp's own {name}, {rows} rows"] = rates(
                args.llvm_mca, loop, rows * BLOCK * 4, size / 4
            )
    columns = {name: name for name in (*PROCESSORS, BY_HAND, "bytes a product")}
    shown = report.table("products a cycle", found, columns, first="loop")
    report.publish({"products a cycle": found}, args.json, [shown])
    return 0


def products_of(level: str, layout: PackedLayout, rows: int) -> tuple[int, float]:
    """Products, and bytes of weights, of a turn of our loop."""
    machine = INSTRUCTION_SETS[level]
    columns = registers_at_once(machine, rows) * machine.lanes
    size = (layout.code_bytes + layout.scale_bytes) * columns / COLUMNS
    return rows * BLOCK * columns, size


def loop_of_tile(level: str, layout: PackedLayout, rows: int) -> Loop:
    """Our loop for some rows and a group of columns, one block a turn."""
    llvm.initialize_all_targets()
    llvm.initialize_all_asmprinters()
    module = ir.Module("tile")
    function = ir.Function(module, ir.FunctionType(ir.VoidType(), [ir.IntType(64)] * 7), "tile")
    builder = ir.IRBuilder(function.append_basic_block())
    machine = INSTRUCTION_SETS[level]
    write_tile(builder, machine.layouts[layout.number], rows, machine, Arguments(*function.args))
    builder.ret_void()
    target = llvm.Target.from_triple(TRIPLE).create_target_machine(
        cpu=ARM_LEVELS[level].cpu, features=ARM_LEVELS[level].features, opt=3
    )
    return longest(target.emit_assembly(llvm.parse_assembly(str(module))))


def loops_of_llama_cpp(clang: str) -> dict[str, Loop]:
    """Its loops by their names."""
    command = [clang, f"--target={TRIPLE}", "-march=armv8.6-a", "-mcpu=neoverse-v1", "-O3", "-S",
               "-ffreestanding", "-o", "-", str(LOOPS_OF_LLAMA_CPP)]  # fmt: skip
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise BenchError(f"{clang} does not compile {LOOPS_OF_LLAMA_CPP.name}: {done.stderr}")
    parts = re.split(r"^(\w+):", done.stdout, flags=re.MULTILINE)
    texts = dict(zip(parts[1::2], parts[2::2], strict=True))
    return {name: longest(texts[name]) for name in PEERS}


def loops_in_assembly(source: str) -> dict[tuple[str, int], Loop]:
    """Loops of ``repack.cpp`` over the blocks of four columns, by function and rows. Instructions
    that old assemblers do not know stand there as numbers, with their names behind them."""
    found = {}
    for name in IN_ASSEMBLY:
        text = source[source.index(f"void ggml_{name}(") :]
        text = text[text.index("__asm__") : text.index(": [b_ptr]")]
        lines = [
            re.sub(r"\.inst \S+ +// ", "", line)
            for line in re.findall(r'^\s*"(.+?)(?:\\n)?"', text, re.MULTILINE)
        ]
        for label, rows in ROWS_OF_LABELS.items():
            first = lines.index(f"{label}:")
            last = next(at for at, line in enumerate(lines) if line.endswith(f" {label}b"))
            loop = "\n".join(lines[first + 1 : last + 1]).replace(f" {label}b", f" .L{label}")
            loop = re.sub(r"%x\[\w+\]", "x5", loop)
            found[name, rows] = [line.split() for line in loop.splitlines()]
    return found


def longest(assembly: str) -> Loop:
    """The longest of the innermost loops."""
    return max(innermost_loops(assembly), key=len)


def rates(llvm_mca: str, loop: Loop, products: int, size: float) -> dict[str, float]:
    """Products a cycle by processor, and bytes of weights that one takes."""
    found = {each: products / cycles(llvm_mca, loop, each) for each in PROCESSORS}
    return found | {BY_HAND: products / cycles_by_hand(loop), "bytes a product": size / products}


def cycles(llvm_mca: str, loop: Loop, processor: str) -> float:
    """Of a turn of a loop. Raises BenchError for a processor that the tool has no model of."""
    program = "\n".join(" ".join(words).replace(".L", "L") for words in loop)
    command = [llvm_mca, f"-mtriple={TRIPLE}", f"-mcpu={processor}", "-mattr=+dotprod,+i8mm",
               f"-iterations={ITERATIONS}", "-instruction-info=0"]  # fmt: skip
    done = subprocess.run(command, input=program, capture_output=True, text=True, check=False)
    total = re.search(r"Total Cycles:\s+(\d+)", done.stdout)
    if total is None:
        raise BenchError(f"{llvm_mca} does not know {processor}: {done.stderr.strip()[:200]}")
    return int(total[1]) / ITERATIONS


def cycles_by_hand(loop: Loop) -> float:
    """Of a turn, where four instructions of vectors are done in a cycle and nothing else counts."""
    free, memory = ("movi", "mov"), ("ld", "st")
    counted = [
        words for words in loop
        if words[0] not in free and not words[0].startswith(memory) and _is_vector(words)
    ]  # fmt: skip
    return len(counted) / 4


def _is_vector(words: list[str]) -> Any:
    return len(words) > 1 and re.match(r"[vqs]\d", words[1])
