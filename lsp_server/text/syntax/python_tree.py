"""Python code as Python itself parses it."""

from __future__ import annotations

import ast
import warnings


def parsed_python(text: str) -> ast.Module:
    """Parse a text without warnings. Raises SyntaxError, also for what is too deep or has a NUL."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return ast.parse(text)
    except (ValueError, RecursionError, MemoryError) as error:
        raise SyntaxError(str(error) or type(error).__name__) from None


def python_tree(text: str) -> ast.Module | None:
    """Parse a text; None where it is no Python."""
    try:
        return parsed_python(text)
    except SyntaxError:
        return None
