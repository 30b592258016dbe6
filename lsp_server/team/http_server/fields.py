"""Bodies of requests as typed objects: wrong types and wild numbers are refused, and so are unknown
fields that would change what is written."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Annotated, Any, Literal, TypeAlias, TypeVar

import msgspec
from msgspec import Meta

from lsp_server.team.http_server.errors import invalid

Body = TypeVar("Body", bound=msgspec.Struct)
Flag: TypeAlias = bool | Literal[0, 1]
Count: TypeAlias = Annotated[int, Meta(ge=0, le=1 << 30)]

_TABLE = json.loads(Path(__file__).with_suffix(".json").read_text("utf-8"))
_WORDS: dict[str, str] = _TABLE["types"]
_ONE = re.compile(_TABLE["one changes nothing"])
"""Fields of which 1 changes nothing."""
_CHANGES = re.compile(_TABLE["changes"])
"""Names that say, of fields of any server, that they change what is written. Sources: references of
OpenAI's API, llama.cpp, vLLM, SGLang, Text Generation Inference, text-generation-webui, Mistral."""
_HARMLESS = re.compile(_TABLE["harmless"])
"""They say how something is done that is not asked for."""


def read_fields(kind: type[Body], values: dict[str, Any]) -> Body:
    """Return ``values`` as ``kind``; a null counts as a field that was not sent, and 16.0 as 16.
    Raises RequestRefused."""
    sent = {
        name: int(value) if isinstance(value, float) and value.is_integer() else value
        for name, value in values.items()
        if value is not None
    }
    try:
        fields = msgspec.convert(sent, kind)
    except msgspec.ValidationError as error:
        raise invalid(_in_words(str(error))) from None
    except UnicodeEncodeError:
        raise invalid("a name, or a text in place of a number, has half a character") from None
    _refuse_unknown(kind, sent)
    return fields


def _in_words(message: str) -> str:
    """Return msgspec's message as one of ours: ``max_tokens is a whole number, not a text``."""
    what, _, path = message.partition(" - at `$")
    path = path.strip("`.").replace("[...]", "")
    if (named := re.search(r"(missing|unknown).*field `(.*)`$", what)) is not None:
        name = ".".join(filter(None, (path, named[2][:60])))
        return f"{name} is {'missing' if named[1] == 'missing' else 'not known here'}"
    expected, _, actual = what.removeprefix("Expected ").partition(", got ")
    if expected == what:
        return f"{path}: {what}"
    return f"{path} is {_types(expected)}" + (f", not {_types(actual)}" if actual else "")


def _types(text: str) -> str:
    def words(match: re.Match[str]) -> str:
        names = [name for name in match[1].split(" | ") if name != "null"]
        return " or ".join(_WORDS.get(name, name) for name in names or ["null"])

    return re.sub(r"`([^`]*)`", words, text)


def _refuse_unknown(kind: type[msgspec.Struct], values: dict[str, Any]) -> None:
    """Raise RequestRefused if ``values`` has a field that ``kind`` lacks and that would change what
    is written."""
    for name in sorted(values.keys() - set(kind.__struct_fields__)):
        if _changes(name, values[name]):
            raise invalid(f"{name[:60]} is not supported; leave it out")


def _changes(name: str, value: Any) -> bool:
    """Return if a field of this ``name`` changes what is written by this ``value``."""
    if value in ("", [], {}, ["text"], "none", "auto") or value is False:
        return False
    is_number = type(value) in (int, float)
    if is_number and (value in (0, -1) or (value == 1 and _ONE.fullmatch(name))):
        return False
    return bool(_CHANGES.search(name.lower())) and not _HARMLESS.fullmatch(name)
