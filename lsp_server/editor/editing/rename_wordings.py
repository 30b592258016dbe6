"""Understands an instruction to rename: which name, the new name, and where besides the code."""

from __future__ import annotations

import builtins
import keyword
import re
from collections.abc import Iterator
from dataclasses import dataclass, replace

from lsp_server.editor.editing.wordings import TABLE, compiled

LONGEST = 300
"""Characters of an instruction that may be a rename; longer ones say more than one thing."""
_PLACES = compiled(TABLE["places"])
_EVERYWHERE = re.compile(r"\beverywhere\b", re.IGNORECASE)
_WORD = re.compile(r"[$@#:]*[^\W\d][\w$]*")
_PLAIN = re.compile(r"[A-Za-z_][A-Za-z_0-9]*")
_STAND_IN = "stand_in_for_name_"
_RENAME, _POLITE = compiled(TABLE["rename"]), compiled(TABLE["polite"])
_AFTERTHOUGHT = compiled(TABLE["afterthought"])
_WITHIN = re.compile(r"(?P<rest>.+) (?:in|of) [`'\"]?(?P<name>[A-Za-z_]\w*)[`'\"]?")
_DEFINED = re.compile(r"^([ \t]*)(?:async[ \t]+)?def[ \t]+([A-Za-z_]\w*)", re.MULTILINE)
_NAMING = compiled(TABLE["naming"])
_WORDINGS = tuple(map(compiled, TABLE["renames"]))
_REPLACEMENTS = tuple(map(compiled, TABLE["replaces"]))


@dataclass(frozen=True, slots=True)
class RenameWording:
    """``old`` becomes ``new``; ``within`` names a function, empty for all of the code."""

    old: str
    new: str
    within: str = ""
    comments: bool = False
    strings: bool = False
    kind: str = ""
    """The instruction's word for the renamed thing: ``parameter``, ``field``; may be empty."""

    def is_of(self, what: str) -> bool:
        """Return True if the instruction means a ``member``, or a ``variable`` of a scope."""
        return compiled(TABLE[what]).fullmatch(self.kind) is not None


def asks_for_rename(instruction: str, selection: str) -> bool:
    """Return True if ``instruction`` asks for a rename, to a name or in other words."""
    return (rename_wording(instruction, selection) or plain_rename(instruction)) is not None


def rename_wording(instruction: str, selection: str) -> RenameWording | None:
    """Return the rename that ``instruction`` asks for; None if it asks for something else."""
    code, comments, strings = _places(instruction)
    names: list[str] = []

    def stand_in(word: re.Match[str]) -> str:
        if _PLAIN.fullmatch(word.group()):
            return word.group()
        names.append(word.group())
        return f"{_STAND_IN}{len(names) - 1}"

    plain = _WORD.sub(stand_in, code)
    recognised = _recognised(plain, selection)
    if recognised is None:
        return None
    slots = {f"{_STAND_IN}{number}": name for number, name in enumerate(names)}
    old, new = (_as_written(slots.get(name, name), code) for name in recognised[:2])
    stands = re.search(rf"(?<!\w){re.escape(old)}(?!\w)", selection)
    if stands is None and not _RENAME.fullmatch(code.strip()):
        # "Use tabs instead of spaces" is a rename only where such names are.
        return None
    return RenameWording(old, new, recognised[2], comments, strings, _kind(code, old))


def _recognised(instruction: str, selection: str) -> tuple[str, str, str] | None:
    """Return old name, new name and the function that the instruction names, by the wording that
    leaves least open."""
    text = " ".join(instruction.split())
    if not text or len(text) > LONGEST:
        return None
    defined = _DEFINED.findall(selection)
    for reading, within in readings(text, {name for _, name in defined}):
        matches = (wording.fullmatch(reading) for wording in _WORDINGS)
        renames = [
            (rename.groupdict().get("old") or _outermost(defined), rename["new"])
            for rename in matches
            if rename
        ]
        sensible = [rename for rename in renames if _makes_sense(*rename, reading)]
        if sensible:
            return *min(sensible, key=lambda rename: len(rename[0]) + len(rename[1])), within
    return None


def readings(text: str, defined: set[str]) -> Iterator[tuple[str, str]]:
    """Yield the instruction without polite words, and the function that it names."""
    bare = text.rstrip(" .!?")
    core = _POLITE.sub("", bare, count=1) if _POLITE.match(bare) else bare
    core = core[:1].lower() + core[1:]
    for candidate in dict.fromkeys((core, _AFTERTHOUGHT.sub("", core))):
        within = _WITHIN.fullmatch(candidate)
        if within and within["name"] in defined and len(defined) > 1:
            yield within["rest"], within["name"]
        yield candidate, ""


def _outermost(defined: list[tuple[str, str]]) -> str:
    least = min((len(indent) for indent, _ in defined), default=0)
    names = [name for indent, name in defined if len(indent) == least]
    return names[0] if len(names) == 1 else ""


def _makes_sense(old: str, new: str, text: str) -> bool:
    # "Use logger instead of print" means more than another name.
    builtin = hasattr(builtins, old) and not _NAMING.search(text)
    words = keyword.iskeyword(old) or keyword.iskeyword(new)
    return bool(old) and old != new and not words and not builtin


def plain_rename(instruction: str) -> RenameWording | None:
    """Return the words that an instruction in the form of a rename has in the positions of the two
    names, valid names or not; None for other instructions."""
    code, comments, strings = _places(instruction)
    match = _RENAME.fullmatch(code.strip())
    if match is None:
        return None
    old, new = (match[which].strip("`'\"") for which in ("old", "new"))
    kind = _kind(code, old)
    return RenameWording(old, new, match["within"] or "", comments, strings, kind)


def _kind(instruction: str, old: str) -> str:
    """Return the word right before ``old`` that says what it is, such as ``parameter``."""
    named = rf"\b({{kind}})(?:'s name)?(?: from)?\s+[`'\"]?{re.escape(old)}(?!\w)"
    match = compiled(named).search(instruction)
    return match[1] if match else ""


def with_sigils_of(wording: RenameWording, language: str) -> RenameWording:
    """Return ``wording`` with names as the language's syntax tree has them, without sigils
    (``$name``)."""
    sigils = "$" if language in {"php", "perl", "shellscript", "bash", "powershell"} else "@:#"
    if wording.old.startswith("@"):
        wording = replace(wording, kind="field")
    return replace(wording, old=wording.old.lstrip(sigils), new=wording.new.lstrip(sigils))


def _places(instruction: str) -> tuple[str, bool, bool]:
    """Return the instruction without its words about comments and strings, and whether the rename
    includes comments and strings."""
    match = _PLACES.search(instruction)
    everywhere = _EVERYWHERE.search(instruction) is not None
    if match is None:
        return instruction, everywhere, everywhere
    code = instruction[: match.start()] + instruction[match.end() :]
    named = match["parts"].lower()
    if match["no"]:
        return code, everywhere and "comment" not in named, everywhere and "string" not in named
    return code, everywhere or "comment" in named, everywhere or "string" in named


def _as_written(name: str, instruction: str) -> str:
    """Return ``name`` as the instruction spells it."""
    spelt = [match.group() for match in _WORD.finditer(instruction)]
    same = [word for word in spelt if word.lower() == name.lower()]
    return name if name in spelt or not same else same[0]


@dataclass(frozen=True, slots=True)
class AskedReplacement:
    """``old`` becomes ``new``; ``is_plain``: the instruction gives just these words."""

    old: str
    new: str
    is_plain: bool


def replacement_in(instruction: str) -> AskedReplacement | None:
    """Return the replacement that an instruction asks for; None without one."""
    for reading, _ in readings(" ".join(instruction.split()), set()):
        for wording in _REPLACEMENTS:
            if match := wording.fullmatch(reading):
                old, new = match["old"].strip("`'\" "), match["new"].strip("`'\" ")
                is_plain = "plain" in match.groupdict()
                return AskedReplacement(old, new, is_plain) if old and new and old != new else None
    return None
