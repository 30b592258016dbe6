"""What histories of real commits settle without a model: how much is shown, and how much of it the
commit does not have."""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from pathlib import Path

from lsp_server.editor.editing.hunks import minimal_hunks
from lsp_server.editor.next_edits.history import EditHistory
from lsp_server.editor.next_edits.provider import NextEditProvider
from lsp_server.editor.next_edits.suggestion import Suggestion
from lsp_server.text.documents.document import Document, Documents, Position
from lsp_server.text.documents.workspace_folders import Folders
from tests.benchmarks.next_edits.commits import LANGUAGES, blocks_between


class _Typing:
    """Types the changes of a commit, from the top, with pauses between them."""

    def __init__(self, row: dict[str, str]) -> None:
        self.now_s = 0.0
        self.documents = Documents()
        self.provider = NextEditProvider(self.documents, Folders(), lambda _: True)
        self.provider.history = EditHistory(lambda _: True, lambda: self.now_s)
        language = LANGUAGES.get(Path(row["path"]).suffix, "plaintext")
        uri = f"file:///project/{row['path']}"
        self.document = self.documents.open(uri, language, 1, row["before"])
        self.provider.opened(self.document)

    def change(self, line: int, count: int, new: str) -> Position:
        """Lines become others, by one change for each stretch that differs."""
        old = "".join(self.document.lines[line : line + count])
        end = Position(line, 0)
        for hunk in reversed(minimal_hunks(old, new)):
            places = [_place(line, old, at) for at in (hunk.start, hunk.end)]
            edit = self.document.change(places[0], places[1], hunk.text, "utf-32")
            self.provider.changed(self.document, [edit])
            self.now_s += 0.3
            end = Position(*_place(line, new, len(new.rstrip("\n"))))
        self.now_s += 3
        return end


def _place(line: int, text: str, at: int) -> tuple[int, int]:
    before = text[:at]
    return line + before.count("\n"), at - (before.rfind("\n") + 1)


async def settled(cases: Path) -> Counter[str]:
    """Steps, those in which something was shown, proposals that the commit has, and others."""
    found: Counter[str] = Counter()
    with cases.open() as rows:
        for text in rows:
            row = json.loads(text)
            typing = _Typing(row)
            shift = 0
            for block in blocks_between(
                row["before"].splitlines(keepends=True), row["after"].splitlines(keepends=True)
            ):
                cursor = typing.change(
                    block.start + shift, block.end - block.start, "".join(block.new)
                )
                shift += len(block.new) - (block.end - block.start)
                proposals = await typing.provider.next_edits(typing.document, cursor) or []
                found["steps"] += 1
                _count(found, typing.document, proposals, row)
    return found


def _count(
    found: Counter[str], document: Document, proposals: list[Suggestion], row: dict[str, str]
) -> None:
    texts = [one for one in proposals if one.new_text is not None]
    found["jumps"] += len(proposals) - len(texts)
    if not texts:
        return
    found["shown"] += 1
    now = Counter(line.rstrip("\r\n") for line in document.lines)
    then = Counter(row["after"].splitlines())
    by_line: dict[int, list[Suggestion]] = {}
    for one in texts:
        by_line.setdefault(one.region.start.line, []).append(one)
    wrong = 0
    for line, some in by_line.items():
        text = document.lines[line].rstrip("\r\n")
        for one in sorted(some, key=lambda each: each.region.start, reverse=True):
            start, end = one.region.start.column, one.region.end.column
            text = f"{text[:start]}{one.new_text}{text[end:]}"
        is_right = then[text] > now[text]
        found["right" if is_right else "wrong"] += len(some)
        wrong += not is_right
        if not is_right:
            print(f"  {row['id']} {row['path']}:{line + 1} {some[0].title}: {text.strip()[:90]}")
    found["steps with a wrong one"] += wrong > 0


def print_settled(cases: Path) -> None:
    """Count them over all commits."""
    found = asyncio.run(settled(cases))
    share = found["steps with a wrong one"] / max(found["steps"], 1)
    print(f"{dict(found)}; wrong in {100 * share:.2f} % of all steps")
