"""Checks a model's answer before it is offered as an edit: refuses what is cut off or empty, warns
of what no longer parses or goes beyond the instruction."""

from __future__ import annotations

import ast
import json
import re
import warnings

from lsp_server.editor.editing.much_new_text import brings_much_new_text
from lsp_server.editor.editing.scope_of_instruction import changes_more, lost_definitions
from lsp_server.shared.contract.jobs import JobResult
from lsp_server.shared.errors import EditRefused
from lsp_server.tasks.indentation import first_indent
from lsp_server.text.documents.document import with_line_feeds
from lsp_server.text.syntax.languages import grammar_of
from lsp_server.text.syntax.roles import MARKUP, PROSE
from lsp_server.text.syntax.tree import SyntaxTree

UNCHANGED = "the model left the lines as they are; rephrase the instruction"


def checked_text(
    old: str,
    result: JobResult,
    language: str,
    instruction: str = "",
    *,
    strict: bool = True,
    around: str = "",
) -> str:
    """Return the text of ``result`` that replaces ``old``. ``language`` as in the protocol
    (``python``). With ``strict``, doubtful answers (see ``doubt_about``) are refused, too. Raises
    EditRefused with the reason."""
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
    if strict and (doubt := doubt_about(old, result.text, language, instruction, around)):
        raise EditRefused(f"{doubt}; edit again")
    return result.text


def refuse_unparsed(old: str, new: str, language: str) -> None:
    """Raise EditRefused if ``new`` does not parse although ``old`` does."""
    if problem := new_problem(_as_parsed(old), _as_parsed(new), language):
        raise EditRefused(f"the model's answer does not parse ({problem}); edit again")


def doubt_about(old: str, new: str, language: str, instruction: str, around: str = "") -> str:
    """Return the reason to doubt that ``new`` follows ``instruction``: it does not parse although
    ``old`` did, it changes more than the instruction names, it leaves out definitions, or it adds
    many words that ``around``, the text that contains ``old``, lacks. Empty without a doubt."""
    before, after = _as_parsed(old), _as_parsed(new)
    if problem := new_problem(before, after, language):
        return f"the model's answer does not parse ({problem})"
    if changes_more(instruction, before, after, language):
        return "the model's answer changes more than it was asked to"
    if names := lost_definitions(instruction, before, after):
        return f"the model's answer leaves out {', '.join(names[:3])}"
    if brings_much_new_text(before, after, instruction, around):
        return "the model's answer has much that was not asked for"
    return ""


def _as_parsed(text: str) -> str:
    """Return lines that end in ``\\n``, without a byte order mark: parsers take no other."""
    return with_line_feeds(text).removeprefix("\ufeff")


_BRACKETED = {
    *("c", "cpp", "csharp", "dart", "go", "java", "javascript", "javascriptreact", "kotlin"),
    *("objective-c", "rust", "scala", "swift", "typescript", "typescriptreact"),
}
_NO_CODE = re.compile(
    r"""//[^\n]*|/\*.*?\*/|"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])*'|`(?:\\.|[^`\\])*`""", re.DOTALL
)
"""Comments and strings of languages with brackets around their blocks."""
_PAIRS = {")": "(", "]": "[", "}": "{"}


def new_problem(old: str, new: str, language: str) -> str:
    """Return why ``new`` does not parse although ``old`` does; empty otherwise, and for unknown
    languages.

    In languages with brackets around blocks these are counted: an answer that ends too early leaves
    one open. What else does not fit the grammar counts where the old text fits it.
    """
    problem_of = {"python": _python_problem, "json": _json_problem}.get(language)
    if language in _BRACKETED:
        problem_of = _bracket_problem
    if problem_of is not None and not problem_of(old) and (problem := problem_of(new)):
        return problem
    grammar = grammar_of(language, "")
    if problem_of in (_python_problem, _json_problem) or not grammar or grammar in PROSE | MARKUP:
        return ""
    if SyntaxTree.parsed(old, grammar).has_errors:
        return ""
    line = SyntaxTree.parsed(new, grammar).first_error()
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
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            # Statements such as return may be outside of a function in a piece.
            ast.parse(source)
    except SyntaxError as error:
        line = (error.lineno or 1) - indented
        return f"line {line}: {error.msg}"
    except (ValueError, RecursionError, MemoryError) as error:
        return str(error) or type(error).__name__
    return ""


def _json_problem(text: str) -> str:
    try:
        json.loads(text)
    except ValueError as error:
        return str(error)
    return ""


def _bracket_problem(text: str) -> str:
    still_open: list[str] = []
    for mark in re.findall(r"[()\[\]{}]", _NO_CODE.sub(" ", text)):
        if mark not in _PAIRS:
            still_open.append(mark)
        elif not still_open or still_open.pop() != _PAIRS[mark]:
            return f"a {mark} closes nothing"
    return f"a {still_open[-1]} is not closed" if still_open else ""
