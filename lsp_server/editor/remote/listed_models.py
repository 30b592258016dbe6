"""The models that a server lists: which can write text, and what it says of each."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from lsp_server.editor.remote.answer_events import WORDS
from lsp_server.editor.remote.context_window import SERVED, WRITTEN

LLAMA_SERVER, LM_STUDIO, OLLAMA = "llamacpp", "organization_owner", "library"
"""Owners of models, by which servers are told apart."""
NAMES = (*WORDS["names"],)
"""Fields in which servers tell what a model is behind the name that they list it by."""
ARCHITECTURES = ("arch", "architecture", "general.architecture", "model_type", "family")
_EXACT: dict[str, str] = WORDS["exact"]
"""Architectures whose models have the markers of one family, as a name of that family."""
_NO_TEXT_TYPES = re.compile(r"embed|rerank|score|classif|speech|audio|transcri|image|moderation")
_NO_TEXT_NAMES = re.compile(WORDS["no text names"], re.IGNORECASE)
_WRITES = ("completion", "completions", "chat", "insert", "text", "generate", "text-generation")


@dataclass(slots=True)
class ListedModel:
    """A model as a server lists it; ``facts``: all that the server says of it."""

    name: str
    facts: dict[str, Any] = field(default_factory=dict)

    @property
    def owner(self) -> str:
        """The owner: for some servers the name of the program."""
        return str(self.facts.get("owned_by") or "")

    @property
    def writes(self) -> bool:
        """True if it writes text: by what the server says, else by its name."""
        writes = _said_to_write(self.facts)
        return writes if writes is not None else _NO_TEXT_NAMES.search(self.name) is None

    @property
    def is_said_not_to_write(self) -> bool:
        """True if the server itself says that it writes no text."""
        return _said_to_write(self.facts) is False

    @property
    def names(self) -> list[str]:
        """Its names, the surest first: those that the server tells, then the name that it is listed
        by, then by its architecture."""
        facts = [text.rsplit("/models/", 1)[-1] for text in _texts(self.facts, NAMES)]
        kinds = [_EXACT.get(text.lower(), "") for text in _texts(self.facts, ARCHITECTURES)]
        return [*facts, self.name, *filter(None, kinds)]

    def learn(self, facts: Any) -> None:
        """More of what the server says of it: the numbers and names that count, wherever they
        are."""
        for name, value in _walked(facts):
            short = name.rsplit(".", 1)[-1]
            if name in NAMES or name in ARCHITECTURES or name == "template":
                self.facts.setdefault(name, value)
            elif short in SERVED or short in WRITTEN or short in ("capabilities", "type"):
                self.facts.setdefault(short, value)


def listed_models(facts: Any) -> list[ListedModel]:
    """Return the models of an answer of ``/v1/models``, or of its list alone, in its order."""
    listed = facts
    if isinstance(facts, dict):
        listed = facts.get("data") or facts.get("models")
    models: dict[str, ListedModel] = {}
    for entry in listed if isinstance(listed, list) else []:
        name = entry.get("id") or entry.get("name") if isinstance(entry, dict) else None
        if isinstance(name, str) and name:
            model = models[name] = ListedModel(name, {"owned_by": entry.get("owned_by")})
            model.learn(entry)
    return list(models.values())


def _said_to_write(facts: dict[str, Any]) -> bool | None:
    """Return whether a model writes text, by its type or capabilities; None where unknown."""
    kind, able = facts.get("type"), facts.get("capabilities")
    if isinstance(kind, str) and _NO_TEXT_TYPES.search(kind.lower()):
        return False
    if isinstance(able, dict):
        able = [name for name, value in able.items() if value is True or isinstance(value, dict)]
    listed = able if isinstance(able, list) else []
    words = {word.lower() for word in listed if isinstance(word, str)}
    if words and not any(word.startswith(_WRITES) for word in words):
        return False if any(_NO_TEXT_TYPES.search(word) for word in words) else None
    return True if words or kind in ("llm", "vlm", "chat", "language", "code") else None


def _texts(facts: dict[str, Any], names: tuple[str, ...]) -> list[str]:
    return [facts[name] for name in names if isinstance(facts.get(name), str) and facts[name]]


def _walked(facts: Any, depth: int = 4) -> Iterator[tuple[str, Any]]:
    """Yield names and values of an object and of the objects in it, the outer ones first."""
    if not isinstance(facts, dict) or not depth:
        return
    yield from facts.items()
    for value in facts.values():
        yield from _walked(value, depth - 1)
