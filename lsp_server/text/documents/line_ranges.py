"""Ranges of lines as people write them: ``3:17``, from 1, both ends included."""

from __future__ import annotations

from itertools import accumulate

from lsp_server.shared.errors import RedraftError
from lsp_server.text.documents.document import line_end, split_lines


def offsets_of_lines(text: str, lines: str, what: str) -> tuple[int, int]:
    """Return code points of whole lines ``A:B`` or of line ``A``, without the end of the last one.
    ``what``: the text, in words. Raises RedraftError."""
    first_text, _, last_text = lines.partition(":")
    try:
        first, last = int(first_text), int(last_text or first_text)
    except ValueError:
        raise RedraftError(f"lines {lines!r}: not a range; give first:last, as in 3:17") from None
    every = split_lines(text)
    count = len(every) - (not every[-1] and len(every) > 1)
    if not 1 <= first <= last <= count:
        raise RedraftError(f"lines {lines} are outside of {what}, which has {count} lines")
    ends = [0, *accumulate(map(len, every))]
    return ends[first - 1], ends[last] - len(line_end(every[last - 1]))
