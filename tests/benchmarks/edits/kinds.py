"""``edit-kinds``: edits of eight kinds with one right answer each, made by a script.

Each is answered twice: by the model's plain prompt, which is the whole selection in its chat
template, and by the real server, as an editor asks it. Both answers are read as the server reads
them. Exact is the answer whose text is the right one, character by character.
"""

from __future__ import annotations

import argparse
import json
import random
import tempfile
from collections import Counter
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

from rich.console import Console
from rich.progress import track
from rich.table import Table

from lsp_server.editor.editing.checks import new_problem
from lsp_server.shared.contract.jobs import EditJob
from lsp_server.shared.errors import BenchError, EditRefused
from tests.benchmarks.edits.answers import served_text
from tests.benchmarks.keystrokes.client import PrivateDaemon, TypingClient
from tests.benchmarks.keystrokes.editor_process import ServerFailed

KINDS = (
    *("rename_parameter", "rename_variable", "rename_function", "remove_docstring"),
    *("remove_comments", "remove_type_hints", "change_literal", "add_guard"),
)
AROUND_LINES = 12
ANSWER_TOKENS = 1024
LANGUAGE = "python"


@dataclass(frozen=True, slots=True)
class KindCase:
    """An edit of a function in its file."""

    kind: str
    path: str
    instruction: str
    selection: str
    wanted: str
    before: str
    after: str

    @property
    def text(self) -> str:
        """The whole file before the edit."""
        return self.before + self.selection + self.after


@dataclass(frozen=True, slots=True)
class KindAnswer:
    """One answer to a case. ``refusal`` is empty where an edit was offered."""

    text: str
    refusal: str = ""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Options of ``tests.benchmarks edit-kinds``."""
    parser.add_argument("--model", required=True, help="a GGUF file or a folder")
    parser.add_argument("--code", type=Path, required=True, help="folder of Python files to edit")
    parser.add_argument("--per-kind", type=int, default=10, help="edits of each kind")
    parser.add_argument("--kinds", nargs="*", choices=KINDS, default=KINDS, help="only these")
    parser.add_argument("--threads", type=int, help="else the fastest number")
    parser.add_argument("--seed", type=int, default=0, help="of the edits")
    parser.add_argument("--show", action="store_true", help="print answers that are not exact")
    parser.add_argument("--no-plain", action="store_true", help="ask the server alone")
    parser.add_argument("--no-served", action="store_true", help="ask by the plain prompt alone")
    parser.add_argument("--json", type=Path, help="write cases and answers to this file too")


def run(args: argparse.Namespace) -> int:
    """Make the edits, have them answered, print how many are exact."""
    console = Console()
    cases = kind_cases(args.code, args.kinds, args.per_kind, args.seed)
    answers: dict[str, list[KindAnswer]] = {}
    if not args.no_plain:
        asked = plain_answers(args.model, cases, args.threads)
        answers["plain prompt"] = list(track(asked, "plain prompt", len(cases), console=console))
    if not args.no_served:
        served = served_answers(args.model, cases)
        answers["as served"] = list(track(served, "as served", len(cases), console=console))
    console.print(table_of(cases, answers))
    if args.show:
        _show(console, cases, answers)
    if args.json:
        rows = [
            {**asdict(case), **{name: asdict(each[n]) for name, each in answers.items()}}
            for n, case in enumerate(cases)
        ]
        args.json.write_text(json.dumps(rows, indent=1) + "\n", encoding="utf-8")
    return 0


def kind_cases(code: Path, kinds: tuple[str, ...], per_kind: int, seed: int) -> list[KindCase]:
    """Edits of every kind, of functions all over the files of a folder; the same for one seed.

    Raises BenchError where the folder has too few functions.
    """
    from tests.benchmarks.training.function_source import function_places
    from tests.benchmarks.training.made_edits import make_edit

    files = {file: file.read_text("utf-8") for file in sorted(code.rglob("*.py"))}
    places = [(file, place) for file, text in files.items() for place in function_places(text)]
    found: list[KindCase] = []
    for kind in kinds:
        chance = random.Random(f"{kind} {seed}")
        number = 0
        for file, place in chance.sample(places, len(places)):
            if number == per_kind:
                break
            text = files[file]
            edit = make_edit(text[place.start : place.end], kind, chance)
            if edit is None:
                continue
            number += 1
            path = str(file.relative_to(code))
            selection, wanted = edit.before, edit.after
            around = text[: place.start], text[place.end :]
            found.append(KindCase(kind, path, edit.instruction, selection, wanted, *around))
        if number < per_kind:
            raise BenchError(f"{code} has functions for {number} edits of the kind {kind} alone")
    return found


def plain_answers(model: str, cases: list[KindCase], threads: int | None) -> Iterator[KindAnswer]:
    """What the model writes for the whole selection. Raises AccelError."""
    from accel.decoding.engine import Engine
    from accel.decoding.request import GenerationRequest
    from accel.drafting.base import DraftRequest
    from accel.drafting.copy.drafter import CopyDrafter
    from accel.text.prompts import edit_prompt

    engine = Engine.load(model, threads=threads)
    drafter = CopyDrafter(engine.tokenizer, tuple(sorted(engine.end_tokens)[:1]))
    for case in cases:
        prompt = edit_prompt(
            engine.tokenizer,
            case.instruction,
            case.selection,
            before="".join(case.before.splitlines(keepends=True)[-AROUND_LINES:]),
            after="".join(case.after.splitlines(keepends=True)[:AROUND_LINES]),
            language=LANGUAGE,
            path=case.path,
            budget=engine.max_positions - ANSWER_TOKENS - 1,
        )
        drafts = DraftRequest(prompt.text, original=prompt.original_tokens)
        request = GenerationRequest(
            prompt.tokens,
            max_tokens=ANSWER_TOKENS,
            drafter=drafter,
            draft_request=drafts,
            stop_tokens=prompt.stop_tokens,
        )
        text = engine.generate(request).finish().text
        job = EditJob("", case.path, case.instruction, case.selection, language=LANGUAGE)
        try:
            yield KindAnswer(served_text(text, prompt, job))
        except EditRefused as refusal:
            yield KindAnswer("", str(refusal))


def served_answers(model: str, cases: list[KindCase]) -> Iterator[KindAnswer]:
    """What the real server offers an editor. Raises RedraftError."""
    with tempfile.TemporaryDirectory(prefix="redraft-kinds-") as folder:
        root = Path(folder) / "workspace"
        root.mkdir()
        daemon = PrivateDaemon(Path(folder), root, model)
        editor = daemon.connect()
        try:
            for number, case in enumerate(cases):
                yield _served(editor, root / f"case{number}.py", case)
        finally:
            editor.close()
            daemon.stop()


def _served(editor: TypingClient, file: Path, case: KindCase) -> KindAnswer:
    first = case.before.count("\n")
    lines = first, first + case.selection.count("\n")
    try:
        text = editor.edited(file.as_uri(), case.text, lines, case.instruction)
    except ServerFailed as refusal:
        return KindAnswer("", str(refusal))
    # The last line's end is not part of an edit.
    return KindAnswer(text + "\n")


def table_of(cases: list[KindCase], answers: dict[str, list[KindAnswer]]) -> Table:
    """By kind, how many answers are exact, refused and not to be parsed."""
    table = Table("kind", "edits", *answers, title="exact answers (refused, not to be parsed)")
    for kind in [*dict.fromkeys(case.kind for case in cases), ""]:
        of_kind = [n for n, case in enumerate(cases) if kind in ("", case.kind)]
        shown = []
        for each in answers.values():
            became = Counter(outcome(cases[n], each[n]) for n in of_kind)
            shown.append(
                f"{became['exact'] / max(len(of_kind), 1):.0%} "
                f"({became['refused']}, {became['broken']})"
            )
        table.add_row(kind or "all", str(len(of_kind)), *shown)
    return table


def outcome(case: KindCase, answer: KindAnswer) -> str:
    """``exact``, ``refused``, ``broken`` for what cannot be parsed, or ``other``."""
    if answer.refusal:
        return "refused"
    if answer.text == case.wanted:
        return "exact"
    return "broken" if new_problem(case.selection, answer.text, LANGUAGE) else "other"


def _show(console: Console, cases: list[KindCase], answers: dict[str, list[KindAnswer]]) -> None:
    from lsp_server.editor.editing.hunks import unified_diff

    for name, each in answers.items():
        for case, answer in zip(cases, each, strict=True):
            became = outcome(case, answer)
            if became == "exact":
                continue
            console.rule(f"{name}, {became}: {case.kind}, {case.path}", align="left")
            console.print(case.instruction, answer.refusal, markup=False, highlight=False)
            if not answer.refusal:
                difference = unified_diff(case.wanted, answer.text, "wanted and answered")
                console.print(difference, markup=False, highlight=False)
