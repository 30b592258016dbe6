"""Checks a model's answer before it is offered as an edit: refuses what is cut off or empty, warns
of what no longer parses or goes beyond the instruction, and marks that."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import PurePath

from lsp_server.editor.editing.fulfilment import shortfall
from lsp_server.editor.editing.hunks import apply_hunks, line_by_line, minimal_hunks
from lsp_server.editor.editing.scope_of_instruction import (
    brings_much_new_text,
    changes_more,
    lost_definitions,
)
from lsp_server.models.manifest import DEFAULT_FILE
from lsp_server.shared.contract.jobs import JobResult
from lsp_server.shared.errors import EditRefused
from lsp_server.tasks.indentation import first_indent
from lsp_server.text.documents.document import with_line_feeds
from lsp_server.text.syntax.brackets import code_brackets, unpaired
from lsp_server.text.syntax.languages import grammar_of
from lsp_server.text.syntax.python_tree import parsed_python
from lsp_server.text.syntax.roles import MARKUP, PROSE
from lsp_server.text.syntax.tree import SyntaxTree
from lsp_server.text.text_edit import TextEdit

NOT_IN_INSTRUCTION = "not part of the instruction"
ONLY_WHITE_SPACE = "only white space"
UNSURE = "check this: the model is not sure of its answer"
SURE = 0.7
"""Of fresh answers with a token less likely than this where they change the text, one in ten is
right, and two of three others."""
UNCHANGED = "the model left the lines as they are; rephrase the instruction"


def checked_text(old: str, result: JobResult) -> str:
    """Return the text of ``result`` that replaces ``old``. Raises EditRefused with the reason where
    there is none."""
    if result.stopped_by == "cancelled":
        raise EditRefused("the edit was stopped")
    if result.stopped_by == "length":
        raise EditRefused(f"the edit was cut off after {result.tokens} tokens; select fewer lines")
    if result.stopped_by == "broken":
        raise EditRefused("the answer broke off; edit again")
    if result.stopped_by == "loop":
        raise EditRefused("the model repeated itself and was stopped; select fewer lines")
    if old.strip() and not result.text.strip():
        raise EditRefused("the model answered with nothing; rephrase the instruction")
    return result.text


def refuse_unparsed(old: str, new: str, language: str) -> None:
    """Raise EditRefused if ``new`` does not parse although ``old`` does."""
    if problem := new_problem(_as_parsed(old), _as_parsed(new), language):
        raise EditRefused(f"the model's answer does not parse ({problem}); edit again")


def doubt_about(
    old: str,
    new: str,
    language: str,
    instruction: str,
    around: str = "",
    *,
    is_unsure: bool = False,
) -> str:
    """Return the reason to doubt that ``new`` follows ``instruction``: it does not parse although
    ``old`` did, it changes more than the instruction names, it leaves out definitions, it adds
    many words that ``around``, the text that contains ``old``, lacks, or the model ``is_unsure``.
    Empty without a doubt."""
    before, after = _as_parsed(old), _as_parsed(new)
    if problem := new_problem(before, after, language):
        return f"the model's answer does not parse ({problem})"
    if changes_more(instruction, before, after, language):
        return "the model's answer changes more than it was asked to"
    if names := lost_definitions(instruction, before, after):
        return f"the model's answer leaves out {', '.join(names[:3])}"
    if brings_much_new_text(before, after, instruction, around):
        return "the model's answer has much that was not asked for"
    if problem := shortfall(instruction, before, after, language, around):
        return f"the model's answer {problem}"
    return UNSURE if is_unsure and old != new else ""


def sure_of(model: str) -> float | None:
    """Return the least probability of what a sure answer of ``model`` changes: of the default
    model, which is small and often wrong, that was measured."""
    return SURE if PurePath(model).name == DEFAULT_FILE else None


def noted_hunks(
    old: str, new: str, instruction: str, language: str, around: str = ""
) -> list[TextEdit[int]]:
    """Return the hunks that turn ``old`` into ``new``, with notes. ``around``: the text that
    contains ``old``."""
    hunks = [line_hunk for hunk in minimal_hunks(old, new) for line_hunk in line_by_line(old, hunk)]
    return [
        replace(line_hunk, note=_note(old, line_hunk, instruction, language, around))
        for line_hunk in hunks
    ]


def _note(old: str, hunk: TextEdit[int], instruction: str, language: str, around: str) -> str:
    if "".join(old[hunk.start : hunk.end].split()) == "".join(hunk.text.split()):
        return ONLY_WHITE_SPACE
    alone = apply_hunks(old, [hunk])
    is_more = changes_more(instruction, old, alone, language)
    is_more = is_more or brings_much_new_text(old, alone, instruction, around)
    return NOT_IN_INSTRUCTION if is_more else ""


def _as_parsed(text: str) -> str:
    """Return lines that end in ``\\n``, without a byte order mark: parsers take no other."""
    return with_line_feeds(text).removeprefix("\ufeff")


def new_problem(old: str, new: str, language: str) -> str:
    """Return why ``new`` does not parse although ``old`` does; empty otherwise, and for unknown
    languages.

    Brackets are counted where those of the old text have partners: an answer that ends too early
    leaves one open. What else does not fit the grammar counts where the old text fits it.
    """
    problem_of = {"python": _python_problem, "json": _json_problem}.get(language)
    if problem_of is not None:
        return "" if problem_of(old) else problem_of(new)
    grammar = grammar_of(language, "")
    if not grammar or grammar in PROSE | MARKUP:
        return ""
    before, after = SyntaxTree.parsed(old, grammar), SyntaxTree.parsed(new, grammar)
    if not _bracket_problem(before) and (problem := _bracket_problem(after)):
        return problem
    line = after.first_error() if not before.has_errors else None
    return "" if line is None else f"line {line + 1} does not fit the grammar"


def _python_problem(text: str) -> str:
    if not text.strip():
        return ""
    # A piece from inside of a block parses below a header of its own.
    indented = (first_indent(text) or "") != ""
    source = f"if 1:\n{text}" if indented else text
    if re.match(r"\s*(?:elif|else|except|finally)\b", text):
        return ""
    try:
        # Statements such as return may be outside of a function in a piece.
        parsed_python(source)
    except SyntaxError as error:
        line = f"line {error.lineno - indented}: " if error.lineno else ""
        return f"{line}{error.msg}"
    return ""


def _json_problem(text: str) -> str:
    try:
        json.loads(text)
    except ValueError as error:
        return str(error)
    return ""


def _bracket_problem(tree: SyntaxTree) -> str:
    brackets = unpaired(bracket.sign for bracket in code_brackets(tree, tree.pieces()))
    if brackets.closing:
        return f"a {brackets.closing[0]} closes nothing"
    return f"a {brackets.opening[-1]} is not closed" if brackets.opening else ""
