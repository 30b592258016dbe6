"""Types of Go that have a member in common: an interface and what keeps it, a struct and what
embeds it."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Mapping

_TYPE = re.compile(
    r"(?ms)^(\t?)(?:type )?(\w+)(?:\[[^\n]*\])? (?:interface|struct) ?\{(\n.*?^\1|[^\n]*)\}"
)
_METHOD = re.compile(r"^func \((?:\w+ )?\*?(\w+)[^)]*\) (\w+)(\(.*)", re.M)
_PROMISED = re.compile(r"^\s+(\w+)(\(.*)", re.M)
_SIGNATURE = re.compile(r"\(((?:[^()]|\([^()]*\))*)\) *(.*?)(?: *(?:\{|//).*)?$")
_PLAIN = {"", "bool", "string", "error", "int", "float64"}
"""Results of methods that have no other name."""
_FIELDS = re.compile(r"^\s+(\w+(?:, \w+)*) +[^|\s]", re.M)
_EMBEDDED = re.compile(r"^\s+\*?((?:\w+\.)?(\w+))(?:\[.*\])?[ \t]*(?:`.*|//.*)?$", re.M)


class GoTypes:
    """The types that a text declares, by what they have."""

    def __init__(self, text: str) -> None:
        self._methods: defaultdict[str, dict[str, str]] = defaultdict(dict)
        self._fields: dict[str, dict[str, str]] = {}
        self._embedded: dict[str, dict[str, str]] = {}
        """The names of what each embeds, and how they are written."""
        self._interfaces: set[str] = set()
        for _, name, written in _TYPE.findall(text):
            body = written.replace(";", "\n")
            promised = _PROMISED.findall(body)
            self._methods[name].update(promised)
            self._embedded[name] = {own: written for written, own in _EMBEDDED.findall(body)}
            fields = re.findall(r"\w+", " ".join(_FIELDS.findall(body)))
            self._fields[name] = dict.fromkeys([*fields, *self._embedded[name]], "")
            self._interfaces |= {name} if promised else set()
        for name, method, signature in _METHOD.findall(text):
            self._methods[name][method] = signature

    def sharing(self, owner: str, member: str) -> set[str]:
        """Return the types whose ``member`` has to be called as that of the type ``owner``."""
        types, others = [owner], self._methods.keys() | self._fields.keys()
        for name in types:
            types += [other for other in others - set(types) if self._share(name, other, member)
                      or self._share(other, name, member)]  # fmt: skip
        return set(types)

    def embedding(self, name: str) -> list[str]:
        """Return the types that embed a type, which is written so, and have a field of its name."""
        return [outer for outer, names in self._embedded.items() if name in names.values()]

    def _share(self, name: str, other: str, member: str) -> bool:
        if other in self._embedded.get(name, ()):
            is_own = member in self._methods[name] or member in self._fields[name]
            promoted = self._all(self._fields, other) | self._all(self._methods, other)
            return not is_own and (member in promoted or other not in self._methods)
        if name not in self._interfaces or other in self._interfaces:
            return False
        promised, kept = (self._all(self._methods, each) for each in (name, other))
        return member in promised and all(
            method in kept and _alike(promised[method], kept[method]) for method in promised
        )

    def _all(
        self, table: Mapping[str, dict[str, str]], name: str, around: frozenset[str] = frozenset()
    ) -> dict[str, str]:
        """Return what a type has by a table, with what it embeds. around: what embeds it."""
        outer, members = around | {name}, dict[str, str]()
        for base in self._embedded.get(name, {}).keys() - outer:
            members |= self._all(table, base, outer)
        return members | table.get(name, {})


def _alike(promised: str, kept: str) -> bool:
    """Return whether a method may be what an interface wants, by their signatures."""
    matches = [match for text in (promised, kept) if (match := _SIGNATURE.match(text))]
    results = {match[2] for match in matches}
    lists = [re.sub(r"[(\[{].*?[)\]}]", "", match[1].strip()) for match in matches]
    counts = {bool(names) + names.count(",") for names in lists}
    return len(counts) <= 1 and (len(results) <= 1 or not results <= _PLAIN)
