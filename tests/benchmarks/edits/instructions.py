"""``instructions``: edits by instructions as people give them, through every check of the server.

Right and wrong are told by the cases; an edit that is not shown is refused or left unchanged, one
that is shown has a mark or none. With ``--references`` the true edits of a file of cases stand for
the model's answers, so that none of them should be refused or marked.
"""

from __future__ import annotations

import argparse
import asyncio
import re
from collections import Counter
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, cast

import yaml  # type: ignore[import-untyped]

from lsp_server.commands.cli.model_arguments import add_model_arguments, model_options
from lsp_server.editor.editing.checks import ONLY_WHITE_SPACE, new_problem
from lsp_server.editor.editing.hunks import apply_hunks
from lsp_server.editor.editing.provider import EditProvider, EditRequest
from lsp_server.engine.service import EngineService
from lsp_server.models.manifest import DEFAULT_FILE
from lsp_server.shared.contract.calls import Call, Calls, OnSpans
from lsp_server.shared.contract.jobs import EDIT, AnyJob, JobResult, unchanged
from lsp_server.shared.contract.options import EngineOptions
from lsp_server.shared.contract.status import EngineStatus
from lsp_server.shared.errors import EditRefused
from lsp_server.shared.settings import Settings
from lsp_server.text.documents.document import Document, Position
from lsp_server.text.syntax.languages import language_of_path
from lsp_server.text.text_edit import TextEdit
from tests.benchmarks.cases import EditCase, load_edit_cases
from tests.benchmarks.pass_at_1 import passes

if TYPE_CHECKING:
    from lsp_server.shared.contract.engine import EngineInterface

CASES = Path(__file__).parents[2] / "data" / "instructions.yaml"


@dataclass(frozen=True, slots=True)
class PersonsEdit:
    """An instruction for lines of a file, and how its result is known to be right."""

    name: str
    path: str
    instruction: str
    text: str
    lines: str = ""
    wanted: list[str] = field(default_factory=list)
    has: list[str] = field(default_factory=list)
    lacks: list[str] = field(default_factory=list)
    run: str = ""

    @property
    def language(self) -> str:
        """The language of the file."""
        return language_of_path(self.path)

    def is_right(self, text: str) -> bool:
        """Return whether the edited file is what the instruction asks for."""
        squeezed = " ".join(text.split())
        if self.wanted:
            return squeezed in (" ".join(each.split()) for each in self.wanted)
        is_right = all(re.search(pattern, squeezed) for pattern in self.has)
        is_right &= not any(re.search(pattern, squeezed) for pattern in self.lacks)
        is_right &= not new_problem(self.text, text, self.language)
        return is_right and (not self.run or passes(text, self.run))


class AnsweringEngine:
    """An engine whose answers a function writes."""

    refused = ""

    def __init__(self, answer: Callable[[AnyJob], JobResult]) -> None:
        self.status = EngineStatus(state="ready", model=DEFAULT_FILE)
        self._answer = answer

    def ask(
        self, job: AnyJob, client: str, on_spans: OnSpans | None = None, priority: int = EDIT
    ) -> Call:
        """Answer at once."""
        call = Calls().begin(priority, on_spans, lambda call: None)
        try:
            call.future.set_result(self._answer(job))
        except EditRefused as error:
            call.future.set_exception(error)
        return call


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Options of the command."""
    parser.add_argument("--cases", type=Path, default=CASES, help="a YAML file of sets of edits")
    parser.add_argument("--set", default="", help="the one set of the file to run, else all")
    parser.add_argument("--model", help="a model to ask")
    parser.add_argument(
        "--references", type=Path, metavar="CASES", help="true edits, a JSON object a line"
    )
    parser.add_argument("--shown", action="store_true", help="print what each edit became")
    add_model_arguments(parser)


def run(args: argparse.Namespace) -> int:
    """Make the edits and print what became of them."""
    if args.references:
        _run_references(args.references, shown=args.shown)
        return 0
    sets = yaml.safe_load(args.cases.read_text("utf-8"))
    options = {**model_options(args), "path": args.model or ""}
    with closing(EngineService(EngineOptions(**options))) as service:
        service.load(lambda told: None)
        for name in [args.set] if args.set else sets:
            outcomes: Counter[str] = Counter()
            for edit in (PersonsEdit(**fields) for fields in sets[name]):
                engine = AnsweringEngine(service.write)
                outcome, text, reason = asyncio.run(_edited(edit, engine))
                if text:
                    outcome = f"{'right' if edit.is_right(text) else 'wrong'}, {outcome}"
                outcomes[outcome] += 1
                print(f"{outcome:18} {edit.path:12} {edit.name}: {reason}")
                if args.shown:
                    print(text)
            print(name, dict(outcomes.most_common()))
    return 0


def _run_references(file: Path, *, shown: bool) -> None:
    """Print how many of the true edits are refused or marked."""
    outcomes: Counter[str] = Counter()
    for case in load_edit_cases(file):
        edit = PersonsEdit(case.id, case.path, case.instruction, case.before)
        engine = AnsweringEngine(partial(_true_edit, case))
        outcome, _, reason = asyncio.run(_edited(edit, engine))
        outcomes[outcome] += 1
        if shown and reason:
            print(f"{outcome:10} {case.id}: {reason} | {' '.join(case.instruction.split())[:100]}")
    print(file.name, dict(outcomes.most_common()))


def _true_edit(case: EditCase, job: AnyJob) -> JobResult:
    return unchanged(case.after)


async def _edited(edit: PersonsEdit, engine: AnsweringEngine) -> tuple[str, str, str]:
    """Return the outcome of an edit, the file as it is shown, and the reason or the marks."""
    document = Document(f"file:///{edit.path}", edit.language, 1, edit.text)
    first, last = map(int, edit.lines.split(":")) if edit.lines else (1, len(document.lines))
    ends = Position(first - 1, 0), Position(last - 1, len(document.lines[last - 1]))
    request = EditRequest(document, edit.path, "", *ends, edit.instruction)
    provider = EditProvider("bench", Settings, lambda: cast("EngineInterface", engine))
    try:
        result = await provider.edit(request)
    except EditRefused as refusal:
        return "refused", "", str(refusal)
    if not result.changes:
        return "unchanged", "", result.warning
    hunks = [
        TextEdit(document.offset(change.start), document.offset(change.end), change.text)
        for change in result.changes
    ]
    notes = {change.note for change in result.changes} - {"", ONLY_WHITE_SPACE}
    marks = "; ".join(filter(None, [result.warning, *sorted(notes)]))
    return "marked" if marks else "unmarked", apply_hunks(edit.text, hunks), marks
