"""The scope of instructions about docstrings, comments or type hints of Python code. Both versions
are compared as syntax trees without these, so layout is free."""

from __future__ import annotations

import ast
import re
import textwrap
import warnings
from collections.abc import Callable

_ABOUT = re.compile(
    r"(?:please )?(?:add|write|remove|delete|drop|strip|strip out|take out|get rid of)"
    r"(?: (?:a|an|the|all|any|its|every|missing)){0,2} (?:"
    r"(?P<docstring>doc[- ]?strings?)|(?P<comment>comments?)|"
    r"(?P<hint>(?:type )?(?:hints?|annotations?)))[ .!]*",
    re.IGNORECASE,
)
_Function = ast.FunctionDef | ast.AsyncFunctionDef


def changes_more(instruction: str, old: str, new: str, language: str) -> bool:
    """Return True if ``instruction`` is about docstrings, comments or type hints, and ``new``
    differs from ``old`` in more than these; False for code that does not parse."""
    subject = _ABOUT.fullmatch(" ".join(instruction.split())) if language == "python" else None
    if subject is None:
        return False
    before, after = _tree(old), _tree(new)
    if before is None or after is None:
        return False
    forget = _FORGET[subject.lastgroup or ""]
    return ast.dump(forget(before)) != ast.dump(forget(after))


def _tree(text: str) -> ast.Module | None:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return ast.parse(textwrap.dedent(text))
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None


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
