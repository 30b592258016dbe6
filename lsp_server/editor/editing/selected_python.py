"""What a selected piece of Python has and lacks, by which ready-made instructions are offered."""

from __future__ import annotations

import ast
import io
import textwrap
import tokenize
import warnings
from dataclasses import dataclass

_Function = (ast.FunctionDef, ast.AsyncFunctionDef)
_Documented = (*_Function, ast.ClassDef)
LONGEST = 20_000
"""Characters. Nothing is known of more: it is no selection that is edited at once."""


@dataclass(frozen=True, slots=True)
class SelectedPython:
    """A definition or statement of it may lack what another one has."""

    lacks_docstring: bool
    has_docstring: bool
    lacks_hints: bool
    has_hints: bool
    has_comment: bool
    has_formatting: bool
    """Text is put together by ``%``, ``.format`` or ``+``."""
    has_single_quotes: bool

    @staticmethod
    def of(code: str) -> SelectedPython | None:
        """None for what is no whole statement: nothing is known of that."""
        if len(code) > LONGEST:
            return None
        text = textwrap.dedent(code).strip("\n") + "\n"
        tree = _parsed(text) or _parsed(f"{text.rstrip()}\n    pass\n")
        if tree is None:
            return None
        nodes = [*ast.walk(tree)]
        documented = [ast.get_docstring(n) is not None for n in nodes if isinstance(n, _Documented)]
        hints = [hint is not None for node in nodes for hint in _hints(node)]
        tokens = _tokens(text)
        return SelectedPython(
            lacks_docstring=False in documented,
            has_docstring=True in documented or ast.get_docstring(tree) is not None,
            lacks_hints=False in hints,
            has_hints=True in hints,
            has_comment=any(token.type == tokenize.COMMENT for token in tokens),
            has_formatting=any(map(_puts_text_together, nodes)),
            has_single_quotes=any(
                token.type == tokenize.STRING and token.string.lstrip("rRbBuUfF").startswith("'")
                for token in tokens
            ),
        )


def _parsed(text: str) -> ast.Module | None:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None


def _hints(node: ast.AST) -> list[ast.expr | None]:
    """The annotations that a node has, None for each that it could have."""
    if isinstance(node, ast.AnnAssign):
        return [node.annotation]
    if not isinstance(node, _Function):
        return []
    given = node.args
    named = [*given.posonlyargs, *given.args]
    if named and named[0].arg in ("self", "cls"):
        named = named[1:]
    more = [one for one in (given.vararg, given.kwarg) if one is not None]
    return [node.returns, *(one.annotation for one in (*named, *given.kwonlyargs, *more))]


def _puts_text_together(node: ast.AST) -> bool:
    if isinstance(node, ast.BinOp):
        sides = [node.left] if isinstance(node.op, ast.Mod) else [node.left, node.right]
        return isinstance(node.op, ast.Mod | ast.Add) and any(map(_is_text, sides))
    if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute):
        return False
    return node.func.attr == "format" and _is_text(node.func.value)


def _is_text(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and isinstance(node.value, str)


def _tokens(text: str) -> list[tokenize.TokenInfo]:
    try:
        return [*tokenize.generate_tokens(io.StringIO(text).readline)]
    except (tokenize.TokenError, SyntaxError):
        return []
