"""One codec: dataclasses as JSON and back, checked against their fields. An unknown field is
refused in what is asked and left out of what is answered; a null stands for the default."""

from __future__ import annotations

import dataclasses
import re
import types
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Literal, TypeVar, Union, cast, get_args, get_origin, get_type_hints

from lsp_server.shared.errors import RedraftError

Kind = TypeVar("Kind")
SHOWN_CHARACTERS = 60
_PLAIN = (str, int, float, type(None))


class Unreadable(RedraftError):
    """JSON that does not fit the dataclass it is read as. The message names every problem."""


@dataclass(frozen=True, slots=True)
class Problem:
    """``what`` does not fit at ``where``, a path of names."""

    where: str
    what: str
    is_unknown: bool = False

    def __str__(self) -> str:
        return f"{self.where}: {self.what}"


class _Unfit(Exception):
    """A value that is not of its field's type."""


def to_json(value: Any) -> Any:
    """Return a dataclass, or a container of dataclasses, as JSON."""
    if isinstance(value, _PLAIN):
        return value
    if isinstance(value, Path):
        return str(value)
    if isinstance(value, list | tuple):
        return [to_json(item) for item in value]
    if isinstance(value, dict):
        return {name: to_json(item) for name, item in value.items()}
    kind: Any = type(value)
    written = {}
    for name, left_out in _written(kind):
        item = getattr(value, name)
        if item is not None or not left_out:
            written[name] = item if isinstance(item, _PLAIN) else to_json(item)
    return written


def read(
    kind: type[Kind],
    values: Any,
    where: str = "",
    *,
    unknown: Literal["refused", "ignored"] = "refused",
) -> Kind:
    """Return a dataclass from JSON. Raises Unreadable."""
    problems: list[Problem] = []
    instance = read_with_problems(kind, values, where, problems)
    if unknown == "ignored":
        problems = [problem for problem in problems if not problem.is_unknown]
    if problems or instance is None:
        raise Unreadable("; ".join(map(str, problems)))
    return instance


def read_with_problems(
    kind: type[Kind], values: Any, where: str, problems: list[Problem]
) -> Kind | None:
    """Return a dataclass from JSON, with the defaults in place of what does not fit; None where a
    field without one is missing. ``problems`` is given what was wrong."""
    if not isinstance(values, dict):
        problems.append(Problem(where, f"expected an object, got {_short(values)}"))
        return None
    plan: Any = kind
    members = _members(plan)
    chosen: dict[str, Any] = {}
    for name, value in values.items():
        path = f"{where}.{name}" if where else str(name)
        member = members.get(name)
        if member is None:
            problems.append(Problem(path, "unknown", is_unknown=True))
        elif value is not None:
            try:
                read_value = member.fit(value, path, problems)
                if chosen.setdefault(member.name, read_value) != read_value:
                    problems.append(Problem(path, f"differs from {member.name} by another name"))
            except _Unfit as error:
                actual = "something else" if member.is_secret else _short(value)
                problems.append(Problem(path, f"{error}, got {actual}"))
    required = dict.fromkeys(member.name for member in members.values() if member.is_required)
    missing = [name for name in required if name not in chosen]
    for name in missing:
        problems.append(Problem(f"{where}.{name}" if where else name, "is missing"))
    return None if missing else kind(**chosen)


def camel_case(name: str) -> str:
    """``max_tokens`` as ``maxTokens``."""
    return re.sub(r"_([a-z])", lambda match: match.group(1).upper(), name)


Reader = Callable[[Any, str, list[Problem]], Any]
"""Of a value, its place and the problems so far; raises _Unfit."""


@dataclass(frozen=True, slots=True)
class _Member:
    name: str
    reader: Reader
    metadata: Any
    is_required: bool

    @property
    def is_secret(self) -> bool:
        return bool(self.metadata.get("secret"))

    def fit(self, value: Any, where: str, problems: list[Problem]) -> Any:
        read = self.reader(value, where, problems)
        choices, low, high = (self.metadata.get(key) for key in ("choices", "low", "high"))
        if choices and read not in choices:
            raise _Unfit("expected one of " + ", ".join(map(str, choices)))
        if isinstance(read, int | float):
            if low is not None and not read >= low:
                raise _Unfit(f"expected at least {low}")
            if high is not None and not read <= high:
                raise _Unfit(f"expected at most {high}")
        return read


@cache
def _members(kind: Any) -> dict[str, _Member]:
    """Return the fields of a dataclass by their names, by those they ``also`` have, and by all of
    these in camelCase."""
    hints = get_type_hints(kind)
    members: dict[str, _Member] = {}
    nothing = dataclasses.MISSING
    for item in dataclasses.fields(kind):
        required = item.default is nothing and item.default_factory is nothing
        member = _Member(item.name, _reader(hints[item.name])[0], item.metadata, required)
        for name in (item.name, *item.metadata.get("also", ())):
            members[name] = members[camel_case(name)] = member
    return members


@cache
def _written(kind: Any) -> tuple[tuple[str, bool], ...]:
    """Return names of the fields, and whether each is left out where it is None."""
    return tuple((item.name, item.default is None) for item in dataclasses.fields(kind))


@cache
def _reader(hint: Any) -> tuple[Reader, str]:
    origin, inner = get_origin(hint), get_args(hint)
    if dataclasses.is_dataclass(hint):
        return _object_reader(cast("type[Any]", hint)), "an object"
    if origin in (Union, types.UnionType):
        readers = [_reader(option) for option in inner if option is not type(None)]
        words = " or ".join(word for _, word in readers)
        may_be_none = type(None) in inner
        return _first_of([reader for reader, _ in readers], words, may_be_none), words
    if origin is Literal:
        words = " or ".join(map(str, inner))
        return _checked(lambda value: value in inner, words), words
    if origin in (list, tuple):
        return _sequence_reader(
            origin, [_reader(option)[0] for option in inner if option is not ...]
        ), "a list"
    if origin is dict:
        return _dict_reader(_reader(inner[1])[0]), "an object"
    if hint is Any:
        return _checked(lambda value: True, "anything"), "anything"
    if hint is float:
        return _number, "a number"
    if hint is Path:
        return _path, "a path"
    names = {bool: "true or false", int: "a whole number", str: "a string"}
    if hint is int:
        is_int = lambda value: isinstance(value, int) and not isinstance(value, bool)  # noqa: E731
        return _checked(is_int, names[int]), names[int]
    return _checked(lambda value: isinstance(value, hint), names[hint]), names[hint]


def _checked(fits: Callable[[Any], bool], words: str) -> Reader:
    def reader(value: Any, where: str, problems: list[Problem]) -> Any:
        if not fits(value):
            raise _Unfit(f"expected {words}")
        return value

    return reader


def _number(value: Any, where: str, problems: list[Problem]) -> float:
    try:
        if isinstance(value, int | float) and not isinstance(value, bool):
            return float(value)
    except OverflowError:
        pass
    raise _Unfit("expected a number")


def _path(value: Any, where: str, problems: list[Problem]) -> Path:
    if not isinstance(value, str):
        raise _Unfit("expected a path")
    return Path(value)


def _object_reader(kind: type[Any]) -> Reader:
    def reader(value: Any, where: str, problems: list[Problem]) -> Any:
        if not isinstance(value, dict):
            raise _Unfit("expected an object")
        return read_with_problems(kind, value, where, problems)

    return reader


def _first_of(readers: list[Reader], words: str, may_be_none: bool) -> Reader:
    def reader(value: Any, where: str, problems: list[Problem]) -> Any:
        if value is None and may_be_none:
            return None
        for read_option in readers:
            try:
                return read_option(value, where, problems)
            except _Unfit:
                continue
        raise _Unfit(f"expected {words}")

    return reader


def _sequence_reader(make: type[Any], readers: list[Reader]) -> Reader:
    """Of a list, of a tuple of any length, or of one with a type for each position."""
    length = len(readers) if make is tuple and len(readers) > 1 else None

    def reader(value: Any, where: str, problems: list[Problem]) -> Any:
        if not isinstance(value, list | tuple) or length not in (None, len(value)):
            raise _Unfit("expected a list")
        each = readers if length else readers * len(value)
        try:
            pairs = enumerate(zip(each, value, strict=True))
            return make(
                read_item(item, f"{where}[{index}]", problems) for index, (read_item, item) in pairs
            )
        except _Unfit:
            raise _Unfit("expected a list") from None

    return reader


def _dict_reader(inner: Reader) -> Reader:
    def reader(value: Any, where: str, problems: list[Problem]) -> Any:
        if not isinstance(value, dict):
            raise _Unfit("expected an object")
        try:
            return {name: inner(item, f"{where}.{name}", problems) for name, item in value.items()}
        except _Unfit:
            raise _Unfit("expected an object") from None

    return reader


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= SHOWN_CHARACTERS else text[: SHOWN_CHARACTERS - 3] + "..."
