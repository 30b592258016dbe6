"""What an instruction to rename says: which name, into what, and where beside the code."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace

from accel.text.edit_rules.recognition import recognise

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


@dataclass(frozen=True, slots=True)
class RenameWording:
    """``old`` becomes ``new``; ``within`` names a function, empty for all of the code."""

    old: str
    new: str
    within: str = ""
    comments: bool = False
    strings: bool = False


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
    # Every name is taken as known here: whether the code holds it is told from its syntax.
    known = recognise(plain, f"{selection}\n{plain}\n{plain[:1].lower()}{plain[1:]}")
    if known is None or known.kind != "rename":
        return None
    old, new = (_as_written(_named(known.slots[slot], names), code) for slot in ("old", "new"))
    stands = re.search(rf"(?<!\w){re.escape(old)}(?!\w)", selection)
    if stands is None and not _RENAME.fullmatch(code.strip()):
        # "Use tabs instead of spaces" is a rename only where such names are.
        return None
    return RenameWording(old, new, known.within, comments, strings)


def plain_rename(instruction: str) -> RenameWording | None:
    """What an instruction that begins as a rename does has in the places of the names, be it names
    or not; None for others."""
    code, comments, strings = _places(instruction)
    found = _RENAME.fullmatch(code.strip())
    if found is None:
        return None
    old, new = (found[which].strip("`'\"") for which in ("old", "new"))
    return RenameWording(old, new, found["within"] or "", comments, strings)


def with_sigils_of(wording: RenameWording, language: str) -> RenameWording:
    """The names as a language's syntax has them: a sigil (``$name``) is no part of the name."""
    sigils = "$" if language in {"php", "perl", "shellscript", "bash", "powershell"} else "@:#"
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
