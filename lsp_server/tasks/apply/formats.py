"""How models that merge snippets are asked, as data: one table.

Source: the model card of FastApply-1.5B-v1.0 (Kortix), *Inference template*.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import chain

from lsp_server.shared.contract.jobs import MOST_TOKENS, GenerateJob, JobResult
from lsp_server.tasks.apply.merge import Reading
from lsp_server.tasks.apply.snippet import read_snippet
from lsp_server.tasks.indentation import with_end_of, with_start_of
from lsp_server.tasks.task import CUT
from lsp_server.text.documents.document import with_line_feeds
from lsp_server.text.line_diff import opcodes


@dataclass(frozen=True, slots=True)
class ApplyFormat:
    """One format: a chat, whose answer is the whole file between two tags."""

    name: str
    models: str
    """What names of models hold that are asked so, a regular expression."""
    system: str
    message: str
    """With ``{code}`` and ``{update}``."""
    opens: str
    closes: str
    """Around the file in an answer."""


FORMATS = (
    ApplyFormat(
        "fast-apply",
        r"fast[-_ ]?apply",
        "You are a coding assistant that helps merge code updates, ensuring every modification is "
        "fully integrated.",
        "Merge all changes from the <update> snippet into the <code> below.\n"
        "- Preserve the code's structure, order, comments, and indentation exactly.\n"
        "- Output only the updated code, enclosed within <updated-code> and </updated-code> tags.\n"
        "- Do not include any additional text, explanations, placeholders, ellipses, or code "
        "fences.\n\n"
        "<code>{code}</code>\n\n<update>{update}</update>\n\nProvide the complete updated code.",
        "<updated-code>",
        "</updated-code>",
    ),
)


def apply_format(model: str) -> ApplyFormat | None:
    """The format of a model by its name; None where it was not made to merge snippets."""
    return next((one for one in FORMATS if re.search(one.models, model, re.IGNORECASE)), None)


def apply_job(made_for_it: ApplyFormat, code: str, snippet: str) -> GenerateJob:
    """The file with a snippet put in, as a model is asked for it. Drafts come from the file."""
    code, snippet = with_line_feeds(code), with_line_feeds(snippet)
    message = made_for_it.message.replace("{code}", code, 1)
    at = message.rindex("{update}")
    message = message[:at] + snippet + message[at + len("{update}") :]
    return GenerateJob(
        messages=[("system", made_for_it.system), ("user", message)],
        prediction=f"{made_for_it.opens}{code}{made_for_it.closes}",
        max_tokens=MOST_TOKENS,
    )


def text_of_answer(
    made_for_it: ApplyFormat,
    result: JobResult,
    code: str,
    snippet: str,
    language: str | None,
    readings: Sequence[Reading] = (),
) -> str | None:
    """The file of an answer. None where it is not whole, where lines of the snippet are missing or
    torn apart, where anything else changes, or where it does not parse and the file did.
    ``readings``: where the snippet fits; a snippet of one hunk has to be put there."""
    found = re.fullmatch(
        rf"\s*{re.escape(made_for_it.opens)}(.*){re.escape(made_for_it.closes)}\s*",
        result.text,
        re.DOTALL,
    )
    if found is None or result.stopped_by in CUT or "\r" in code.replace("\r\n", ""):
        return None
    plain = with_line_feeds(code)
    text = with_start_of(plain, with_end_of(plain, found[1]))
    lines, kept = text.split("\n"), plain.split("\n")
    hunks = list(_hunks(with_line_feeds(snippet).split("\n"), kept))
    if not hunks or not set(lines) <= {"", *kept, *chain.from_iterable(hunks)}:
        return None
    spans, place = [], 0
    for hunk in hunks:
        at = next((n for n in range(place, len(lines)) if lines[n : n + len(hunk)] == hunk), None)
        if at is None:
            return None
        place = at + len(hunk)
        spans.append((at, place))
    changes = [(start, end) for kind, *_, start, end in opcodes(kept, lines) if kind != "equal"]
    # What is only left out leaves no line, so it has to be between two lines of the snippet.
    if not all(
        any(
            first + (start == end) <= start and end <= last - (start == end)
            for first, last in spans
        )
        for start, end in changes
    ):
        return None
    if len(hunks) == 1 and readings and lines not in [_read(kept, one) for one in readings]:
        return None
    if _parses(plain, language) and not _parses(text, language):
        return None
    return text.replace("\n", "\r\n") if "\r\n" in code else text


def _read(file: list[str], reading: Reading) -> list[str]:
    new = reading.text.split("\n")[:-1]
    return [*file[: reading.first_line - 1], *new, *file[reading.last_line :]]


def _parses(text: str, language: str | None) -> bool:
    """Whether there is a grammar and it reads all of a text."""
    from lsp_server.text.syntax.tree import SyntaxTree

    tree = SyntaxTree.of(text, language) if language else None
    return tree is not None and not tree.has_errors


def _hunks(snippet: list[str], code: list[str]) -> Iterator[list[str]]:
    """The lines of each hunk, without blank ones around them."""
    for hunk in read_snippet(snippet, code).hunks:
        shown = [n for n, line in enumerate(hunk.lines) if line.strip()]
        yield list(hunk.lines[shown[0] : shown[-1] + 1])
