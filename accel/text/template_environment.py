"""The jinja environment of chat templates, as transformers has it (``chat_template_utils.py``): the
sandbox, loop controls, ``{% generation %}``, ``raise_exception``, ``strftime_now`` and ``tojson``.
Texts of messages keep their marks in it, see ``marked_text``.
"""

from __future__ import annotations

import datetime
import functools
import json
from collections.abc import Callable, Iterable
from typing import Any

from jinja2 import TemplateError, nodes
from jinja2.compiler import CodeGenerator
from jinja2.ext import Extension, LoopControlExtension
from jinja2.parser import Parser
from jinja2.runtime import Context, Macro
from jinja2.sandbox import ImmutableSandboxedEnvironment

from accel.text.marked_text import MarkedText, holds_marks, joined, marked_like

_TAKE_OUT = (
    *("attr", "batch", "d", "default", "dictsort", "first", "groupby", "items", "last", "list"),
    *("map", "max", "min", "random", "reject", "rejectattr", "reverse", "select", "selectattr"),
    *("slice", "sort", "unique"),
)
"""Filters that give what they were given, with its marks."""
_METHODS = ("capitalize", "lower", "replace", "string", "trim", "upper")
"""Filters that are methods of texts, which keep marks."""


class GenerationTag(Extension):
    """``{% generation %}`` is put around what an assistant wrote, for training: it writes that."""

    tags = {"generation"}  # noqa: RUF012

    def parse(self, parser: Parser) -> nodes.Node:
        """Return the block between the tags, with variables of its own."""
        line = next(parser.stream).lineno
        body = parser.parse_statements(("name:endgeneration",), drop_needle=True)
        return nodes.Scope(body).set_lineno(line)


class _Code(CodeGenerator):
    """``a ~ b`` joins without forgetting marks."""

    def visit_Concat(self, node: nodes.Concat, frame: Any) -> None:
        self.write("environment.concat((")
        for each in node.nodes:
            self.write("environment.as_text(")
            self.visit(each, frame)
            self.write("), ")
        self.write("))")


class TemplateEnvironment(ImmutableSandboxedEnvironment):
    """See the module."""

    code_generator_class = _Code
    intercepted_binops = frozenset({"%"})

    def __init__(self) -> None:
        super().__init__(
            trim_blocks=True,
            lstrip_blocks=True,
            extensions=[LoopControlExtension, GenerationTag],
            finalize=self.as_text,
        )
        self.filters = {name: _marking(name, each) for name, each in self.filters.items()}
        self.filters["tojson"] = _marking("tojson", _to_json)
        self.filters["join"] = _join
        self.globals["raise_exception"] = _raise_exception
        self.globals["strftime_now"] = lambda template: datetime.datetime.now().strftime(template)

    @staticmethod
    def concat(texts: Iterable[str]) -> str:
        """Return all that is written, one after another."""
        return joined(texts)

    @staticmethod
    def as_text(value: Any) -> str:
        """A value as it is written."""
        return value if isinstance(value, str) else marked_like(str(value), value)

    def call(__self, __context: Context, __obj: Any, *args: Any, **kwargs: Any) -> Any:
        """Call a method of a text so that marks stay."""
        owner = getattr(__obj, "__self__", None)
        if isinstance(owner, str) and not isinstance(owner, MarkedText) and holds_marks(args):
            __obj = getattr(joined([owner]), __obj.__name__)
        result = super().call(__context, __obj, *args, **kwargs)
        # Macros write texts with their marks, and lists and tables hold such.
        if isinstance(__obj, Macro) or not isinstance(owner, str | None):
            return result
        return marked_like(result, owner, *args, *kwargs.values())

    def call_binop(self, context: Context, operator: str, first: Any, right: Any) -> Any:
        """``template % values``."""
        return marked_like(super().call_binop(context, operator, first, right), first, right)


def _marking(name: str, filtered: Callable[..., Any]) -> Callable[..., Any]:
    """Return a filter that makes a text out of something of a message makes a message's."""
    if name in _TAKE_OUT:
        return filtered

    @functools.wraps(filtered)
    def marked(*args: Any, **kwargs: Any) -> Any:
        result = filtered(*args, **kwargs)
        # What a filter put together of several texts has no marks to rely on.
        plain = str.__str__(result) if isinstance(result, str) and name not in _METHODS else result
        return marked_like(plain, *args, *kwargs.values())

    return marked


def _join(values: Iterable[Any], between: str = "", attribute: Any = None) -> str:
    if attribute is not None:
        values = (value[attribute] for value in values)
    return joined(map(TemplateEnvironment.as_text, values), between)


def _to_json(
    value: object,
    ensure_ascii: bool = False,
    indent: int | str | None = None,
    separators: tuple[str, str] | None = None,
    sort_keys: bool = False,
) -> str:
    layout: dict[str, Any] = {"indent": indent, "separators": separators}
    return json.dumps(value, ensure_ascii=ensure_ascii, sort_keys=sort_keys, **layout)


def _raise_exception(message: object) -> None:
    raise TemplateError(str(message))
