"""Edits made up from functions: an instruction, the function before and after it.

Every kind rewrites by the syntax tree, so that given function and instruction there is one right
answer; only where an edit adds a docstring or type hints the function's own are the answer.
"""

from __future__ import annotations

import ast
import io
import random
import re
import tokenize
from collections.abc import Callable
from dataclasses import dataclass

from tests.benchmarks.training.function_source import (
    FunctionSource,
    Substitution,
    replaced,
)
from tests.benchmarks.training.samples.code import lines_of
from tests.benchmarks.training.samples.holes import Span


@dataclass(frozen=True)
class MadeEdit:
    """What is asked of a function, its text, and its text when that is done."""

    kind: str
    instruction: str
    before: str
    after: str


Maker = Callable[[FunctionSource, random.Random], "tuple[str, str, str] | None"]
"""Gives instruction, text before and text after; None where the kind does not apply."""

LONGEST_DOCSTRING = 500
_NEW_NAMES = (
    *("value", "item", "result", "source", "target", "path", "index", "count", "total", "text"),
    *("entry", "key", "config", "options", "node", "params", "response", "buffer", "handler"),
)
_HEADS = ("new", "current", "old", "raw", "first")
_TAILS = ("value", "item", "name", "data", "list", "id")
_PARAMETERS = ("verbose", "timeout", "strict", "limit", "debug", "encoding", "retries")
_DEFAULTS = ("None", "0", "False", "1", '""')
_NUMBERS = (1, 5, 10, 20, 64, 100, 256, 1000)
_TEXTS = ("default", "unknown", "value", "main", "error", "ready", "item name", "utf-8", "done")
_COMMENTS = (
    "nothing else is needed here",
    "see the caller for the reason",
    "this is the common case",
    "keep the order",
    "the rest follows from this",
    "TODO: measure this",
)
_NUMBER = re.compile(r"\d+(?:\.\d+)?")


def _renamed(
    source: FunctionSource, old: str, rng: random.Random, what: str, spans: list[Span]
) -> tuple[str, str, str] | None:
    head, _, _ = old.partition("_")
    new = rng.choice(
        [f"{old}_{rng.choice(_TAILS)}", f"{rng.choice(_HEADS)}_{old}", rng.choice(_NEW_NAMES)]
        + ([f"{head}_{rng.choice(_TAILS)}"] if head else [])
    )
    if re.search(rf"\b{new}\b", source.text) or not spans:
        return None
    after = replaced(source.text, [Substitution(*span, new) for span in spans])
    wordings = (
        f"rename {old} to {new}",
        f"rename the {what} {old} to {new}",
        f"Rename `{old}` to `{new}`.",
        f"change the name of {old} to {new}",
        f"rename {what} {old} -> {new}",
    )
    return rng.choice(wordings), source.text, after


def _name_spans(source: FunctionSource, name: str) -> list[Span]:
    """Where a parameter or a variable stands as such; empty where that is not clear by itself: in
    f-strings, whose places older Pythons do not know, and where inner functions have the name."""
    spans: list[Span] = []
    for node in ast.walk(source.node):
        if isinstance(node, ast.JoinedStr):
            if any(isinstance(part, ast.Name) and part.id == name for part in ast.walk(node)):
                return []
        elif (isinstance(node, (ast.Global, ast.Nonlocal)) and name in node.names) or (
            isinstance(node, ast.ExceptHandler) and node.name == name
        ):
            return []
        elif isinstance(node, ast.Name) and node.id == name:
            spans.append(source.span(node))
        elif isinstance(node, ast.arg) and node.arg == name:
            start = source.span(node)[0]
            spans.append((start, start + len(name)))
    arguments = sum(isinstance(each, ast.arg) and each.arg == name for each in _all(source))
    return spans if arguments <= 1 else []


def _all(source: FunctionSource) -> list[ast.AST]:
    return list(ast.walk(source.node))


def rename_parameter(source: FunctionSource, rng: random.Random) -> tuple[str, str, str] | None:
    """A parameter, and where it is read; names of arguments in calls are other names."""
    if not source.parameters:
        return None
    old = rng.choice(source.parameters).arg
    return _renamed(source, old, rng, "parameter", _name_spans(source, old))


def rename_variable(source: FunctionSource, rng: random.Random) -> tuple[str, str, str] | None:
    """A local variable that is used at least twice."""
    parameters = {one.arg for one in _all(source) if isinstance(one, ast.arg)}
    written = {
        node.id
        for node in _all(source)
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store) and len(node.id) > 2
    }
    names = sorted(written - parameters)
    if not names:
        return None
    old = rng.choice(names)
    spans = _name_spans(source, old)
    return _renamed(source, old, rng, "variable", spans) if len(spans) > 1 else None


def rename_function(source: FunctionSource, rng: random.Random) -> tuple[str, str, str] | None:
    """The function itself, and where it calls itself by its name alone."""
    old = source.node.name
    others = (
        (isinstance(node, ast.Attribute) and node.attr == old)
        or (isinstance(node, ast.arg) and node.arg == old)
        for node in _all(source)
    )
    if old.startswith("__") or any(others):
        return None
    keyword = re.compile(r"def\s+").search(source.text, source.span(source.node)[0])
    assert keyword is not None, "a function begins with def"
    called = _name_spans(source, old)
    return _renamed(
        source, old, rng, "function", [(keyword.end(), keyword.end() + len(old)), *called]
    )


def remove_docstring(source: FunctionSource, rng: random.Random) -> tuple[str, str, str] | None:
    """All lines of the docstring."""
    without = _without_docstring(source)
    if without is None:
        return None
    wordings = (
        "remove the docstring",
        "delete the docstring",
        "Remove the docstring.",
        "drop the docstring of this function",
    )
    return rng.choice(wordings), source.text, without


def add_docstring(source: FunctionSource, rng: random.Random) -> tuple[str, str, str] | None:
    """The docstring that the function has."""
    without = _without_docstring(source)
    if without is None or len(source.text) - len(without) > LONGEST_DOCSTRING:
        return None
    wordings = (
        "add a docstring",
        "document this function",
        "write a docstring",
        "Add a docstring.",
        f"add a docstring to {source.node.name}",
    )
    return rng.choice(wordings), without, source.text


def _without_docstring(source: FunctionSource) -> str | None:
    docstring = source.docstring
    if docstring is None or not source.statements or not source.has_body_below:
        return None
    start, end = source.whole_lines(docstring)
    if source.text[start:end].strip() != source.text[slice(*source.span(docstring))]:
        return None
    # Whether a blank line behind it goes too is a matter of taste.
    if not source.text[end:].split("\n", 1)[0].strip():
        return None
    return source.text[:start] + source.text[end:]


def remove_type_hints(source: FunctionSource, rng: random.Random) -> tuple[str, str, str] | None:
    """The annotations of the parameters and the result."""
    without = _without_hints(source)
    wordings = ("remove the type annotations", "drop the type hints", "Remove type hints.")
    return None if without is None else (rng.choice(wordings), source.text, without)


def add_type_hints(source: FunctionSource, rng: random.Random) -> tuple[str, str, str] | None:
    """The annotations that the function has."""
    without = _without_hints(source)
    wordings = (
        "add type hints",
        "add type annotations",
        "annotate the parameters and the result",
        "Add types to the signature.",
    )
    return None if without is None else (rng.choice(wordings), without, source.text)


def _without_hints(source: FunctionSource) -> str | None:
    """The function without hints; None without any, and where they stand in the body as well or
    beside a default, whose spaces are then a matter of taste."""
    arguments = [one for one in ast.walk(source.node.args) if isinstance(one, ast.arg)]
    hinted = [one for one in arguments if one.annotation is not None]
    node = source.node
    has_others = any(isinstance(one, ast.AnnAssign) for one in _all(source))
    has_defaults = node.args.defaults or any(node.args.kw_defaults)
    if has_others or has_defaults or not (hinted or node.returns) or not source.has_body_below:
        return None
    cuts = []
    for one in hinted:
        start, end = source.span(one)
        cuts.append(Substitution(start + len(one.arg), end, ""))
    if node.returns is not None:
        end = source.span(node.returns)[1]
        arrow = source.text.rindex("->", 0, source.span(node.returns)[0])
        start = len(source.text[:arrow].rstrip())
        cuts.append(Substitution(start, end, ""))
    return replaced(source.text, cuts)


def remove_comments(source: FunctionSource, rng: random.Random) -> tuple[str, str, str] | None:
    """All comments. A function without any is given some first."""
    before = source.text if _comments(source.text) else _commented(source, rng)
    spans = _comments(before)
    if not spans or any(_is_directive(before[slice(*span)]) for span in spans):
        return None
    after = replaced(
        before, [Substitution(*_comment_with_blanks(before, one), "") for one in spans]
    )
    wordings = (
        "remove the comments",
        "delete all comments",
        "Remove comments.",
        "strip the comments",
    )
    return (rng.choice(wordings), before, after) if after.strip() else None


def _is_directive(comment: str) -> bool:
    return re.match(r"#\s*(type:|noqa|pragma|pylint|fmt:|!)", comment) is not None


def _comments(text: str) -> list[Span]:
    """The characters of the comments, each without its line end."""
    starts = [0]
    for line in lines_of(text):
        starts.append(starts[-1] + len(line))
    found: list[Span] = []
    try:
        for token in tokenize.generate_tokens(io.StringIO(text).readline):
            if token.type == tokenize.COMMENT:
                start = starts[token.start[0] - 1] + token.start[1]
                found.append((start, start + len(token.string)))
    except (tokenize.TokenError, IndentationError):
        # A function from within a class ends in a dedent to where it began.
        return found
    return found


def _comment_with_blanks(text: str, span: Span) -> Span:
    """The comment with what goes with it: its line, or the blanks between code and comment."""
    line = text.rfind("\n", 0, span[0]) + 1
    if not text[line : span[0]].strip():
        return line, min(span[1] + 1, len(text))
    return line + len(text[line : span[0]].rstrip()), span[1]


def _commented(source: FunctionSource, rng: random.Random) -> str:
    """The function with a comment above one or two of its statements."""
    if not source.has_body_below:
        return source.text
    chosen = rng.sample(source.statements, min(len(source.statements), rng.choice((1, 2))))
    added = []
    for statement, words in zip(chosen, rng.sample(_COMMENTS, len(chosen)), strict=True):
        place = source.whole_lines(statement)[0]
        added.append(Substitution(place, place, f"{source.body_indent}# {words}\n"))
    return replaced(source.text, added)


def change_literal(source: FunctionSource, rng: random.Random) -> tuple[str, str, str] | None:
    """A number, a short text or a truth value that stands in the function once."""
    found: list[tuple[str, Span]] = []
    in_texts = {
        id(part)
        for node in _all(source)
        if isinstance(node, ast.JoinedStr)
        for part in ast.walk(node)
    }
    docstring = source.docstring
    for node in _all(source):
        if not isinstance(node, ast.Constant) or id(node) in in_texts:
            continue
        if docstring is not None and node is docstring.value:
            continue
        span = source.span(node)
        spelt = source.text[slice(*span)]
        is_number = _NUMBER.fullmatch(spelt) is not None and spelt not in ("0", "1")
        is_text = isinstance(node.value, str) and re.fullmatch(
            r"(\"[A-Za-z][\w \-]{1,24}\"|'[A-Za-z][\w \-]{1,24}')", spelt
        )
        if is_number or is_text or spelt in ("True", "False"):
            found.append((spelt, span))
    spelt_once = [
        one for one in found if len(re.findall(rf"(?<![\w.]){re.escape(one[0])}", source.text)) == 1
    ]
    if not spelt_once:
        return None
    old, span = rng.choice(spelt_once)
    new = {"True": "False", "False": "True"}.get(old)
    if new is None:
        quote = old[0] if old[0] in "\"'" else ""
        new = quote + str(rng.choice(_TEXTS) if quote else rng.choice(_NUMBERS)) + quote
    if new == old:
        return None
    wordings = (
        f"change {old} to {new}",
        f"replace {old} by {new}",
        f"use {new} instead of {old}",
        f"Replace {old} with {new}.",
    )
    return rng.choice(wordings), source.text, replaced(source.text, [Substitution(*span, new)])


def add_guard(source: FunctionSource, rng: random.Random) -> tuple[str, str, str] | None:
    """An early return or an error where a parameter is missing, before everything else."""
    name, pad = _parameter(source, rng), source.body_indent
    if name is None:
        return None
    message = f'"{name} must not be empty"'
    lines, wordings = rng.choice(
        [
            (
                f"{pad}if {name} is None:\n{pad}    return None\n",
                (
                    f"return None if {name} is None",
                    f"return None when {name} is None",
                    f"add a guard: return None if {name} is None",
                ),
            ),
            (
                f"{pad}if not {name}:\n{pad}    raise ValueError({message})\n",
                (
                    f"raise ValueError({message}) if {name} is empty",
                    f"add a guard: raise ValueError({message}) if not {name}",
                ),
            ),
        ]
    )
    return _added_first(source, lines, rng.choice(wordings))


def add_print(source: FunctionSource, rng: random.Random) -> tuple[str, str, str] | None:
    """A print of a parameter before everything else."""
    name = _parameter(source, rng)
    if name is None:
        return None
    wordings = (
        f"print {name} at the start",
        f"print the parameter {name} first",
        f"Print {name} at the beginning of the function.",
    )
    return _added_first(source, f"{source.body_indent}print({name})\n", rng.choice(wordings))


def add_logging(source: FunctionSource, rng: random.Random) -> tuple[str, str, str] | None:
    """A line of the log with a parameter before everything else."""
    name = _parameter(source, rng)
    if name is None:
        return None
    line = f'{source.body_indent}logger.debug("%s: %s", "{source.node.name}", {name})\n'
    wordings = (f"log {name} at the start", f"log {name} with logger.debug first")
    return _added_first(source, line, rng.choice(wordings))


def _parameter(source: FunctionSource, rng: random.Random) -> str | None:
    if not source.parameters or not source.has_body_below:
        return None
    return rng.choice(source.parameters).arg


def _added_first(
    source: FunctionSource, lines: str, instruction: str
) -> tuple[str, str, str] | None:
    """``lines`` in front of the body, behind the docstring."""
    if lines.strip() in source.text or not source.statements:
        return None
    docstring = source.docstring
    place = source.body_start if docstring is None else source.whole_lines(docstring)[1]
    after = replaced(source.text, [Substitution(place, place, lines)])
    return instruction, source.text, after


def add_parameter(source: FunctionSource, rng: random.Random) -> tuple[str, str, str] | None:
    """A last parameter with a default."""
    node = source.node.args
    new, default = rng.choice(_PARAMETERS), rng.choice(_DEFAULTS)
    arguments = [*node.posonlyargs, *node.args]
    if node.vararg or node.kwarg or node.kwonlyargs or re.search(rf"\b{new}\b", source.text):
        return None
    if arguments:
        ends = [source.span(argument)[1] for argument in arguments]
        place = max([*ends, *(source.span(one)[1] for one in node.defaults)])
    else:
        place = source.text.index("(", source.text.index(source.node.name)) + 1
    added = f", {new}={default}" if arguments else f"{new}={default}"
    if source.text[place:].lstrip()[:1] != ")":
        return None
    wordings = (
        f"add a parameter {new} with default {default}",
        f"add a parameter {new}={default}",
        f"Add an optional parameter `{new}` that defaults to {default}.",
    )
    return (
        rng.choice(wordings),
        source.text,
        replaced(source.text, [Substitution(place, place, added)]),
    )


def change_default(source: FunctionSource, rng: random.Random) -> tuple[str, str, str] | None:
    """The default of a parameter."""
    node = source.node.args
    arguments = [*node.posonlyargs, *node.args]
    with_defaults = list(
        zip(arguments[len(arguments) - len(node.defaults) :], node.defaults, strict=True)
    )
    if not with_defaults:
        return None
    parameter, default = rng.choice(with_defaults)
    span = source.span(default)
    old, new = source.text[slice(*span)], rng.choice([*_DEFAULTS, "10", "True", "100"])
    if new == old or "\n" in old:
        return None
    wordings = (
        f"change the default of {parameter.arg} to {new}",
        f"{parameter.arg} should default to {new}",
        f"set the default of {parameter.arg} to {new}",
    )
    return rng.choice(wordings), source.text, replaced(source.text, [Substitution(*span, new)])


MAKERS: dict[str, tuple[Maker, float]] = {
    "rename_parameter": (rename_parameter, 12),
    "rename_variable": (rename_variable, 14),
    "rename_function": (rename_function, 9),
    "remove_docstring": (remove_docstring, 7),
    "add_docstring": (add_docstring, 8),
    "remove_type_hints": (remove_type_hints, 5),
    "add_type_hints": (add_type_hints, 10),
    "remove_comments": (remove_comments, 7),
    "change_literal": (change_literal, 8),
    "add_guard": (add_guard, 6),
    "add_print": (add_print, 3),
    "add_logging": (add_logging, 2),
    "add_parameter": (add_parameter, 5),
    "change_default": (change_default, 4),
}
"""Every kind with its maker and its share among samples."""
ONE_ANSWER = tuple(kind for kind in MAKERS if kind not in ("add_docstring", "add_type_hints"))
"""Kinds whose answer follows from function and instruction."""


def make_edit(text: str, kind: str, rng: random.Random) -> MadeEdit | None:
    """An edit of one kind of the whole lines of a function; None where the kind does not apply."""
    maker, _ = MAKERS[kind]
    try:
        source = FunctionSource(text)
        made = maker(source, rng)
        if made is None or made[1] == made[2]:
            return None
        # What is made must be a function again, whatever the source holds.
        FunctionSource(made[2])
    except (SyntaxError, ValueError, RecursionError):
        return None
    return MadeEdit(kind, *made)


def draw_edit(text: str, rng: random.Random) -> MadeEdit | None:
    """An edit of a kind drawn by its share."""
    shares = [share for _, share in MAKERS.values()]
    return make_edit(text, rng.choices(list(MAKERS), shares)[0], rng)
