"""The scope of instructions: those about comments change these alone, in Python also those about
docstrings or type hints, only some take definitions away, and only some bring far more text than
was selected. Layout is free."""

from __future__ import annotations

import ast
import re
import textwrap
from collections.abc import Callable, Iterable

from lsp_server.editor.editing.wordings import TABLE, compiled, said
from lsp_server.text.syntax.outline import defined_names
from lsp_server.text.syntax.python_tree import python_tree
from lsp_server.text.syntax.tree import SyntaxTree

_ABOUT = compiled(TABLE["about"])
MOST_TIMES, MOST_LINES = 3, 5
"""An answer with more than MOST_TIMES times the selected lines plus MOST_LINES is long."""
KNOWN_SHARE = 0.5
"""The least share of added words that must be known."""
_Function = ast.FunctionDef | ast.AsyncFunctionDef


def changes_more(instruction: str, old: str, new: str, language: str) -> bool:
    """Return True if ``instruction`` is about comments, or docstrings or type hints of Python, and
    ``new`` differs from ``old`` in more than these; False for code that does not parse."""
    subject = _ABOUT.fullmatch(" ".join(instruction.split()))
    if subject is None:
        return False
    if language != "python":
        return subject.lastgroup == "comment" and _code(old, language) != _code(new, language)
    before, after = (python_tree(textwrap.dedent(text)) for text in (old, new))
    if before is None or after is None:
        return False
    forget = _FORGET[subject.lastgroup or ""]
    return ast.dump(forget(before)) != ast.dump(forget(after))


def lost_definitions(instruction: str, old: str, new: str) -> list[str]:
    """Return the names of definitions that are nowhere in ``new``, where it has fewer of them than
    ``old`` and ``instruction`` neither names one of them nor takes anything away."""
    before, after = defined_names(old), defined_names(new)
    lost = [name for name in before if not re.search(rf"\b{name}\b", new)]
    is_named = any(re.search(rf"\b{name}\b", instruction) for name in lost)
    is_allowed = is_named or said("takes away", instruction) or len(after) >= len(before)
    return [] if is_allowed else lost


def brings_much_new_text(old: str, new: str, instruction: str, around: str) -> bool:
    """Return True if ``new`` has many times the lines of ``old``, and most of its new words stand
    neither in ``around``, the text that contains ``old``, nor in ``instruction``. An instruction
    that asks for more text allows it."""
    before, after = _lines(old), _lines(new)
    if len(after) <= MOST_TIMES * len(before) + MOST_LINES or said("asks for more", instruction):
        return False
    stays = set(before)
    added = set(_words(line for line in after if line not in stays))
    known_words = added & set(_words([old, instruction, around]))
    return len(known_words) < KNOWN_SHARE * len(added)


def _lines(text: str) -> list[str]:
    return [stripped for line in text.splitlines() if (stripped := line.strip())]


def _words(texts: Iterable[str]) -> Iterable[str]:
    return (word.lower() for text in texts for word in re.findall(r"[^\W\d_]{2,}", text))


def _code(text: str, language: str) -> list[str]:
    """Return the words and signs of a text without its comments; none without a grammar."""
    tree = SyntaxTree.of(text, language)
    comments = tree.comments() if tree is not None else []
    for start, end in reversed(comments):
        text = f"{text[:start]} {text[end:]}"
    return re.findall(r"\w+|\S", text) if tree is not None else []


def _without_docstrings(tree: ast.Module) -> ast.Module:
    for node in ast.walk(tree):
        if isinstance(node, _Function | ast.ClassDef | ast.Module) and ast.get_docstring(node):
            node.body = node.body[1:] or ([] if isinstance(node, ast.Module) else [ast.Pass()])
    return tree


class _Bare(ast.NodeTransformer):
    def visit_AnnAssign(self, node: ast.AnnAssign) -> ast.stmt:
        if node.value is None:
            return ast.Pass()
        return ast.Assign(targets=[node.target], value=node.value)


def _without_hints(tree: ast.Module) -> ast.Module:
    for node in ast.walk(tree):
        if isinstance(node, _Function):
            node.returns = None
        elif isinstance(node, ast.arg):
            node.annotation = None
    bare: ast.Module = _Bare().visit(tree)
    return bare


_FORGET: dict[str, Callable[[ast.Module], ast.Module]] = {
    "docstring": _without_docstrings,
    "comment": lambda tree: tree,
    "hint": _without_hints,
}
"""The function that removes each of these from a syntax tree."""
