"""Parts of syntax trees that an edit of one kind may change: taking them out of both versions
leaves what must stay the same. Trees are changed in place."""

from __future__ import annotations

import ast
from collections.abc import Callable

Function = ast.FunctionDef | ast.AsyncFunctionDef


def docstring_of(node: ast.AST) -> str | None:
    """The docstring of a function, class or module; None for other nodes and without one."""
    if not isinstance(node, Function | ast.ClassDef | ast.Module):
        return None
    return ast.get_docstring(node, clean=False)


def no_docstrings(tree: ast.Module) -> ast.Module:
    """Without docstrings."""
    for node in ast.walk(tree):
        if (
            isinstance(node, Function | ast.ClassDef | ast.Module)
            and docstring_of(node) is not None
        ):
            node.body = node.body[1:] or ([] if isinstance(node, ast.Module) else [ast.Pass()])
    return tree


def no_annotations(tree: ast.Module) -> ast.Module:
    """Without types of parameters, results and variables."""

    class Bare(ast.NodeTransformer):
        def visit_AnnAssign(self, node: ast.AnnAssign) -> ast.stmt:
            if node.value is None:
                return ast.Pass()
            return ast.Assign(targets=[node.target], value=node.value)

    for node in ast.walk(tree):
        if isinstance(node, Function):
            node.returns = None
        elif isinstance(node, ast.arg):
            node.annotation = None
    bare: ast.Module = Bare().visit(tree)
    return bare


def no_signatures(tree: ast.Module) -> ast.Module:
    """Without parameters."""
    for node in ast.walk(tree):
        if isinstance(node, Function):
            node.args.args, node.args.kwonlyargs, node.args.posonlyargs = [], [], []
    return no_defaults(tree)


def no_defaults(tree: ast.Module) -> ast.Module:
    """Without the defaults of parameters."""
    for node in ast.walk(tree):
        if isinstance(node, Function):
            node.args.defaults, node.args.kw_defaults = [], []
    return tree


def no_decorators(tree: ast.Module) -> ast.Module:
    """Without decorators."""
    for node in ast.walk(tree):
        if isinstance(node, Function | ast.ClassDef):
            node.decorator_list = []
    return tree


def no_async(tree: ast.Module) -> ast.Module:
    """With plain functions in place of coroutines."""

    class Plain(ast.NodeTransformer):
        def visit_AsyncFunctionDef(self, node: ast.AsyncFunctionDef) -> ast.FunctionDef:
            self.generic_visit(node)
            return ast.FunctionDef(**dict(ast.iter_fields(node)))

    plain: ast.Module = Plain().visit(tree)
    return plain


def without_calls(of: Callable[[ast.expr], bool]) -> Callable[[ast.Module], ast.Module]:
    """What takes statements out that are nothing but a call ``of`` such a function."""

    def is_one(node: ast.stmt) -> bool:
        return (
            isinstance(node, ast.Expr) and isinstance(node.value, ast.Call) and of(node.value.func)
        )

    def forget(tree: ast.Module) -> ast.Module:
        for node in ast.walk(tree):
            for field in ("body", "orelse", "finalbody"):
                body = getattr(node, field, None)
                if isinstance(body, list) and any(map(is_one, body)):
                    kept = [statement for statement in body if not is_one(statement)]
                    setattr(node, field, kept or [ast.Pass()])
        return tree

    return forget


def is_print(function: ast.expr) -> bool:
    """Whether a called function is print."""
    return isinstance(function, ast.Name) and function.id == "print"


def is_log(function: ast.expr) -> bool:
    """Whether a called function is that of a logger."""
    return isinstance(function, ast.Attribute) and function.attr in (
        "debug", "info", "warning", "error"
    )  # fmt: skip


def unchanged(tree: ast.Module) -> ast.Module:
    """As it is."""
    return tree


MAY_CHANGE: dict[str, Callable[[ast.Module], ast.Module]] = {
    "add_docstring": no_docstrings,
    "write_docstring": no_docstrings,
    "remove_docstring": no_docstrings,
    "add_type_hint": no_annotations,
    "add_return_type": no_annotations,
    "remove_type_hints": no_annotations,
    "change_quotes": unchanged,
    "remove_comments": unchanged,
    "add_print": without_calls(is_print),
    "remove_prints": without_calls(is_print),
    "add_logging": without_calls(is_log),
    "add_parameter": no_signatures,
    "change_default": no_defaults,
    "make_async": no_async,
    "add_decorator": no_decorators,
    "remove_decorators": no_decorators,
}
"""By kind of edit: what takes out the part that it may change."""
