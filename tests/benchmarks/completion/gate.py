"""``tests.benchmarks gate``: what a person is shown who types code, with and without a gate.

Code is typed again key by key, lines and bodies of functions from the measuring cases. After every
key the model is asked as an editor asks, unless what it wrote before is being typed. The person
takes a suggestion where all of it is right, with one key, else types on (*whole*); another one
takes it word by word, as far as it is right (*words*).

Every character of a suggestion counts once, when it is first shown: it is wrong where the text that
was typed in the end is another one up to there. The model is the same for every gate, and so are
the prompts: what it wrote at a place is remembered.
"""

from __future__ import annotations

import argparse
import itertools
import re
import statistics
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from accel.forwards import told
from lsp_server.commands.cli.output import add_json_argument, write_json
from lsp_server.editor.completion.postfilter import shown_text
from lsp_server.editor.completion.provider import PATIENCE_S, SINGLE_LINE_TOKENS
from lsp_server.editor.completion.request import CompletionRequest
from lsp_server.shared.contract.options import EngineOptions
from lsp_server.shared.errors import BenchError
from lsp_server.shared.settings import CompletionSettings
from lsp_server.tasks.completion import stopping
from lsp_server.tasks.completion.gate import (
    THRESHOLDS,
    LikelyPiece,
    aligned,
    gated,
    is_inside,
    pieces_of,
    rest_of,
    sure_length,
    watched_end,
)
from lsp_server.tasks.steps import in_place
from tests.benchmarks.cases import CompletionCase, load_completion_cases

if TYPE_CHECKING:
    from lsp_server.engine.service import EngineService

PERSONS = "whole", "words"
TOTAL = "total"
NEVER = 1e-300
"""A gate that never closes: what the model wrote is told with its probabilities."""
BEHIND = 400
"""Characters behind the code that is typed which a suggestion may be right about."""
_WORD = re.compile(r"\s*(\w+|[^\w\s]+)|\s+")


class Moment(NamedTuple):
    """How much was written after so many seconds."""

    seconds: float
    length: int


@dataclass(frozen=True, slots=True)
class WrittenText:
    """What the model wrote at a place."""

    text: str
    pieces: list[LikelyPiece]
    moments: list[Moment]
    one_line: bool

    def goes_on(self, typed: str) -> bool:
        """Whether there is more of it behind what was typed since."""
        return self.text.startswith(typed) and len(typed) < len(self.text)

    def behind_gate(self, prefix: str, threshold: float) -> WrittenText:
        """What it would have written with a gate."""
        ends = [len(self.text), watched_end(self.text, self.pieces, threshold)]
        if not self.one_line:
            ends.append(stopping.statement(prefix)(self.text))
        end = min(place for place in ends if place is not None)
        return WrittenText(self.text[:end], self.pieces, self.moments, self.one_line)

    def ghost_s(self, threshold: float) -> float:
        """Seconds until something was shown, if anything was."""
        finished = next((m.seconds for m in self.moments if m.length >= len(self.text)), 0.0)
        if threshold:
            sure = sure_length(self.pieces, threshold)
            closed = (m.seconds for m in self.moments if m.length > sure)
            return min(next(closed, finished), finished or self.moments[-1].seconds)
        line = self.text.find("\n", len(self.text) - len(self.text.lstrip()))
        lines = (m.seconds for m in self.moments if 0 <= line < m.length)
        return min(max(next(lines, finished), PATIENCE_S), finished)


@dataclass(slots=True)
class TypingFigures:
    """What a person was shown, in characters where nothing else is said."""

    typed: int = 0
    """All of the code, whoever wrote it."""
    shown: int = 0
    wrong: int = 0
    saved: int = 0
    """Characters that were taken, less a key for each time."""
    suggestions: int = 0
    taken: int = 0
    requests: int = 0
    ghost_s: list[float] = field(default_factory=list)
    """Seconds to the first text of each suggestion that the model was asked for."""

    def figures(self) -> dict[str, Any]:
        """For the table."""
        told = {name: value for name, value in asdict(self).items() if name != "ghost_s"}
        told["wrong_share"] = round(self.wrong / max(self.shown, 1), 4)
        told["saved_share"] = round(self.saved / max(self.typed, 1), 4)
        told["ghost_ms"] = round(1000 * statistics.median(self.ghost_s or [0.0]), 1)
        return told


class RememberedModel:
    """Asks the model as an editor does, once for each place."""

    def __init__(self, service: EngineService) -> None:
        self._service = service
        self._known: dict[tuple[str, int, bool], WrittenText] = {}

    def at(self, case: CompletionCase, typed: int, *, whole: bool) -> WrittenText:
        """What it writes once so many characters of a case are typed; ``whole``: more than the
        first statement."""
        from lsp_server.shared.contract.jobs import CompletionJob

        prefix = case.prefix + case.reference[:typed]
        suffix = "\n" + case.suffix.removeprefix("\n")
        ask = CompletionRequest("", case.path, "", "python", prefix, suffix)
        several = ask.wants_several_lines
        key = (case.id, typed, whole and several)
        if key not in self._known:
            most = CompletionSettings().max_tokens
            job = CompletionJob(
                *("", case.path),
                prefix=ask.windowed_prefix,
                suffix=ask.windowed_suffix,
                language="python",
                prompt_seconds=0.0,
                max_tokens=most if several else min(most, SINGLE_LINE_TOKENS),
                single_line=not several,
                gate=0.0 if whole and several else NEVER,
            )
            self._known[key] = self._written(job, not several)
        return self._known[key]

    def _written(self, job: Any, one_line: bool) -> WrittenText:
        began, length, moments, pieces = time.perf_counter(), 0, [], []
        steps = told(in_place(self._service.steps(job, lambda: False)))
        while True:
            try:
                spans = next(steps)
            except StopIteration as end:
                text: str = end.value.text
                break
            length += sum(len(span.text) for span in spans)
            moments.append(Moment(time.perf_counter() - began, length))
            pieces += pieces_of(spans) or []
        moments.append(Moment(time.perf_counter() - began, max(length, len(text))))
        return WrittenText(text, pieces, moments, one_line)


def typed_with(
    model: RememberedModel, case: CompletionCase, characters: int, threshold: float, by_words: bool
) -> TypingFigures:
    """A person types the beginning of a case's code."""
    code = case.reference.rstrip("\n")[:characters]
    suffix = "\n" + case.suffix.removeprefix("\n")
    target = case.reference.rstrip("\n") + suffix[:BEHIND]
    tally = TypingFigures(typed=len(code))
    place = start = seen = 0
    written: WrittenText | None = None
    while place < len(code):
        before = case.prefix + target[:place]
        shown, along = "", place - start
        is_known = written is not None and written.goes_on(target[start:place])
        if written is not None and is_known:
            shown = _shown(written, along, before, suffix, threshold)
            is_known = bool(shown or not is_inside(written.pieces, along) or not threshold)
        if written is None or not is_known:
            written, start, seen, along = model.at(case, place, whole=not threshold), place, 0, 0
            tally.requests += 1
            if threshold:
                written = written.behind_gate(before, threshold)
            shown = _shown(written, along, before, suffix, threshold)
        right = _common(shown, target[place:])
        fresh = max(seen - place, 0)
        if shown:
            if not seen:
                tally.suggestions += 1
                if not along:
                    tally.ghost_s.append(written.ghost_s(threshold))
            tally.shown += max(len(shown) - fresh, 0)
            tally.wrong += max(len(shown) - max(fresh, right), 0)
            seen = max(seen, place + len(shown))
        taken = _taken(shown, right, by_words)
        if taken > 1:
            tally.taken += 1
            tally.saved += taken - 1
        place += max(taken, 1)
    return tally


def _shown(written: WrittenText, along: int, prefix: str, suffix: str, threshold: float) -> str:
    text, pieces = written.text[along:], rest_of(written.pieces, along)
    filtered = shown_text(text, prefix, suffix)
    return gated(filtered, aligned(pieces, text, filtered), threshold)


def _taken(shown: str, right: int, by_words: bool) -> int:
    """Characters that are taken at once: all, or the first word, where they are right."""
    if not by_words:
        return len(shown) if right == len(shown) else 0
    word = _WORD.match(shown)
    return word.end() if word is not None and word.end() <= right else 0


def _common(one: str, other: str) -> int:
    count = 0
    while count < min(len(one), len(other)) and one[count] == other[count]:
        count += 1
    return count


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Options of the bench."""
    parser.add_argument("--model", help="folder, GGUF file or id of a model")
    parser.add_argument("--cases", type=Path, required=True, help="folder of the measuring cases")
    parser.add_argument("--lines", type=int, default=60, help="lines of HumanEval (default 60)")
    parser.add_argument("--bodies", type=int, default=20, help="bodies of RepoEval (default 20)")
    parser.add_argument("--characters", type=int, default=120, help="to type of each (default 120)")
    parser.add_argument("--threshold", type=float, action="append", help="measure this one, too")
    add_json_argument(parser)


def run(args: argparse.Namespace) -> int:
    """Type, measure, print. Raises BenchError."""
    from rich.console import Console
    from rich.table import Table

    from lsp_server.engine.service import EngineService

    if min(args.lines, args.bodies) < 0 or args.characters < 1:
        raise BenchError("give --lines and --bodies of 0 or more, and --characters above 0")
    if any(not 0 < one < 1 for one in args.threshold or ()):
        raise BenchError("give a --threshold between 0 and 1")
    gates = THRESHOLDS | {f"{one:g}": one for one in args.threshold or ()}
    service = EngineService(EngineOptions(path=args.model or "", common=False))
    model = RememberedModel(service)
    cases = list(_cases(args))
    found: dict[str, dict[str, dict[str, TypingFigures]]] = {}
    for case in cases:
        for by, (name, threshold) in itertools.product(PERSONS, gates.items()):
            part = typed_with(model, case, args.characters, threshold, by == "words")
            for group in (case.group or "lines", TOTAL):
                groups = found.setdefault(by, {}).setdefault(group, {})
                _add(groups.setdefault(name, TypingFigures()), part)
    service.close()
    rows = {
        by: {group: _rows(tallies) for group, tallies in by_group.items()}
        for by, by_group in found.items()
    }
    if args.json:
        write_json(args.json, {"cases": len(cases), "model": args.model, "taken": rows})
        return 0
    for by, figures in rows.items():
        total = figures[TOTAL]
        table = Table("gate", *next(iter(total.values())), title=f"{len(cases)} cases, by {by}")
        for name, row in total.items():
            table.add_row(f"{name} ({gates[name]:g})", *map(str, row.values()))
        Console(width=180).print(table)
    return 0


def _rows(tallies: dict[str, TypingFigures]) -> dict[str, dict[str, Any]]:
    """Figures by gate, beside those without one."""
    rows = {name: tally.figures() for name, tally in tallies.items()}
    for row in rows.values():
        row["wrong_to_off"] = round(row["wrong"] / max(rows["off"]["wrong"], 1), 3)
        row["saved_to_off"] = round(row["saved"] / max(rows["off"]["saved"], 1), 3)
    return rows


def _cases(args: argparse.Namespace) -> Iterator[CompletionCase]:
    if args.lines:
        yield from load_completion_cases(args.cases / "completion_infilling.jsonl", args.lines)
    if args.bodies:
        yield from load_completion_cases(args.cases / "completion_repoeval.jsonl", args.bodies)


def _add(whole: TypingFigures, part: TypingFigures) -> None:
    for name in asdict(part):
        setattr(whole, name, getattr(whole, name) + getattr(part, name))
