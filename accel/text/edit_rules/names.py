"""Names that instruction edits introduce: compounds, words of the source, random strings."""

from __future__ import annotations

import builtins
import keyword
import random
import re
import string

_WORDS = """
value item data result index count name path key node text line size width height total limit
offset start stop step first last left right source target buffer chunk batch entry record row
column field label title user group owner parent child child_node root leaf token word char
number amount price score rate ratio weight bias loss error message reason status state mode
flag option setting config context session request response payload header body query filter
handler callback factory builder loader writer reader parser visitor manager client server
address port host url timeout delay interval duration timestamp date year month day hour begin
end min max mean median low high lower upper old new current previous next other extra local
shared cache memo store table graph edge vertex matrix vector tensor array shape axis dim rank
channel frame image pixel layer model sample seed noise mask fill color style font margin
"""
_VERB_WORDS = """
Return Compute Update Create Load Save Check Build Convert Read Write Remove Add Find Parse
Format Apply Reset Merge Split Count Send Open Close Validate Render Collect
"""
COMMON_WORDS = _WORDS.split()
_VERBS = _VERB_WORDS.split()

_IDENTIFIER = re.compile(r"[A-Za-z_]\w{2,}")
_TAKEN = frozenset(keyword.kwlist) | frozenset(keyword.softkwlist) | frozenset(dir(builtins))


def new_name(source: str, rng: random.Random) -> str:
    """A name that does not occur in the source: compound, word, or letters by chance."""
    words = _IDENTIFIER.findall(source) or COMMON_WORDS
    while True:
        way = rng.random()
        if way < 0.3:
            name = "_".join(rng.choice(COMMON_WORDS) for _ in range(rng.choice((1, 1, 2, 2, 3))))
        elif way < 0.5:
            name = f"{rng.choice(words)}_{rng.choice(COMMON_WORDS)}".lower()
        elif way < 0.65:
            name = f"{rng.choice(COMMON_WORDS)}_{rng.choice(words)}".lower()
        elif way < 0.75:
            first, *rest = (rng.choice(COMMON_WORDS) for _ in range(rng.choice((2, 2, 3))))
            name = first + "".join(word.capitalize() for word in rest)
        elif way < 0.8:
            name = "_" + rng.choice(COMMON_WORDS)
        elif way < 0.87:
            name = rng.choice(COMMON_WORDS) + str(rng.randrange(1, 100))
        else:
            name = "".join(rng.choice(string.ascii_lowercase) for _ in range(rng.randint(1, 9)))
        used = re.search(rf"\b{re.escape(name)}\b", source)
        if name.isidentifier() and name not in _TAKEN and not used and len(name) <= 32:
            return name


def random_value(rng: random.Random) -> str:
    """A literal that may stand as a default."""
    return rng.choice(
        (
            "None",
            "True",
            "False",
            str(rng.randrange(0, 20)),
            str(rng.randrange(20, 5000)),
            f"{rng.random() * 10:.{rng.choice((1, 2, 3))}f}",
            f'"{rng.choice(COMMON_WORDS)}"',
            "()",
            '""',
            "-1",
        )
    )


def random_type(rng: random.Random) -> str:
    """A type expression."""
    simple = ("int", "str", "float", "bool", "bytes", "list", "dict", "object", "Path", "Any")
    inner, other = rng.choice(simple), rng.choice(simple)
    return rng.choice(
        (
            *("int", "str", "float", "bool", "bytes", "dict", "list", "Path"),
            inner,
            f"list[{inner}]",
            f"dict[str, {inner}]",
            f"{inner} | None",
            f"Optional[{inner}]",
            f"tuple[{inner}, {other}]",
            rng.choice(COMMON_WORDS).capitalize(),
        )
    )


def random_sentence(rng: random.Random) -> str:
    """A short sentence as it stands in a docstring."""
    verb = rng.choice(_VERBS)
    noun, other = rng.choice(COMMON_WORDS), rng.choice(COMMON_WORDS)
    tail = rng.choice(
        ("", f" of the {other}", f" for each {other}", f" from a {other}", f" and its {other}")
    )
    return f"{verb} {rng.choice(('the', 'a', 'every', 'all'))} {noun}{tail}."
