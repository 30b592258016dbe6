"""`tests.benchmarks quality`: what a model can do on code that it never saw.

What editors get: how many missing lines are the reference's, with how many of them the program
passes its tests (pass@1 of HumanEval-Infilling), and how like the reference the completions of
RepoEval are.
"""

from __future__ import annotations

import argparse
import json
import math
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from accel.decoding.engine import Engine
from accel.decoding.request import GenerationRequest
from accel.text.prompts import Prompt
from accel.text.special_tokens import fim_format_of
from tests.benchmarks.cases import load_completion_cases
from tests.benchmarks.measurement import similarity
from tests.benchmarks.pass_at_1 import infilling_tests, passes

LINE_TOKENS = 64
COMPLETION_TOKENS = 128
PROMPT_TOKENS = 1024


@dataclass(slots=True)
class Tally:
    """How many of how many were right."""

    right: int = 0
    total: int = 0

    def count(self, right: bool) -> None:
        """Take one case in."""
        self.right += right
        self.total += 1

    def as_dict(self) -> dict[str, float]:
        """For JSON; a share of nothing is nan."""
        share = round(self.right / self.total, 4) if self.total else math.nan
        return {"right": self.right, "total": self.total, "share": share}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of `tests.benchmarks quality`."""
    parser.add_argument("--model", required=True, help="a folder, GGUF file or id")
    parser.add_argument("--cases", type=Path, required=True, help="folder of the measuring cases")
    parser.add_argument("--infilling", type=int, default=259, help="infilling cases")
    parser.add_argument("--completions", type=int, default=60, help="RepoEval cases")
    parser.add_argument("--json", action="store_true", help="print JSON instead of a table")


def run(args: argparse.Namespace) -> int:
    """Run `tests.benchmarks quality`; gives the exit status."""
    engine = Engine.load(args.model, dtype="fp32")
    exact, passing = served_lines(engine, args.cases, args.infilling)
    fim = fim_format_of(engine.tokenizer)
    found = {
        "infilling_order": fim.order.value if fim else "",
        "infilling_served": exact.as_dict(),
        "infilling_pass_at_1": passing.as_dict(),
        "repoeval_similarity": round(likeness(engine, args.cases, args.completions), 4),
    }
    if args.json:
        print(json.dumps(found, indent=1))
    else:
        Console().print(table_of(found))
    return 0


def served_lines(engine: Engine, cases: Path, limit: int) -> tuple[Tally, Tally]:
    """The single lines that editors get: how many are the reference's, and with how many of them
    the program passes its tests."""
    file = cases / "completion_infilling.jsonl"
    tests = infilling_tests(file)
    exact, passing = Tally(), Tally()
    for case in load_completion_cases(file, limit):
        # As in an editor: the line break after the line stands in the suffix.
        line = case.reference.rstrip("\n")
        rest = case.reference[len(line) :] + case.suffix
        prompt = engine.fim_prompt(case.prefix, rest, path=case.path, budget=PROMPT_TOKENS)
        written = _written(engine, prompt, LINE_TOKENS, one_line=True)
        exact.count(written == line)
        passing.count(passes(case.prefix + written + rest, tests[case.id], seconds=3))
    return exact, passing


def likeness(engine: Engine, cases: Path, limit: int) -> float:
    """Mean edit similarity of completions in their repository's files, without a datastore."""
    total = 0.0
    chosen = load_completion_cases(cases / "completion_repoeval.jsonl", limit)
    for case in chosen:
        prompt = engine.fim_prompt(case.prefix, case.suffix, path=case.path, budget=PROMPT_TOKENS)
        wanted = min(len(engine.tokenizer.encode(case.reference)), COMPLETION_TOKENS)
        total += similarity(_written(engine, prompt, wanted), case.reference)
    return total / max(len(chosen), 1)


def _written(engine: Engine, prompt: Prompt, tokens: int, one_line: bool = False) -> str:
    """What greedy decoding writes, up to a line break if one line is wanted."""
    request = GenerationRequest(
        prompt.tokens,
        max_tokens=tokens,
        stop_tokens=prompt.stop_tokens,
        stop_rule=_line_break if one_line else None,
        required_prefix=prompt.required_prefix,
    )
    return engine.generate(request).finish().text


def _line_break(text: str) -> int | None:
    place = text.find("\n")
    return None if place < 0 else place


def table_of(found: dict[str, Any]) -> Table:
    """The figures as a table."""
    table = Table("measure", "right", "of", "share")
    order = found["infilling_order"].replace("_", " ")
    table.add_row(f"single-line infilling, exact ({order})", *_shown(found["infilling_served"]))
    table.add_row("single-line infilling, pass@1", *_shown(found["infilling_pass_at_1"]))
    table.add_row("RepoEval, edit similarity", "", "", f"{found['repoeval_similarity']:.3f}")
    return table


def _shown(tally: dict[str, float]) -> tuple[str, str, str]:
    return str(tally["right"]), str(tally["total"]), f"{tally['share']:.1%}"
