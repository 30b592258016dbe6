"""Fills in place holders of answers, such as ``# ... rest of the code unchanged``, from the
original; refuses where what is left out is not clear: applied, it would delete code."""

from __future__ import annotations

import re

from lsp_server.shared.errors import EditRefused
from lsp_server.tasks.apply.definitions import defined_name
from lsp_server.tasks.apply.file_text import FileText, lines_of
from lsp_server.tasks.apply.merge import chosen_reading
from lsp_server.tasks.apply.refusals import AmbiguousSnippet
from lsp_server.tasks.apply.snippet import read_snippet

REFUSED = (
    "the model left out a part of the code ({shown}), and it is not clear which; edit again or "
    "select fewer lines"
)
SHOWN_CHARACTERS = 40
_ADDS = re.compile(
    r"\b(?:add|adds|insert|append|prepend|new|create|write|implement|introduce|extend|another|"
    r"include|also|more)\b",
    re.IGNORECASE,
)


def filled_in(answer: str, original: str, language: str, instruction: str = "") -> str:
    """Return the answer with what it left out; the answer itself where nothing was left out. Both
    have lines that end in newlines. Raises EditRefused where what was left out is not clear."""
    file = FileText.of(original)
    lines = lines_of(answer)
    snippet = read_snippet(lines, file.lines, language, instruction)
    if snippet.partly:
        raise _refusal(snippet.lines[snippet.partly[0]])
    if not snippet.holders:
        return answer if list(snippet.lines) == lines else file.joined(snippet.lines)
    if not snippet.hunks:
        return original
    holder_line = snippet.lines[snippet.holders[0]]
    names = {defined_name(line) for line in file.lines}
    added = {defined_name(line) for line in snippet.lines} - names - {""}
    if added and not _ADDS.search(instruction):
        # Another name in place of one that is left out, or a further definition.
        raise _refusal(holder_line)
    try:
        reading = chosen_reading(file.lines, snippet, language, is_whole=True)
    except AmbiguousSnippet as refusal:
        raise _refusal(holder_line) from refusal
    return file.replaced(reading.spans, reading.news)


def _refusal(line: str) -> EditRefused:
    return EditRefused(REFUSED.format(shown=line.strip()[:SHOWN_CHARACTERS]))
