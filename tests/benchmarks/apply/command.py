"""``apply``: snippets of commits, as agents write them, put into the files that they are about.

Each commit is written in ten wordings, with one to three lines of context, with and without place
holders at its ends, and with the slips of agents. An answer is exact where it is the commit's own
text, refused, or wrong. A slip in a line of context counts as right either way: the line as the
file has it, or as the snippet has it.
"""

from __future__ import annotations

import argparse
import difflib
import importlib.util
import json
import random
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from types import ModuleType

from rich.console import Console
from rich.table import Table

from lsp_server.shared.errors import BenchError
from lsp_server.tasks.apply import alignment, hunk_costs, line_costs, readings
from lsp_server.tasks.apply.file_text import lines_of
from lsp_server.tasks.apply.merge import apply_snippet
from lsp_server.tasks.apply.refusals import AmbiguousSnippet
from lsp_server.tasks.apply.replacements import LineReplacement, apply_replacements
from lsp_server.text.syntax.languages import language_of_path
from tests.benchmarks.apply.snippets import (
    MUTATIONS,
    WORDINGS,
    mutated,
    search_and_replace,
    snippet_of,
)

CONTEXTS = (3, 2, 1)
MARGINS = (0, 20, 40, 60, 80, 120)
MORPH_TOKENS_PER_S = 10_500
"""As Morph states it for its hosted model."""
CHARACTERS_PER_TOKEN = 4.0
FUZZY = 0.8
"""So alike has a region to be that a fuzzy matcher replaces."""
MostAlike = Callable[[str, Sequence[str]], int | None]
"""Which region is most like an old text; None where none is like it."""


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


@dataclass
class AppliedEdits:
    """How many answers are exact, refused and wrong, and how long each took."""

    counts: Counter[str] = field(default_factory=Counter)
    seconds: list[float] = field(default_factory=list)
    tokens: float = 0.0
    wrong: list[int] = field(default_factory=list)

    def add(self, edit: CommitEdit, apply: Callable[[], str], right: Sequence[str]) -> None:
        """Apply, and count what comes of it. Seconds are those of the processor."""
        start = time.process_time()
        try:
            text = apply()
            outcome = "exact" if text in right else "wrong"
        except AmbiguousSnippet:
            outcome = "refused"
        self.seconds.append(time.process_time() - start)
        self.counts[outcome] += 1
        self.tokens += len(edit.after) / CHARACTERS_PER_TOKEN
        if outcome == "wrong":
            self.wrong.append(edit.number)

    def row(self) -> list[str]:
        """Exact, refused, wrong, milliseconds, tokens a second."""
        total = max(sum(self.counts.values()), 1)
        shares = [f"{self.counts[one] / total:.1%}" for one in ("exact", "refused", "wrong")]
        times = sorted(self.seconds)
        at = [times[int(share * (len(times) - 1))] * 1000 for share in (0.5, 0.95)]
        speed = self.tokens / max(sum(times), 1e-9)
        return [*shares, *(f"{one:.1f}" for one in at), f"{speed:,.0f}"]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Options of the command."""
    parser.add_argument("--cases", type=Path, required=True, help="commits or aiXapply's cases")
    parser.add_argument("--maker", type=Path, help="a file with lazy(), another maker of snippets")
    parser.add_argument("--limit", type=int, help="so many commits, evenly spread")
    parser.add_argument("--wordings", default="all", help="names, by commas")
    parser.add_argument(
        "--parts", default="wordings,mutations,curve,peers", help="by commas; also fit"
    )
    parser.add_argument("--show-wrong", action="store_true", help="the numbers of wrong cases")


def run(args: argparse.Namespace) -> int:
    """Make the snippets, apply them, print the tables."""
    console = Console(width=140)
    edits = _edits(args.cases, args.limit)
    wordings = list(WORDINGS) if args.wordings == "all" else args.wordings.split(",")
    console.print(
        f"{len(edits)} edits that change something; Morph states {MORPH_TOKENS_PER_S} tokens/s"
    )
    parts = args.parts.split(",")
    if any(edit.snippet for edit in edits):
        console.print(_given(edits))
    if "wordings" in parts:
        console.print(_wordings(edits, wordings, args.show_wrong))
        if args.maker:
            console.print(_other_maker(edits, args.maker, args.show_wrong))
    if "mutations" in parts:
        console.print(_mutations(edits))
    if "curve" in parts:
        console.print(_curve(edits))
    if "fit" in parts:
        console.print(_fit(edits))
    if "peers" in parts:
        console.print(_peers(edits))
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


def _given(edits: Sequence[CommitEdit]) -> Table:
    """The snippets that the cases have themselves, by the endings of their files."""
    table = _table("snippets of the cases", "files")
    for ending in sorted({Path(edit.path).suffix for edit in edits if edit.snippet}):
        tally = AppliedEdits()
        for edit in edits:
            if edit.snippet and Path(edit.path).suffix == ending:
                tally.add(edit, _apply(edit, edit.snippet), [edit.after])
        table.add_row(f"{ending} ({sum(tally.counts.values())})", *tally.row())
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
                row = [" / ".join(_applied(edits, n).row()[:3:2]) for n in CONTEXTS]
            finally:
                for module in holders:
                    setattr(module, name, own)
            table.add_row(name, f"{value}{' (used)' if value == own else ''}", *row)
    return table


def _applied(edits: Sequence[CommitEdit], context: int) -> AppliedEdits:
    tally = AppliedEdits()
    for edit in edits:
        given = snippet_of(edit.before, edit.after, "existing", context=context, ends=True)
        tally.add(edit, _apply(edit, given), [edit.after])
    return tally


def _table(title: str, *columns: str) -> Table:
    return Table(*columns, "exact", "refused", "wrong", "p50 ms", "p95 ms", "tokens/s", title=title)


def _wordings(edits: Sequence[CommitEdit], wordings: Sequence[str], shows: bool) -> Table:
    table = _table("snippets by wording", "wording", "context", "ends")
    for wording in wordings:
        for context in CONTEXTS:
            for ends in (True, False):
                tally = AppliedEdits()
                for edit in edits:
                    given = snippet_of(edit.before, edit.after, wording, context=context, ends=ends)
                    tally.add(edit, _apply(edit, given), [edit.after])
                table.add_row(wording, str(context), "yes" if ends else "no", *tally.row())
                if shows:
                    print(wording, context, ends, tally.wrong, file=sys.stderr)
    return table


def _other_maker(edits: Sequence[CommitEdit], file: Path, shows: bool) -> Table:
    lazy = _module(file).lazy
    table = _table(f"snippets by {file.name}", "style", "context", "ends")
    for style in ("plain", "named", "bare"):
        for context in CONTEXTS:
            for ends in (True, False):
                tally = AppliedEdits()
                for edit in edits:
                    given = lazy(edit.before, edit.after, context, style, edit.number, ends=ends)
                    tally.add(edit, _apply(edit, given), [edit.after])
                table.add_row(style, str(context), "yes" if ends else "no", *tally.row())
                if shows:
                    print(style, context, ends, tally.wrong, file=sys.stderr)
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
    table = _table("snippets with a slip", "slip", "context")
    for kind in MUTATIONS:
        for context in CONTEXTS:
            tally = AppliedEdits()
            for edit in edits:
                plain = snippet_of(edit.before, edit.after, "existing", context=context, ends=True)
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


def _curve(edits: Sequence[CommitEdit]) -> Table:
    """Exact and wrong answers by how far a reading has to be ahead of the others."""
    table = Table("margin", *(f"{n} lines of context" for n in CONTEXTS), title="exact / wrong")
    own = readings.MARGIN
    try:
        for margin in MARGINS:
            readings.MARGIN = margin
            cells = []
            for context in CONTEXTS:
                exact, _, wrong, *_ = _applied(edits, context).row()
                cells.append(f"{exact} / {wrong}")
            table.add_row(f"{margin}{' (used)' if margin == own else ''}", *cells)
    finally:
        readings.MARGIN = own
    return table


def _peers(edits: Sequence[CommitEdit]) -> Table:
    """Search and replace of agents' tools, on pairs with three lines of context."""
    table = _table("search and replace", "how", "slips")
    ways: dict[str, Callable[[str, Sequence[tuple[str, str]]], str]] = {
        "ours": _ours,
        "exact": _exact,
        "fuzzy (difflib)": partial(_fuzzy, most_alike=_by_difflib),
    }
    if importlib.util.find_spec("rapidfuzz"):
        ways["fuzzy (rapidfuzz)"] = partial(_fuzzy, most_alike=_by_rapidfuzz)
    else:
        table.caption = "without rapidfuzz, which is not installed"
    for name, way in ways.items():
        for slips in (False, True):
            tally = AppliedEdits()
            for edit in edits:
                pairs = search_and_replace(edit.before, edit.after, 3)
                if slips:
                    pairs = [(_slipped(old, edit.number), new) for old, new in pairs]
                tally.add(edit, lambda: way(edit.before, pairs), [edit.after])  # noqa: B023
            table.add_row(name, "white space" if slips else "none", *tally.row())
    return table


def _ours(text: str, pairs: Sequence[tuple[str, str]]) -> str:
    lines = [(tuple(lines_of(old)), tuple(lines_of(new))) for old, new in pairs]
    return apply_replacements(text, [LineReplacement(old, new) for old, new in lines]).text


def _slipped(text: str, seed: int) -> str:
    chance = random.Random(seed)
    lines = text.splitlines()
    return "".join(f"{line}{'  ' if chance.random() < 0.3 else ''}\n" for line in lines)


def _exact(text: str, pairs: Sequence[tuple[str, str]]) -> str:
    for old, new in pairs:
        if text.count(old) != 1:
            raise AmbiguousSnippet("it stands in no place, or in several")
        text = text.replace(old, new)
    return text


def _fuzzy(text: str, pairs: Sequence[tuple[str, str]], most_alike: MostAlike) -> str:
    """The first region that is most alike, as agents' tools replace one."""
    for old, new in pairs:
        if old in text:
            text = text.replace(old, new, 1)
            continue
        lines, size = text.splitlines(keepends=True), len(old.splitlines())
        starts = range(max(1, len(lines) - size + 1))
        start = most_alike(old, ["".join(lines[start : start + size]) for start in starts])
        if start is None:
            raise AmbiguousSnippet("no region is alike")
        text = "".join([*lines[:start], new, *lines[start + size :]])
    return text


def _by_difflib(old: str, regions: Sequence[str]) -> int | None:
    matcher = difflib.SequenceMatcher(None, "", old, False)
    best, found = FUZZY, None
    for number, region in enumerate(regions):
        matcher.set_seq1(region)
        if matcher.real_quick_ratio() > best and matcher.quick_ratio() > best:
            ratio = matcher.ratio()
            best, found = (ratio, number) if ratio > best else (best, found)
    return found


def _by_rapidfuzz(old: str, regions: Sequence[str]) -> int | None:
    from rapidfuzz import fuzz, process

    found = process.extractOne(old, regions, scorer=fuzz.ratio, score_cutoff=100 * FUZZY)
    return int(found[2]) if found else None
