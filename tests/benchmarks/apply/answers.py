"""Reads the answers of Morph's bench: what models sent to its apply tool, and what that made of it.

A run is a folder with ``logs`` and ``workspace``, two folders below the bench's own, whose
``corpus`` has the files before.
"""

from __future__ import annotations

import difflib
import json
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

from rich.table import Table

from lsp_server.shared.errors import BenchError
from lsp_server.tasks.apply.edit_text import apply_text
from lsp_server.tasks.apply.refusals import AmbiguousSnippet
from lsp_server.text.syntax.languages import language_of_path

OUTCOMES = ("right", "refused", "different")


@dataclass(frozen=True)
class BenchAnswer:
    """Snippets that a model sent in turn for the file ``before``, and ``reference``, what the tool
    of the bench made of them."""

    name: str
    path: str
    before: str
    snippets: tuple[str, ...]
    reference: str

    def outcome(self) -> str:
        """Return what comes of the snippets here."""
        text = self.before
        for snippet in self.snippets:
            try:
                text = apply_text(text, snippet, language_of_path(self.path), self.path).text
            except AmbiguousSnippet:
                return "refused"
        return "right" if self.is_right(text) else "different"

    def is_right(self, text: str) -> bool:
        """Return whether ``text`` is the reference, empty lines aside, but for what that changed
        outside of the edit: lines that no snippet shows, and not between two that one has."""
        own, other = _code(text), _code(self.reference)
        before = {line.strip() for line in _code(self.before)}
        given = [[line.strip() for line in _code(snippet)] for snippet in self.snippets]
        shown = {line for lines in given for line in lines}
        joints = {joint for lines in given for joint in pairwise(lines)}
        matcher = difflib.SequenceMatcher(None, own, other, autojunk=False)
        for kind, start, end, *there in matcher.get_opcodes():
            ours = {line.strip() for line in own[start:end]}
            made = {line.strip() for line in other[slice(*there)]}
            around = "".join(own[start - 1 : start]).strip(), "".join(own[end : end + 1]).strip()
            is_outside = ours <= before - shown and not made & (before | shown)
            if kind != "equal" and (around in joints or not is_outside):
                return False
        return True


def _code(text: str) -> list[str]:
    return [line.rstrip() for line in text.splitlines() if line.strip()]


def answers_table(folder: Path) -> Table:
    """Return what comes of the answers of a run, by the endings of their files."""
    table = Table("files", *OUTCOMES, title=f"answers of {folder.name}")
    outcomes = [(Path(answer.path).suffix, answer.outcome()) for answer in answers_of(folder)]
    for ending in [*sorted({ending for ending, _ in outcomes}), ""]:
        counts = Counter(outcome for own, outcome in outcomes if own.endswith(ending))
        name = f"{ending or 'all'} ({sum(counts.values())})"
        table.add_row(name, *(str(counts[outcome]) for outcome in OUTCOMES))
    return table


def answers_of(folder: Path) -> Iterator[BenchAnswer]:
    """Yield the answers of a run. Raises BenchError where its files cannot be read."""
    try:
        for log in sorted(folder.glob("logs/*.json")):
            for row in json.loads(log.read_text("utf-8")):
                if row["method"] == "morph":
                    yield _answer(folder, row)
    except (OSError, ValueError, KeyError) as error:
        raise BenchError(f"{folder} is no run of Morph's bench ({error})") from error


def _answer(folder: Path, row: dict[str, str]) -> BenchAnswer:
    path = Path(row["file"])
    response = json.loads(row["response_data"])
    turns: Sequence[dict[str, str]] = response.get("multi_turn_responses", [response])
    (made,) = folder.glob(f"workspace/{row['model']}/{path.stem}/{row['query_id']}_morph_*")
    return BenchAnswer(
        f"{row['model']} {row['query_id']}",
        path.name,
        (folder.parents[1] / "corpus" / path.name).read_text("utf-8"),
        tuple(turn["code_edit"] for turn in turns),
        made.read_text("utf-8"),
    )
