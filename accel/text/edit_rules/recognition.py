"""Instructions that the embedded model was trained on, recognised in the wordings of people.

A small model knows an edit by few wordings. An instruction that says one of these edits in other
words is put to it in a wording that it was trained on (``wordings``); what is not recognised stays
as it is. The same recognition says by which rule an answer can be checked.
"""

from __future__ import annotations

import builtins
import keyword
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache

from accel.text.edit_rules.by_rule import by_rule
from accel.text.edit_rules.phrases import PHRASES, said_parts
from accel.text.edit_rules.source_region import Replacement
from accel.text.edit_rules.wordings import TRAINED, WORDINGS

LONGEST = 300
"""Characters of an instruction that may be one of these; longer ones say more than one thing."""

_RENAMES = ("rename_parameter", "rename_variable", "rename_function")
_NAME = r"[A-Za-z_]\w*"
_SLOTS = {
    "old": _NAME,
    "new": _NAME,
    "name": _NAME,
    "style": "single|double",
    "error": r"[A-Za-z_][\w.]*",
    "level": "debug|info|warning|error",
    "decorator": r"@?[A-Za-z_][\w.]*(?:\(.*\))?",
    "action": r"(?:return|raise|pass)\b[^,;]*?",
}
_ANYTHING = r"\S(?:.*?\S)?"
_PARTS = re.compile(r"\{(?P<choices>[^{}]*)\}|<(?P<slot>\w+)>|(?P<plain>[^{<]+|.)")
_POLITE = re.compile(
    r"(?:(?:please|kindly|now|just|ok|okay|hey|hi)[,\s]+|(?:can|could|would|will) you |"
    r"i (?:want|need|would like) (?:you )?to |i'd like (?:you )?to |let'?s |we (?:should|need to) |"
    r"you should |go ahead and )+",
    re.IGNORECASE,
)
_AFTERTHOUGHT = re.compile(
    r"(?:,? (?:please|for me|now|everywhere|throughout|here|thanks|thank you|"
    r"(?:in|from|of|to|for|on) (?:this|the)(?: whole| entire| selected)? "
    r"(?:code|function|method|selection|file|snippet|block|class)))+$",
    re.IGNORECASE,
)
_PLACE = re.compile(r"(?P<rest>.+) (?:in|of) [`'\"]?(?P<name>[A-Za-z_]\w*)[`'\"]?")
_DEFINED = re.compile(r"^([ \t]*)(?:async[ \t]+)?def[ \t]+([A-Za-z_]\w*)", re.MULTILINE)
_NAMING = re.compile(r"(?i)\b(?:rename|variable|var|param|parameter|argument|function|method)\b")


@dataclass(frozen=True, slots=True)
class Instruction:
    """An edit of a known kind. ``kind`` and ``slots`` as in ``accel.training.edits``, all renames
    being ``rename`` with ``old`` and ``new``; ``parts`` make up a wording that the model was
    trained on, cut around what fills its slots; ``within`` names the function that is meant where
    the code has several."""

    kind: str
    slots: dict[str, str]
    parts: tuple[str, ...]
    within: str = ""

    def changes(self, selection: str) -> list[Replacement]:
        """The edit made by rule, in the order of its places, where the code's syntax tells them."""
        return by_rule(self.kind, self.slots, selection, self.within)


def recognise(instruction: str, selection: str) -> Instruction | None:
    """What an instruction asks of the selected code, None where that is no known kind of edit."""
    text = " ".join(instruction.split())
    if not text or len(text) > LONGEST:
        return None
    defined = _functions(selection)
    for candidate, place in _readings(text, defined):
        found = _match(candidate, selection, defined)
        if found is not None:
            kind, slots = found
            group = "rename" if kind in _RENAMES else kind
            where = (" in ", place) if place else ()
            return Instruction(group, slots, (*said_parts(kind, slots), *where), place)
    return None


def as_trained(instruction: str, selection: str) -> tuple[tuple[str, ...], list[Replacement]]:
    """The instruction in a wording of the training where it is recognised, else as it is, and the
    edit by rule, whose places are to be marked. What fills slots is a part of its own."""
    found = recognise(instruction, selection)
    return (found.parts, found.changes(selection)) if found else ((instruction,), [])


def _readings(text: str, defined: list[tuple[str, str]]) -> Iterator[tuple[str, str]]:
    """The instruction without what only decorates it, and the function that it names."""
    bare = text.rstrip(" .!?")
    core = _POLITE.sub("", bare, count=1) if _POLITE.match(bare) else bare
    core = core[0].lower() + core[1:] if core else core
    for candidate in dict.fromkeys((core, _AFTERTHOUGHT.sub("", core))):
        place = _PLACE.fullmatch(candidate)
        if place and place["name"] in _names(defined) and len(defined) > 1:
            yield place["rest"], place["name"]
        yield candidate, ""


def _match(
    text: str, selection: str, defined: list[tuple[str, str]]
) -> tuple[str, dict[str, str]] | None:
    """Kind and slots by the wording that leaves least to the slots."""
    best: tuple[int, str, dict[str, str]] | None = None
    for kind, pattern in _patterns():
        found = pattern.fullmatch(text)
        if found is None:
            continue
        slots = _completed(kind, _unmarked(found.groupdict()), text, selection, defined)
        said = len(text) - sum(len(value) for value in slots.values())
        if slots.get("old") != "" and (best is None or said > best[0]):
            best = said, kind, slots
    return None if best is None else best[1:]


def _unmarked(groups: dict[str, str]) -> dict[str, str]:
    """Slots without the marks around them; quotes around a value alone are part of the value."""
    slots = {name: value for name, value in groups.items() if name[0] != "_"}
    others = [groups[f"_{name}"] for name in slots if name != "value"]
    mark = groups.get("_value", "")
    if mark in ("'", '"') and mark not in others:
        slots["value"] = f"{mark}{slots['value']}{mark}"
    return slots


def _completed(
    kind: str, slots: dict[str, str], text: str, selection: str, defined: list[tuple[str, str]]
) -> dict[str, str]:
    """Slots as the training has them; ``old`` is empty where the rename makes no sense."""
    slots = dict(slots)
    if "decorator" in slots:
        slots["decorator"] = "@" + slots["decorator"].lstrip("@")
    if "style" in slots:
        slots["style"] = slots["style"].lower()
    if kind in _RENAMES:
        old = slots.get("old") or _outermost(defined)
        known = re.search(rf"(?<!\w){re.escape(old)}(?!\w)", selection) if old else None
        words = keyword.iskeyword(old) or keyword.iskeyword(slots["new"])
        # "Use logger instead of print" means more than another name.
        builtin = hasattr(builtins, old) and not _NAMING.search(text)
        slots["old"] = old if known and not words and not builtin and old != slots["new"] else ""
    return slots


def _functions(selection: str) -> list[tuple[str, str]]:
    """Indentation and name of every function."""
    return _DEFINED.findall(selection)


def _names(defined: list[tuple[str, str]]) -> set[str]:
    return {name for _, name in defined}


def _outermost(defined: list[tuple[str, str]]) -> str:
    """The one function that is indented least, empty when there are several or none."""
    least = min((len(indent) for indent, _ in defined), default=0)
    names = [name for indent, name in defined if len(indent) == least]
    return names[0] if len(names) == 1 else ""


@cache
def _patterns() -> tuple[tuple[str, re.Pattern[str]], ...]:
    """A pattern of every wording, those of the training among them."""
    return tuple(
        (kind, re.compile(_pattern(wording), re.IGNORECASE))
        for kind in TRAINED
        for written in (*PHRASES[kind], *WORDINGS.get(kind, ()))
        for wording in _without_slots_in_choices(written)
    )


def _without_slots_in_choices(wording: str) -> list[str]:
    """One wording for every option of a choice that has slots in it."""
    for part in _PARTS.finditer(wording):
        options = (part["choices"] or "").split("|")
        if any("<" in option for option in options):
            heads = (wording[: part.start()] + option for option in options)
            rest = wording[part.end() :]
            return [each for head in heads for each in _without_slots_in_choices(head + rest)]
    return [wording]


def _pattern(wording: str) -> str:
    """A wording, ``{a|b}`` a choice and ``<name>`` a slot, as a regular expression."""
    parts = []
    for part in _PARTS.finditer(wording):
        if part["choices"] is not None:
            longest_first = sorted(part["choices"].split("|"), key=len, reverse=True)
            options = "|".join(map(re.escape, longest_first))
            parts.append(f"(?:{options})")
        elif part["slot"] is not None:
            slot = part["slot"]
            body = f"(?P<{slot}>{_SLOTS.get(slot, _ANYTHING)})"
            mark = f"_{slot}"
            parts.append(rf"(?P<{mark}>[`'\"]?){body}(?P={mark})")
        else:
            parts.append(re.escape(part["plain"]))
    return "".join(parts)
