"""Understands an instruction to rename: which name, the new name, and where besides the code."""

from __future__ import annotations

import builtins
import keyword
import re
from collections.abc import Iterator
from dataclasses import dataclass, replace

LONGEST = 300
"""Characters of an instruction that may be a rename; longer ones say more than one thing."""
_PART = r"(?:code|names?|comments?|doc[- ]?strings?|strings?(?: literals?)?|text)"
_PLACES = re.compile(
    rf"""[,;]?\s*\(?(?:and\s+|but\s+)?(?:also\s+|even\s+)?(?P<no>not\s+|except\s+(?:for\s+)?)?
    (?:(?:in|inside|inside\s+of|within|including|incl\.?)\s+)(?:the\s+|all\s+|any\s+|its\s+)?
    (?P<parts>{_PART}(?:\s*(?:,\s*and\b|,|and\b|or\b|&|\+|/)\s*(?:in\s+|the\s+|all\s+)*{_PART})*)
    (?:\s+(?:too|also|as\s+well))?\)?""",
    re.IGNORECASE | re.VERBOSE,
)
_EVERYWHERE = re.compile(r"\beverywhere\b", re.IGNORECASE)
_WORD = re.compile(r"[$@#:]*[^\W\d][\w$]*")
_PLAIN = re.compile(r"[A-Za-z_][A-Za-z_0-9]*")
_STAND_IN = "stand_in_for_name_"
_RENAME = re.compile(
    r"""(?:please\s+|can\s+you\s+|could\s+you\s+)?(?:rename|change\s+the\s+name\s+of)\s+
    (?P<old>\S.*?)\s+(?:to|into|as|->|=>|→)\s+(?P<new>\S.*?)
    (?:\s+in\s+(?:the\s+)?(?:function\s+|method\s+)?(?P<within>[^\W\d]\w*))?[\s.!?]*""",
    re.IGNORECASE | re.VERBOSE,
)

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
_WITHIN = re.compile(r"(?P<rest>.+) (?:in|of) [`'\"]?(?P<name>[A-Za-z_]\w*)[`'\"]?")
_DEFINED = re.compile(r"^([ \t]*)(?:async[ \t]+)?def[ \t]+([A-Za-z_]\w*)", re.MULTILINE)
_NAMING = re.compile(r"(?i)\b(?:rename|variable|var|param|parameter|argument|function|method)\b")
_VARIABLES = (
    "parameter|argument|param|arg|(?:local )?variable|local|var|constant|const|function|type"
)
_MEMBERS = "method|field|property|attribute|member|key"
_KIND = f"(?:{_VARIABLES}|{_MEMBERS}|class)"
_NOUN = rf"(?:the |this )?(?:{_KIND} |name |identifier )?"
_OLD, _NEW = (
    rf"(?P<_{one}>[`'\"]?)(?P<{one}>{_PLAIN.pattern})(?P=_{one})" for one in ("old", "new")
)
_TO = "(?:to|into|as|->|=>|→)"
_IT = "(?:it|this function|the function|(?:the |this )?(?:function|method))"
_WORDINGS = tuple(
    re.compile(wording, re.IGNORECASE)
    for wording in (
        rf"(?:rename|change|refactor|update) {_NOUN}{_OLD} {_TO} {_NEW}",
        rf"(?:rename|change) the name of {_NOUN}{_OLD} {_TO} {_NEW}",
        rf"(?:rename|change) (?:the {_KIND}'s name )?{_NOUN}from {_OLD} to {_NEW}",
        rf"(?:replace|swap) the (?:name|{_KIND}) {_OLD} (?:with|by) {_NEW}",
        rf"{_NOUN}{_OLD} should be (?:called|named|renamed to|renamed) {_NEW}",
        rf"(?:use|prefer) (?:the name )?{_NEW} (?:instead of|rather than|in place of) {_OLD}",
        rf"(?:call|name) {_NOUN}{_OLD} {_NEW}(?: instead)?",
        # The one function that is defined is meant.
        rf"(?:rename|change) {_IT}(?:'s name)? {_TO} {_NEW}",
        rf"change the name of the function {_TO} {_NEW}",
        rf"(?:call|name) {_IT} {_NEW}(?: instead)?",
    )
)


@dataclass(frozen=True, slots=True)
class RenameWording:
    """``old`` becomes ``new``; ``within`` names a function, empty for all of the code."""

    old: str
    new: str
    within: str = ""
    comments: bool = False
    strings: bool = False
    kind: str = ""
    """What the instruction calls it: ``parameter``, ``field``; empty where it does not."""

    @property
    def is_of_variable(self) -> bool:
        """Whether a variable of a scope is meant."""
        return re.fullmatch(_VARIABLES, self.kind, re.IGNORECASE) is not None

    @property
    def is_of_member(self) -> bool:
        """Whether what is meant belongs to something else."""
        return re.fullmatch(_MEMBERS, self.kind, re.IGNORECASE) is not None


def asks_for_rename(instruction: str, selection: str) -> bool:
    """Whether an instruction asks for a rename, to a name or in other words."""
    wording = rename_wording(instruction, selection) or plain_rename(instruction)
    return wording is not None


def rename_wording(instruction: str, selection: str) -> RenameWording | None:
    """What an instruction asks to be renamed; None where it is about something else."""
    code, comments, strings = _places(instruction)
    names: list[str] = []

    def stand_in(word: re.Match[str]) -> str:
        if _PLAIN.fullmatch(word.group()):
            return word.group()
        names.append(word.group())
        return f"{_STAND_IN}{len(names) - 1}"

    plain = _WORD.sub(stand_in, code)
    found = _recognised(plain, selection)
    if found is None:
        return None
    old, new = (_as_written(_named(name, names), code) for name in found[:2])
    stands = re.search(rf"(?<!\w){re.escape(old)}(?!\w)", selection)
    if stands is None and not _RENAME.fullmatch(code.strip()):
        # "Use tabs instead of spaces" is a rename only where such names are.
        return None
    return RenameWording(old, new, found[2], comments, strings, _kind(code, old))


def _recognised(instruction: str, selection: str) -> tuple[str, str, str] | None:
    """Old name, new name and the function that is meant, by the wording that leaves least open."""
    text = " ".join(instruction.split())
    if not text or len(text) > LONGEST:
        return None
    defined = _DEFINED.findall(selection)
    for reading, within in _readings(text, {name for _, name in defined}):
        found = (wording.fullmatch(reading) for wording in _WORDINGS)
        renames = [
            (one.groupdict().get("old") or _outermost(defined), one["new"]) for one in found if one
        ]
        sensible = [one for one in renames if _makes_sense(*one, reading)]
        if sensible:
            return *min(sensible, key=lambda one: len(one[0]) + len(one[1])), within
    return None


def _readings(text: str, defined: set[str]) -> Iterator[tuple[str, str]]:
    """The instruction without what only decorates it, and the function that it names."""
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
    """What an instruction that begins as a rename does has where the names are expected, be it
    names or not; None for others."""
    code, comments, strings = _places(instruction)
    found = _RENAME.fullmatch(code.strip())
    if found is None:
        return None
    old, new = (found[which].strip("`'\"") for which in ("old", "new"))
    kind = _kind(code, old)
    return RenameWording(old, new, found["within"] or "", comments, strings, kind)


def _kind(instruction: str, old: str) -> str:
    """The word for what has the old name, right before it."""
    named = rf"\b({_KIND})(?:'s name)?(?: from)?\s+[`'\"]?{re.escape(old)}(?!\w)"
    found = re.search(named, instruction, re.IGNORECASE)
    return found[1] if found else ""


def with_sigils_of(wording: RenameWording, language: str) -> RenameWording:
    """The names as a language's syntax has them: a sigil (``$name``) is no part of the name."""
    sigils = "$" if language in {"php", "perl", "shellscript", "bash", "powershell"} else "@:#"
    if wording.old.startswith("@"):
        wording = replace(wording, kind="field")
    return replace(wording, old=wording.old.lstrip(sigils), new=wording.new.lstrip(sigils))


def _places(instruction: str) -> tuple[str, bool, bool]:
    """The instruction without what it says about comments and strings; whether each is meant."""
    found = _PLACES.search(instruction)
    everywhere = _EVERYWHERE.search(instruction) is not None
    if found is None:
        return instruction, everywhere, everywhere
    code = instruction[: found.start()] + instruction[found.end() :]
    parts = found["parts"].lower()
    if found["no"]:
        return code, everywhere and "comment" not in parts, everywhere and "string" not in parts
    return code, everywhere or "comment" in parts, everywhere or "string" in parts


def _named(slot: str, names: list[str]) -> str:
    return names[int(slot.removeprefix(_STAND_IN))] if slot.startswith(_STAND_IN) else slot


def _as_written(name: str, instruction: str) -> str:
    """A name as the instruction spells it: the first letter of a sentence counts, too."""
    spelt = [found.group() for found in _WORD.finditer(instruction)]
    same = [word for word in spelt if word.lower() == name.lower()]
    return name if name in spelt or not same else same[0]
