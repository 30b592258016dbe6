"""Estimates of Arm's loops: which loop is looked at, what counts, and what is missing is told."""

from __future__ import annotations

import json
import sys
from collections import Counter
from pathlib import Path

import pytest

from accel.models.cpu.quantised.instruction_sets import INSTRUCTION_SETS
from lsp_server.shared.errors import BenchError
from tests.assembly_loops import innermost_loops
from tests.benchmarks.__main__ import main
from tests.benchmarks.forwards.arm_estimate import (
    IN_ASSEMBLY,
    LAYOUTS,
    PEERS,
    cycles,
    cycles_by_hand,
    loop_of_tile,
    loops_in_assembly,
)

ANALYSER = """#!{python}
import sys
program = sys.stdin.read()
turns = next(int(one.split("=")[1]) for one in sys.argv if one.startswith("-iterations="))
if any(one.startswith("-mcpu=neoverse") for one in sys.argv):
    print("Total Cycles:     ", turns * len(program.splitlines()))
else:
    print("error: unknown processor", file=sys.stderr)
"""
COMPILER = """#!{python}
for name in {names}:
    loop = "sdot v0.4s, v1.16b, v2.4b[0]", "subs x0, x0, #1", "b.ne .LBB_" + name
    print(name + ":", "ldr x0, [x1]", ".LBB_" + name + ":", *loop, sep="\\n")
"""


def program(folder: Path, name: str, text: str) -> str:
    """A tool that is none."""
    file = folder / name
    file.write_text(text)
    file.chmod(0o700)
    return str(file)


def test_products_of_both_sides_are_shown(tmp_path: Path) -> None:
    analyser = program(tmp_path, "mca", ANALYSER.format(python=sys.executable))
    compiler = program(
        tmp_path, "clang", COMPILER.format(python=sys.executable, names=tuple(PEERS))
    )
    target = tmp_path / "found.json"
    tools = ["--llvm-mca", analyser, "--clang", compiler]
    assert main(["arm-estimate", *tools, "--json", str(target)]) == 0
    found = json.loads(target.read_text())["products a cycle"]
    assert len(found) == 2 * len(LAYOUTS) * 2 + len(PEERS)
    # Its three instructions take three cycles, and the one of vectors a quarter.
    assert found["llama.cpp gemv_q8_4x4"] == {
        **dict.fromkeys(("neoverse-n1", "neoverse-v1", "neoverse-v2"), 128 / 3),
        "four pipes": 512.0,
        "bytes a product": 136 / 128,
    }
    ours = found["neon-dotprod Q4_0, 4 rows"]
    assert ours["bytes a product"] == (4 * 64 + 32) / (4 * 512)
    with pytest.raises(BenchError, match="does not know cortex-a7"):
        cycles(analyser, [["nop"]], "cortex-a7")


REPACK = r"""
void ggml_{name}(int n) {{
    __asm__ __volatile__(
        "3:"  // Block loop
        "ldr q1, [%x[b_ptr], #0x0]\n"
        ".inst 0x4f9ae20c  // {dot} v12.4s, v16.16b, v26.16b\n"
        "bgt 3b\n"
        "7:"  // Row tail: Block loop
        ".inst 0x4f9ae20c  // {dot} v12.4s, v16.16b, v26.16b\n"
        "bgt 7b\n"
        : [b_ptr] "+&r" (b_ptr));
"""


def test_what_llama_cpp_has_in_assembly_is_taken_from_it() -> None:
    source = "".join(REPACK.format(name=name, dot=dot) for name, dot in IN_ASSEMBLY.items())
    found = loops_in_assembly(source)
    assert set(found) == {(name, rows) for name in IN_ASSEMBLY for rows in (4, 16)}
    loop = found["gemm_q4_0_4x8_q8_0", 16]
    dot = ["smmla", "v12.4s,", "v16.16b,", "v26.16b"]
    assert loop == [["ldr", "q1,", "[x5,", "#0x0]"], dot, ["bgt", ".L3"]]
    assert len(found["gemm_q4_0_4x4_q8_0", 4]) == 2


@pytest.mark.parametrize("missing", ["--llvm-mca", "--clang"])
def test_a_tool_that_is_not_here_is_asked_for(
    missing: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    tools = {"--llvm-mca": sys.executable, "--clang": sys.executable}
    tools[missing] = str(tmp_path / "none")
    words = [word for pair in tools.items() for word in pair]
    assert main(["arm-estimate", *words]) != 0
    assert "apt-get install llvm-19 clang-19" in capsys.readouterr().err


@pytest.mark.parametrize("name", LAYOUTS)
def test_the_loop_is_that_of_a_block(name: str) -> None:
    rows = INSTRUCTION_SETS["neon-dotprod"].rows
    counts = Counter(words[0] for words in loop_of_tile("neon-dotprod", LAYOUTS[name], rows))
    assert counts["sdot"] == 8 * 2 * rows, "half of the columns in a loop"


def test_moves_and_memory_count_nothing_by_hand() -> None:
    loop = [words.split() for words in (
        "sdot v0.4s, v1.16b, v2.4b[0]", "fmla v3.4s, v0.4s, v4.4s", "movi v0.2d, #0",
        "mov v5.16b, v6.16b", "ldr q1, [x0]", "stp q1, q2, [x1]", "ld1r {v7.4s}, [x2]",
        "add x0, x0, #16", "and v1.16b, v1.16b, v8.16b", "scvtf v0.4s, v0.4s",
    )]  # fmt: skip
    assert cycles_by_hand(loop) == 1


def test_innermost_loops_are_found() -> None:
    inner = ".L2:\n\tsub x1, x1, #1 // one less\n\tb.ne .L2\n"
    text = f"f:\n.L1:\n\tadd x0, x0, #1\n{inner}\tcbz x0, .L1\n\tret\n"
    assert innermost_loops(text) == [[["sub", "x1,", "x1,", "#1"], ["b.ne", ".L2"]]]
    assert innermost_loops("f:\n\tret\n") == []
