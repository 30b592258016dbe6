"""``apply``: snippets of commits, as agents write them, put into the files that they are about.

Each commit is written in ten wordings and by two published sets of rules, with one to three lines
of context, with and without place holders at its ends, and with the slips of agents. An answer is
exact where it is the commit's own text, refused, right but for empty lines and blanks at the ends
of lines, or wrong. A slip in a line of context counts as right either way: the line as the file has
it, or as the snippet has it.
"""

from __future__ import annotations

import argparse
import difflib
import importlib.util
import itertools
import json
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from types import ModuleType

from rich.console import Console
from rich.table import Table

from lsp_server.shared.errors import BenchError
from lsp_server.tasks.apply import alignment, hunk_costs, line_costs, readings
from lsp_server.tasks.apply.merge import apply_snippet
from lsp_server.tasks.apply.refusals import AmbiguousSnippet
from lsp_server.text.syntax.languages import language_of_path
from tests.benchmarks.apply.answers import answers_table
from tests.benchmarks.apply.oracle import beside_oracle
from tests.benchmarks.apply.slips import FORMS, SLIPS, halves_with, lost_lines
from tests.benchmarks.apply.snippets import MAKERS, MUTATIONS, mutated, snippet_of

CONTEXTS = (3, 2, 1)
STYLES = ("plain", "named", "bare")
"""Of another maker."""
MORPH_TOKENS_PER_S = 10_500
"""As Morph states it for its hosted model."""
CHARACTERS_PER_TOKEN = 4.0
SIZES = (300, 5_000)
"""Lines of files."""
MOST_SHOWN = 5
OUTCOMES = ("exact", "refused", "blanks", "wrong")
MARKS = {"python": "#"}
"""With what a comment begins, where it is not ``//``."""


@dataclass(frozen=True)
class CommitEdit:
    """One file of a commit, before and after it, and a snippet where the case has one."""

    number: int
    path: str
    before: str
    after: str
    snippet: str = ""

    @property
    def language(self) -> str | None:
        """As in LSP."""
        return language_of_path(self.path) or None

    @property
    def kind(self) -> str:
        """The language, as tables name it: JSX is JavaScript."""
        return (self.language or Path(self.path).suffix).removesuffix("react")

    @property
    def mark(self) -> str:
        """With what a comment begins."""
        return MARKS.get(self.kind, "//")


Maker = Callable[[CommitEdit, int, bool], str]
"""Makes the snippet of an edit with so many lines of context, with place holders at its ends."""


@dataclass
class AppliedEdits:
    """How many answers are exact, refused, wrong, and how long each took."""

    counts: Counter[str] = field(default_factory=Counter)
    seconds: list[float] = field(default_factory=list)
    tokens: float = 0.0
    wrong: list[int] = field(default_factory=list)

    def add(self, edit: CommitEdit, apply: Callable[[], str], right: Sequence[str]) -> str:
        """Apply, count what comes of it, and return it. Seconds are those of the processor."""
        start = time.process_time()
        try:
            text = apply()
            is_same = _without_blanks(text) in map(_without_blanks, right)
            outcome = "exact" if text in right else "blanks" if is_same else "wrong"
        except AmbiguousSnippet:
            text, outcome = right[0], "refused"
        self.seconds.append(time.process_time() - start)
        self.counts[outcome] += 1
        self.tokens += len(edit.after) / CHARACTERS_PER_TOKEN
        if outcome == "wrong":
            self.wrong.append(edit.number)
        return text

    def row(self) -> list[str]:
        """Outcomes, milliseconds, tokens a second."""
        total = max(sum(self.counts.values()), 1)
        shares = [f"{self.counts[one] / total:.1%}" for one in OUTCOMES]
        times = sorted(self.seconds)
        at = [times[int(share * (len(times) - 1))] * 1000 for share in (0.5, 0.95)]
        speed = self.tokens / max(sum(times), 1e-9)
        return [*shares, *(f"{one:.1f}" for one in at), f"{speed:,.0f}"]


def _without_blanks(text: str) -> list[str]:
    """The lines of code, without blanks at their ends."""
    return [line.rstrip() for line in text.splitlines() if line.strip()]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Options of the command."""
    parser.add_argument(
        "--cases", type=Path, help="commits, aiXapply's cases, or a run of Morph's bench"
    )
    parser.add_argument("--maker", type=Path, help="a file with lazy(), another maker of snippets")
    parser.add_argument("--limit", type=int, help="so many commits, evenly spread")
    parser.add_argument("--wordings", default="all", help="names of wordings or rules, by commas")
    parser.add_argument(
        "--parts",
        default="wordings,mutations",
        help="by commas; also fit, replacements, times and, without cases, oracle",
    )
    parser.add_argument("--files", type=int, default=200_000, help="random files of the oracle")
    parser.add_argument("--seed", type=int, default=0, help="the number of its first file")
    parser.add_argument("--show-wrong", action="store_true", help="the numbers of wrong cases")


def run(args: argparse.Namespace) -> int:
    """Make the snippets, apply them, print the tables."""
    console = Console(width=140)
    parts = args.parts.split(",")
    if "oracle" in parts:
        counts = beside_oracle(args.seed, args.files)
        console.print(
            f"{counts.files} random files from {args.seed} on: {counts.applied} of {counts.single} "
            f"snippets with one reading applied, {len(counts.others)} answers not the cheapest"
        )
        console.print(*counts.others[:MOST_SHOWN], sep="\n")
    if parts == ["oracle"]:
        return 0
    if args.cases is None:
        raise BenchError("no commits; name a file by --cases")
    if args.cases.is_dir():
        console.print(answers_table(args.cases))
        return 0
    edits = _edits(args.cases, args.limit)
    wordings = list(MAKERS) if args.wordings == "all" else args.wordings.split(",")
    console.print(
        f"{len(edits)} edits that change something; Morph states {MORPH_TOKENS_PER_S} tokens/s"
    )
    if any(edit.snippet for edit in edits):
        console.print(_given(edits))
    if "wordings" in parts:
        makers = {name: _own_maker(name) for name in wordings}
        if args.maker:
            makers |= {style: _other_maker(args.maker, style) for style in STYLES}
        console.print(_wordings(edits, makers, args.show_wrong))
    if "mutations" in parts:
        console.print(_mutations(edits))
    if "fit" in parts:
        console.print(_fit(edits))
    if "replacements" in parts:
        console.print(_replacements(edits, args.show_wrong))
    if "times" in parts:
        console.print(_times(edits))
    return 0


def _edits(file: Path, limit: int | None) -> list[CommitEdit]:
    try:
        rows = [json.loads(line) for line in file.read_text("utf-8").splitlines()]
    except (OSError, ValueError) as error:
        raise BenchError(f"the commits cannot be read ({error}); name a file by --cases") from error
    edits = [
        edit
        for number, row in enumerate(rows)
        if (edit := _edit(number, row)).before.split() != edit.after.split()
    ]
    return edits if limit is None else edits[:: max(1, len(edits) // limit)][:limit]


def _edit(number: int, row: dict[str, str]) -> CommitEdit:
    """Return the edit of a row, by our fields or by aiXapply's, which has its own snippet."""
    if "source_file" not in row:
        return CommitEdit(number, row["path"], row["before"], row["after"])
    path = row.get("path", row.get("file_path", ""))
    texts = (row["source_file"], row["update_file"], row["update_snippet"])
    return CommitEdit(number, path, *texts)


def _by_kind(edits: Sequence[CommitEdit]) -> Iterator[tuple[str, list[CommitEdit]]]:
    for kind in sorted({edit.kind for edit in edits}):
        yield kind, [edit for edit in edits if edit.kind == kind]


def _given(edits: Sequence[CommitEdit]) -> Table:
    """The snippets that the cases have themselves."""
    table = _table("snippets of the cases", "language")
    for kind, own in _by_kind([edit for edit in edits if edit.snippet]):
        tally = AppliedEdits()
        for edit in own:
            tally.add(edit, _apply(edit, edit.snippet), [edit.after])
        table.add_row(f"{kind} ({len(own)})", *tally.row())
    return table


def _fit(edits: Sequence[CommitEdit]) -> Table:
    """Exact and wrong answers with each of the numbers of costs a third lower or higher."""
    table = Table("number", "value", *(f"{n} lines of context" for n in CONTEXTS), title="fit")
    modules = (line_costs, hunk_costs, alignment, readings)
    names = ("LINE", "RUN", "WEAK", "LOST", "CHANGED", "CHANGED_INSIDE", "LEAST_ALIKE", "MARGIN")
    for name in names:
        holders = [module for module in modules if hasattr(module, name)]
        own = getattr(holders[-1], name)
        for share in (2 / 3, 1, 4 / 3):
            value = round(own * share, 2 if own < 1 else None)
            try:
                for module in holders:
                    setattr(module, name, value)
                row = [" / ".join(_applied(edits, n).row()[:4:3]) for n in CONTEXTS]
            finally:
                for module in holders:
                    setattr(module, name, own)
            table.add_row(name, f"{value}{' (used)' if value == own else ''}", *row)
    return table


def _replacements(edits: Sequence[CommitEdit], shows: bool) -> Table:
    """Search and replace with slips."""
    table = _table("search and replace", "slip", "form", "lost lines")
    for slip, (form, apply) in itertools.product(SLIPS, FORMS.items()):
        tally, lost = AppliedEdits(), 0
        for edit in edits:
            halves = halves_with(slip, edit.before, edit.after)
            if slip != "none" and halves == halves_with("none", edit.before, edit.after):
                continue
            made = partial(apply, edit.before, halves, edit.language)
            lost += lost_lines(tally.add(edit, made, [edit.after]), edit.after)
        table.add_row(slip, f"{form} ({sum(tally.counts.values())})", str(lost), *tally.row())
        if shows:
            print(slip, form, tally.wrong, file=sys.stderr)
    return table


def _times(edits: Sequence[CommitEdit]) -> Table:
    """Snippets of files that are made longer by the other files of the cases, by their lines."""
    table = _table("times", "lines")
    for size in SIZES:
        longer = [_longer(edit, edits, size) for edit in edits]
        table.add_row(str(size), *_made(longer, _own_maker("existing"), 3, True).row())
    return table


def _longer(edit: CommitEdit, others: Sequence[CommitEdit], size: int) -> CommitEdit:
    """Return an edit of a file of about ``size`` lines, with others of its language below."""
    more: list[str] = []
    lines = edit.before.count("\n")
    for other in others:
        if lines < size and other.kind == edit.kind and other.before not in (edit.before, *more):
            more.append(other.before)
            lines += other.before.count("\n")
    below = "".join(more).splitlines(keepends=True)[: size - edit.before.count("\n")]
    before, after = (f"{text}{''.join(below)}" for text in (edit.before, edit.after))
    return replace(edit, before=before, after=after)


def _applied(edits: Sequence[CommitEdit], context: int) -> AppliedEdits:
    return _made(edits, _own_maker("existing"), context, True)


def _table(title: str, *columns: str) -> Table:
    return Table(*columns, *OUTCOMES, "p50 ms", "p95 ms", "tokens/s", title=title)


def _own_maker(name: str) -> Maker:
    return lambda edit, context, ends: snippet_of(
        *(edit.before, edit.after, name),
        context=context,
        ends=ends,
        mark=edit.mark,
        seed=edit.number,
    )


def _other_maker(file: Path, style: str) -> Maker:
    lazy = _module(file).lazy
    return lambda edit, context, ends: str(
        lazy(edit.before, edit.after, context, style, edit.number, edit.mark, ends=ends)
    )


def _made(edits: Sequence[CommitEdit], maker: Maker, context: int, ends: bool) -> AppliedEdits:
    tally = AppliedEdits()
    for edit in edits:
        tally.add(edit, _apply(edit, maker(edit, context, ends)), [edit.after])
    return tally


def _wordings(edits: Sequence[CommitEdit], makers: Mapping[str, Maker], shows: bool) -> Table:
    table = _table("snippets by wording", "wording", "language", "context", "ends")
    for wording, maker in makers.items():
        for kind, own in _by_kind(edits):
            for context, ends in itertools.product(CONTEXTS, (True, False)):
                tally = _made(own, maker, context, ends)
                table.add_row(wording, kind, str(context), "yes" if ends else "no", *tally.row())
                if shows:
                    print(wording, kind, context, ends, tally.wrong, file=sys.stderr)
    return table


def _module(file: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location(file.stem, file)
    if spec is None or spec.loader is None:
        raise BenchError(f"{file} is no Python file; name one by --maker")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def _apply(edit: CommitEdit, given: str) -> Callable[[], str]:
    return lambda: apply_snippet(edit.before, given, edit.language).text


def _mutations(edits: Sequence[CommitEdit]) -> Table:
    table, maker = _table("snippets with a slip", "slip", "context"), _own_maker("existing")
    for kind in MUTATIONS:
        for context in CONTEXTS:
            tally = AppliedEdits()
            for edit in edits:
                plain = maker(edit, context, True)
                given = mutated(plain, edit.before, kind, edit.number)
                if given != plain:
                    right = [edit.after, *_with_slip(edit.after, plain, given)]
                    tally.add(edit, _apply(edit, given), right)
            table.add_row(f"{kind} ({sum(tally.counts.values())})", str(context), *tally.row())
    return table


def _with_slip(after: str, plain: str, given: str) -> Iterator[str]:
    """The commit's text with the slip put in, at each place where it can be."""
    one, other = plain.splitlines(), given.splitlines()
    slips = difflib.SequenceMatcher(None, one, other, False).get_opcodes()
    changed = [each for each in slips if each[0] != "equal"]
    if len(changed) != 1 or changed[0][2] - changed[0][1] != 1:
        return
    _, start, _, at, to = changed[0]
    lines = after.splitlines(keepends=True)
    for number, line in enumerate(lines):
        if line.rstrip("\n") == one[start]:
            slip = [f"{text}\n" for text in other[at:to]]
            yield "".join([*lines[:number], *slip, *lines[number + 1 :]])
