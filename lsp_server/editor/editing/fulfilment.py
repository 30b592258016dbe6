"""Compares an edit with its instruction: names that are lost, requests that are not met, additions
that come on top. Rules by kinds of instructions are in ``wordings.json``."""

from __future__ import annotations

import ast
import builtins
import re
import textwrap
from collections import Counter

from lsp_server.editor.editing.rename_wordings import asks_for_rename, replacement_in
from lsp_server.editor.editing.wordings import TABLE, said
from lsp_server.text.syntax.keywords import is_keyword
from lsp_server.text.syntax.languages import grammar_of
from lsp_server.text.syntax.outline import defined_names, is_heading
from lsp_server.text.syntax.python_tree import python_tree
from lsp_server.text.syntax.tree import SyntaxTree

KINDS: list[dict[str, str]] = TABLE["kinds"]
"""``asks``: matches such instructions; ``gains``: comes more often than before, ``loses``: is gone,
or stays as rare as it was."""
SHORT_WORDS, SMALL_LINES = 14, 15
"""Words of an instruction that names all it is about, and lines that lose no name by it."""
_NAME = re.compile(r"[^\W\d]\w*")
_NO_NAME = {"of", "to", "from", "with", "in", "that", "and", "for", "is", "which", "so", "on", "by"}
_TEST = re.compile(r"\b(?:if|elif|unless)\b\s*(.*?)(?:[:{]\s*\n|\{|\bthen\b)", re.DOTALL)
_GO_FUNCTION = re.compile(
    r"^func (?:\([^)\n]*\) )?\w+\([^)\n]*\) \{\n((?:[ \t][^\n]*\n|\n)*)", re.M
)
"""A function of Go without a result."""
_PARAMETER = re.compile(r"\w+\??(?:\s*:|\s+[\w*\[]).*[\w>)\]]$")
_PARAMETERS = re.compile(r"\(([^()\n]*)\)")


def shortfall(instruction: str, old: str, new: str, language: str, around: str) -> str:
    """Return the first difference between ``instruction`` and the edit that turns ``old`` into
    ``new``; empty without any. ``around``: the text that contains ``old``."""
    instruction = " ".join(instruction.split())
    if old == new or not 0 < len(instruction.split()) <= SHORT_WORDS:
        return ""
    (before, strings), (after, _) = (_code_and_strings(text, language) for text in (old, new))
    is_text = not grammar_of(language, "")
    takes_away = is_text or said("takes away", instruction) or asks_for_rename(instruction, old)
    problems = (
        _twice(before, after),
        "" if takes_away else _lost(instruction, before, strings, new, language),
        _unmet(instruction, old, new, language),
        _stays(instruction, before, after),
        _missing(instruction, old, new),
        _unused(instruction, before, after),
        _further(instruction, before, after),
        _unknown(after, around) if language == "go" else "",
        _ungiven(new, around) if language == "python" and around else "",
    )
    return next(filter(None, problems), "")


def _code_and_strings(text: str, language: str) -> tuple[str, str]:
    """Return a text with blanks in place of comments and strings, and its strings."""
    tree = SyntaxTree.of(text, language)
    strings = tree.strings() if tree is not None else []
    code = text
    for start, end in [*strings, *(tree.comments() if tree is not None else [])]:
        code = code[:start] + re.sub(r"[^\n]", " ", code[start:end]) + code[end:]
    return code, " ".join(text[start:end] for start, end in strings)


def _twice(before: str, after: str) -> str:
    pieces = [
        Counter(filter(_PARAMETER.match, map(str.strip, parameters.split(","))))
        for line in after.splitlines()
        if is_heading(line) and line not in before
        for parameters in _PARAMETERS.findall(line)
    ]
    repeated = [each for counts in pieces for each in counts if counts[each] > 1]
    outermost = (re.sub(r"(?m)^[ \t].*", "", code) for code in (before, after))
    old, new = (Counter(defined_names(code)) for code in outermost)
    repeated += [name for name in new if new[name] > old[name] > 0]
    return f"gives {repeated[0]} twice" if repeated else ""


def _lost(instruction: str, before: str, strings: str, new: str, language: str) -> str:
    grammar, present = grammar_of(language, ""), {*_NAME.findall(new)}
    words = {word.lower() for word in _NAME.findall(instruction)}
    lines = before.splitlines()
    is_small = len(lines) <= SMALL_LINES and not said("rewrites", instruction)
    counted = lines if is_small or said("adds", instruction) else filter(is_heading, lines)
    names = _NAME.findall("\n".join(counted))
    names += re.findall(r"[^\W\d]\w{2,}", strings) if said("order", instruction) else []
    lost = [
        name
        for name in dict.fromkeys(names)
        if name not in present and name.lower() not in words and not is_keyword(name, grammar)
    ]
    return f"leaves out {', '.join(lost[:3])}" if lost else ""


def _unmet(instruction: str, old: str, new: str, language: str) -> str:
    for kind in KINDS:
        request = re.search(kind["asks"], instruction, re.IGNORECASE)
        if request is None or kind.get("language", language) != language:
            continue
        gains, loses = (
            [len(re.findall(kind.get(field, "(?!)"), text, re.MULTILINE)) for text in (old, new)]
            for field in ("gains", "loses")
        )
        if ("gains" in kind and gains[1] <= gains[0]) or loses[1]:
            return f"does not do this: {request[0]}"
    return ""


def _stays(instruction: str, before: str, after: str) -> str:
    request = replacement_in(instruction)
    if request is None or " " in request.new:
        return ""
    old, new = (rf"(?<!\w){re.escape(name)}(?!\w)" for name in (request.old, request.new))
    is_there = re.search(old, before) is not None
    if is_there and len(re.findall(old, after)) >= len(re.findall(old, before)):
        return f"keeps {request.old}"
    return f"lacks {request.new}" if is_there and not re.search(new, after) else ""


def _missing(instruction: str, old: str, new: str) -> str:
    valued = said("valued", instruction)
    if valued and re.search(rf"\b{valued[1]}\b\s*[:=]", old):
        holds = re.search(rf"\b{valued[1]}\b[^\n]*{re.escape(valued[2])}", new)
        return "" if holds else f"does not give {valued[1]} {valued[2]}"
    match = said("added", instruction)
    names = [name for name in match.groups() if name] if match else []
    names += [match[1]] if (match := said("value", instruction)) else []
    names = [name for name in names if name.lower() not in _NO_NAME and name not in new]
    return f"lacks {names[0]}" if names and names[0] not in old else ""


def _unused(instruction: str, before: str, after: str) -> str:
    """Return that a parameter which was added is used nowhere."""
    if not re.search(r"\b(?:parameter|argument)\b", instruction, re.IGNORECASE):
        return ""
    heads = [line for line in after.splitlines() if is_heading(line) and line not in before]
    counts, earlier = Counter(_NAME.findall(after)), {*_NAME.findall(before)}
    unused = [
        name
        for name in _NAME.findall(" ".join(heads))
        if name not in earlier and counts[name] == 1 and re.search(rf"\b{name}\b", instruction)
    ]
    return f"does not use {unused[0]}" if unused else ""


def _further(instruction: str, before: str, after: str) -> str:
    """Return the first definition, or name in a new condition, that an order does not name."""
    earlier, words = defined_names(before), set(_NAME.findall(instruction.lower()))
    if said("order", instruction) and not said("asks for more", instruction):
        for name in defined_names(after):
            if name not in earlier and name.lower() not in words:
                return f"adds {name}"
    if said("adds", instruction) and words & {"if", "when"}:
        for name in _NAME.findall(" ".join({*_TEST.findall(after)} - {*_TEST.findall(before)})):
            if name in before and name.lower() not in words:
                return f"also tests {name}"
    return ""


def _unknown(after: str, around: str) -> str:
    """Return the package that ``after``, code in Go, uses and ``around`` does not import, or that a
    function without a result returns a value."""
    packages = re.findall(r"(?<![\w.)\]])([a-z]\w*)\.[A-Z]\w*\(", after)
    missing = [name for name in packages if not re.search(rf"\b{name}\b", around)]
    if missing:
        return f"uses {missing[0]}, which is not imported"
    for function in _GO_FUNCTION.finditer(after):
        if re.search(r"^\t+return \S", function[1], re.M) and "func(" not in function[1]:
            return "returns a value from a function without a result"
    return ""


def _ungiven(new: str, around: str) -> str:
    """Return the name of Python in ``new`` that neither it nor ``around`` gives."""
    tree = python_tree(textwrap.dedent(new))
    if tree is None or "import *" in around:
        return ""
    nodes = [*ast.walk(tree)]
    defined = {*_NAME.findall(around), *dir(builtins)}
    defined |= {getattr(node, field, None) for node in nodes for field in ("name", "asname", "arg")}
    names = [node for node in nodes if isinstance(node, ast.Name)]
    defined |= {node.id for node in names if not isinstance(node.ctx, ast.Load)}
    missing = [node.id for node in names if node.id not in defined]
    return f"uses {missing[0]}, which nothing gives" if missing else ""
