"""The models that a server lists: which can write text, and what it says of each."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from lsp_server.editor.remote.context_window import SERVED, WRITTEN

LLAMA_SERVER, LM_STUDIO, OLLAMA = "llamacpp", "organization_owner", "library"
"""Owners of models, by which servers are told apart."""
NAMES = (
    *("root", "parent", "base_model", "hugging_face_id", "hf_id", "hf_repo", "model_path"),
    *("model_alias", "general.basename", "general.name", "general.base_model.0.name"),
)
"""Where servers say what a model is behind the name that they list it by."""
ARCHITECTURES = ("arch", "architecture", "general.architecture", "model_type", "family")
_EXACT = {
    "starcoder": "starcoder",
    "starcoder2": "starcoder2",
    "codeshell": "codeshell",
    "refact": "refact",
    "deepseek2": "deepseek-v3",
    "deepseek_v3": "deepseek-v3",
    "qwen3": "qwen3",
    "qwen3moe": "qwen3",
    "qwen3_moe": "qwen3",
    "qwen3next": "qwen3",
    "glm4": "glm-4",
    "qwen2": "qwen2.5",
    "qwen2moe": "qwen2.5",
}
"""Architectures whose models have the markers of one family, as a name of that family."""
_NO_TEXT_TYPES = re.compile(r"embed|rerank|score|classif|speech|audio|transcri|image|moderation")
_NO_TEXT_NAMES = re.compile(
    r"embed|rerank|(?:^|[/_:-])(?:bge|gte|e5|uae|minilm|colbert|splade)(?:[-_:.]|$)|all-minilm"
    r"|sentence-t|whisper|(?:^|[/_-])tts(?:[-_]|$)|dall-?e|stable-diffusion|sdxl|moderation"
    r"|paraphrase-multilingual|arctic-embed|(?:^|[/_-])clip[-_]|flux[.-]",
    re.IGNORECASE,
)
_WRITES = ("completion", "completions", "chat", "insert", "text", "generate", "text-generation")


@dataclass(slots=True)
class ListedModel:
    """A model as a server lists it; ``facts``: all that the server says of it."""

    name: str
    facts: dict[str, Any] = field(default_factory=dict)

    @property
    def owner(self) -> str:
        """Whose it is: for some servers the name of the program."""
        return str(self.facts.get("owned_by") or "")

    @property
    def writes(self) -> bool:
        """Whether it writes text: by what the server says, else by its name."""
        said = _said_to_write(self.facts)
        return said if said is not None else _NO_TEXT_NAMES.search(self.name) is None

    @property
    def is_said_not_to_write(self) -> bool:
        """Whether the server itself says that it writes no text."""
        return _said_to_write(self.facts) is False

    @property
    def names(self) -> list[str]:
        """What it is called, the surest first: by what the server says, then by the name that it is
        listed by, then by its architecture."""
        facts = [one.rsplit("/models/", 1)[-1] for one in _texts(self.facts, NAMES)]
        kinds = [_EXACT.get(one.lower(), "") for one in _texts(self.facts, ARCHITECTURES)]
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
    """The models of an answer of ``/v1/models``, in its order; the list alone is taken, too."""
    listed = facts
    if isinstance(facts, dict):
        listed = facts.get("data") or facts.get("models")
    found: dict[str, ListedModel] = {}
    for one in listed if isinstance(listed, list) else []:
        name = one.get("id") or one.get("name") if isinstance(one, dict) else None
        if isinstance(name, str) and name:
            model = found[name] = ListedModel(name, {"owned_by": one.get("owned_by")})
            model.learn(one)
    return list(found.values())


def _said_to_write(facts: dict[str, Any]) -> bool | None:
    """Whether a model writes text, by its type or its capabilities; None where neither is told."""
    kind, able = facts.get("type"), facts.get("capabilities")
    if isinstance(kind, str) and _NO_TEXT_TYPES.search(kind.lower()):
        return False
    if isinstance(able, dict):
        able = [name for name, value in able.items() if value is True or isinstance(value, dict)]
    words = (
        {one.lower() for one in able if isinstance(one, str)} if isinstance(able, list) else set()
    )
    if words and not any(one.startswith(_WRITES) for one in words):
        return False if any(_NO_TEXT_TYPES.search(one) for one in words) else None
    return True if words or kind in ("llm", "vlm", "chat", "language", "code") else None


def _texts(facts: dict[str, Any], names: tuple[str, ...]) -> list[str]:
    return [facts[name] for name in names if isinstance(facts.get(name), str) and facts[name]]


def _walked(facts: Any, depth: int = 4) -> Iterator[tuple[str, Any]]:
    """Names and values of an object and of the objects in it, the outer ones first."""
    if not isinstance(facts, dict) or not depth:
        return
    yield from facts.items()
    for value in facts.values():
        yield from _walked(value, depth - 1)
