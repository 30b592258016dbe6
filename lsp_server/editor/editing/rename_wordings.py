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
    rf"(?P<_{which}>[`'\"]?)(?P<{which}>{_PLAIN.pattern})(?P=_{which})" for which in ("old", "new")
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
    """The instruction's word for the renamed thing: ``parameter``, ``field``; may be empty."""

    @property
    def is_of_variable(self) -> bool:
        """True if the instruction means a variable of a scope."""
        return re.fullmatch(_VARIABLES, self.kind, re.IGNORECASE) is not None

    @property
    def is_of_member(self) -> bool:
        """True if the instruction means a member of something else."""
        return re.fullmatch(_MEMBERS, self.kind, re.IGNORECASE) is not None


def asks_for_rename(instruction: str, selection: str) -> bool:
    """Return True if ``instruction`` asks for a rename, to a name or in other words."""
    wording = rename_wording(instruction, selection) or plain_rename(instruction)
    return wording is not None


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
    for reading, within in _readings(text, {name for _, name in defined}):
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


def _readings(text: str, defined: set[str]) -> Iterator[tuple[str, str]]:
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
    named = rf"\b({_KIND})(?:'s name)?(?: from)?\s+[`'\"]?{re.escape(old)}(?!\w)"
    match = re.search(named, instruction, re.IGNORECASE)
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
