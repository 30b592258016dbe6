"""Edits of bodies: docstrings, strings, guards, prints, logs, comments, try, if."""

from __future__ import annotations

import ast
import random
import re
import tokenize

from accel.text.edit_rules import names
from accel.text.edit_rules.places import (
    Change,
    body_start,
    docstring_lines,
    insert_first,
    parameters,
    some_name,
)
from accel.text.edit_rules.source_region import FunctionNode, Region, Replacement, docstring_of

ERRORS = ("ValueError", "KeyError", "TypeError", "Exception", "OSError", "RuntimeError")


def add_docstring(region: Region, function: FunctionNode, rng: random.Random) -> Change | None:
    """Put a docstring of one given line first in the body."""
    if docstring_of(function):
        return None
    text = names.random_sentence(rng)
    return {"text": text}, insert_first(region, function, [f'"""{text}"""'])


def remove_docstring(region: Region, function: FunctionNode, rng: random.Random) -> Change | None:
    """Remove the docstring and the blank lines after it."""
    docstring = docstring_of(function)
    if docstring is None or len(function.body) == 1:
        return None
    lines = docstring_lines(region, docstring)
    return ({}, [Replacement(*lines, "")]) if lines else None


def change_quotes(region: Region, function: FunctionNode, rng: random.Random) -> Change | None:
    """Turn every string with the other quotes that holds no quote or backslash."""
    wanted, other, style = rng.choice((('"', "'", "double"), ("'", '"', "single")))
    found = []
    for token in region.tokens():
        match = re.fullmatch(rf"([a-zA-Z]*)({other}{other}{other}|{other})(.*)\2", token.text, re.S)
        if token.type != tokenize.STRING or not match:
            continue
        if not set("\"'\\") & set(match[3]):
            text = match[1] + wanted * len(match[2]) + match[3] + wanted * len(match[2])
            found.append(Replacement(token.start, token.end, text))
    return ({"style": style}, found) if found else None


def _fstring(region: Region, node: ast.AST) -> str | None:
    """The f-string that equals a plain `format` call or a plain `%` with names."""
    if (
        isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and node.func.attr == "format"
        and not node.keywords
    ):
        string, values, mark = node.func.value, node.args, "{}"
    elif isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mod):
        right = node.right
        string, mark = node.left, "%s"
        values = right.elts if isinstance(right, ast.Tuple) else [right]
    else:
        return None
    if not (isinstance(string, ast.Constant) and isinstance(string.value, str) and values):
        return None
    literal = region.text(string)
    simple = all(re.fullmatch(r"[A-Za-z_][\w.]*", region.text(value)) for value in values)
    rest = literal.replace(mark, "")
    plain = re.fullmatch(r"(['\"])[^'\"\\{}%\n]*\1", rest)
    if not simple or not plain or literal.count(mark) != len(values):
        return None
    parts = literal.split(mark)
    filled = [f"{{{region.text(value)}}}" for value in values]
    return "f" + "".join(a + b for a, b in zip(parts, [*filled, ""], strict=True))


def to_fstring(region: Region, function: FunctionNode, rng: random.Random) -> Change | None:
    """Turn plain `format` calls and plain `%` into f-strings."""
    found = []
    for node in ast.walk(region.tree):
        if isinstance(node, (ast.Call, ast.BinOp)):
            text = _fstring(region, node)
            if text is not None:
                found.append(Replacement(region.start(node), region.end(node), text))
    return ({}, found) if found else None


def add_guard(region: Region, function: FunctionNode, rng: random.Random) -> Change | None:
    """Leave the function at its start under a condition on a parameter."""
    given = parameters(function)
    if not given:
        return None
    name = rng.choice(given).arg
    condition = rng.choice((f"{name} is None", f"not {name}", f"{name} == 0", f"{name} < 0"))
    action = rng.choice(
        (
            "return None",
            "return",
            f"return {name}",
            "return False",
            "return []",
            "return 0",
            *tuple(f"raise {error}" for error in ERRORS[:3]),
        )
    )
    step = region.indent(function.body[0])[len(region.indent(function)) :] or "    "
    lines = [f"if {condition}:", f"{step}{action}"]
    return {"condition": condition, "action": action}, insert_first(region, function, lines)


def add_print(region: Region, function: FunctionNode, rng: random.Random) -> Change | None:
    """Print a parameter first."""
    name = some_name(region, function, rng)
    return ({"name": name}, insert_first(region, function, [f"print({name})"])) if name else None


def remove_prints(region: Region, function: FunctionNode, rng: random.Random) -> Change | None:
    """Remove every line that is a call of print."""
    found = []
    for node in ast.walk(region.tree):
        bodies = [getattr(node, field, []) for field in ("body", "orelse", "finalbody")]
        for body in bodies:
            prints = [s for s in body if _is_print(s)] if isinstance(body, list) else []
            if prints and len(prints) == len(body):
                return None
            for statement in prints:
                start = region.line_start(statement.lineno)
                end = region.line_start(statement.end_lineno + 1)
                before = region.source[start : region.start(statement)]
                after = region.source[region.end(statement) : end]
                if before.strip() or after.strip():
                    return None
                found.append(Replacement(start, end, ""))
    return ({}, found) if found else None


def _is_print(statement: ast.stmt) -> bool:
    call = statement.value if isinstance(statement, ast.Expr) else None
    target = call.func if isinstance(call, ast.Call) else None
    return isinstance(target, ast.Name) and target.id == "print"


def add_logging(region: Region, function: FunctionNode, rng: random.Random) -> Change | None:
    """Log a parameter first, at a level."""
    name = some_name(region, function, rng)
    if name is None:
        return None
    level = rng.choice(("debug", "info", "warning", "error"))
    line = f'logger.{level}("{name}=%s", {name})'
    return {"name": name, "level": level}, insert_first(region, function, [line])


def remove_comments(region: Region, function: FunctionNode, rng: random.Random) -> Change | None:
    """Remove comments, with their line where nothing else stands on it."""
    found = []
    for token in region.tokens():
        if token.type != tokenize.COMMENT:
            continue
        start = region.source.rfind("\n", 0, token.start) + 1
        lead = region.source[start : token.start]
        if lead.strip():
            found.append(Replacement(start + len(lead.rstrip()), token.end, ""))
        else:
            end = min(token.end + 1, len(region.source))
            found.append(Replacement(start, end, ""))
    return ({}, found) if found else None


def wrap_try(region: Region, function: FunctionNode, rng: random.Random) -> Change | None:
    """Put the body after the docstring into try and handle one error."""
    start = body_start(region, function)
    end = region.line_start((function.end_lineno or 0) + 1)
    body = region.source[start:end]
    lines = body.splitlines(keepends=True)
    if not body.strip() or len(lines) > 14 or not body.endswith("\n"):
        return None
    docstring = getattr(docstring_of(function), "value", None)
    for node in ast.walk(function):
        if not isinstance(node, (ast.Constant, ast.JoinedStr)):
            continue
        if node.lineno != node.end_lineno and node is not docstring:
            return None
    indent = region.indent(function.body[0])
    step = indent[len(region.indent(function)) :] or "    "
    error = rng.choice(ERRORS)
    action = rng.choice(("return None", "pass", "raise", "return False"))
    inner = "".join(step + line if line.strip() else line for line in lines)
    text = f"{indent}try:\n{inner}{indent}except {error}:\n{indent}{step}{action}\n"
    return {"error": error, "action": action}, [Replacement(start, end, text)]


_OPPOSITE: dict[type[ast.cmpop], str] = {
    ast.Eq: "!=",
    ast.NotEq: "==",
    ast.Lt: ">=",
    ast.GtE: "<",
    ast.Gt: "<=",
    ast.LtE: ">",
    ast.Is: "is not",
    ast.IsNot: "is",
    ast.In: "not in",
    ast.NotIn: "in",
}


def _negated(region: Region, test: ast.expr) -> str | None:
    if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        plain = isinstance(test.operand, (ast.Name, ast.Attribute, ast.Call))
        return region.text(test.operand) if plain else None
    if isinstance(test, ast.Compare) and len(test.ops) == 1:
        left, right = region.text(test.left), region.text(test.comparators[0])
        return f"{left} {_OPPOSITE[type(test.ops[0])]} {right}"
    if isinstance(test, (ast.Name, ast.Attribute, ast.Call)):
        return f"not {region.text(test)}"
    return None


def invert_if(region: Region, function: FunctionNode, rng: random.Random) -> Change | None:
    """Negate the condition of an if with else and swap its branches."""
    free = []
    for node in ast.walk(function):
        if not (isinstance(node, ast.If) and node.orelse) or not region.starts_line(node):
            continue
        last, first = node.body[-1], node.orelse[0]
        own_lines = node.body[0].lineno > node.lineno and region.starts_line(first)
        one_line = node.test.lineno == node.test.end_lineno
        if own_lines and one_line and not region.source.startswith("elif", region.start(node)):
            head = region.source[
                region.line_start((last.end_lineno or 0) + 1) : region.start(first)
            ]
            if head.split() == ["else:"]:
                free.append(node)
    if not free:
        return None
    node = rng.choice(free)
    condition = _negated(region, node.test)
    end = region.line_start((node.orelse[-1].end_lineno or 0) + 1)
    if condition is None or not region.source[:end].endswith("\n"):
        return None
    test = Replacement(region.start(node.test), region.end(node.test), condition)
    first_branch = (
        region.line_start(node.body[0].lineno),
        region.line_start((node.body[-1].end_lineno or 0) + 1),
    )
    second_branch = (region.line_start(node.orelse[0].lineno), end)
    swapped = [
        Replacement(*first_branch, region.source[slice(*second_branch)]),
        Replacement(*second_branch, region.source[slice(*first_branch)]),
    ]
    return {"condition": region.text(node.test)}, [test, *swapped]
