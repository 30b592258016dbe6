"""The filter on true texts: what stands in a file is what the model should have written.

Whatever the filter takes off such a text it takes wrongly. The files are ours; each is written to
hold what misleads: quotes in comments, brackets in strings, blocks that repeat.
"""

from __future__ import annotations

import random
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest
from seeds import Amount

from lsp_server.editor.completion.postfilter import shown_text
from lsp_server.text.syntax.incremental_brackets import IncrementalBrackets
from lsp_server.text.syntax.languages import language_of_path

FILES = sorted((Path(__file__).parents[3] / "data" / "languages").iterdir())
LONGEST = 6
"""Lines of a text."""
_CLOSERS = re.compile(r"[)\]}\"'`;,:>]+\Z")


class Case(NamedTuple):
    prefix: str
    text: str
    suffix: str


def cases(whole: str) -> Iterator[Case]:
    """Places of a file, and what stands there: the rest of a line, some lines, or all up to the
    closing brackets that an editor has put behind the cursor."""
    lines = whole.split("\n")
    start = 0
    for number, line in enumerate(lines):
        end = start + len(line)
        if line.strip():
            first = start + len(line) - len(line.lstrip())
            words = [start + found.start() for found in re.finditer(r"\b|(?<=\W)(?=\W)", line)]
            for place in sorted({first, *words}):
                yield from _from(whole, place, end)
            more = end
            for following in lines[number + 1 : number + LONGEST]:
                more += 1 + len(following)
                for place in (start, first, end, *words[1:-1:4]):
                    yield from _from(whole, place, more)
            closers = _CLOSERS.search(line)
            for place in words:
                if closers and place < start + closers.start():
                    yield from _from(whole, place, start + closers.start())
        start = end + 1


def _from(whole: str, start: int, end: int) -> Iterator[Case]:
    if whole[start:end].strip():
        yield Case(whole[:start], whole[start:end], whole[end:])


def without_blanks(text: str) -> list[str]:
    return [line.rstrip() for line in text.rstrip().split("\n")]


def torn(case: Case, syntax: IncrementalBrackets | None) -> bool:
    shown = shown_text(case.text, case.prefix, case.suffix, syntax)
    return without_blanks(shown) != without_blanks(case.text)


def share_of_torn(count: int, seed: int, with_grammar: bool) -> tuple[float, Counter[str]]:
    chance = random.Random(seed)
    seen, wrong = 0, Counter[str]()
    for file in FILES:
        whole = file.read_text(encoding="utf-8")
        syntax = IncrementalBrackets.of(language_of_path(file.name)) if with_grammar else None
        every = list(cases(whole))
        for case in chance.sample(every, min(count, len(every))):
            seen += 1
            if torn(case, syntax):
                wrong[file.name] += 1
                print(file.name, repr(case.prefix[-40:]), repr(case.text), repr(case.suffix[:40]))
    return sum(wrong.values()) / seen, wrong


def test_there_are_enough_files() -> None:
    assert len({language_of_path(file.name) for file in FILES} - {""}) >= 20


def test_hardly_any_true_text_loses_a_part(amount: Amount) -> None:
    share, wrong = share_of_torn(amount(25, 400), 36, with_grammar=True)
    assert share <= 0.005, wrong


@pytest.mark.long
def test_without_a_grammar_few_true_texts_lose_a_part() -> None:
    share, wrong = share_of_torn(400, 37, with_grammar=False)
    assert share <= 0.02, wrong
